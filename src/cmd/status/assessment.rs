//! Judges the status: what is wrong, how severe that is, and what helps. The table, the verdict of `--check` and the
//! metrics show these problems. A gauge is a measured duration with its limits.

use std::cmp::Ordering;
use std::fmt::Display;

use serde::Serialize;
use time::{Duration, OffsetDateTime};

use super::fleet::{DiskStatus, EdgeOutcome, Fleet, LineageStatus, Pending, SiteStatus, Subject};
use crate::cli::{LAG, MonitoringArgs, SYNC_AGE, TIME_LEFT, Threshold};
use crate::error::ErrorKind;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::state::{LastSync, RunResult, SiteState, StateError, SyncRecord};
use crate::text::{display_as_serialized, humanize, rfc3339, sanitize, sentence};

/// A fleet at a point in time, to be judged by thresholds.
#[derive(Clone, Copy)]
pub(super) struct Assessment<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) thresholds: &'a MonitoringArgs,
    pub(super) now: OffsetDateTime,
}

/// Severity, in ascending order. A problem that was found outranks what could not be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
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

/// A measured duration with its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gauge<'a> {
    pub(super) quantity: Quantity,
    pub(super) subject: Subject<'a>,
    pub(super) value: Duration,
    /// Warning and critical; `None` disables the alert.
    pub(super) limits: [Option<Duration>; 2],
}

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Quantity {
    /// Alerts if below its limits; the other quantities alert if above them.
    TimeLeft,
    Lag,
    SyncAge,
}

display_as_serialized!(Quantity);

