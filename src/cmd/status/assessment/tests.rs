//! Tests of the problems, as `--check` shows them.

use time::Duration;

use super::super::fixture::{
    NOW, assess, deployed, edge, fleet, last_sync, missing, pending, renewed, seen, until, with_pending,
};
use super::super::plugin::CheckVerdict;
use super::super::{metrics, table};
use super::*;
use crate::cli::{MonitoringArgs, Threshold};
use crate::report::Style;
use crate::sightings::EdgeMemory;
use crate::state::{DamagedFile, LastSync, StateError};

/// The exit code and the lines.
fn verdict(fleet: &Fleet, thresholds: &MonitoringArgs) -> (u8, String) {
    let verdict = CheckVerdict::new(assess(fleet, thresholds));
    (verdict.exit_code(), verdict.to_text())
}

/// The same with the default thresholds.
fn check(lineages: impl Into<Vec<LineageStatus>>) -> (u8, String) {
    verdict(&fleet(lineages), &MonitoringArgs::default())
}

/// The exit code and the first alert, without its level.
fn check_text(lineages: impl Into<Vec<LineageStatus>>) -> (u8, String) {
    let (code, text) = check(lineages);
    let alert = text.lines().nth(1).map(|line| line.split_once(": ").unwrap().1.to_owned());
    (code, alert.unwrap_or_default())
}

