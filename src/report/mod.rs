//! The result of a command: made of data, and printed as text or as the JSON object for scripts.

mod deployed;
mod deployment;
mod style;
mod table;
mod text;

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

pub(crate) use self::deployed::{
    CertificateReport, Deployed, ServingReport, SiteReport, SourceReport, UploadReport,
};
pub(crate) use self::style::Sign;
pub use self::style::Style;
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::text::{Block, error_lines, finding_counts, finding_line, warning_line};
use crate::check::{Finding, Status};
use crate::clock::Start;
use crate::error::{CommandError, ErrorKind, Result};
use crate::hint::{Command, Place};
use crate::plan::Step;

/// Version of the JSON object; raised when a field changes its meaning or is removed.
const VERSION: u8 = 1;

/// The result of a command.
#[derive(Debug, Default)]
pub struct Report {
    command: &'static str,
    pub(crate) start: Start,
    /// What the deployment of a lineage did; nothing for commands that deploy none.
    pub(crate) deployed: Deployed,
    /// Further fields of the JSON object.
    fields: Map<String, Value>,
    /// Further text for standard output.
    blocks: Vec<Block>,
    /// The reports of the lineages of a `sync`, for the system log.
    pub(crate) lineages: Vec<Self>,
    pub(crate) warnings: Vec<String>,
    errors: Vec<CommandError>,
    /// Exit code and message that do not follow from the errors.
    verdict: Option<(u8, Option<String>)>,
    pub(crate) place: Place,
}

impl Report {
    pub(crate) fn new(command: &'static str) -> Self {
        let place = Place { command: Command::of_report(command), ..Place::default() };
        Self { command, place, ..Self::default() }
    }

    /// The report of a panic at a source location.
    pub fn internal_error(command: &'static str, location: &str) -> Self {
        let mut report = Self::new(command);
        report.fail(anyhow::anyhow!("panic at {location}"));
        report
    }

    /// Sets a field of the JSON object.
    pub(crate) fn set(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.fields.insert(field.to_owned(), value);
    }

