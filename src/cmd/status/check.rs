//! Judges the status of all lineages, for monitoring.

use time::{Duration, OffsetDateTime};

use super::gauge::{Gauge, Quantity};
use super::lineage_status::{DiskStatus, EdgeOutcome, LeafAge, LineageStatus, SiteStatus};
use super::sync_check;
use super::thresholds::Thresholds;
use super::verdict::{Alert, CheckVerdict, Level, Measurement};
use crate::error::ErrorKind;
use crate::state::{LastSync, RunResult, StateError};
use crate::text::{count, humanize, rfc3339, sanitize};

/// What is judged.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) lineages: &'a [LineageStatus],
    /// Each becomes an alert.
    pub(super) state_errors: &'a [StateError],
    pub(super) last_sync: &'a LastSync,
}

/// Evaluates the lineages and the last `sync`. Without any lineage, the last `sync` does not count: that would hide that
/// nothing is known.
pub(super) fn evaluate(subject: Subject<'_>, thresholds: &Thresholds, now: OffsetDateTime) -> CheckVerdict {
    let Subject { lineages, state_errors, last_sync } = subject;
    let mut alerts: Vec<Alert> =
        state_errors.iter().map(|error| state_alert(error, thresholds, now)).collect();
    alerts.extend(lineages.iter().flat_map(|lineage| alerts_of(lineage, thresholds, now)));
    let mut measurements: Vec<Measurement> =
        lineages.iter().flat_map(|lineage| measurements(lineage, thresholds, now)).collect();
    if !lineages.is_empty() {
        let is_pending = lineages.iter().any(|lineage| pending_alert(lineage, thresholds, now).is_some());
        let (age, found) = sync_check::evaluate(last_sync, lineages, thresholds, is_pending, now);
        alerts.extend(found);
        measurements.extend(age.map(|gauge| Measurement { gauge, lineage: None, site: None }));
    }
    let pending = lineages.iter().filter(|lineage| lineage.pending_since.is_some()).count();
    let worst = |quantity| worst(&measurements, quantity);
    let lag = worst(Quantity::Lag).unwrap_or_else(|| thresholds.unknown_lag(Duration::ZERO));
    let left = worst(Quantity::TimeLeft);
    let gauges = [Some(lag), left, worst(Quantity::SyncAge)].into_iter().flatten();
    let performance_data = gauges
        .fold(format!("pending={pending};;;0"), |data, gauge| format!("{data} {}", gauge.performance_data()));
    let summary = summary(lineages.len(), pending, left);
    let mut verdict = CheckVerdict { alerts, summary, performance_data, measurements };
    verdict.sort();
    verdict
}