#[test]
fn verdict_has_line_details_and_performance_data() {
    let lineages =
        [deployed("fine", 60), deployed("soon", 5), pending("shop", 20, Duration::days(3)), missing("left")];
    expect_test::expect![[r"
        EDGECERT CRITICAL - shop: pending for 3 days; 2 more | pending=1;;;0 lag=259200s;21600;86400;0 days_left=5.0417;14:;3: sync_age=60s;10800;86400;0
        CRITICAL: shop: pending for 3 days (the service cannot be reached)
        WARNING: soon: certificate expires in 5 days (a.example, at 2026-11-26T13:00:00Z)
        WARNING: left: certificate is missing but still needed: /live/left/fullchain.pem; restore the files, or run `edgecert status --forget` for it
    "]].assert_eq(&check(lineages).1);
    expect_test::expect![[r"
        EDGECERT CRITICAL - short: certificate expires in 25 hours | pending=0;;;0 lag=0s;21600;86400;0 days_left=1.0417;14:;3: sync_age=60s;10800;86400;0
        CRITICAL: short: certificate expires in 25 hours (a.example, at 2026-11-22T13:00:00Z)
    "]].assert_eq(&check([deployed("fine", 60), deployed("short", 1)]).1);
    expect_test::expect![[r"
        EDGECERT OK - 1 lineage, nothing pending, 60 days left | pending=0;;;0 lag=0s;21600;86400;0 days_left=60.0417;14:;3: sync_age=60s;10800;86400;0
    "]].assert_eq(&check([deployed("fine", 60)]).1);
    expect_test::expect![[r"
        EDGECERT OK - 0 lineages, nothing pending | pending=0;;;0 lag=0s;21600;86400;0
    "]]
    .assert_eq(&check([]).1);
}

#[test]
fn each_problem_has_its_level() {
    let mut unreadable = deployed("x", 60);
    unreadable.disk = DiskStatus::Unreadable("cannot read /x: permission denied".into());
    let mut unneeded = missing("x");
    unneeded.sites.clear();
    let mut superseded = deployed("x", -1);
    (superseded.sites[0].state.outcome, superseded.sites[0].leaf) = (Outcome::Superseded, None);
    let mut configured = LineageStatus { is_configured: true, begun_at: None, ..missing("x") };
    configured.sites.clear();
    let mut unintelligible = pending("x", 60, Duration::ZERO);
    unintelligible.last_error.as_mut().unwrap().exit_code = 76;
    let rows = vec![
        (pending("x", 60, Duration::hours(5)), 0),
        (pending("x", 60, Duration::hours(7)), 1),
        (pending("x", 60, Duration::hours(25)), 2),
        (pending("x", 60, -Duration::MINUTE), 0),
        (pending("x", 60, -Duration::HOUR), 1),
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
        (with_pending(pending("x", 60, Duration::HOUR), until(NOW)), 0),
        (with_pending(pending("x", 60, Duration::HOUR), until(NOW - Duration::SECOND)), 2),
        (missing("x"), 1),
        (unneeded, 0),
        (superseded, 0),
        (configured, 1),
        (unreadable, 1),
    ];
    for (number, (lineage, code)) in rows.into_iter().enumerate() {
        let (found, line) = check([lineage]);
        assert_eq!(found, code, "row {number}: {line}");
    }
}

#[test]
fn expired_pending_certificate_is_named() {
    let lineage = with_pending(pending("x", 60, Duration::HOUR), until(NOW - Duration::SECOND));
    let text = "x: the pending certificate expired at 2026-11-21T11:59:59Z; renew it with the ACME client";
    assert_eq!(check_text([lineage]), (2, text.into()));
}

#[test]
fn pending_since_the_future_has_no_lag() {
    let lineage = || pending("x", 60, -Duration::HOUR);
    let text = "x: pending since 2026-11-21T13:00:00Z, which is in the future; check the clock of this host";
    assert_eq!(check_text([lineage()]), (1, text.into()));
    let fleet = fleet([lineage()]);
    assert!(!metrics::format(&fleet, 1, NOW).contains("edgecert_deploy_lag_seconds{"));
    let table = table::text(assess(&fleet, &MonitoringArgs::default()), false, Style::PLAIN);
    assert!(table.contains("check the clock of this host") && !table.contains("pending 0 s"), "{table}");
}

#[test]
fn what_the_edge_was_seen_to_serve_counts() {
    let days = Duration::days;
    let rows = [
        (
            days(30),
            1,
            "a.example: an edge address was last seen without this certificate; run `edgecert sync`",
        ),
        (
            days(5),
            1,
            "certificate expires in 5 days (a.example, at 2026-11-26T12:00:00Z, as its edge was last seen)",
        ),
        (
            days(2),
            2,
            "certificate expires in 2 days (a.example, at 2026-11-23T12:00:00Z, as its edge was last seen)",
        ),
        (
            -days(1),
            2,
            "certificate expired 24 hours ago (a.example, at 2026-11-20T12:00:00Z, as its edge was last seen)",
        ),
        (Duration::ZERO, 2, "no valid certificate served (a.example, as its edge was last seen)"),
    ];
    for (left, code, text) in rows {
        let mut lineage = deployed("x", 60);
        lineage.sites[0].state.edge = seen("other", left);
        assert_eq!(check_text([lineage]), (code, format!("x: {text}")));
    }
    let mut reached = deployed("x", 60);
    (reached.sites[0].reached_with, reached.sites[0].state.edge) =
        (reached.sites[0].leaf.clone(), seen("other", days(30)));
    let (code, text) = check_text([reached]);
    assert!(
        code == 1 && text.ends_with("deploy the lineage with `--domain` for this site and its own"),
        "{text}"
    );
    let mut reached = deployed("x", 60);
    let earlier = Leaf { fingerprint: "other".into(), ..until(NOW + days(30)) };
    (reached.sites[0].reached_with, reached.sites[0].state.edge) = (Some(earlier), seen("other", days(30)));
    assert_eq!(check_text([reached]).0, 0, "it still serves the leaf that reached it");
}

#[test]
fn damaged_state_file_may_be_pending() {
    let damaged = |is_pending, age| {
        let (lineage, path) = ("x".to_owned(), "/x.damaged".into());
        let file = DamagedFile { lineage, path, is_pending, written_at: Some(NOW - age) };
        let fleet = Fleet { state_errors: vec![StateError::Damaged(file)], ..fleet([deployed("y", 60)]) };
        verdict(&fleet, &MonitoringArgs::default())
    };
    let (short, long) = (Duration::hours(23), Duration::hours(25));
    for (is_pending, age, code) in [(true, short, 1), (true, long, 2), (false, long, 1)] {
        assert_eq!(damaged(is_pending, age).0, code, "{is_pending} {age}");
    }
    let line = "EDGECERT CRITICAL - /x.damaged is an invalid state file, so x may be pending... | ";
    assert!(damaged(true, long).1.starts_with(line), "{}", damaged(true, long).1);
}

#[test]
fn unusable_state_file_is_unknown() {
    let later = || StateError::NewerVersion { path: "/x.json".into(), version: 9 };
    for (lineages, code) in
        [(vec![], 3), (vec![deployed("y", 60)], 3), (vec![deployed("y", 13)], 1), (vec![deployed("y", 2)], 2)]
    {
        let fleet = Fleet { state_errors: vec![later()], ..fleet(lineages) };
        assert_eq!(verdict(&fleet, &MonitoringArgs::default()).0, code);
    }
}

#[test]
fn most_urgent_alert_comes_first() {
    let late = |name, days| renewed(name, Duration::days(days));
    let (code, text) = check_text([late("a", 3), late("b", 9), late("c", 4)]);
    assert_eq!(
        (code, &*text),
        (2, "b: pending for 9 days (no run has seen this certificate); run `edgecert sync`")
    );
    let (_, text) = check_text([deployed("a", 9), deployed("b", 4)]);
    assert_eq!(text, "b: certificate expires in 4 days (a.example, at 2026-11-25T13:00:00Z)");
    let (_, text) = check_text([late("a", 100), deployed("b", -1)]);
    assert_eq!(text, "b: certificate expired 23 hours ago (a.example, at 2026-11-20T13:00:00Z)");
}

/// A lineage whose deployed leaf has this lifetime in days, and this much time left.
fn with_lifetime(days: i64, left: Duration) -> LineageStatus {
    let mut lineage = deployed("x", 60);
    let leaf = Leaf { not_before: NOW + left - Duration::days(days), ..until(NOW + left) };
    lineage.sites[0].leaf = Some(leaf.clone());
    lineage
}

fn days(days: f64) -> Threshold {
    Threshold::Fixed(Duration::DAY * days)
}

/// A share of the lifetime.
fn percent(percent: f64) -> Threshold {
    Threshold::Share(percent / 100.0)
}

#[test]
fn time_left_is_judged_by_lifetime() {
    let (hours, second) = (Duration::hours, Duration::SECOND);
    let rows = [
        (6, hours(37), 0, "days_left=1.5417;1.5:;0.6: "),
        (6, hours(36), 0, "days_left=1.5;1.5:;0.6: "),
        (6, hours(36) - second, 1, "days_left=1.5;1.5:;0.6: "),
        (6, Duration::minutes(864), 1, "days_left=0.6;1.5:;0.6: "),
        (6, hours(14), 2, "days_left=0.5833;1.5:;0.6: "),
        (45, hours(271), 0, "days_left=11.2917;11.25:;3: "),
        (45, hours(269), 1, "days_left=11.2083;11.25:;3: "),
        (200, hours(14 * 24), 0, "days_left=14;14:;3: "),
        (200, hours(14 * 24) - second, 1, "days_left=14;14:;3: "),
        (200, hours(3 * 24), 1, "days_left=3;14:;3: "),
        (200, hours(3 * 24) - second, 2, "days_left=3;14:;3: "),
        (200, -second, 2, "days_left=0;14:;3: "),
        // The dates of such a certificate contradict each other.
        (0, hours(14 * 24) - second, 1, "days_left=14;14:;3: "),
    ];
    for (days, left, code, data) in rows {
        let (found, text) = check([with_lifetime(days, left)]);
        assert_eq!(found, code, "{days} days, {left}: {text}");
        assert!(text.contains(data), "{data} is wanted: {text}");
    }
    // Given thresholds replace the defaults.
    let rows = [
        (Some(days(15.0)), Some(percent(0.0)), 1),
        (Some(days(15.0)), Some(percent(100.0)), 2),
        (Some(percent(1.0)), Some(days(0.00001)), 0),
        (Some(percent(100.0)), Some(days(14.5)), 2),
        (Some(percent(100.0)), None, 1),
        // A critical limit above that of the warning is as good as two equal ones.
        (Some(days(1.0)), Some(days(14.5)), 2),
    ];
    for (warning, critical, code) in rows {
        let args = MonitoringArgs { warning, critical, ..MonitoringArgs::default() };
        let fleet = fleet([with_lifetime(200, Duration::days(14) + Duration::HOUR)]);
        assert_eq!(verdict(&fleet, &args).0, code, "{warning:?} {critical:?}");
    }
    // The site of a six-day leaf has more time left, but is nearer to its end.
    let mut lineage = with_lifetime(200, hours(300));
    let mut other = with_lifetime(6, hours(10)).sites.remove(0);
    other.state.domain = "b.example".parse().unwrap();
    lineage.sites.push(other);
    assert_eq!(
        check_text([lineage]).1,
        "x: certificate expires in 10 hours (b.example, at 2026-11-21T22:00:00Z)"
    );
}

#[test]
fn seen_leaf_counts_before_the_first_success() {
    let first = |seen: EdgeMemory| {
        let mut lineage = LineageStatus { deployed: None, ..pending("x", 60, Duration::MINUTE) };
        (lineage.sites[0].leaf, lineage.sites[0].state.outcome) = (None, Outcome::Stale);
        lineage.sites[0].state.edge = seen;
        check([lineage]).0
    };
    assert_eq!(first(seen("old", -Duration::HOUR)), 2);
    assert_eq!(first(seen("old", Duration::days(60))), 0);
    assert_eq!(first(EdgeMemory::default()), 0);
}

#[test]
fn lag_is_judged_by_lifetime() {
    let (hours, second) = (Duration::hours, Duration::SECOND);
    let with_lag = |days: i64, lag: Duration| {
        let leaf = Leaf { not_before: NOW, ..until(NOW + Duration::days(days)) };
        with_pending(pending("x", 60, lag), leaf)
    };
    let rows = [
        (6, hours(3), 0, [12_960, 25_920]),
        (6, hours(4), 1, [12_960, 25_920]),
        (6, hours(8), 2, [12_960, 25_920]),
        (200, hours(6), 0, [21_600, 86_400]),
        (200, hours(6) + second, 1, [21_600, 86_400]),
        (200, hours(24), 1, [21_600, 86_400]),
        (200, hours(24) + second, 2, [21_600, 86_400]),
    ];
    for (lifetime, lag, code, [warning, critical]) in rows {
        let fleet = fleet([with_lag(lifetime, lag)]);
        let (found, text) = verdict(&fleet, &MonitoringArgs::default());
        assert_eq!(found, code, "{lifetime} days, {lag}: {text}");
        let given = MonitoringArgs {
            lag_warning: Some(days(0.01)),
            lag_critical: Some(percent(50.0)),
            ..MonitoringArgs::default()
        };
        assert_eq!(verdict(&fleet, &given).0, 1, "{lifetime} days, {lag}");
        let json = CheckVerdict::new(assess(&fleet, &MonitoringArgs::default())).to_json();
        let lag = serde_json::json!({
            "quantity": "lag", "lineage": "x", "site": null, "seconds": lag.whole_seconds(),
            "warning": warning, "critical": critical,
        });
        assert!(json["values"].as_array().unwrap().contains(&lag), "{json}");
    }
}

#[test]
fn last_sync_is_judged() {
    let (hours, minute, off) = (Duration::hours, Duration::MINUTE, Some(Threshold::Off));
    let after = |age| Some(Threshold::Fixed(age));
    let rows = [
        (last_sync(hours(3), 0, None), [None, None], 0),
        (last_sync(hours(4), 0, None), [None, None], 1),
        (last_sync(hours(4), 0, None), [after(hours(5)), None], 0),
        (last_sync(hours(25), 0, None), [None, None], 2),
        (last_sync(hours(25), 0, None), [off, None], 2),
        (last_sync(hours(25), 0, None), [None, off], 1),
        (last_sync(hours(25), 0, None), [off, off], 0),
        (last_sync(minute, 78, None), [None, None], 1),
        (last_sync(minute, 78, None), [off, off], 0),
        (last_sync(minute, 75, Some(hours(2))), [None, None], 0),
        (last_sync(minute, 75, Some(hours(4))), [None, None], 1),
        (last_sync(minute, 75, Some(hours(4))), [after(hours(5)), None], 0),
        (LastSync::default(), [None, None], 0),
        (LastSync::default(), [after(-minute), None], 1),
        (LastSync::default(), [off, after(-minute)], 1),
    ];
    for (number, (last_sync, [sync_warning, sync_critical], code)) in rows.into_iter().enumerate() {
        let args = MonitoringArgs { sync_warning, sync_critical, ..MonitoringArgs::default() };
        let fleet = Fleet { last_sync, ..fleet([deployed("x", 60)]) };
        let (found, text) = verdict(&fleet, &args);
        assert_eq!(found, code, "row {number}: {text}");
    }
    // Without a record: since the last run. That is never critical.
    for (age, code) in [(hours(2), 0), (hours(40), 1)] {
        let lineage = LineageStatus { begun_at: Some(NOW - age), ..deployed("x", 60) };
        let fleet = Fleet { last_sync: LastSync::default(), ..fleet([lineage]) };
        let (found, text) = verdict(&fleet, &MonitoringArgs::default());
        assert_eq!(found, code, "{age}: {text}");
        let problem = "EDGECERT WARNING - sync has never run; check its timer with ";
        assert!(
            code == 0 || text.starts_with(problem) && text.contains(" sync_age=144000s;10800;;0\n"),
            "{text}"
        );
    }
    // A record that cannot be used.
    let path = || "/last-sync".into();
    for (fault, code) in [
        (StateError::InvalidRecord { path: path(), reason: "it is damaged".into() }, 1),
        (StateError::NewerVersion { path: path(), version: 9 }, 3),
    ] {
        let last_sync = LastSync { record: None, faults: vec![fault] };
        let fleet = Fleet { last_sync, ..fleet([deployed("x", 60)]) };
        let (found, text) = verdict(&fleet, &MonitoringArgs::default());
        assert_eq!(found, code, "{text}");
        assert!(text.contains("last-sync") && !text.contains("sync_age"), "{text}");
    }
    // A late deployment explains the failure, and without any lineage, it would hide that nothing is known.
    let failed = || last_sync(minute, 78, None);
    let alone = Fleet { last_sync: failed(), ..fleet([deployed("x", 60)]) };
    let (_, text) = verdict(&alone, &MonitoringArgs::default());
    assert!(text.ends_with("sync failed with exit code 78: the service cannot be reached\n"), "{text}");
    let late = Fleet { last_sync: failed(), ..fleet([pending("x", 60, hours(7))]) };
    assert_eq!(verdict(&late, &MonitoringArgs::default()).1.lines().count(), 2);
    let empty = Fleet { last_sync: failed(), ..Fleet::default() };
    assert_eq!(verdict(&empty, &MonitoringArgs::default()).0, 0);
}

#[test]
fn stale_edge_is_a_warning_unless_pending() {
    let stale = |mut lineage: LineageStatus, days| {
        lineage.sites[0].edge = Some(edge(1, Some(days)));
        lineage
    };
    let text = "x: a.example: 192.0.2.1:443 serves another";
    assert_eq!(check_text([stale(deployed("x", 60), 30)]), (1, text.into()));
    assert_eq!(check_text([stale(pending("x", 60, Duration::hours(1)), 30)]).0, 0);
    assert_eq!(check_text([stale(deployed("x", 60), -1)]).0, 2, "the served leaf has expired");
}

#[test]
fn unchecked_edge_is_unknown() {
    let with_edge = |edge| {
        let mut lineage = deployed("x", 60);
        lineage.sites[0].edge = Some(edge);
        check_text([lineage])
    };
    let text = "x: no edge address of a.example could be checked: 192.0.2.1:443 does not answer";
    assert_eq!(with_edge(edge(0, None)), (3, text.into()));
    assert_eq!(with_edge(edge(1, None)).0, 0);
    assert_eq!(with_edge(edge(2, None)).0, 0);
}

#[test]
fn superseded_site_never_alerts() {
    let mut lineage = deployed("x", -1);
    (lineage.sites[0].state.outcome, lineage.sites[0].leaf) = (Outcome::Superseded, None);
    let mut other = deployed("y", 60).sites.remove(0);
    other.state.domain = "b.example".parse().unwrap();
    lineage.sites.push(other);
    assert_eq!(check([lineage]).0, 0);
}

#[test]
fn untrusted_text_stays_on_one_line() {
    let mut lineage = pending("x", 60, Duration::days(3));
    lineage.last_error.as_mut().unwrap().error = Some("a|b\nEDGECERT OK - c".into());
    let (_, text) = check([lineage]);
    assert_eq!((text.matches('|').count(), text.lines().count()), (1, 2), "{text}");
}
