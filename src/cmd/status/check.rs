//! Compares the status of all lineages with thresholds, for monitoring.

use std::cmp::Reverse;

use time::{Duration, OffsetDateTime};

use super::lineage_status::{DiskStatus, LeafAge, LineageStatus, SiteStatus, days_left};
use super::verdict::{Alert, CheckVerdict, Level};
use crate::cli::StatusArgs;
use crate::error::ErrorKind;
use crate::state::RunResult;
use crate::state::StateError;
use crate::text::{count, humanize, rfc3339, sanitize};

/// Default of `--max-lag`, in seconds.
const MAX_LAG: u64 = 24 * 60 * 60;
/// Default of `--warn-days`.
const WARN_DAYS: u32 = 14;

/// The limits that a lineage has to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// A deployment pending for longer is critical.
    max_lag: Duration,
    /// A certificate that expires in fewer days is a warning.
    warn_days: i64,
}

impl Thresholds {
    pub(super) fn from_args(args: &StatusArgs) -> Self {
        let max_lag = i64::try_from(args.max_lag.unwrap_or(MAX_LAG)).unwrap_or(i64::MAX);
        let warn_days = i64::from(args.warn_days.unwrap_or(WARN_DAYS));
        Self { max_lag: Duration::seconds(max_lag), warn_days }
    }
}

/// Evaluates the lineages. Each error of a state file becomes an alert.
pub(super) fn evaluate(
    lineages: &[LineageStatus],
    state_errors: &[StateError],
    thresholds: Thresholds,
    now: OffsetDateTime,
) -> CheckVerdict {
    let mut alerts: Vec<Alert> =
        state_errors.iter().map(|error| state_alert(error, thresholds.max_lag, now)).collect();
    alerts.extend(lineages.iter().flat_map(|lineage| alerts_of(lineage, thresholds, now)));
    // Stable: lineages stay in the order of their names.
    alerts.sort_by_key(|alert| Reverse((alert.level, alert.urgency)));
    let lags = || lineages.iter().filter_map(|lineage| lineage.lag(now));
    let (pending, lag) = (lags().count(), lags().max().unwrap_or_default());
    let sites = lineages.iter().flat_map(|lineage| &lineage.sites);
    let left = sites.filter_map(SiteStatus::expiry).min().map(|until| days_left(until, now));
    CheckVerdict {
        level: alerts.first().map_or(Level::Ok, |alert| alert.level),
        alerts,
        summary: summary(lineages.len(), pending, left),
        performance_data: performance_data(pending, lag, left, thresholds),
    }
}

/// The alert for a state file. A damaged one may be that of a deployment which has been pending since it was written.
fn state_alert(error: &StateError, max_lag: Duration, now: OffsetDateTime) -> Alert {
    let written_at = error.damaged().filter(|file| file.is_pending).and_then(|file| file.written_at);
    let level = match written_at {
        Some(at) if now - at > max_lag => Level::Critical,
        _ => Level::Warning,
    };
    Alert::new(level, None, error.to_string(), 0)
}

fn alerts_of(lineage: &LineageStatus, thresholds: Thresholds, now: OffsetDateTime) -> Vec<Alert> {
    if lineage.is_superseded() {
        return Vec::new();
    }
    let mut alerts: Vec<Alert> = pending_alert(lineage, thresholds.max_lag, now).into_iter().collect();
    alerts.extend(pending_expiry_alert(lineage, now));
    alerts.extend(expiry_alert(lineage, thresholds.warn_days, now));
    alerts.extend(disk_warning(lineage).map(|text| warning(lineage, text)));
    // While a deployment is pending, the edges serve the previous leaf; which its lag accounts for.
    let sites = lineage.sites.iter().filter(|_| lineage.pending_since.is_none());
    let stale = sites.filter_map(|site| Some((site, site.edge.as_ref()?.stale.first()?)));
    alerts.extend(stale.map(|(site, stale)| warning(lineage, format!("{}: {stale}", site.domain))));
    alerts
}

fn warning(lineage: &LineageStatus, text: String) -> Alert {
    Alert::new(Level::Warning, Some(lineage.name.clone()), text, 0)
}

