//! The result of a `sync`: counts, and a report of each lineage that was not simply unchanged.

use std::collections::{BTreeSet, HashMap};
use std::iter::repeat_n;

use serde::Serialize;

use super::scan::Reason;
use crate::clock;
use crate::error::{CommandError, MAX_NAMED, first_names};
use crate::hint::{Command, Place};
use crate::outcome::Outcome;
use crate::report::{Block, Report, Sign};
use crate::text::{count, list_first, people, sanitize, tally};

/// The result of a run.
#[derive(Default)]
pub(crate) struct Summary {
    /// Of all lineages, including those of which there is nothing to report.
    pub(super) results: Vec<LineageResult>,
    /// Those that were not simply unchanged.
    lineages: Vec<LineageReport>,
    /// Failures that do not belong to a single lineage.
    errors: Vec<CommandError>,
    pub(super) warnings: Vec<String>,
}

/// The report of a lineage that was not simply unchanged.
struct LineageReport {
    name: String,
    result: LineageResult,
    reason: Option<Reason>,
    report: Report,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineageResult {
    Unchanged,
    Deployed,
    /// Other lineages provide the certificate of all its sites.
    Superseded,
    /// Its files are missing.
    Gone,
    Failed,
}

crate::text::display_as_serialized!(LineageResult);

impl Summary {
    /// Adds a lineage, with the reason for which it was deployed. Of one that is unchanged, only warnings are reported.
    pub(super) fn add(&mut self, name: &str, result: LineageResult, reason: Option<Reason>, report: Report) {
        self.results.push(result);
        if result == LineageResult::Unchanged {
            return self.warnings.extend(report.warnings.iter().map(|warning| format!("{name}: {warning}")));
        }
        self.lineages.push(LineageReport { name: name.to_owned(), result, reason, report });
    }

    /// Adds a lineage that failed without a deployment.
    pub(super) fn add_failed(&mut self, name: &str, error: impl Into<CommandError>) {
        let mut report = Report::new("deploy");
        report.set_place(Place { command: Command::Sync, ..Place::default() });
        report.fail(error);
        self.add(name, LineageResult::Failed, None, report);
    }

    /// Adds the lineages of an account that cannot be listed. None of them was changed.
    pub(super) fn add_unreached(&mut self, error: &CommandError, lineages: usize) {
        let verb = if lineages == 1 { "was" } else { "were" };
        let consequence = format!("{} {verb} not checked", count(lineages, "lineage"));
        self.fail(lineages, error.with_consequence(&consequence));
    }

    /// Adds a failure that belongs to no single lineage, and counts those that it affects as failed.
    pub(super) fn fail(&mut self, lineages: usize, error: CommandError) {
        self.results.extend(repeat_n(LineageResult::Failed, lineages));
        self.errors.push(error);
    }

    /// Fills the report of the command, with warnings and errors of all lineages.
    pub(crate) fn report(mut self, report: &mut Report) {
        self.lineages.sort_by_cached_key(|lineage| lineage.name.clone());
        report.warnings.append(&mut self.warnings);
        self.show(report);
        for LineageReport { name, result, reason, report: lineage } in &mut self.lineages {
            report.warnings.extend(lineage.warnings.iter().map(|warning| format!("{name}: {warning}")));
            // An incomplete listing is a failure of each lineage, and is reported once.
            let is_known = |error: &CommandError| self.errors.iter().any(|known| known.is_same(error));
            for error in lineage.errors().iter().filter(|error| !is_known(error)) {
                report.fail(error.of_lineage(name));
            }
            lineage.deployed.lineage = Some(name.clone());
            lineage.set("name", name);
            lineage.set("state", *result);
            lineage.set("reason", reason.as_ref().map(ToString::to_string));
        }
        for error in self.errors.drain(..) {
            report.fail(error);
        }
        report.set("changed", self.lineages.iter().any(|lineage| lineage.report.deployed.changed));
        let counts = self.counts().map(|(result, number)| (result.to_string(), number));
        let total = [("total".to_owned(), self.results.len())];
        report.set("counts", counts.into_iter().chain(total).collect::<HashMap<_, _>>());
        report.set("lineages", self.lineages.iter().map(|lineage| &lineage.report).collect::<Vec<_>>());
        report.lineages.extend(self.lineages.into_iter().map(|lineage| lineage.report));
    }

