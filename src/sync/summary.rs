//! What a `sync` has to say: counts, and a line and an object for each lineage that was not simply unchanged.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use serde::Serialize;
use serde_json::Value;

use super::scan::{Lineage, Reason};
use crate::error::{Diagnostic, ErrorKind, Failure, STATE_HINT};
use crate::outcome::Outcome;
use crate::report::{Answer, Report, Style};
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
    report: Report,
}

/// Everything that was found and done.
#[derive(Default)]
pub(super) struct Summary {
    counts: Counts,
    entries: Vec<Entry>,
    /// Failures of whole services, each once.
    unreached: Vec<Failure>,
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

    pub(super) fn gone(&mut self, name: &str, report: Report) {
        self.gone_before();
        self.entries.push(Entry { name: name.to_owned(), state: State::Gone, reason: None, report });
    }

    pub(super) fn deployed(&mut self, name: &str, reason: &Reason, report: Report) {
        let state = if report.kind().is_none() { State::Deployed } else { State::Failed };
        self.push(name, state, Some(reason.to_string()), report);
    }

    /// One that could not even be tried.
    pub(super) fn failed(&mut self, name: &str, failure: &Failure) {
        let mut report = Report::new("deploy");
        for diagnostic in &failure.diagnostics {
            report.add(failure.kind, diagnostic.clone());
        }
        self.push(name, State::Failed, None, report);
    }

    /// One whose memory cannot be read.
    pub(super) fn unread(&mut self, what: &str) {
        self.counts.total += 1;
        self.counts.failed += 1;
        let diagnostic = Diagnostic::new(format!("{what}; what it remembers was not looked at"), STATE_HINT);
        self.unreached.push(Failure { kind: ErrorKind::Config, diagnostics: vec![diagnostic] });
    }

    /// Lineages of a service that does not answer: nothing was changed, and what is pending stays so.
    pub(super) fn unreached(&mut self, failure: &Failure, lineages: &[&Lineage]) {
        self.counts.total += lineages.len();
        self.counts.failed += lineages.len();
        let diagnostics = failure.diagnostics.iter().map(|diagnostic| Diagnostic {
            message: format!("{}; {} not looked at", diagnostic.message, were(lineages.len())),
            hint: diagnostic.hint.clone(),
        });
        self.unreached.push(Failure { kind: failure.kind, diagnostics: diagnostics.collect() });
    }

    fn push(&mut self, name: &str, state: State, reason: Option<String>, report: Report) {
        self.counts.total += 1;
        match state {
            State::Deployed => self.counts.deployed += 1,
            State::Failed => self.counts.failed += 1,
            State::Gone => self.counts.gone += 1,
        }
        self.entries.push(Entry { name: name.to_owned(), state, reason, report });
    }

    /// All of it, in the order of the names.
    pub(super) fn report(mut self, answer: &mut Answer, style: Style) {
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        answer.text = self.text(style);
        answer.set("counts", self.counts);
        answer.set("lineages", self.entries.iter().map(Entry::shown).collect::<Vec<_>>());
        for entry in &self.entries {
            let said = entry.report.warnings.iter().map(|warning| format!("{}: {warning}", entry.name));
            answer.warnings.extend(said);
        }
        if let Some(failure) = self.failure() {
            answer.fail(failure);
        }
    }

    /// The same for a call that was about one lineage.
    pub(super) fn report_one(mut self, report: &mut Report) {
        if let Some(entry) = self.entries.pop() {
            let (source, before) = (report.source.take(), std::mem::take(&mut report.warnings));
            *report = entry.report;
            report.source = report.source.take().or(source);
            report.warnings.splice(0..0, before);
        }
        for Failure { kind, diagnostics } in self.unreached {
            for diagnostic in diagnostics {
                report.add(kind, diagnostic);
            }
        }
    }

    fn failure(&self) -> Option<Failure> {
        let kinds = self.entries.iter().filter_map(|entry| entry.report.kind());
        let kind = ErrorKind::most_severe(kinds.chain(self.unreached.iter().map(|failure| failure.kind)))?;
        let mut diagnostics: Vec<Diagnostic> =
            self.unreached.iter().flat_map(|failure| failure.diagnostics.iter().cloned()).collect();
        for entry in &self.entries {
            for diagnostic in entry.report.diagnostics() {
                let Diagnostic { message, hint } = diagnostic.clone();
                let named = message.starts_with(&entry.name);
                let message = if named { message } else { format!("{}: {message}", entry.name) };
                diagnostics.push(Diagnostic { message, hint });
            }
        }
        Some(Failure { kind, diagnostics })
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
        let sites = &self.report.sites;
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
