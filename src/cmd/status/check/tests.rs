//! Tests of the verdict on lineages.

use super::super::fixture::{NOW, deployed, edge, missing, pending, renewed, until};
use super::*;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::state::{DamagedFile, SyncRecord};

/// The verdict shortly after a `sync`.
fn verdict(lineages: &[LineageStatus], state_errors: &[StateError]) -> CheckVerdict {
    let record = SyncRecord {
        ended_at: NOW - Duration::MINUTE,
        exit_code: 0,
        message: None,
        failing_since: None,
        unattended: true,
        last_unattended: None,
    };
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
    let lineages =
        [deployed("fine", 60), deployed("soon", 5), pending("shop", 20, Duration::days(3)), missing("left")];
    expect_test::expect![[r"
        EDGECERT CRITICAL - shop: pending for 3 days; 2 more | pending=1;;;0 lag=259200s;21600;86400;0 days_left=5.0417;14:;3: sync_age=60s;10800;86400;0
        CRITICAL: shop: pending for 3 days (the service cannot be reached)
        WARNING: soon: certificate expires in 5 days (a.example, at 2026-11-26T13:00:00Z)
        WARNING: left: certificate is missing but still needed: /live/left/fullchain.pem
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
    (superseded.sites[0].outcome, superseded.sites[0].leaf) = (Outcome::Superseded, None);
    let mut configured = LineageStatus { is_configured: true, is_recorded: false, ..missing("x") };
    configured.sites.clear();
    let mut unintelligible = pending("x", 60, Duration::ZERO);
    unintelligible.last_error.as_mut().unwrap().exit_code = 76;
    let rows = [
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
        (LineageStatus { pending_leaf: Some(until(NOW)), ..pending("x", 60, Duration::HOUR) }, 0),
        (
            LineageStatus {
                pending_leaf: Some(until(NOW - Duration::SECOND)),
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
        let leaf = Leaf { not_before: not_after - Duration::days(days), ..until(not_after) };
        lineage.sites[0].leaf = Some(leaf.clone());
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
    (lineage.sites[0].outcome, lineage.sites[0].leaf) = (Outcome::Superseded, None);
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
