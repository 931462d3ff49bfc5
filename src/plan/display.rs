//! A plan for people: its steps with their reasons.

use serde::Serialize;

use super::{Action, Plan, Target, Upload};
use crate::names::Domain;
use crate::text;

/// One step, or a site that is left, and why.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// What is done.
    #[serde(rename = "step")]
    pub(crate) action: StepAction,
    /// The domain that is uploaded for, or the site that is bound or left.
    pub(crate) domain: String,
    /// Records that the step changes, or of which it changes one; empty where one is created.
    pub(crate) cert_ids: Vec<u64>,
    /// Sites that the new certificate reaches by this step.
    pub(crate) sites: Vec<String>,
    pub(crate) reason: String,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StepAction {
    /// An upload that replaces a record in place.
    Replace,
    /// An upload that creates a record.
    Create,
    /// An upload of which nothing is known beforehand.
    Upload,
    /// An update of a site's `cert_id`.
    Bind,
    /// Nothing: deploying there would break something else.
    Guard,
    /// Nothing: it cannot be done, or was not asked for.
    Leave,
}

text::display_as_serialized!(StepAction);

impl Step {
    /// The upload_only upload, for which nothing is listed.
    pub(crate) fn upload_only(domain: &Domain) -> Self {
        let reason = "asked for with --domain and --wait 0: no listing, no guard, no wait".to_owned();
        let domain = domain.to_string();
        Self { action: StepAction::Upload, domain, cert_ids: Vec::new(), sites: Vec::new(), reason }
    }
}

impl Plan<'_> {
    /// The steps in the order in which they are carried out.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let uploads = self.uploads.iter().enumerate().map(|(at, upload)| self.upload_step(at, upload));
        let others = self.targets.iter().filter_map(|target| self.site_step(target));
        let mut steps: Vec<Step> = uploads.chain(others).collect();
        steps.sort_by_key(|step| step.action as u8 > StepAction::Upload as u8);
        steps
    }

    fn upload_step(&self, at: usize, upload: &Upload<'_>) -> Step {
        let sites: Vec<String> = self
            .fed_by(at)
            .filter(|target| !matches!(target.action, Action::Bound(..)))
            .map(|target| target.site.domain.to_string())
            .collect();
        let (action, reason) = match upload.replaces.as_slice() {
            [] if sites.is_empty() => (StepAction::Create, "a record to bind to is needed".to_owned()),
            [] => (StepAction::Create, format!("{} no certificate", having(&sites, "has", "have"))),
            [id] if sites.is_empty() => (StepAction::Replace, format!("certificate {id} is stored for it")),
            [id] => (StepAction::Replace, format!("certificate {id} feeds {}", text::list(&sites))),
            several => {
                (StepAction::Replace, format!("one of certificates {} is stored for it", ids(several)))
            }
        };
        let (domain, cert_ids) = (upload.domain.to_string(), upload.replaces.clone());
        Step { action, domain, cert_ids, sites, reason }
    }

    fn site_step(&self, target: &Target<'_>) -> Option<Step> {
        let site = target.site;
        let (action, reason) = match &target.action {
            Action::Replaced(_) | Action::Created(_) => return None,
            Action::Bound(upload, blocker) => {
                let domain = self.uploads.get(*upload).map(|upload| upload.domain.to_string());
                let why = blocker.as_ref().map_or("it has no certificate".to_owned(), ToString::to_string);
                (
                    StepAction::Bind,
                    format!("to the record uploaded for {}: {why}", domain.unwrap_or_default()),
                )
            }
            Action::Left(blocker) if blocker.is_guard() => (StepAction::Guard, blocker.to_string()),
            Action::Left(blocker) => (StepAction::Leave, blocker.to_string()),
            Action::Untouched => (StepAction::Leave, "it was not asked for".to_owned()),
        };
        let domain = site.domain.to_string();
        let sites = if action == StepAction::Bind { vec![domain.clone()] } else { Vec::new() };
        Some(Step { action, domain, cert_ids: site.cert_id.into_iter().collect(), sites, reason })
    }
}

fn having(sites: &[String], one: &str, several: &str) -> String {
    format!("{} {}", text::list(sites), if sites.len() == 1 { one } else { several })
}

fn ids(ids: &[u64]) -> String {
    text::list(&ids.iter().map(ToString::to_string).collect::<Vec<_>>())
}