impl<'a> Assessment<'a> {
    /// Finds all problems, the most severe first.
    pub(super) fn problems(self) -> Vec<Problem<'a>> {
        let mut problems: Vec<_> =
            self.fleet.state_errors.iter().map(|error| self.state_problem(error)).collect();
        for lineage in &self.fleet.lineages {
            if !lineage.is_superseded() {
                problems.extend(self.pending_problem(lineage));
                problems.extend(self.disk_problem(lineage));
                problems.extend(self.expiry_problem(lineage));
            }
            problems.extend(lineage.sites.iter().flat_map(|site| site_problems(lineage, site)));
        }
        problems.extend(self.sync_problems());
        sorted(problems)
    }

    /// The problem of a state file, or of the record of a `sync`. A damaged file may hide a deployment that has been
    /// pending since it was written.
    fn state_problem(self, error: &StateError) -> Problem<'a> {
        let subject = Subject::default();
        let written_at = error.damaged().filter(|file| file.is_pending).and_then(|file| file.written_at);
        let level = match written_at {
            Some(at) => self.gauge(Quantity::Lag, subject, self.now - at, None).level().max(Level::Warning),
            None if error.is_invalid() => Level::Warning,
            // It may hide anything, so there is no level to derive.
            None => Level::Unknown,
        };
        Problem::new(level, subject, error.to_string())
    }

    /// A deployment that is pending, or has been since a time in the future. Waiting does not finish one for which the
    /// service's responses are unintelligible.
    fn pending_problem(self, lineage: &'a LineageStatus) -> Option<Problem<'a>> {
        let (since, subject) = (lineage.pending.as_ref()?.since, lineage.subject(None));
        let Some(gauge) = self.lag(lineage) else {
            let text = format!("pending since {}, which is in the future", rfc3339(since));
            return Some(Problem::new(Level::Warning, subject, text).hint("check the clock of this host"));
        };
        let mut problem = Problem::of(&gauge, format!("pending for {}", humanize(gauge.value)));
        if let Some(RunResult { exit_code, error, .. }) = &lineage.last_error {
            if *exit_code == ErrorKind::Protocol.exit_code() {
                problem.level = problem.level.max(Level::Warning);
            }
            problem.detail =
                error.as_ref().map(|error| format!(" ({})", sanitize(error))).unwrap_or_default();
        } else if lineage.disk.is_unseen() {
            problem = problem.detail(" (no run has seen this certificate)").hint("run `edgecert sync`");
        }
        Some(problem)
    }

    /// A certificate that expired before it was deployed, or on disk; else files that are missing although needed, or cannot
    /// be read.
    fn disk_problem(self, lineage: &'a LineageStatus) -> Option<Problem<'a>> {
        let problem = |level, text: String| Problem::new(level, lineage.subject(None), text);
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
        let (domain, left, at) = (&site.state.domain, humanize(gauge.value), self.now + gauge.value);
        // The address may have been unreachable since.
        let is_deployed = site.served_leaf().is_some_and(|leaf| leaf.not_after == at);
        let seen = if is_deployed { "" } else { ", as its edge was last seen" };
        let text = match () {
            () if gauge.value.is_zero() => "no valid certificate served".into(),
            () if gauge.value.is_negative() => format!("certificate expired {left} ago"),
            () => format!("certificate expires in {left}"),
        };
        let at = if gauge.value.is_zero() { String::new() } else { format!(", at {}", rfc3339(at)) };
        Some(Problem::of(&gauge, text).detail(format!(" ({domain}{at}{seen})")))
    }

    /// Finds the problems of the last `sync`: how it ended, and when. Nothing else notices that its timer has stopped.
    /// Without any lineage, they are not severe, because they would hide that nothing is known.
    pub(super) fn sync_problems(self) -> Vec<Problem<'a>> {
        let LastSync { record, faults } = &self.fleet.last_sync;
        let mut problems: Vec<_> = faults.iter().map(|fault| self.state_problem(fault)).collect();
        if let Some(age) = self.sync_age().filter(|age| age.level() > Level::Ok) {
            let text = match record {
                Some(_) => format!("sync last ran {} ago", humanize(age.value)),
                None => "sync has never run".into(),
            };
            problems.push(Problem::of(&age, text).hint("check its timer with `edgecert doctor`"));
        }
        problems.extend(record.as_ref().and_then(|record| self.failure(record)));
        let is_ignored = self.since(self.now).limits == [None; 2];
        if self.fleet.lineages.is_empty() || is_ignored {
            for problem in &mut problems {
                problem.level = Level::Ok;
            }
        }
        sorted(problems)
    }

    /// A failure of `sync`, severe unless it is temporary and has not lasted for too long, or a late deployment explains it.
    fn failure(self, record: &SyncRecord) -> Option<Problem<'a>> {
        let code = Some(record.exit_code).filter(|code| *code != 0)?;
        let failing = self.since(record.failing_since.unwrap_or(record.ended_at));
        let is_temporary = code == ErrorKind::Temporary.exit_code();
        let lasting =
            if is_temporary { format!(" for {}, last", humanize(failing.value)) } else { String::new() };
        let is_late = |lineage: &LineageStatus| {
            !lineage.is_superseded()
                && self.pending_problem(lineage).is_some_and(|pending| pending.level > Level::Ok)
        };
        let is_severe = !is_temporary || failing.level() > Level::Ok;
        let is_explained = self.fleet.lineages.iter().any(is_late);
        let level = if is_severe && !is_explained { Level::Warning } else { Level::Ok };
        let text = format!("sync failed{lasting} with exit code {code}");
        Some(Problem::new(level, Subject::default(), text).because(record.message.as_ref()))
    }

    /// The lag of each lineage, the time left of the leaf of each site, and the time since the last `sync`.
    pub(super) fn gauges(self) -> Vec<Gauge<'a>> {
        let mut gauges = Vec::new();
        for lineage in self.fleet.lineages.iter().filter(|lineage| !lineage.is_superseded()) {
            gauges.extend(self.lag(lineage));
            gauges.extend(lineage.sites.iter().filter_map(|site| self.time_left(lineage, site)));
        }
        gauges.extend(self.sync_age());
        gauges
    }

    /// How long a lineage has been pending, zero if it is not; `None` if the clock was or is wrong.
    fn lag(self, lineage: &'a LineageStatus) -> Option<Gauge<'a>> {
        let value = lineage.lag(self.now)?;
        Some(self.gauge(Quantity::Lag, lineage.subject(None), value, lineage.lifetime()))
    }

    /// The time left of the deployed leaf, or of a leaf that an edge address was last seen to serve if that expires
    /// earlier or nothing was deployed; `None` if unknown.
    pub(super) fn time_left(self, lineage: &'a LineageStatus, site: &'a SiteStatus) -> Option<Gauge<'a>> {
        let edge = &site.state.edge;
        // There may be none before the first deployment, when an address may refuse the name.
        let leaf =
            site.served_leaf().into_iter().chain(edge.first_to_expire()).min_by_key(|leaf| leaf.not_after);
        let leaf = leaf.filter(|_| !site.is_left_to_others())?;
        let left = leaf.not_after - self.now;
        let value = edge.slack(self.now).map_or(left, |slack| slack.min(left));
        Some(self.gauge(Quantity::TimeLeft, lineage.subject(Some(site)), value, leaf.lifetime()))
    }

    /// The time since the last `sync`. If it never ran, the time since the least recent of the lineages' latest runs;
    /// then it is never critical. `None` if unknown, or if nothing was deployed yet.
    fn sync_age(self) -> Option<Gauge<'a>> {
        let last = &self.fleet.last_sync;
        match &last.record {
            _ if self.fleet.lineages.is_empty() => None,
            Some(record) => Some(self.since(record.ended_at)),
            None if !last.faults.is_empty() => None,
            None => {
                let begun = self.fleet.lineages.iter().filter_map(|lineage| lineage.begun_at).min()?;
                let age = self.since(begun);
                let [warning, critical] = age.limits;
                Some(Gauge { limits: [warning.or(critical), None], ..age })
            }
        }
    }

    /// The time since `sync` ended or began to fail, zero if the clock was set back since.
    pub(super) fn since(self, since: OffsetDateTime) -> Gauge<'a> {
        self.gauge(Quantity::SyncAge, Subject::default(), (self.now - since).max(Duration::ZERO), None)
    }

    /// A value with its limits. They depend on the lifetime of the certificate, if that is known, so that one check fits
    /// 6-day and 200-day certificates; a limit that was not given has its default.
    pub(super) fn gauge(
        self,
        quantity: Quantity,
        subject: Subject<'a>,
        value: Duration,
        lifetime: Option<Duration>,
    ) -> Gauge<'a> {
        let given = self.thresholds;
        let ([warning, critical], [default_warning, default_critical]) = match quantity {
            Quantity::TimeLeft => ([given.warning, given.critical], TIME_LEFT),
            Quantity::Lag => ([given.lag_warning, given.lag_critical], LAG),
            Quantity::SyncAge => ([given.sync_warning, given.sync_critical], SYNC_AGE.map(Threshold::Fixed)),
        };
        let limit = |given: Option<Threshold>, default: Threshold| match given {
            Some(Threshold::Off) => None,
            // A share of an unknown lifetime is unknown, too.
            given => given.and_then(|threshold| threshold.of(lifetime)).or(default.of(lifetime)),
        };
        let limits = [limit(warning, default_warning), limit(critical, default_critical)];
        Gauge { quantity, subject, value, limits }
    }
}