/// The alert for a deployment that has been pending for too long, or that waiting does not finish because the
/// service's responses are unintelligible.
fn pending_alert(lineage: &LineageStatus, max_lag: Duration, now: OffsetDateTime) -> Option<Alert> {
    let lag = lineage.lag(now)?;
    let is_unintelligible = |result: &RunResult| result.exit_code == ErrorKind::Protocol.exit_code();
    let level = match &lineage.last_error {
        _ if lag > max_lag => Level::Critical,
        Some(result) if is_unintelligible(result) => Level::Warning,
        _ => return None,
    };
    let reason = match (&lineage.last_error, &lineage.disk) {
        (Some(result), _) => result.error.as_deref().map(sanitize),
        (None, DiskStatus::Leaf { age: LeafAge::Newer, .. }) => {
            Some("no run has seen this certificate".into())
        }
        (None, _) => Some("no run has finished".into()),
    };
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let text = format!("pending for {}{reason}", humanize(lag));
    Some(Alert::new(level, Some(lineage.name.clone()), text, lag.whole_seconds()))
}

/// The alert for a certificate that has expired before it was deployed.
fn pending_expiry_alert(lineage: &LineageStatus, now: OffsetDateTime) -> Option<Alert> {
    let until = lineage.pending_validity.map(|validity| validity.not_after).filter(|until| *until < now)?;
    let text = format!("the pending certificate expired at {}", rfc3339(until));
    Some(Alert::new(Level::Critical, Some(lineage.name.clone()), text, i64::MAX))
}

/// The alert for the certificate that expires first.
fn expiry_alert(lineage: &LineageStatus, warn_days: i64, now: OffsetDateTime) -> Option<Alert> {
    let dated = lineage.sites.iter().filter_map(|site| Some((site, site.expiry()?)));
    let (site, until) = dated.min_by_key(|(_, until)| *until)?;
    let (domain, left, at) = (&site.domain, days_left(until, now), rfc3339(until));
    let name = Some(lineage.name.clone());
    if until < now {
        let text = format!("the certificate of {domain} expired at {at}");
        return Some(Alert::new(Level::Critical, name, text, i64::MAX));
    }
    let text = format!("the certificate of {domain} expires in {}, at {at}", humanize(until - now));
    (left < warn_days).then(|| Alert::new(Level::Warning, name, text, -left))
}

fn disk_warning(lineage: &LineageStatus) -> Option<String> {
    match &lineage.disk {
        DiskStatus::Missing if lineage.is_needed() => {
            let cert = lineage.cert.as_deref().unwrap_or("the lineage");
            Some(format!("{cert} is missing and still needed"))
        }
        DiskStatus::Unreadable(reason) => Some(reason.clone()),
        DiskStatus::Leaf { .. } | DiskStatus::Missing => None,
    }
}

fn summary(lineages: usize, pending: usize, left: Option<i64>) -> String {
    let pending = match pending {
        0 => "nothing pending".to_owned(),
        pending => format!("{pending} pending within the limit"),
    };
    let left = left.map(|days| format!(", {} left", count(usize::try_from(days).unwrap_or(0), "day")));
    format!("{}, {pending}{}", count(lineages, "lineage"), left.unwrap_or_default())
}