    /// Adds text.
    pub(crate) fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }

    /// Adds a failure. The most severe one decides the exit code; earlier results stay in the report.
    pub(crate) fn fail(&mut self, error: impl Into<CommandError>) {
        self.errors.push(error.into().placed(&self.place));
    }

    /// Adds the error of a result.
    pub(crate) fn record(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.fail(error);
        }
    }

    /// Adds a failure for each failed check.
    pub(crate) fn fail_checks(&mut self) {
        let failed = self.deployed.checks.iter().filter(|finding| finding.status == Status::Fail);
        self.errors.extend(failed.map(|finding| CommandError::from(finding).placed(&self.place)));
    }

    /// Sets the place of failures, for those so far and those to come.
    pub(crate) fn set_place(&mut self, place: Place) {
        self.errors.iter_mut().for_each(|error| error.advise(&place));
        self.place = place;
    }

    /// Sets an exit code and a message that do not follow from the errors, such as those of a monitoring plugin. The
    /// text already shows the message.
    pub(crate) fn exit_with(&mut self, exit_code: u8, message: Option<String>) {
        self.verdict = Some((exit_code, message));
    }

    /// Records the findings; warnings and failures among them are also those of the report.
    pub(crate) fn add_findings(&mut self, findings: Vec<Finding>) {
        let warnings = findings.iter().filter(|finding| finding.status == Status::Warn);
        self.warnings.extend(warnings.map(Finding::sentence));
        self.deployed.checks = findings;
        self.fail_checks();
    }

    /// Sets the steps of a plan.
    pub(crate) fn set_plan(&mut self, steps: Vec<Step>) {
        self.deployed.changed = steps.iter().any(|step| step.action.is_change());
        self.deployed.plan = Some(steps);
    }

    /// Adds the deployments of one lineage to one or several accounts, each with a name of the account. An error of all
    /// of them, such as a finding about the files, is added once, and so is a warning of several.
    pub(crate) fn add_accounts(&mut self, accounts: Vec<(Option<String>, Self)>) {
        let messages = accounts.iter().map(|(_, report)| report.errors.iter().map(CommandError::message));
        let messages = messages.map(|own| own.map(str::to_owned).collect::<HashSet<_>>());
        let common = messages.reduce(|all, own| &all & &own).unwrap_or_default();
        let (mut told, mut known) = (HashSet::new(), HashSet::<String>::from_iter(self.warnings.clone()));
        for (service, report) in accounts {
            for error in report.errors {
                let is_common = common.contains(error.message());
                match &service {
                    _ if is_common && !told.insert(error.message().to_owned()) => {}
                    Some(service) if !is_common => self.fail(error.prefixed(format_args!("{service}: "))),
                    _ => self.fail(error),
                }
            }
            self.warnings.extend(report.warnings.into_iter().filter(|warning| known.insert(warning.clone())));
            self.deployed.add(report.deployed, service.as_ref());
        }
    }

    /// The command's name.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// The exit code so far.
    pub fn exit_code(&self) -> u8 {
        match &self.verdict {
            Some((exit_code, _)) => *exit_code,
            None => self.kind().map_or(0, ErrorKind::exit_code),
        }
    }

    /// The failures so far.
    pub(crate) fn errors(&self) -> &[CommandError] {
        &self.errors
    }

    /// The messages of all failures on one line.
    pub(crate) fn error(&self) -> Option<String> {
        match &self.verdict {
            Some((_, message)) => message.clone(),
            None => (!self.errors.is_empty()).then(|| CommandError::join(&self.errors)),
        }
    }

    /// The most severe failure class; `None` if nothing failed.
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        ErrorKind::most_severe(self.errors.iter().map(CommandError::kind))
    }

    /// The error that determines the exit code.
    pub(crate) fn most_severe_error(&self) -> Option<&CommandError> {
        let kind = self.kind()?;
        self.errors.iter().find(|error| error.kind() == kind)
    }

    /// The reports of the lineages that were deployed, or of the one lineage.
    pub(crate) fn deployments(&self) -> impl Iterator<Item = &Self> {
        self.lineages.iter().chain([self]).filter(|report| report.deployed.lineage.is_some())
    }

    /// Whether the command deploys or checks one lineage.
    fn is_deployment(&self) -> bool {
        matches!(self.command, "deploy" | "plan" | "check")
    }

    /// Formats the JSON object. It is indented, because lego stops reading at a line of 64 KiB.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            version: u8,
            command: &'a str,
            ok: bool,
            #[serde(flatten)]
            report: &'a Report,
        }
        let ok = self.exit_code() == 0;
        serde_json::to_string_pretty(&Object { version: VERSION, command: self.command, ok, report: self })
            .unwrap_or_else(|_| format!(r#"{{"version":{VERSION},"ok":false,"exit_code":70}}"#))
    }

    /// Formats the text for standard output, at the end of the run.
    pub fn to_text(&self, style: Style) -> String {
        let deployment = if self.is_deployment() { deployment::blocks(self) } else { Vec::new() };
        deployment.iter().chain(&self.blocks).map(|block| block.to_text(style)).collect()
    }
}

/// The fields of the JSON object, and of that of a lineage in the report of a `sync`.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shared<'a> {
            exit_code: u8,
            #[serde(flatten)]
            body: Option<&'a Deployed>,
            #[serde(flatten)]
            fields: &'a Map<String, Value>,
            warnings: &'a [String],
            error: Option<String>,
        }
        let body = self.is_deployment().then_some(&self.deployed);
        let (fields, warnings) = (&self.fields, self.warnings.as_slice());
        let shared = Shared { exit_code: self.exit_code(), body, fields, warnings, error: self.error() };
        shared.serialize(serializer)
    }
}
