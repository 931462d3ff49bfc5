//! Judges the status: what is wrong, how severe that is, and what helps. The table, the verdict of `--check` and the
//! metrics show these problems.

use std::fmt::Display;

use serde::Serialize;
use time::OffsetDateTime;

use super::fleet::{DiskStatus, EdgeOutcome, Fleet, LeafAge, LineageStatus, Pending, SiteStatus, Subject};
use super::gauge::{Assessment, Gauge, Quantity};
use crate::cli::MonitoringArgs;
use crate::error::ErrorKind;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::state::{RunResult, SiteState, StateError, SyncRecord};
use crate::text::{display_as_serialized, humanize, rfc3339, sanitize};

/// Severity, in ascending order. A problem that was found outranks what could not be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Level {
    /// Within the thresholds: only the table shows it.
    Ok,
    Unknown,
    Warning,
    Critical,
}

display_as_serialized!(Level);

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem<'a> {
    pub(super) level: Level,
    pub(super) subject: Subject<'a>,
    pub(super) text: String,
    /// The cause, which follows the text if there is room.
    pub(super) detail: String,
    /// What helps.
    pub(super) hint: Option<&'static str>,
    /// Orders the problems of one level, the highest first.
    pub(super) urgency: f64,
}

impl<'a> Problem<'a> {
    pub(super) fn new(level: Level, subject: Subject<'a>, text: impl Into<String>) -> Self {
        Self { level, subject, text: text.into(), detail: String::new(), hint: None, urgency: 0.0 }
    }

    /// The problem that a gauge is near its limits, or beyond them.
    fn of(gauge: &Gauge<'a>, text: impl Into<String>) -> Self {
        Self { urgency: gauge.urgency(), ..Self::new(gauge.level(), gauge.subject, text) }
    }