/// The lag of a lineage, and the time left of the leaf of each site.
fn measurements(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Vec<Measurement> {
    if lineage.is_superseded() {
        return Vec::new();
    }
    let measurement = |gauge, site| Measurement { gauge, lineage: Some(lineage.name.clone()), site };
    let lag = thresholds.lag(lineage.lag(now).unwrap_or_default(), lineage);
    let left =
        |site: &SiteStatus| Some(measurement(time_left(site, thresholds, now)?, Some(site.domain.clone())));
    std::iter::once(measurement(lag, None)).chain(lineage.sites.iter().filter_map(left)).collect()
}

/// The gauge that is nearest to its thresholds, or farthest beyond them.
fn worst(measurements: &[Measurement], quantity: Quantity) -> Option<Gauge> {
    let gauges = measurements.iter().map(|measured| measured.gauge);
    gauges.filter(|gauge| gauge.quantity == quantity).max_by(Gauge::compare)
}

/// The alert for a state file. A damaged one may be that of a deployment which has been pending since it was written.
fn state_alert(error: &StateError, thresholds: &Thresholds, now: OffsetDateTime) -> Alert {
    let written_at = error.damaged().filter(|file| file.is_pending).and_then(|file| file.written_at);
    let level = match written_at {
        Some(at) => thresholds.unknown_lag(now - at).level().max(Level::Warning),
        None if error.is_invalid() => Level::Warning,
        // It may hold anything.
        None => Level::Unknown,
    };
    Alert::from_message(level, &error.to_string())
}

fn alerts_of(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Vec<Alert> {
    if lineage.is_superseded() {
        return Vec::new();
    }
    let mut alerts: Vec<Alert> = pending_alert(lineage, thresholds, now).into_iter().collect();
    alerts.extend(pending_expiry_alert(lineage, now));
    alerts.extend(expiry_alert(lineage, thresholds, now));
    alerts.extend(disk_warning(lineage).map(|text| warning(lineage, &text)));
    // While a deployment is pending, the edges serve the previous leaf; which its lag accounts for.
    let sites = lineage.sites.iter().filter(|_| lineage.pending_since.is_none());
    alerts.extend(sites.filter_map(stale_edge).map(|text| warning(lineage, &text)));
    alerts.extend(lineage.sites.iter().filter_map(|site| unchecked_edge(lineage, site)));
    alerts
}

fn warning(lineage: &LineageStatus, text: &str) -> Alert {
    Alert::new(Level::Warning, Some(&lineage.name), text)
}

/// The alert for a deployment that has been pending for too long, or that waiting does not finish because the
/// service's responses are unintelligible.
fn pending_alert(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Alert> {
    let gauge = thresholds.lag(lineage.lag(now)?, lineage);
    let is_unintelligible = |result: &RunResult| result.exit_code == ErrorKind::Protocol.exit_code();
    let level = match &lineage.last_error {
        Some(result) if is_unintelligible(result) => gauge.level().max(Level::Warning),
        _ => Some(gauge.level()).filter(|level| *level > Level::Ok)?,
    };
    let reason = match (&lineage.last_error, &lineage.disk) {
        (Some(result), _) => result.error.as_deref().map(sanitize),
        (None, DiskStatus::Leaf { age: LeafAge::Newer, .. }) => {
            Some("no run has seen this certificate".into())
        }
        (None, _) => Some("no run has finished".into()),
    };
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let text = format!("pending for {}", humanize(gauge.value));
    Some(Alert::new(level, Some(&lineage.name), &text).with_detail(&reason).with_urgency(gauge.urgency()))
}

/// The alert for a certificate that has expired before it was deployed.
fn pending_expiry_alert(lineage: &LineageStatus, now: OffsetDateTime) -> Option<Alert> {
    let until = lineage.pending_validity.map(|validity| validity.not_after).filter(|until| *until < now)?;
    let text = format!("the pending certificate expired at {}", rfc3339(until));
    Some(Alert::new(Level::Critical, Some(&lineage.name), &text).with_urgency(f64::INFINITY))
}

/// The alert for the site whose leaf has the least time left, by its thresholds.
fn expiry_alert(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Alert> {
    let gauges = lineage.sites.iter().filter_map(|site| Some((time_left(site, thresholds, now)?, site)));
    // `max_by` takes the last one of equals, and the first site is expected.
    let (gauge, site) = gauges.rev().max_by(|(a, _), (b, _)| a.compare(b))?;
    let level = Some(gauge.level()).filter(|level| *level > Level::Ok)?;
    let (domain, left) = (&site.domain, humanize(gauge.value));
    let (text, detail) = match rfc3339(now + gauge.value) {
        _ if gauge.value.is_zero() => ("no valid certificate served".to_owned(), format!(" ({domain})")),
        at if gauge.is_expired() => {
            (format!("certificate expired {left} ago"), format!(" ({domain}, at {at})"))
        }
        at => (format!("certificate expires in {left}"), format!(" ({domain}, at {at})")),
    };
    let alert = Alert::new(level, Some(&lineage.name), &text).with_detail(&detail);
    Some(alert.with_urgency(gauge.urgency()))
}

/// The time left of the leaf that the visitors of a site get: of the deployed one or, if that expires earlier, of one that
/// an address of the edge was last seen to serve. `None`: unknown.
fn time_left(site: &SiteStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Gauge> {
    let validity = site.served_validity()?;
    let deployed = validity.not_after - now;
    let left = site.seen.slack(Duration::ZERO, now).map_or(deployed, |seen| seen.min(deployed));
    let seen = site.seen_validity().filter(|seen| seen.not_after < validity.not_after);
    Some(thresholds.time_left(left, seen.unwrap_or(validity)))
}

/// What is wrong with the edge of a site, as handshakes just now or in an earlier run showed.
fn stale_edge(site: &SiteStatus) -> Option<String> {
    let stale = site.edge.as_ref().and_then(|edge| edge.stale.first());
    let was_stale = || {
        (site.serves_leaf == Some(false)).then_some("an edge address was last seen without this certificate")
    };
    Some(format!("{}: {}", site.domain, stale.map(String::as_str).or_else(was_stale)?))
}

/// The alert for an edge of which `--verify` could check no address.
fn unchecked_edge(lineage: &LineageStatus, site: &SiteStatus) -> Option<Alert> {
    let edge =
        site.edge.as_ref().filter(|edge| edge.outcome == EdgeOutcome::Unreachable && edge.served == 0)?;
    let text = format!("no edge address of {} could be checked", site.domain);
    let reason = edge.unreachable.first().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(Alert::new(Level::Unknown, Some(&lineage.name), &text).with_detail(&reason))
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

fn summary(lineages: usize, pending: usize, left: Option<Gauge>) -> String {
    let pending = match pending {
        0 => "nothing pending".to_owned(),
        pending => format!("{pending} pending within the limit"),
    };
    let left = left.map(|gauge| format!(", {} left", humanize(gauge.value))).unwrap_or_default();
    format!("{}, {pending}{left}", count(lineages, "lineage"))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, missing, pending, renewed, until};
    use super::super::lineage_status::Validity;
    use super::*;
    use crate::outcome::Outcome;
    use crate::state::{DamagedFile, SyncRecord};

    /// The verdict shortly after a `sync`.
    fn verdict(lineages: &[LineageStatus], state_errors: &[StateError]) -> CheckVerdict {
        let record =
            SyncRecord { ended_at: NOW - Duration::MINUTE, exit_code: 0, message: None, failing_since: None };
        let last_sync = LastSync { record: Some(record), faults: Vec::new() };
        let subject = Subject { lineages, state_errors, last_sync: &last_sync };
        evaluate(subject, &Thresholds::default(), NOW)
    }

    /// The exit code and the lines.
    fn check(lineages: &[LineageStatus]) -> (u8, String) {
        let verdict = verdict(lineages, &[]);
        (verdict.level().exit_code(), verdict.to_text())
    }

    /// The exit code and the first alert, without its level.
    fn check_text(lineages: &[LineageStatus]) -> (u8, String) {
        let (code, text) = check(lineages);
        let alert = text.lines().nth(1).map(|line| line.split_once(": ").unwrap().1.to_owned());
        (code, alert.unwrap_or_default())
    }

    #[test]
    fn verdict_has_line_details_and_performance_data() {
        let lineages = [
            deployed("fine", 60),
            deployed("soon", 5),
            pending("shop", 20, Duration::days(3)),
            missing("left"),
        ];
        expect_test::expect![[r"
            EDGECERT CRITICAL - shop: pending for 3 days; 2 more | pending=1;;;0 lag=259200s;21600;86400;0 days_left=5.0417;14:;3: sync_age=60s;10800;86400;0
            CRITICAL: shop: pending for 3 days (the service cannot be reached)
            WARNING: soon: certificate expires in 5 days (a.example, at 2026-11-26T13:00:00Z)
            WARNING: left: /live/left/fullchain.pem is missing and still needed
        "]].assert_eq(&check(&lineages).1);
        expect_test::expect![[r"
            EDGECERT CRITICAL - short: certificate expires in 25 hours | pending=0;;;0 lag=0s;21600;86400;0 days_left=1.0417;14:;3: sync_age=60s;10800;86400;0
            CRITICAL: short: certificate expires in 25 hours (a.example, at 2026-11-22T13:00:00Z)
        "]].assert_eq(&check(&[deployed("fine", 60), deployed("short", 1)]).1);
        expect_test::expect![[r"
            EDGECERT OK - 1 lineage, nothing pending, 60 days left | pending=0;;;0 lag=0s;21600;86400;0 days_left=60.0417;14:;3: sync_age=60s;10800;86400;0
        "]].assert_eq(&check(&[deployed("fine", 60)]).1);
        expect_test::expect![[r"
            EDGECERT OK - 0 lineages, nothing pending | pending=0;;;0 lag=0s;21600;86400;0
        "]]
        .assert_eq(&check(&[]).1);
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
        let mut unintelligible = pending("x", 60, Duration::ZERO);
        unintelligible.last_error.as_mut().unwrap().exit_code = 76;
        let rows = [
            (pending("x", 60, Duration::hours(5)), 0),
            (pending("x", 60, Duration::hours(7)), 1),
            (pending("x", 60, Duration::hours(25)), 2),
            (unintelligible, 1),
            (renewed("x", Duration::hours(5)), 0),
            (renewed("x", Duration::hours(7)), 1),
            (renewed("x", Duration::hours(25)), 2),
            (deployed("x", 14), 0),
            (deployed("x", 13), 1),
            (deployed("x", 3), 1),
            (deployed("x", 2), 2),
            (deployed("x", 0), 2),
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
            verdict(&[deployed("y", 60)], &[StateError::Damaged(file)])
        };
        let (short, long) = (Duration::hours(23), Duration::hours(25));
        for (is_pending, age, level) in
            [(true, short, Level::Warning), (true, long, Level::Critical), (false, long, Level::Warning)]
        {
            assert_eq!(damaged(is_pending, age).level(), level, "{is_pending} {age}");
        }
        let line = "EDGECERT CRITICAL - /x.damaged is an invalid state file, so x may be pending... | ";
        assert!(damaged(true, long).to_text().starts_with(line), "{}", damaged(true, long).to_text());
    }

    #[test]
    fn unusable_state_file_is_unknown() {
        let later = || StateError::NewerVersion { path: "/x.json".into(), version: 9 };
        for (lineages, level) in [
            (vec![], Level::Unknown),
            (vec![deployed("y", 60)], Level::Unknown),
            (vec![deployed("y", 13)], Level::Warning),
            (vec![deployed("y", 2)], Level::Critical),
        ] {
            assert_eq!(verdict(&lineages, &[later()]).level(), level);
        }
    }

    #[test]
    fn most_urgent_alert_comes_first() {
        let late = |name, days| renewed(name, Duration::days(days));
        let (code, text) = check_text(&[late("a", 3), late("b", 9), late("c", 4)]);
        assert_eq!((code, &*text), (2, "b: pending for 9 days (no run has seen this certificate)"));
        let (_, text) = check_text(&[deployed("a", 9), deployed("b", 4)]);
        assert_eq!(text, "b: certificate expires in 4 days (a.example, at 2026-11-25T13:00:00Z)");
        let (_, text) = check_text(&[late("a", 100), deployed("b", -1)]);
        assert_eq!(text, "b: certificate expired 23 hours ago (a.example, at 2026-11-20T13:00:00Z)");
    }

    #[test]
    fn each_leaf_has_its_own_thresholds() {
        let with_lifetime = |days: i64, left: Duration| {
            let mut lineage = deployed("x", 0);
            let not_after = NOW + left;
            let validity = Validity { not_before: not_after - Duration::days(days), not_after };
            lineage.sites[0].validity = Some(validity);
            lineage
        };
        for (days, hours, code) in [
            (6, 37, 0),
            (6, 35, 1),
            (6, 14, 2),
            (45, 271, 0),
            (45, 269, 1),
            (200, 337, 0),
            (200, 335, 1),
            (200, 71, 2),
        ] {
            let (found, text) = check(&[with_lifetime(days, Duration::hours(hours))]);
            assert_eq!(found, code, "{days} days, {hours} hours: {text}");
        }
        // The site of a six-day leaf has more time left, but is nearer to its end.
        let mut lineage = with_lifetime(200, Duration::hours(300));
        let mut other = with_lifetime(6, Duration::hours(10)).sites.remove(0);
        other.domain = "b.example".into();
        lineage.sites.push(other);
        assert_eq!(
            check_text(&[lineage]).1,
            "x: certificate expires in 10 hours (b.example, at 2026-11-21T22:00:00Z)"
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
    fn unchecked_edge_is_unknown() {
        let with_edge = |edge| {
            let mut lineage = deployed("x", 60);
            lineage.sites[0].edge = Some(edge);
            check_text(&[lineage])
        };
        let text = "x: no edge address of a.example could be checked: 192.0.2.1:443 does not answer";
        assert_eq!(with_edge(edge(0, None)), (3, text.into()));
        assert_eq!(with_edge(edge(1, None)).0, 0);
        assert_eq!(with_edge(edge(2, None)).0, 0);
    }

    #[test]
    fn superseded_site_never_alerts() {
        let mut lineage = deployed("x", -1);
        (lineage.sites[0].outcome, lineage.sites[0].validity) = (Outcome::Superseded, None);
        let mut other = deployed("y", 60).sites.remove(0);
        other.domain = "b.example".into();
        lineage.sites.push(other);
        assert_eq!(check(&[lineage]).0, 0);
    }

    #[test]
    fn untrusted_text_stays_on_one_line() {
        let mut lineage = pending("x", 60, Duration::days(3));
        lineage.last_error.as_mut().unwrap().error = Some("a|b\nEDGECERT OK - c".into());
        let (_, text) = check(&[lineage]);
        assert_eq!((text.matches('|').count(), text.lines().count()), (1, 2), "{text}");
    }
}