/// Performance data: `label=value[unit];warning;critical;min`. The threshold `N:` alerts below N.
fn performance_data(pending: usize, lag: Duration, left: Option<i64>, thresholds: Thresholds) -> String {
    let Thresholds { max_lag, warn_days } = thresholds;
    let max_lag = max_lag.whole_seconds();
    let left = left.map(|days| format!(" days_left={days};{warn_days}:;0:")).unwrap_or_default();
    format!("pending={pending} lag={}s;{max_lag};{max_lag}{left}", lag.whole_seconds())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, missing, pending, renewed, until};
    use super::*;
    use crate::outcome::Outcome;
    use crate::state::DamagedFile;

    const THRESHOLDS: Thresholds = Thresholds { max_lag: Duration::DAY, warn_days: 14 };

    /// The exit code and the line.
    fn check(lineages: &[LineageStatus]) -> (u8, String) {
        let verdict = evaluate(lineages, &[], THRESHOLDS, NOW);
        (verdict.level.exit_code(), verdict.to_line())
    }

    /// The exit code and the text between the level and the performance data.
    fn check_text(lineages: &[LineageStatus]) -> (u8, String) {
        let (code, line) = check(lineages);
        let text = line.split_once(" - ").unwrap().1.split(" | ").next().unwrap().to_owned();
        (code, text)
    }

    #[test]
    fn line_has_level_alert_and_performance_data() {
        let lineages = [
            deployed("fine", 60),
            deployed("soon", 5),
            pending("shop", 20, Duration::days(3)),
            missing("left"),
        ];
        let line = "EDGECERT CRITICAL - shop: pending for 3 days (the service cannot be reached); 2 more | \
                    pending=1 lag=259200s;86400;86400 days_left=5;14:;0:\n";
        assert_eq!(check(&lineages), (2, line.into()));
        let line = "EDGECERT OK - 1 lineage, nothing pending, 60 days left | \
                    pending=0 lag=0s;86400;86400 days_left=60;14:;0:\n";
        assert_eq!(check(&[deployed("fine", 60)]), (0, line.into()));
        let line = "EDGECERT OK - 0 lineages, nothing pending | pending=0 lag=0s;86400;86400\n";
        assert_eq!(check(&[]), (0, line.into()));
    }

    #[test]
    fn each_problem_has_its_level() {
        let mut unreadable = deployed("x", 60);
        unreadable.disk = DiskStatus::Unreadable("cannot read /x: permission denied".into());
        let mut unneeded = missing("x");
        unneeded.sites.clear();
        let mut superseded = deployed("x", -1);
        (superseded.sites[0].outcome, superseded.sites[0].validity) = (Outcome::Superseded, None);
        let mut configured = LineageStatus { is_configured: true, is_recorded: false, ..missing("x") };
        configured.sites.clear();
        let rows = [
            (pending("x", 60, Duration::hours(23)), 0),
            (pending("x", 60, Duration::hours(25)), 2),
            (renewed("x", Duration::hours(23)), 0),
            (renewed("x", Duration::hours(25)), 2),
            (deployed("x", 14), 0),
            (deployed("x", 13), 1),
            (deployed("x", 0), 1),
            (deployed("x", -1), 2),
            (pending("x", -1, Duration::ZERO), 2),
            (LineageStatus { pending_validity: Some(until(NOW)), ..pending("x", 60, Duration::HOUR) }, 0),
            (
                LineageStatus {
                    pending_validity: Some(until(NOW - Duration::SECOND)),
                    ..pending("x", 60, Duration::HOUR)
                },
                2,
            ),
            (missing("x"), 1),
            (unneeded, 0),
            (superseded, 0),
            (configured, 1),
            (unreadable, 1),
        ];
        for (number, (lineage, code)) in rows.into_iter().enumerate() {
            let (found, line) = check(&[lineage]);
            assert_eq!(found, code, "row {number}: {line}");
        }
    }

    #[test]
    fn damaged_state_file_may_be_pending() {
        let damaged = |is_pending, age| {
            let (lineage, path) = ("x".to_owned(), "/x.damaged".into());
            let file = DamagedFile { lineage, path, is_pending, written_at: Some(NOW - age) };
            evaluate(&[deployed("y", 60)], &[StateError::Damaged(file)], THRESHOLDS, NOW)
        };
        let (short, long) = (Duration::hours(23), Duration::hours(25));
        for (is_pending, age, level) in
            [(true, short, Level::Warning), (true, long, Level::Critical), (false, long, Level::Warning)]
        {
            assert_eq!(damaged(is_pending, age).level, level, "{is_pending} {age}");
        }
        let line = "EDGECERT CRITICAL - /x.damaged is an invalid state file, so x may be pending and is not retried; \
                    deploy it again, or run `edgecert status --forget x` | ";
        assert!(damaged(true, long).to_line().starts_with(line), "{}", damaged(true, long).to_line());
    }

    #[test]
    fn most_urgent_alert_comes_first() {
        let late = |name, days| renewed(name, Duration::days(days));
        let (code, text) = check_text(&[late("a", 3), late("b", 9), late("c", 4)]);
        assert_eq!((code, &*text), (2, "b: pending for 9 days (no run has seen this certificate); 2 more"));
        let (_, text) = check_text(&[deployed("a", 9), deployed("b", 3)]);
        assert_eq!(
            text,
            "b: the certificate of a.example expires in 3 days, at 2026-11-24T13:00:00Z; 1 more"
        );
    }

    #[test]
    fn stale_edge_is_a_warning_unless_pending() {
        let stale = |mut lineage: LineageStatus, days| {
            lineage.sites[0].edge = Some(edge(1, Some(days)));
            lineage
        };
        let text = "x: a.example: 192.0.2.1:443 serves another";
        assert_eq!(check_text(&[stale(deployed("x", 60), 30)]), (1, text.into()));
        assert_eq!(check_text(&[stale(pending("x", 60, Duration::hours(1)), 30)]).0, 0);
        assert_eq!(check_text(&[stale(deployed("x", 60), -1)]).0, 2, "the served leaf has expired");
    }

    #[test]
    fn untrusted_text_stays_on_one_line() {
        let mut lineage = pending("x", 60, Duration::days(3));
        lineage.last_error.as_mut().unwrap().error = Some("a|b\nEDGECERT OK - c".into());
        let (_, line) = check(&[lineage]);
        assert_eq!((line.matches('|').count(), line.lines().count()), (1, 1), "{line}");
    }
}