    pub(super) fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// The text with the cause and what helps.
    pub(super) fn sentence(&self) -> String {
        let hint = self.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}{}{hint}", self.text, self.detail)
    }

    fn because(self, reason: Option<impl Display>) -> Self {
        let detail = reason.map(|reason| format!(": {reason}"));
        self.detail(detail.unwrap_or_default())
    }

    fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl<'a> Assessment<'a> {
    /// Finds the problems, the most severe first. Without any lineage, those of the last `sync` are not severe, because they
    /// would hide that nothing is known.
    pub(super) fn problems(self) -> Vec<Problem<'a>> {
        let state_errors = self.fleet.state_errors.iter();
        let mut problems: Vec<_> =
            state_errors.map(|error| self.state_problem(error, Subject::Host)).collect();
        let mut is_late = false;
        for lineage in self.lineages() {
            let pending = self.pending_problem(lineage);
            is_late |= pending.as_ref().is_some_and(|pending| pending.level > Level::Ok);
            problems.extend(pending);
            problems.extend(self.disk_problem(lineage));
            problems.extend(self.expiry_problem(lineage));
            problems.extend(lineage.sites.iter().flat_map(|site| site_problems(lineage, site)));
        }
        problems.extend(self.sync_problems(is_late));
        problems.sort_by(|a, b| b.level.cmp(&a.level).then_with(|| b.urgency.total_cmp(&a.urgency)));
        problems
    }

    /// The problem of a state file, or of the record of a `sync`. A damaged file may hide a deployment that has been
    /// pending since it was written.
    fn state_problem(self, error: &StateError, subject: Subject<'a>) -> Problem<'a> {
        let written_at = error.damaged().filter(|file| file.is_pending).and_then(|file| file.written_at);
        let level = match written_at {
            Some(at) => {
                let lag = self.gauge(Quantity::Lag, subject, self.now - at, None);
                lag.level().max(Level::Warning)
            }
            None if error.is_invalid() => Level::Warning,
            // It may hide anything, so there is no level to derive.
            None => Level::Unknown,
        };
        Problem::new(level, subject, error.to_string())
    }

    /// A deployment that is pending, or has been since a time in the future. Waiting does not finish one for which the
    /// service's responses are unintelligible.
    fn pending_problem(self, lineage: &'a LineageStatus) -> Option<Problem<'a>> {
        let (since, subject) = (lineage.pending.as_ref()?.since, Subject::Lineage(&lineage.name));
        let Some(gauge) = self.lag(lineage) else {
            let text = format!("pending since {}, which is in the future", rfc3339(since));
            return Some(Problem::new(Level::Warning, subject, text).hint("check the clock of this host"));
        };
        let is_unintelligible = |result: &RunResult| result.exit_code == ErrorKind::Protocol.exit_code();
        let mut problem = Problem::of(&gauge, format!("pending for {}", humanize(gauge.value)));
        if lineage.last_error.as_ref().is_some_and(is_unintelligible) {
            problem.level = problem.level.max(Level::Warning);
        }
        Some(match &lineage.last_error {
            Some(RunResult { error: Some(error), .. }) => problem.detail(format!(" ({})", sanitize(error))),
            Some(_) => problem,
            None if lineage.disk.is_unseen() => {
                problem.detail(" (no run has seen this certificate)").hint("run `edgecert sync`")
            }
            None => problem.detail(" (no run has finished)"),
        })
    }

    /// A certificate that expired before it was deployed, or on disk; else files that are missing although needed, cannot be
    /// read, or hold an earlier certificate.
    fn disk_problem(self, lineage: &'a LineageStatus) -> Option<Problem<'a>> {
        let problem = |level, text: String| Problem::new(level, Subject::Lineage(&lineage.name), text);
        let has_expired = |leaf: &Leaf| leaf.not_after < self.now;
        let expired = |level, what: &str, leaf: &Leaf| {
            let text = format!("the {what} expired at {}", rfc3339(leaf.not_after));
            problem(level, text).hint("renew it with the ACME client")
        };
        Some(match (&lineage.pending, &lineage.disk) {
            (Some(Pending { leaf: Some(leaf), .. }), _) if has_expired(leaf) => {
                Problem { urgency: f64::INFINITY, ..expired(Level::Critical, "pending certificate", leaf) }
            }
            (_, DiskStatus::Missing) if lineage.is_needed() => {
                let hint = "restore the files, or run `edgecert status --forget` for it";
                let text = "certificate is missing but still needed".to_owned();
                problem(Level::Warning, text).because(lineage.cert.as_ref()).hint(hint)
            }
            (_, DiskStatus::Unreadable(reason)) => {
                problem(Level::Warning, "certificate cannot be read".into()).because(Some(reason))
            }
            (None, DiskStatus::Leaf { leaf, .. }) if has_expired(leaf) => {
                expired(Level::Ok, "certificate on disk", leaf)
            }
            (_, DiskStatus::Leaf { age: LeafAge::Older, .. }) => {
                problem(Level::Ok, "the certificate on disk is older than the deployed one".into())
            }
            (_, DiskStatus::Leaf { .. } | DiskStatus::Missing) => return None,
        })
    }

    /// The site whose leaf is nearest to its thresholds, or farthest beyond them.
    fn expiry_problem(self, lineage: &'a LineageStatus) -> Option<Problem<'a>> {
        let gauge = |site| Some((self.time_left(lineage, site)?, site));
        // `max_by` takes the last one of equals, and the first site is expected.
        let gauges = lineage.sites.iter().rev().filter_map(gauge);
        let worst = gauges.max_by(|(a, _), (b, _)| a.compare(b));
        let (gauge, site) = worst.filter(|(gauge, _)| gauge.level() > Level::Ok)?;
        let (domain, left, at) = (&site.last.domain, humanize(gauge.value), self.now + gauge.value);
        // The address may have been unreachable since.
        let is_deployed = site.expiry() == Some(at);
        let seen = if is_deployed { "" } else { ", as its edge was last seen" };
        let at = rfc3339(at);
        let (text, detail) = match () {
            () if gauge.value.is_zero() => ("no valid certificate served".into(), format!("{domain}{seen}")),
            () if gauge.is_expired() => {
                (format!("certificate expired {left} ago"), format!("{domain}, at {at}{seen}"))
            }
            () => (format!("certificate expires in {left}"), format!("{domain}, at {at}{seen}")),
        };
        Some(Problem::of(&gauge, text).detail(format!(" ({detail})")))
    }

    /// Problems of the last `sync`: how it ended, and when. Nothing else notices that its timer has stopped. If a deployment
    /// `is_late`, that explains a failure.
    fn sync_problems(self, is_late: bool) -> Vec<Problem<'a>> {
        let last = &self.fleet.last_sync;
        let mut problems: Vec<_> =
            last.faults.iter().map(|fault| self.state_problem(fault, Subject::Sync)).collect();
        let never = "sync has never run";
        let age = match self.sync_age() {
            Some(age) if last.record.is_none() => Problem::of(&age, never),
            Some(age) => Problem::of(&age, format!("sync last ran {} ago", humanize(age.value))),
            None => Problem::new(Level::Ok, Subject::Sync, never),
        };
        if age.level > Level::Ok || (last.record.is_none() && last.faults.is_empty()) {
            problems.push(age.hint("check its timer with `edgecert doctor`"));
        }
        problems.extend(last.record.as_ref().and_then(|record| self.failure(record, is_late)));
        if self.fleet.lineages.is_empty() || self.thresholds.ignore_sync() {
            for problem in &mut problems {
                problem.level = Level::Ok;
            }
        }
        problems
    }

    /// A failure of `sync`, severe unless it is temporary and has not lasted for too long.
    fn failure(self, record: &SyncRecord, is_explained: bool) -> Option<Problem<'a>> {
        let code = Some(record.exit_code).filter(|code| *code != 0)?;
        let since = record.failing_since.unwrap_or(record.ended_at);
        let failing = self.since(since);
        let is_temporary = code == ErrorKind::Temporary.exit_code();
        let lasting =
            if is_temporary { format!(" for {}, last", humanize(failing.value)) } else { String::new() };
        let is_severe = !is_temporary || failing.level() > Level::Ok;
        let level = if is_severe && !is_explained { Level::Warning } else { Level::Ok };
        let text = format!("sync failed{lasting} with exit code {code}");
        Some(Problem::new(level, Subject::Sync, text).because(record.message.as_ref()))
    }
}

/// What the handshakes found at each address of a site, or else the last run.
fn site_problems<'a>(lineage: &'a LineageStatus, site: &'a SiteStatus) -> Vec<Problem<'a>> {
    let SiteState { domain, outcome, detail, .. } = &site.last;
    let problem =
        |level, text: String| Problem::new(level, Subject::Site(&lineage.name, domain.spelled()), text);
    let at_address = |message: &String| problem(Level::Ok, format!("{domain}: {message}"));
    // While a deployment is pending, the edges serve the previous leaf, and the lag is judged instead.
    let is_pending = lineage.pending.is_some();
    let mut problems = Vec::new();
    if let Some(edge) = &site.edge {
        problems.extend(edge.stale.iter().map(at_address));
        // One alert per site.
        if let Some(first) = problems.first_mut().filter(|_| !is_pending) {
            first.level = Level::Warning;
        }
        let is_unchecked = edge.outcome == EdgeOutcome::Unreachable && edge.score.served == 0;
        if is_unchecked {
            let text = format!("no edge address of {domain} could be checked");
            problems.push(problem(Level::Unknown, text).because(edge.unreachable.first()));
        }
        problems.extend(edge.unreachable.iter().skip(is_unchecked.into()).map(at_address));
    } else if !is_pending && (outcome.is_failed() || matches!(outcome, Outcome::Unknown(_))) {
        problems.push(problem(Level::Ok, format!("{domain} is {outcome}")).because(detail.as_ref()));
    }
    let is_seen_stale = site.edge.as_ref().is_some_and(|edge| !edge.stale.is_empty());
    if site.serves_leaf(lineage.leaf()) == Some(false) && !is_pending && !is_seen_stale {
        let text = format!("{domain}: an edge address was last seen without this certificate");
        // Of a site that the lineage is not for: `sync` sends nothing for it.
        let is_reached = *outcome == Outcome::Stale;
        let hint = if is_reached { "deploy the lineage again with `--force`" } else { "run `edgecert sync`" };
        problems.push(problem(Level::Warning, text).hint(hint));
    }
    problems
}

/// Describes a failure that the check would report with its default thresholds.
pub(in crate::cmd) fn sync_failure(record: &SyncRecord, now: OffsetDateTime) -> Option<String> {
    let (fleet, thresholds) = (Fleet::default(), MonitoringArgs::default());
    let problem = Assessment { fleet: &fleet, thresholds: &thresholds, now }.failure(record, false)?;
    (problem.level > Level::Ok).then(|| problem.text + &problem.detail)
}

#[cfg(test)]
mod tests;