/// Finds what the handshakes showed at each address of a site, or else the problem of the last run.
fn site_problems<'a>(lineage: &'a LineageStatus, site: &'a SiteStatus) -> Vec<Problem<'a>> {
    let SiteState { domain, outcome, detail, .. } = &site.state;
    let problem = |level, text: String| Problem::new(level, lineage.subject(Some(site)), text);
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
    if site.serves_leaf(lineage) == Some(false) && !is_pending && !is_seen_stale {
        let text = format!("{domain}: an edge address was last seen without this certificate");
        // `sync` sends nothing for a site that the lineage is not for.
        let hint = match site.reached_with {
            Some(_) => "deploy the lineage with `--domain` for this site and its own",
            None => "run `edgecert sync`",
        };
        problems.push(problem(Level::Warning, text).hint(hint));
    }
    problems
}

/// Sorts problems, the most severe first.
fn sorted(mut problems: Vec<Problem<'_>>) -> Vec<Problem<'_>> {
    problems.sort_by(|a, b| b.level.cmp(&a.level).then_with(|| b.urgency.total_cmp(&a.urgency)));
    problems
}

/// Describes a failure that the check would report with its default thresholds.
pub(in crate::cmd) fn sync_failure(record: &SyncRecord, now: OffsetDateTime) -> Option<String> {
    let (fleet, thresholds) = (Fleet::default(), MonitoringArgs::default());
    let problem = Assessment { fleet: &fleet, thresholds: &thresholds, now }.failure(record)?;
    (problem.level > Level::Ok).then(|| problem.text + &problem.detail)
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
        sentence(format_args!("{}{}", self.text, self.detail), self.hint)
    }

    fn because(self, reason: Option<impl Display>) -> Self {
        let detail = reason.map(|reason| format!(": {reason}"));
        self.detail(detail.unwrap_or_default())
    }

    fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl Gauge<'_> {
    pub(super) fn level(&self) -> Level {
        let is_exceeded = |limit: Duration| match self.quantity {
            Quantity::TimeLeft => self.value < limit,
            Quantity::Lag | Quantity::SyncAge => self.value > limit,
        };
        let is_expired = self.quantity == Quantity::TimeLeft && self.value.is_negative();
        match self.limits.map(|limit| limit.is_some_and(is_exceeded)) {
            [_, is_critical] if is_critical || is_expired => Level::Critical,
            [true, _] => Level::Warning,
            [false, _] => Level::Ok,
        }
    }

    /// Orders alerts of the same level: 1 at the first limit, higher beyond it.
    pub(super) fn urgency(&self) -> f64 {
        let limit = self.limits.into_iter().flatten().next().unwrap_or(Duration::MAX);
        // No value is zero: where nothing is pending, the limits still tell which is nearer.
        let [value, limit] =
            [self.value, limit].map(|duration| duration.as_seconds_f64().max(f64::MIN_POSITIVE));
        if self.quantity == Quantity::TimeLeft { limit / value } else { value / limit }
    }

    /// Compares gauges of the same quantity: the greater one is farther beyond its limits, or nearer to them.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_urgency = || self.urgency().total_cmp(&other.urgency());
        // Both expired.
        let by_value = || other.value.cmp(&self.value);
        self.level().cmp(&other.level()).then_with(by_urgency).then_with(by_value)
    }

    /// Performance data: `label=value[unit];warning;critical;min`. The threshold `N:` alerts below N.
    pub(super) fn performance_data(&self) -> String {
        let limits =
            |number: fn(Duration) -> String| self.limits.map(|limit| limit.map(number).unwrap_or_default());
        if self.quantity == Quantity::TimeLeft {
            let [warning, critical] = limits(|limit| days(limit) + ":");
            // No minimum, because the value is negative after the expiry.
            return format!("days_left={};{warning};{critical}", days(self.value));
        }
        let [warning, critical] = limits(|limit| limit.whole_seconds().to_string());
        format!("{}={}s;{warning};{critical};0", self.quantity, self.value.whole_seconds())
    }
}

