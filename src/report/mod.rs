//! The result of a command: one generic type, printed as text or as the JSON object for scripts.

mod body;
mod deployment;
mod deployment_result;
mod edge;
mod plan;
mod style;
mod table;
mod text;
mod uploads;

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;

use crate::bundle::Chain;
use crate::cert::Certificate;
use crate::check::{Finding, Status};
use crate::clock::Moment;
use crate::error::{CommandError, ErrorKind, FailedCheck};
use crate::hint::{Command, Place};
use crate::outcome::Outcome;
use crate::plan::Step;
use crate::sightings::EdgeFindings;
use crate::source::{AcmeClient, Source};
use crate::text::rfc3339;

pub(crate) use self::body::{Body, DeployBody, Output};
pub use self::deployment_result::DeploymentResult;
pub(crate) use self::edge::{EdgeReport, ServingReport};
pub(crate) use self::style::Sign;
pub use self::style::Style;
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::text::{Frame, error_lines, finding_counts, finding_lines, warning_line};

/// Version of the JSON object; raised when a field changes its meaning or is removed.
const VERSION: u8 = 1;

/// The result of a command: fields that all commands share, and a body of its own.
#[derive(Debug, Serialize)]
pub(crate) struct Report<B> {
    version: u8,
    command: &'static str,
    ok: bool,
    exit_code: u8,
    #[serde(flatten)]
    pub(crate) body: B,
    pub(crate) warnings: Vec<String>,
    /// The messages of `errors`, joined.
    error: Option<String>,
    #[serde(skip)]
    errors: Vec<CommandError>,
    #[serde(skip)]
    pub(crate) place: Place,
    /// The most severe failure class.
    #[serde(skip)]
    kind: Option<ErrorKind>,
}

/// A report of any command, for printing.
pub trait AnyReport {
    /// The command's name.
    fn command(&self) -> &'static str;
    /// The exit code.
    fn exit_code(&self) -> u8;
    /// The failures.
    fn errors(&self) -> &[CommandError];
    /// The warnings.
    fn warnings(&self) -> &[String];
    /// The result of each lineage's deployment, without unchanged lineages.
    fn deployments(&self) -> Vec<DeploymentResult<'_>>;
    /// Formats the JSON object. It is indented, because lego stops reading at a line of 64 KiB.
    fn to_json(&self) -> String;
    /// Formats the lines for standard output, at the end of the run.
    fn to_text(&self, style: Style, moment: Moment) -> String;
}

/// Creates the report of a panic at a source location.
pub fn internal_error(command: &'static str, location: &str) -> impl AnyReport {
    let mut report = DeployReport::new(command);
    report.fail(anyhow::anyhow!("panic at {location}"));
    report
}

/// The report of `deploy`, `plan` and `check`.
pub(crate) type DeployReport = Report<DeployBody>;

/// The report of a command with fields of its own.
pub(crate) type CommandReport = Report<Output>;

impl<B: Body> Report<B> {
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            version: VERSION,
            command,
            ok: true,
            exit_code: 0,
            body: B::default(),
            warnings: Vec::new(),
            error: None,
            errors: Vec::new(),
            place: Place { command: Command::of_report(command), ..Place::default() },
            kind: None,
        }
    }

    /// Adds a failure. The most severe one decides the exit code; earlier results stay in the report.
    pub(crate) fn fail(&mut self, error: impl Into<CommandError>) {
        let error = error.into().placed(&self.place);
        self.kind = ErrorKind::most_severe(self.kind.into_iter().chain([error.kind()]));
        self.errors.push(error);
        self.exit_with(self.kind.map_or(0, ErrorKind::exit_code));
        self.error = Some(CommandError::join(&self.errors));
    }

    /// Sets the place of failures, for those so far and those to come.
    pub(crate) fn set_place(&mut self, place: Place) {
        self.errors.iter_mut().for_each(|error| error.advise(&place));
        self.place = place;
    }

    /// Adds the error of a result.
    pub(crate) fn record(&mut self, result: Result<(), CommandError>) {
        if let Err(error) = result {
            self.fail(error);
        }
    }

    /// Sets an exit code that does not follow from the errors, such as that of a monitoring plugin.
    pub(crate) fn exit_with(&mut self, exit_code: u8) {
        self.ok = exit_code == 0;
        self.exit_code = exit_code;
    }

    /// Sets the message of a failure that the body's text already shows, so that it is not printed again.
    pub(crate) fn explain(&mut self, error: Option<String>) {
        self.error = error;
    }

    /// The failures so far.
    pub(crate) fn errors(&self) -> &[CommandError] {
        &self.errors
    }

    /// Whether the command line caused every failure, by naming what does not exist, so that nothing was sent.
    pub(crate) fn is_misuse(&self) -> bool {
        !self.errors.is_empty() && self.errors.iter().all(CommandError::is_misuse)
    }

    /// The most severe failure class; `None` if nothing failed.
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    /// The messages of all failures on one line.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The exit code so far.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl<B: Body> AnyReport for Report<B> {
    fn command(&self) -> &'static str {
        self.command
    }

    fn exit_code(&self) -> u8 {
        self.exit_code
    }

    fn errors(&self) -> &[CommandError] {
        &self.errors
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn deployments(&self) -> Vec<DeploymentResult<'_>> {
        self.body.deployments(self.exit_code, &self.errors)
    }

    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .unwrap_or_else(|_| format!(r#"{{"version":{VERSION},"ok":false,"exit_code":70}}"#))
    }

    fn to_text(&self, style: Style, moment: Moment) -> String {
        let Moment { now, elapsed } = moment;
        self.body.to_text(&Frame { command: self.command, style, now, elapsed, errors: &self.errors })
    }
}

