//! Entries of the system log: what is logged about a run, as journal fields or as a syslog line.

use std::fmt::Write as _;

use crate::error::CommandError;
use crate::report::{AnyReport, DeploymentResult};
use crate::text::{count, sanitize, sanitize_untruncated};

/// Maximum number of lineages in the entries of one run.
const MAX_LINEAGES: usize = 100;

const IDENTIFIER: &str = "edgecert";

/// Syslog facility "daemon".
const FACILITY: u8 = 3;

/// Kind of an entry. Users filter by its message ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    DeploymentFailed,
    DeploymentSucceeded,
    SyncFailed,
    Warning,
}

impl Event {
    /// `MESSAGE_ID` in the journal.
    fn message_id(self) -> &'static str {
        match self {
            Self::DeploymentFailed => "e6653b9c1df44d4ebd9beeaa99bbc683",
            Self::DeploymentSucceeded => "d71c5ee529494199959a913ba18ea538",
            Self::SyncFailed => "66902d5ca8aa4438b09432730e44f534",
            Self::Warning => "04b00b43516e40028d217a646c6e45e7",
        }
    }

    /// Syslog severity.
    fn priority(self) -> u8 {
        match self {
            Self::DeploymentFailed | Self::SyncFailed => 3,
            Self::Warning => 4,
            Self::DeploymentSucceeded => 6,
        }
    }
}

/// An entry of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogEntry<'a> {
    pub(super) event: Event,
    pub(super) message: String,
    pub(super) command: &'a str,
    pub(super) lineage: Option<&'a str>,
    pub(super) outcome: Option<String>,
    /// `None` if the run has not ended yet.
    pub(super) exit_code: Option<u8>,
}

impl<'a> LogEntry<'a> {
    /// A warning about a run.
    pub(super) fn warning(command: &'a str, message: String) -> Self {
        Self { event: Event::Warning, message, command, lineage: None, outcome: None, exit_code: None }
    }

    /// The entry in the journal's native protocol. A sanitized value has no line feed that could forge a field.
    pub(super) fn fields(&self) -> String {
        let fields = [
            ("MESSAGE", Some(self.message.clone())),
            ("MESSAGE_ID", Some(self.event.message_id().to_owned())),
            ("PRIORITY", Some(self.event.priority().to_string())),
            ("SYSLOG_FACILITY", Some(FACILITY.to_string())),
            ("SYSLOG_IDENTIFIER", Some(IDENTIFIER.to_owned())),
            ("SYSLOG_PID", Some(std::process::id().to_string())),
            ("EDGECERT_COMMAND", Some(self.command.to_owned())),
            ("EDGECERT_LINEAGE", self.lineage.map(str::to_owned)),
            ("EDGECERT_OUTCOME", self.outcome.clone()),
            ("EDGECERT_EXIT_CODE", self.exit_code.map(|code| code.to_string())),
        ];
        let mut text = String::new();
        for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            let _ = writeln!(text, "{name}={}", sanitize_untruncated(&value));
        }
        text
    }

    /// The entry as a line for syslog (RFC 3164).
    pub(super) fn line(&self) -> String {
        let priority = FACILITY * 8 + self.event.priority();
        let message = sanitize_untruncated(&self.message);
        format!("<{priority}>{IDENTIFIER}[{}]: {message}", std::process::id())
    }
}

/// The entries for the system log, failures first.
pub(super) fn entries(report: &dyn AnyReport) -> Vec<LogEntry<'_>> {
    let (mut failed, changed): (Vec<_>, Vec<_>) =
        report.deployments().into_iter().partition(|deployment| deployment.exit_code != 0);
    failed.extend(changed.into_iter().filter(|deployment| deployment.changed));
    let more = failed.len().saturating_sub(MAX_LINEAGES);
    let command = report.command();
    let is_deploy = command == "deploy";
    // The entry of its lineage covers the whole run.
    let has_entry = is_deploy && !failed.is_empty();
    let run = (report.exit_code() != 0 && !has_entry).then(|| {
        let code = report.exit_code();
        let event = if is_deploy { Event::DeploymentFailed } else { Event::SyncFailed };
        let message = format!("{command} failed with exit code {code}{}", messages(report.errors()));
        LogEntry { event, message, command, lineage: None, outcome: None, exit_code: Some(code) }
    });
    let lineages = failed.iter().take(MAX_LINEAGES).map(|deployment| lineage_entry(command, deployment));
    let more = (more > 0).then(|| {
        LogEntry::warning(
            command,
            format!("{command}: {} not logged; run `edgecert status`", count(more, "more lineage")),
        )
    });
    run.into_iter().chain(lineages).chain(more).collect()
}

