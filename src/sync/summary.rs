//! What a `sync` has to say: counts, and a line and an object for each lineage that was not simply unchanged.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use serde::Serialize;
use serde_json::Value;

use super::scan::{Lineage, Reason};
use crate::error::{AdHocError, CommandError, ErrorKind, STATE_HINT};
use crate::outcome::Outcome;
use crate::report::{CommandReport, DeployReport, Style};
use crate::text::{count, sanitize};

/// How many lineages ended how.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    total: usize,
    unchanged: usize,
    deployed: usize,
    failed: usize,
    gone: usize,
}

/// How a lineage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Deployed,
    Failed,
    Gone,
}

/// A lineage that was not simply unchanged.
#[derive(Serialize)]
struct Entry {
    name: String,
    state: State,
    reason: Option<String>,
    #[serde(flatten)]
    report: DeployReport,
}

/// Everything that was found and done.
#[derive(Default)]
pub(super) struct Summary {
    counts: Counts,
    entries: Vec<Entry>,
    /// Failures of whole services, each once.
    unreached: Vec<CommandError>,
}

impl Summary {
    pub(super) fn unchanged(&mut self, lineages: usize) {
        self.counts.total += lineages;
        self.counts.unchanged += lineages;
    }

    /// One whose files are gone, as was said before.
    pub(super) fn gone_before(&mut self) {
        self.counts.total += 1;
        self.counts.gone += 1;
    }

    pub(super) fn gone(&mut self, name: &str, report: DeployReport) {
        self.gone_before();
        self.entries.push(Entry { name: name.to_owned(), state: State::Gone, reason: None, report });
    }

    pub(super) fn deployed(&mut self, name: &str, reason: &Reason, report: DeployReport) {
        let state = if report.kind().is_none() { State::Deployed } else { State::Failed };
        self.push(name, state, Some(reason.to_string()), report);
    }

    /// One that could not even be tried.
    pub(super) fn failed(&mut self, name: &str, error: CommandError) {
        let mut report = DeployReport::new("deploy");
        report.fail(error);
        self.push(name, State::Failed, None, report);
    }

    /// One whose memory cannot be read.
    pub(super) fn unread(&mut self, what: &str) {
        self.counts.total += 1;
        self.counts.failed += 1;
        let message = format!("{what}; what it remembers was not looked at");
        self.unreached.push(AdHocError::new(ErrorKind::Config, message, STATE_HINT).into());
    }

    /// Lineages of a service that does not answer: nothing was changed, and what is pending stays so.
    pub(super) fn unreached(&mut self, error: &CommandError, lineages: &[&Lineage]) {
        self.counts.total += lineages.len();
        self.counts.failed += lineages.len();
        self.unreached.push(error.with_consequence(&format!("{} not looked at", were(lineages.len()))));
    }

    fn push(&mut self, name: &str, state: State, reason: Option<String>, report: DeployReport) {
        self.counts.total += 1;
        match state {
            State::Deployed => self.counts.deployed += 1,
            State::Failed => self.counts.failed += 1,
            State::Gone => self.counts.gone += 1,
        }
        self.entries.push(Entry { name: name.to_owned(), state, reason, report });
    }

    /// All of it, in the order of the names.
    pub(super) fn report(mut self, answer: &mut CommandReport, style: Style) {
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        answer.body.text = self.text(style);
        answer.body.set("counts", self.counts);
        answer.body.set("lineages", self.entries.iter().map(Entry::shown).collect::<Vec<_>>());
        for entry in &self.entries {
            let said = entry.report.warnings.iter().map(|warning| format!("{}: {warning}", entry.name));
            answer.warnings.extend(said);
        }
        for error in self.errors() {
            answer.fail(error);
        }
    }

    /// The same for a call that was about one lineage.
    pub(super) fn report_one(mut self, report: &mut DeployReport) {
        if let Some(entry) = self.entries.pop() {
            let (source, before) = (report.body.source.take(), std::mem::take(&mut report.warnings));
            *report = entry.report;
            report.body.source = report.body.source.take().or(source);
            report.warnings.splice(0..0, before);
        }
        for error in self.unreached {
            report.fail(error);
        }
    }

    /// All failures, each with the name of its lineage.
    fn errors(&self) -> Vec<CommandError> {
        let of_lineages = self
            .entries
            .iter()
            .flat_map(|entry| entry.report.errors().iter().map(|error| error.for_lineage(&entry.name)));
        self.unreached.iter().cloned().chain(of_lineages).collect()
    }

    fn text(&self, style: Style) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let (word, colour) = match entry.state {
                State::Deployed => ("deployed", AnsiColor::Green),
                State::Failed => ("failed", AnsiColor::Red),
                State::Gone => ("gone", AnsiColor::Yellow),
            };
            let pad = " ".repeat(12 - word.len());
            let reason =
                entry.reason.as_ref().map(|reason| format!(" ({})", sanitize(reason))).unwrap_or_default();
            let _ =
                writeln!(text, "{}{pad} {}{reason}{}", style.paint(word, colour), entry.name, entry.sites());
        }
        let Counts { total, unchanged, deployed, failed, gone } = self.counts;
        let parts = [(unchanged, "unchanged"), (deployed, "deployed"), (failed, "failed"), (gone, "gone")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!("{number} {word}"))
            .collect();
        if total > 0 {
            let _ = writeln!(text, "{}: {}", count(total, "lineage"), parts.join(", "));
        }
        text
    }
}

impl Entry {
    /// The fields of a report that say something of a lineage.
    fn shown(&self) -> Value {
        const COMMON: [&str; 3] = ["version", "command", "ok"];
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|name, _| !COMMON.contains(&name.as_str()));
        }
        value
    }

    /// The outcomes, as many as fit into a line.
    fn sites(&self) -> String {
        const MOST: usize = 5;
        let sites = &self.report.body.sites;
        let shown: Vec<String> = sites
            .iter()
            .filter(|site| site.outcome != Outcome::Skipped)
            .take(MOST)
            .map(|site| format!("{} {}", sanitize(&site.domain), site.outcome))
            .collect();
        let more = sites.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if shown.is_empty() { String::new() } else { format!(": {}{more}", shown.join(", ")) }
    }
}

fn were(lineages: usize) -> String {
    format!("{} {}", count(lineages, "lineage"), if lineages == 1 { "was" } else { "were" })
}