impl DeployReport {
    /// Records the findings; warnings among them are also warnings of the report.
    pub(crate) fn add_findings(&mut self, findings: &[Finding]) {
        self.body.checks = findings.to_vec();
        let warnings = findings.iter().filter(|finding| finding.status == Status::Warn);
        self.warnings.extend(warnings.map(Finding::sentence));
    }

    /// Combines the reports of deploying one lineage to several accounts, each with a name of the account. What
    /// all of them say, such as a finding about the files, is said once.
    pub(crate) fn merge_accounts(&mut self, accounts: Vec<(Option<String>, Self)>) {
        let mut common: Option<HashSet<String>> = None;
        for (_, report) in &accounts {
            let own: HashSet<_> = report.errors.iter().map(|error| error.message().to_owned()).collect();
            common = Some(common.map_or(own.clone(), |common| &common & &own));
        }
        let (mut is_first, common) = (true, common.unwrap_or_default());
        for (service, mut report) in accounts {
            for error in std::mem::take(&mut report.errors) {
                match &service {
                    _ if common.contains(error.message()) => {
                        if is_first {
                            self.fail(error);
                        }
                    }
                    Some(service) => self.fail(error.at_service(service)),
                    None => self.fail(error),
                }
            }
            let known: HashSet<String> = self.warnings.iter().cloned().collect();
            self.warnings.extend(report.warnings.into_iter().filter(|warning| !known.contains(warning)));
            if let Some(service) = &service {
                report.body.set_service(service);
            }
            self.body.merge(report.body);
            is_first = false;
        }
    }

    /// Sets the steps of a plan.
    pub(crate) fn set_plan(&mut self, steps: Vec<Step>) {
        self.body.changed = steps.iter().any(|step| step.action.is_change());
        self.body.plan = Some(steps);
    }

    /// Adds a failure for each failed check.
    pub(crate) fn fail_checks(&mut self) {
        let mut checks = std::mem::take(&mut self.body.checks);
        for finding in checks.iter_mut().filter(|finding| finding.status == Status::Fail) {
            self.fail(FailedCheck(finding));
            finding.hint = finding.hint.take().map(|hint| hint.at(&self.place).into());
        }
        self.body.checks = checks;
    }
}

/// The files that were read, and the ACME client that wrote them.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    client: AcmeClient,
    cert: String,
    key: Option<String>,
}

/// The leaf certificate.
#[derive(Debug, Serialize)]
pub(crate) struct CertificateReport {
    pub(crate) fingerprint: String,
    pub(crate) names: Vec<String>,
    #[serde(with = "rfc3339")]
    not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    not_after: OffsetDateTime,
    key_type: String,
    issuer: String,
    chain_length: usize,
}

/// One upload.
#[derive(Debug, Serialize)]
pub(crate) struct UploadReport {
    pub(crate) domain: String,
    pub(crate) ok: bool,
    pub(crate) id: Option<u64>,
    pub(crate) created: Option<bool>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    pub(crate) not_after: Option<OffsetDateTime>,
    pub(crate) key_match: Option<String>,
    /// Passed on as the service sent it.
    pub(crate) bound_sites: Value,
    pub(crate) attempts: u32,
    pub(crate) error: Option<String>,
    /// The account, if the run deployed to several: the base URL of its service, and if they share that, its key file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
}

/// The outcome for one covered site.
#[derive(Debug, Serialize)]
pub(crate) struct SiteReport {
    /// `null` if the sites were not listed.
    pub(crate) id: Option<u64>,
    pub(crate) domain: String,
    pub(crate) cert_id_before: Option<u64>,
    pub(crate) cert_id: Option<u64>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// `null` if no handshake was tried.
    pub(crate) edge: Option<EdgeReport>,
    /// The account, if the run deployed to several: the base URL of its service, and if they share that, its key file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    /// Whether the run fails unless the site gets the certificate; not part of the JSON object.
    #[serde(skip)]
    pub(crate) is_required: bool,
    /// Whether an error or a warning says the detail, so that text need not repeat it.
    #[serde(skip)]
    pub(crate) is_explained: bool,
    /// Host name of the edge, for later handshakes; not part of the JSON object.
    #[serde(skip)]
    pub(crate) cname: Option<String>,
    /// For the state; not part of the JSON object.
    #[serde(skip)]
    pub(crate) findings: EdgeFindings,
}

impl SiteReport {
    /// The outcome for a site that must get the certificate. No site was listed, and no handshake was tried.
    pub(crate) fn new(domain: &str, outcome: Outcome, detail: Option<String>) -> Self {
        Self {
            id: None,
            domain: domain.to_owned(),
            cert_id_before: None,
            cert_id: None,
            outcome,
            detail,
            edge: None,
            service: None,
            is_required: true,
            is_explained: false,
            cname: None,
            findings: EdgeFindings::default(),
        }
    }
}

impl SourceReport {
    pub(crate) fn new(source: &Source) -> Self {
        let sanitized = |path: &std::path::PathBuf| crate::text::path(path);
        Self {
            client: source.client,
            cert: sanitized(&source.files.cert),
            key: source.files.key.as_ref().map(sanitized),
        }
    }
}

impl CertificateReport {
    pub(crate) fn new(chain: &Chain) -> Self {
        let leaf: &Certificate = &chain.leaf;
        Self {
            fingerprint: leaf.fingerprint(),
            names: leaf.names(),
            not_before: leaf.not_before,
            not_after: leaf.not_after,
            key_type: leaf.public_key.key_type().to_string(),
            issuer: leaf.issuer.text.clone(),
            chain_length: chain.length(),
        }
    }
}
