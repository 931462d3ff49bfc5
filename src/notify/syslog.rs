//! The system log: what is logged about a run, as fields for journald where it runs, otherwise the same text as a line for
//! syslog.
//!
//! The journal's native protocol is a datagram of `NAME=value` lines. The crates for it (libsystemd 0.7,
//! systemd-journal-logger 2.2) send on blocking sockets, so a journald that does not read could hang a hook. An entry
//! has at most a few KiB, so it never needs the memory file by which the protocol passes large ones.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::error::CommandError;
use crate::report::Report;
use crate::text::{count, sanitize, sanitize_untruncated};

/// Socket of journald's native protocol.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// Socket of syslog.
const SYSLOG_SOCKET: &str = "/dev/log";

/// Time limit for one entry. A burst of entries can fill the queue of the log for a moment.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Maximum number of lineages in the entries of one run.
const MAX_LINEAGES: usize = 100;

const IDENTIFIER: &str = "edgecert";

/// Syslog facility "daemon".
const FACILITY: u8 = 3;

/// Writes entries to the log, unless standard error is a terminal. Entries that nothing reads in time are lost.
pub(super) fn write(entries: &[LogEntry<'_>]) {
    if entries.is_empty() || io::stderr().is_terminal() {
        return;
    }
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let format = if socket.connect(JOURNAL_SOCKET).is_ok() {
        LogEntry::fields
    } else if socket.connect(SYSLOG_SOCKET).is_ok() {
        LogEntry::line
    } else {
        return;
    };
    if socket.set_write_timeout(Some(TIMEOUT)).is_ok() {
        // After a failure, the others are not tried, so that the time limits do not add up.
        let _ = entries.iter().try_for_each(|entry| socket.send(format(entry).as_bytes()).map(drop));
    }
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    /// `MESSAGE_ID` in the journal, by which users filter.
    message_id: &'static str,
    /// Syslog severity.
    priority: u8,
}

const DEPLOYMENT_FAILED: Event = Event { message_id: "e6653b9c1df44d4ebd9beeaa99bbc683", priority: 3 };
const DEPLOYMENT_SUCCEEDED: Event = Event { message_id: "d71c5ee529494199959a913ba18ea538", priority: 6 };
const SYNC_FAILED: Event = Event { message_id: "66902d5ca8aa4438b09432730e44f534", priority: 3 };
const WARNING: Event = Event { message_id: "04b00b43516e40028d217a646c6e45e7", priority: 4 };

/// An entry of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogEntry<'a> {
    event: Event,
    message: String,
    command: &'a str,
    lineage: Option<&'a str>,
    outcome: Option<String>,
    /// `None` if the run has not ended yet.
    exit_code: Option<u8>,
}

impl<'a> LogEntry<'a> {
    /// A warning about a run.
    pub(super) fn warning(command: &'a str, message: String) -> Self {
        Self { event: WARNING, message, command, lineage: None, outcome: None, exit_code: None }
    }