/// Formats days with at most four decimals, a resolution of about ten seconds.
fn days(duration: Duration) -> String {
    let days = format!("{:.4}", duration / Duration::DAY);
    let days = days.trim_end_matches('0').trim_end_matches('.');
    if days == "-0" { "0".into() } else { days.into() }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod gauge_tests {
    use super::super::fixture::assess;
    use super::*;

    fn gauge(quantity: Quantity, value: i64, warning: i64, critical: i64) -> Gauge<'static> {
        let limits = [warning, critical].map(|seconds| Some(Duration::seconds(seconds)));
        Gauge { quantity, subject: Subject::default(), value: Duration::seconds(value), limits }
    }

    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

    /// The limits in seconds.
    fn limits(
        thresholds: &MonitoringArgs,
        quantity: Quantity,
        lifetime: Option<Duration>,
    ) -> [Option<i64>; 2] {
        let fleet = Fleet::default();
        let gauge = assess(&fleet, thresholds).gauge(quantity, Subject::default(), Duration::ZERO, lifetime);
        gauge.limits.map(|limit| limit.map(Duration::whole_seconds))
    }

    #[test]
    fn limits_follow_the_lifetime() {
        let thresholds = MonitoringArgs::default();
        // The lifetime in days, and the limits on the time left and on the lag.
        let rows = [
            (Some(6), [36 * HOUR, 14 * HOUR + 24 * 60], [3 * HOUR + 36 * 60, 7 * HOUR + 12 * 60]),
            (Some(45), [11 * DAY + 6 * HOUR, 3 * DAY], [6 * HOUR, DAY]),
            (Some(90), [14 * DAY, 3 * DAY], [6 * HOUR, DAY]),
            (Some(200), [14 * DAY, 3 * DAY], [6 * HOUR, DAY]),
            (None, [14 * DAY, 3 * DAY], [6 * HOUR, DAY]),
        ];
        for (days, time_left, lag) in rows {
            let lifetime = days.map(Duration::days);
            let found = [Quantity::TimeLeft, Quantity::Lag].map(|of| limits(&thresholds, of, lifetime));
            assert_eq!(found, [time_left.map(Some), lag.map(Some)], "{days:?}");
        }
    }

    #[test]
    fn sync_limits_can_be_off() {
        let (off, now) = (Some(Threshold::Off), Some(Threshold::Fixed(Duration::ZERO)));
        let rows = [
            ([None, None], [Some(3 * HOUR), Some(DAY)]),
            ([off, None], [None, Some(DAY)]),
            ([None, off], [Some(3 * HOUR), None]),
            ([off, off], [None, None]),
            ([now, None], [Some(0), Some(DAY)]),
        ];
        for ([sync_warning, sync_critical], expected) in rows {
            let thresholds = MonitoringArgs { sync_warning, sync_critical, ..MonitoringArgs::default() };
            assert_eq!(limits(&thresholds, Quantity::SyncAge, None), expected, "{thresholds:?}");
        }
    }

    #[test]
    fn override_replaces_the_default() {
        let thresholds = MonitoringArgs {
            warning: Some(Threshold::Fixed(Duration::days(14))),
            lag_critical: Some(Threshold::Share(0.5)),
            ..MonitoringArgs::default()
        };
        let lifetime = Some(Duration::days(6));
        let limits = |quantity, lifetime| limits(&thresholds, quantity, lifetime);
        assert_eq!(
            limits(Quantity::TimeLeft, lifetime),
            [14 * DAY, 14 * HOUR + 24 * 60].map(Some),
            "warns from its first minute, as asked for"
        );
        assert_eq!(limits(Quantity::Lag, lifetime), [3 * HOUR + 36 * 60, 3 * DAY].map(Some));
        // Half of an unknown lifetime: the default.
        assert_eq!(limits(Quantity::Lag, None), [6 * HOUR, DAY].map(Some));
    }

    #[test]
    fn performance_data_follow_the_guidelines() {
        let off = [None, Some(Duration::DAY)];
        let rows = [
            (gauge(Quantity::Lag, 259_200, 21_600, 86_400), "lag=259200s;21600;86400;0"),
            (gauge(Quantity::TimeLeft, 512_352, 129_600, 51_840), "days_left=5.93;1.5:;0.6:"),
            (gauge(Quantity::TimeLeft, -86_401, 1_209_600, 90), "days_left=-1;14:;0.001:"),
            (gauge(Quantity::TimeLeft, -1, 0, 0), "days_left=0;0:;0:"),
            (Gauge { limits: off, ..gauge(Quantity::SyncAge, 60, 0, 0) }, "sync_age=60s;;86400;0"),
        ];
        for (gauge, expected) in rows {
            assert_eq!(gauge.performance_data(), expected);
        }
    }

    #[test]
    fn gauge_beyond_its_limit_is_greater() {
        let left = |value, warning| gauge(Quantity::TimeLeft, value, warning, warning / 4);
        let lag = |value, warning| gauge(Quantity::Lag, value, warning, warning * 4);
        // Each is greater than the one before.
        let rows = [
            vec![
                left(900, 400),
                left(500, 400),
                left(399, 400),
                left(30, 40),
                left(99, 400),
                left(-1, 40),
                left(-2, 400),
            ],
            vec![
                lag(0, 400),
                lag(0, 40),
                lag(200, 400),
                lag(39, 40),
                lag(500, 400),
                lag(60, 40),
                lag(161, 40),
            ],
        ];
        for gauges in rows {
            for pair in gauges.windows(2) {
                assert_eq!(pair[1].compare(&pair[0]), Ordering::Greater, "{pair:?}");
            }
        }
    }
}
