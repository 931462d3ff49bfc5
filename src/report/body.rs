//! The part of a report that differs from command to command.

use serde::Serialize;
use serde_json::{Map, Value};

use super::text::Frame;
use super::{
    CertificateReport, DeploymentResult, ServingReport, SiteReport, SourceReport, UploadReport, deployment,
    deployment_result,
};
use crate::check::{Finding, Status};
use crate::error::CommandError;
use crate::outcome::{ChangedRecords, Outcome};
use crate::plan::Step;

/// The body of a report.
pub(crate) trait Body: Serialize + Default {
    /// Formats the lines for standard output.
    fn to_text(&self, frame: &Frame<'_>) -> String;

    /// The result of each lineage's deployment, given the exit code and the errors of the run.
    fn deployments<'a>(&'a self, _exit_code: u8, _errors: &'a [CommandError]) -> Vec<DeploymentResult<'a>> {
        Vec::new()
    }
}

/// A body that a command sets when it has done its work. Until then, the report has none of its fields.
impl<B: Body> Body for Option<B> {
    fn to_text(&self, frame: &Frame<'_>) -> String {
        self.as_ref().map(|body| body.to_text(frame)).unwrap_or_default()
    }

    fn deployments<'a>(&'a self, exit_code: u8, errors: &'a [CommandError]) -> Vec<DeploymentResult<'a>> {
        self.as_ref().map(|body| body.deployments(exit_code, errors)).unwrap_or_default()
    }
}

/// The body of the reports of `deploy`, `plan` and `check`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DeployBody {
    /// The lineage's name, for the system log; not part of the JSON object.
    #[serde(skip)]
    pub(crate) lineage: Option<String>,
    /// Whether the run sent anything that changes the service; for a plan, whether `deploy` would.
    pub(crate) changed: bool,
    pub(crate) source: Option<SourceReport>,
    pub(crate) certificate: Option<CertificateReport>,
    pub(crate) checks: Vec<Finding>,
    pub(crate) uploads: Vec<UploadReport>,
    pub(crate) sites: Vec<SiteReport>,
    /// For the state; not part of the JSON object.
    #[serde(skip)]
    pub(crate) records: ChangedRecords,
    /// The planned steps; `None` except for `plan` and `deploy --dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Vec<Step>>,
    /// What the edges serve now; `None` except for `plan` and `deploy --dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<Vec<ServingReport>>,
}

impl DeployBody {
    /// Adds the body of the same lineage's deployment to another account.
    pub(super) fn merge(&mut self, other: Self) {
        self.changed |= other.changed;
        self.lineage = self.lineage.take().or(other.lineage);
        self.source = self.source.take().or(other.source);
        self.certificate = self.certificate.take().or(other.certificate);
        if self.checks.iter().all(|finding| finding.status != Status::Fail) && !other.checks.is_empty() {
            self.checks = other.checks;
        }
        self.uploads.extend(other.uploads);
        self.sites.extend(other.sites);
        if let Some(steps) = other.plan {
            self.plan.get_or_insert_default().extend(steps);
        }
        if let Some(serving) = other.serving {
            self.serving.get_or_insert_default().extend(serving);
        }
    }

    /// Names the service in the results, for a run that deploys to several accounts.
    pub(super) fn set_service(&mut self, service: &str) {
        let sites = self.sites.iter_mut().map(|site| &mut site.service);
        let uploads = self.uploads.iter_mut().map(|upload| &mut upload.service);
        let steps = self.plan.iter_mut().flatten().map(|step| &mut step.service);
        let serving = self.serving.iter_mut().flatten().map(|serving| &mut serving.service);
        sites.chain(uploads).chain(steps).chain(serving).for_each(|place| *place = Some(service.to_owned()));
    }

    /// Whether other lineages provide the certificate of all its sites.
    pub(crate) fn is_superseded(&self) -> bool {
        !self.sites.is_empty() && self.sites.iter().all(|site| site.outcome == Outcome::Superseded)
    }
}

impl Body for DeployBody {
    fn to_text(&self, frame: &Frame<'_>) -> String {
        deployment::text(self, frame)
    }

    fn deployments<'a>(&'a self, exit_code: u8, errors: &'a [CommandError]) -> Vec<DeploymentResult<'a>> {
        let outcomes = self.sites.iter().map(|site| (&site.outcome, site.is_required));
        let outcome = deployment_result::most_severe(&outcomes);
        let lineage = self.lineage.as_deref().into_iter();
        lineage
            .map(|lineage| DeploymentResult { lineage, outcome, exit_code, changed: self.changed, errors })
            .collect()
    }
}

/// The body of all other reports: JSON fields, and text.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    #[serde(flatten)]
    fields: Map<String, Value>,
    /// Printed unless JSON is requested.
    #[serde(skip)]
    pub(crate) text: String,
}

impl Output {
    /// Sets a field of the JSON object.
    pub(crate) fn set(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.fields.insert(field.to_owned(), value);
    }
}

impl Body for Output {
    fn to_text(&self, _frame: &Frame<'_>) -> String {
        self.text.clone()
    }
}