/// The entry for a lineage that failed or was deployed.
fn lineage_entry<'a>(command: &'a str, deployment: &DeploymentResult<'a>) -> LogEntry<'a> {
    let DeploymentResult { lineage, outcome, exit_code, errors, .. } = *deployment;
    let outcome = outcome.map(ToString::to_string);
    let (event, message) = if exit_code == 0 {
        let outcome = outcome.as_deref().unwrap_or("deployed");
        (Event::DeploymentSucceeded, format!("{command}: {lineage} {outcome}"))
    } else {
        let outcome = outcome.as_ref().map(|outcome| format!(" ({outcome})")).unwrap_or_default();
        let failed = format!("{command} of {lineage} failed with exit code {exit_code}{outcome}");
        (Event::DeploymentFailed, failed + &messages(errors))
    };
    LogEntry { event, message, command, lineage: Some(lineage), outcome, exit_code: Some(exit_code) }
}

/// The first messages on one line, each preceded by a semicolon; syslog may truncate longer lines.
fn messages(errors: &[CommandError]) -> String {
    const MAX_MESSAGES: usize = 3;
    let errors = CommandError::merge(errors);
    errors.iter().take(MAX_MESSAGES).flat_map(|error| ["; ".to_owned(), sanitize(error.message())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::error::{Diagnostic, ErrorKind};
    use crate::outcome::Outcome;
    use crate::report::Style;

    /// The end of a run with these deployments: lineage, exit code, whether something changed.
    struct Ended {
        command: &'static str,
        exit_code: u8,
        errors: Vec<CommandError>,
        deployments: Vec<(String, u8, bool)>,
    }

    impl AnyReport for Ended {
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
            &[]
        }

        fn deployments(&self) -> Vec<DeploymentResult<'_>> {
            let deployments = self.deployments.iter();
            deployments
                .map(|(lineage, exit_code, changed)| DeploymentResult {
                    lineage,
                    outcome: Some(if *exit_code == 0 { &Outcome::Served } else { &Outcome::Queued }),
                    exit_code: *exit_code,
                    changed: *changed,
                    errors: &self.errors,
                })
                .collect()
        }

        fn to_json(&self) -> String {
            String::new()
        }

        fn to_text(&self, _style: Style, _moment: Moment) -> String {
            String::new()
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("no\nroute\u{1b}[2J")]
    struct Unreachable;

    impl Diagnostic for Unreachable {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Temporary
        }
    }

    fn messages_of(command: &'static str, exit_code: u8, deployments: &[(&str, u8, bool)]) -> Vec<String> {
        let errors = if exit_code == 0 { Vec::new() } else { vec![Unreachable.into()] };
        let deployments =
            deployments.iter().map(|(name, code, changed)| ((*name).to_owned(), *code, *changed)).collect();
        let ended = Ended { command, exit_code, errors, deployments };
        entries(&ended).into_iter().map(|entry| entry.message).collect()
    }

    #[test]
    fn failures_and_changes_are_logged() {
        let none: [&str; 0] = [];
        assert_eq!(messages_of("deploy", 0, &[("shop", 0, true)]), ["deploy: shop served"]);
        assert_eq!(messages_of("deploy", 0, &[("shop", 0, false)]), none);
        assert_eq!(
            messages_of("deploy", 75, &[("shop", 75, true)]),
            ["deploy of shop failed with exit code 75 (queued); no route [2J"]
        );
        assert_eq!(messages_of("deploy", 78, &[]), ["deploy failed with exit code 78; no route [2J"]);
        assert_eq!(messages_of("sync", 0, &[]), none);
        assert_eq!(
            messages_of("sync", 75, &[("a", 0, true), ("b", 75, true), ("c", 0, false)]),
            [
                "sync failed with exit code 75; no route [2J",
                "sync of b failed with exit code 75 (queued); no route [2J",
                "sync: a served"
            ]
        );
    }

    #[test]
    fn entries_of_a_run_are_bounded() {
        let rows: Vec<(&str, u8, bool)> = (0..MAX_LINEAGES + 2).map(|_| ("shop", 0, true)).collect();
        let messages = messages_of("sync", 0, &rows);
        assert_eq!(messages.len(), MAX_LINEAGES + 1);
        assert_eq!(messages[MAX_LINEAGES], "sync: 2 more lineages not logged; run `edgecert status`");
    }

    #[test]
    fn values_cannot_forge_fields() {
        let entry = LogEntry {
            event: Event::Warning,
            message: "a\nPRIORITY=0\u{2028}\r\n\nb\u{1b}[2J".into(),
            command: "deploy",
            lineage: Some("shop\nMESSAGE=forged"),
            outcome: None,
            exit_code: None,
        };
        let fields = entry.fields();
        let names: Vec<&str> = fields.lines().map(|line| line.split_once('=').unwrap().0).collect();
        assert_eq!(
            names,
            [
                "MESSAGE",
                "MESSAGE_ID",
                "PRIORITY",
                "SYSLOG_FACILITY",
                "SYSLOG_IDENTIFIER",
                "SYSLOG_PID",
                "EDGECERT_COMMAND",
                "EDGECERT_LINEAGE"
            ]
        );
        assert!(fields.starts_with("MESSAGE=a PRIORITY=0 b [2J\n"), "{fields}");
        assert!(entry.line().ends_with("]: a PRIORITY=0 b [2J"), "{}", entry.line());
    }
}