    /// The entry in the journal's native protocol. A sanitized value has no line feed that could forge a field.
    fn fields(&self) -> String {
        let fields = [
            ("MESSAGE", Some(self.message.clone())),
            ("MESSAGE_ID", Some(self.event.message_id.to_owned())),
            ("PRIORITY", Some(self.event.priority.to_string())),
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
    fn line(&self) -> String {
        let priority = FACILITY * 8 + self.event.priority;
        let message = sanitize_untruncated(&self.message);
        format!("<{priority}>{IDENTIFIER}[{}]: {message}", std::process::id())
    }
}

/// The entries for the system log about the end of a run, failures first.
pub(super) fn entries(report: &Report) -> Vec<LogEntry<'_>> {
    let (command, exit_code) = (report.command(), report.exit_code());
    let (mut logged, changed): (Vec<_>, Vec<_>) =
        report.deployments().partition(|deployment| deployment.exit_code() != 0);
    logged.extend(changed.into_iter().filter(|deployment| deployment.deployed.changed));
    let is_deploy = command == "deploy";
    let mut entries = Vec::new();
    // With `deploy`, the entry of its lineage covers the whole run.
    if exit_code != 0 && (!is_deploy || logged.is_empty()) {
        let event = if is_deploy { DEPLOYMENT_FAILED } else { SYNC_FAILED };
        let message = format!("{command} failed with exit code {exit_code}{}", messages(report.errors()));
        entries.push(LogEntry { event, exit_code: Some(exit_code), ..LogEntry::warning(command, message) });
    }
    for deployment in logged.iter().take(MAX_LINEAGES) {
        let (lineage, exit_code) =
            (deployment.deployed.lineage.as_deref().unwrap_or_default(), deployment.exit_code());
        let outcome = deployment.deployed.outcome().map(ToString::to_string);
        let (event, message) = if exit_code == 0 {
            let outcome = outcome.as_deref().unwrap_or("deployed");
            (DEPLOYMENT_SUCCEEDED, format!("{command}: {lineage} {outcome}"))
        } else {
            let outcome = outcome.as_ref().map(|outcome| format!(" ({outcome})")).unwrap_or_default();
            let failed = format!("{command} of {lineage} failed with exit code {exit_code}{outcome}");
            (DEPLOYMENT_FAILED, failed + &messages(deployment.errors()))
        };
        let (lineage, exit_code) = (Some(lineage), Some(exit_code));
        entries.push(LogEntry { event, message, command, lineage, outcome, exit_code });
    }
    let more = logged.len().saturating_sub(MAX_LINEAGES);
    if more > 0 {
        let message = format!("{command}: {} not logged; run `edgecert status`", count(more, "more lineage"));
        entries.push(LogEntry::warning(command, message));
    }
    entries
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
    use crate::error::ErrorKind;
    use crate::outcome::Outcome;
    use crate::report::SiteReport;

    /// The messages about a run with these deployments: lineage, exit code, whether something changed.
    fn messages_of(command: &'static str, exit_code: u8, deployments: &[(&str, u8, bool)]) -> Vec<String> {
        let fail = |report: &mut Report, exit_code| match exit_code {
            0 => {}
            75 => report.fail(CommandError::new(ErrorKind::Temporary, "no\nroute\u{1b}[2J")),
            _ => report.fail(CommandError::new(ErrorKind::Config, "no\nroute\u{1b}[2J")),
        };
        let mut report = Report::new(command);
        fail(&mut report, exit_code);
        for (lineage, exit_code, changed) in deployments {
            let mut deployment = Report::new("deploy");
            fail(&mut deployment, *exit_code);
            deployment.deployed.lineage = Some((*lineage).to_owned());
            deployment.deployed.changed = *changed;
            let outcome = if *exit_code == 0 { Outcome::Served } else { Outcome::Queued };
            deployment.deployed.sites.push(SiteReport::new(&"a.example".parse().unwrap(), outcome, None));
            report.lineages.push(deployment);
        }
        entries(&report).into_iter().map(|entry| entry.message).collect()
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
    fn entry_has_the_outcome_of_its_lineage() {
        let mut report = Report::new("sync");
        for (lineage, outcomes) in
            [("a", &[Outcome::Served, Outcome::Refused][..]), ("b", &[Outcome::Served, Outcome::Synced])]
        {
            let mut deployment = Report::new("deploy");
            if outcomes.contains(&Outcome::Refused) {
                deployment.fail(CommandError::new(ErrorKind::Service, "no"));
            }
            deployment.deployed.lineage = Some(lineage.to_owned());
            deployment.deployed.changed = true;
            let domain = "a.example".parse().unwrap();
            let sites = outcomes.iter().map(|outcome| SiteReport::new(&domain, outcome.clone(), None));
            deployment.deployed.sites = sites.collect();
            report.lineages.push(deployment);
        }
        report.fail(CommandError::new(ErrorKind::Service, "no"));
        let fields = |entry: LogEntry<'_>| {
            let lineage = entry.lineage.map(str::to_owned);
            (entry.event, entry.command.to_owned(), lineage, entry.outcome, entry.exit_code)
        };
        let entry = |event, lineage: &str, outcome: &str, code| {
            (event, "sync".into(), Some(lineage.into()), Some(outcome.into()), Some(code))
        };
        let sync = (SYNC_FAILED, "sync".into(), None, None, Some(69));
        let expected = [
            sync,
            entry(DEPLOYMENT_FAILED, "a", "refused", 69),
            entry(DEPLOYMENT_SUCCEEDED, "b", "synced", 0),
        ];
        assert_eq!(entries(&report).into_iter().map(fields).collect::<Vec<_>>(), expected);
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
            event: WARNING,
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