    /// Adds a line for each lineage, and one with the counts.
    fn show(&self, report: &mut Report) {
        let failure =
            |lineage: &LineageReport| (lineage.result.sign() == Sign::Failed).then(|| lineage.summary());
        let mut lineages: Vec<&LineageReport> = self.lineages.iter().collect();
        // What needs attention is last, and what failed alike is together.
        lineages.sort_by_cached_key(|lineage| (lineage.result.sign(), failure(lineage)));
        for alike in lineages.chunk_by(|a, b| failure(a).is_some() && failure(a) == failure(b)) {
            match alike {
                [first, ..] if alike.len() > MAX_NAMED => {
                    let names = first_names(alike.iter().map(|lineage| lineage.name.as_str()));
                    let text = format!("{}: {}: {names}", first.summary(), count(alike.len(), "lineage"));
                    report.push(Block::Signed(first.result.sign(), text));
                }
                lineages => lineages.iter().for_each(|lineage| report.push(lineage.line())),
            }
        }
        let results = tally(self.counts().map(|(result, number)| (number, result)));
        if !results.is_empty() {
            let total = count(self.results.len(), "lineage");
            report.push(format!("{total}: {results} ({})", people::elapsed(report.start.elapsed())));
        }
    }

    /// The number of lineages with each result.
    fn counts(&self) -> [(LineageResult, usize); 5] {
        use LineageResult::{Deployed, Failed, Gone, Superseded, Unchanged};
        [Unchanged, Deployed, Superseded, Gone, Failed]
            .map(|result| (result, self.results.iter().filter(|found| **found == result).count()))
    }

    /// Fills an empty report of a deployment, for a run on one lineage.
    pub(crate) fn report_one(mut self, report: &mut Report) {
        if let Some(lineage) = self.lineages.pop() {
            *report = lineage.report;
        }
        report.warnings.splice(0..0, self.warnings);
        for error in self.errors {
            report.fail(error);
        }
    }
}

impl LineageResult {
    /// The result of a deployment.
    pub(super) fn of(report: &Report) -> Self {
        match report.kind() {
            Some(_) => Self::Failed,
            None if report.deployed.is_superseded() => Self::Superseded,
            None => Self::Deployed,
        }
    }

    fn sign(self) -> Sign {
        match self {
            Self::Unchanged | Self::Deployed => Sign::Ok,
            Self::Superseded => Sign::Skipped,
            Self::Gone | Self::Failed => Sign::Failed,
        }
    }
}

impl LineageReport {
    fn line(&self) -> Block {
        let reason = self.reason.as_ref().map(|reason| match reason {
            Reason::Pending(since) => format!(" (pending since {})", people::since(*since, clock::now())),
            reason => format!(" ({})", sanitize(&reason.to_string())),
        });
        let (result, name, sites) = (self.result, &self.name, self.sites());
        let text = format!("{result:<10}  {name}{}{sites}", reason.unwrap_or_default());
        Block::Signed(self.result.sign(), text)
    }

    /// The result, and the outcomes of its sites: `failed (stale)`.
    fn summary(&self) -> String {
        let outcomes = self.report.deployed.sites.iter().map(|site| site.outcome.to_string());
        let outcomes = Vec::from_iter(outcomes.collect::<BTreeSet<_>>()).join(", ");
        if outcomes.is_empty() { self.result.to_string() } else { format!("{} ({outcomes})", self.result) }
    }

    /// The outcomes of the first sites, failures first.
    fn sites(&self) -> String {
        const MAX_SHOWN: usize = 5;
        let sites = self.report.deployed.sites.iter().filter(|site| site.outcome != Outcome::Skipped);
        let (deployed, failed): (Vec<_>, Vec<_>) = sites.partition(|site| site.outcome.is_deployed());
        let sites = failed.iter().chain(&deployed).map(|site| format!("{} {}", site.domain, site.outcome));
        let shown = list_first(sites, MAX_SHOWN);
        if shown.is_empty() { shown } else { format!(": {shown}") }
    }
}
