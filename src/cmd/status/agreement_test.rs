//! On generated fleets, the table, the verdict, the metrics and the JSON report agree.

use fastrand::Rng;
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::fixture::{NOW, assess, deployed, edge, last_sync, seen, until};
use super::fleet::{DiskStatus, Fleet, LeafAge, LineageStatus, Pending, SiteStatus};
use super::plugin::CheckVerdict;
use super::{metrics, table};
use crate::cert::KeyType;
use crate::cli::MonitoringArgs;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::report::Style;
use crate::sightings::{EdgeMemory, NewSightings, Sighting};
use crate::state::{DamagedFile, LastSync, RunResult, StateError};

const FLEETS: u64 = 10_000;

fn chosen<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())].clone()
}

/// A leaf of any lifetime, expired or not.
fn leaf(rng: &mut Rng) -> Leaf {
    let left = Duration::hours(chosen(rng, &[-30, -1, 1, 20, 35, 70, 200, 300, 400, 2_000]));
    let lifetime = Duration::days(chosen(rng, &[0, 6, 45, 90, 200]));
    Leaf { not_before: NOW + left - lifetime, ..until(NOW + left) }
}

fn site(rng: &mut Rng, lineage: &str, number: usize) -> SiteStatus {
    use Outcome::{Misbound, Queued, Served, Skipped, Stale, Superseded, Synced, Uploaded};
    let mut site = deployed("x", 60).sites.remove(0);
    site.state.domain = format!("{number}.{lineage}.example").parse().unwrap();
    let outcomes = [
        Served,
        Served,
        Synced,
        Uploaded,
        Stale,
        Queued,
        Misbound,
        Skipped,
        Superseded,
        Outcome::Unknown("new".into()),
    ];
    site.state.outcome = chosen(rng, &outcomes);
    site.leaf = rng.bool().then(|| leaf(rng).clone());
    site.is_on_record = chosen(rng, &[None, Some(true), Some(false)]);
    site.state.edge = match rng.u8(..4) {
        0 => seen("other", Duration::hours(rng.i64(-40..400))),
        1 => {
            let mut memory = EdgeMemory::default();
            let addresses = [(([192, 0, 2, 1], 443).into(), Some(Sighting::Nothing))].into();
            memory.see(&NewSightings { addresses, is_complete: true });
            memory
        }
        _ => EdgeMemory::default(),
    };
    if matches!(site.state.outcome, Misbound | Skipped | Superseded) {
        (site.leaf, site.is_on_record) = (None, None);
    } else if rng.u8(..3) == 0 {
        let stale = chosen(rng, &[None, Some(-1), Some(2), Some(30)]);
        site.edge = Some(edge(rng.usize(..2) + usize::from(stale.is_none() && rng.bool()), stale));
    }
    site
}

fn lineage(rng: &mut Rng, number: usize) -> LineageStatus {
    let name = format!("l{number}");
    let mut lineage = deployed(&name, 60);
    lineage.is_configured = rng.bool();
    lineage.begun_at = (rng.u8(..5) > 0).then(|| NOW - Duration::hours(rng.i64(0..60)));
    lineage.sites = (0..rng.usize(..4)).map(|number| site(rng, &name, number)).collect();
    lineage.disk = match rng.u8(..8) {
        0 => DiskStatus::Missing,
        1 => DiskStatus::Unreadable("no".into()),
        _ => {
            let age = chosen(rng, &[LeafAge::Same, LeafAge::Same, LeafAge::Newer, LeafAge::Older]);
            DiskStatus::Leaf { leaf: leaf(rng), key_type: KeyType::P256, age }
        }
    };
    let is_begun = rng.u8(..3) == 0;
    if is_begun || lineage.disk.is_unseen() {
        let since = NOW - Duration::minutes(chosen(rng, &[-600, -1, 5, 300, 500, 2_000]));
        lineage.pending = Some(Pending { since, is_begun, leaf: lineage.disk.leaf().cloned() });
        let error = Some("it failed".to_owned()).filter(|_| rng.bool());
        let result = RunResult { at: NOW, exit_code: chosen(rng, &[65, 75, 76]), error };
        lineage.last_error = Some(result).filter(|_| is_begun && rng.bool());
    }
    if lineage.is_superseded() {
        (lineage.pending, lineage.deployed, lineage.last_error) = (None, None, None);
    }
    lineage
}

fn fleet(rng: &mut Rng) -> Fleet {
    let lineages = (0..rng.usize(..4)).map(|number| lineage(rng, number)).collect();
    let age = |rng: &mut Rng| Duration::minutes(chosen(rng, &[-1, 5, 100, 200, 2_000]));
    let last_sync = match rng.u8(..8) {
        0 => LastSync::default(),
        1 => {
            let fault = StateError::NewerVersion { path: "/x".into(), version: 9 };
            LastSync { record: None, faults: vec![fault] }
        }
        2 => last_sync(age(rng), 78, Some(age(rng))),
        3 => last_sync(age(rng), 75, Some(age(rng))),
        _ => last_sync(age(rng), 0, None),
    };
    let damaged = DamagedFile {
        lineage: "x".into(),
        path: "/x".into(),
        is_pending: rng.bool(),
        written_at: Some(NOW - Duration::hours(rng.i64(0..40))),
    };
    let state_errors = match rng.u8(..10) {
        0 => vec![StateError::Damaged(damaged)],
        1 => vec![StateError::NewerVersion { path: "/x".into(), version: 9 }],
        _ => Vec::new(),
    };
    Fleet { lineages, state_errors, last_sync }
}

/// The sign of the table for the worst of these levels.
fn sign<'a>(levels: impl Iterator<Item = &'a Value>) -> char {
    let rank = |level: &Value| match level.as_str().unwrap() {
        "critical" => 2,
        "warning" | "unknown" => 1,
        level => panic!("{level}"),
    };
    [' ', '!', 'x'][levels.map(rank).max().unwrap_or(0)]
}

/// The sign of a line of the table; all signs that are not for alerts become spaces.
fn shown(line: &str) -> char {
    line.chars().next().filter(|sign| "!x".contains(*sign)).unwrap_or(' ')
}

/// Compares the series of a site with the JSON report.
fn assert_metrics_agree(metrics: &str, lineage: &Value, site: &Value) {
    let labels = format!("{{lineage={},site={}}} ", lineage["name"], site["domain"]);
    let series = |metric: &str| -> Option<i64> {
        let begin = format!("edgecert_{metric}{labels}");
        Some(metrics.lines().find_map(|line| line.strip_prefix(&begin))?.parse().unwrap())
    };
    let time =
        |value: &Value| Some(OffsetDateTime::parse(value.as_str()?, &Rfc3339).unwrap().unix_timestamp());
    let pending_since = time(&lineage["pending_since"]);
    let other = &site["served"]["not_after"];
    let expected = [
        ("pending", Some(pending_since.is_some().into())),
        ("superseded", Some((site["outcome"] == "superseded").into())),
        ("served", site["serves_leaf"].as_bool().map(i64::from)),
        ("slack_seconds", site["slack_seconds"].as_i64()),
        ("last_success_timestamp_seconds", time(&lineage["last_success"])),
        (
            "certificate_not_after_timestamp_seconds",
            time(if other.is_null() { &site["not_after"] } else { other }),
        ),
    ];
    for (metric, value) in expected {
        assert_eq!(series(metric), value, "{metric}{labels}: {lineage:#}");
    }
    // For another leaf that visitors get, the report has the expiry only.
    if other.is_null() {
        assert_eq!(series("certificate_not_before_timestamp_seconds"), time(&site["not_before"]));
    }
    // A lag is unknown if the clock was set back.
    if let (Some(since), Some(lag)) = (pending_since, series("deploy_lag_seconds")) {
        assert_eq!(lag, (NOW.unix_timestamp() - since).max(0), "{lineage:#}");
        let on_disk = [&lineage["on_disk"]["not_before"], &lineage["on_disk"]["not_after"]].map(time);
        if let [Some(from), Some(until)] = on_disk {
            let lifetime = Some(until - from).filter(|seconds| *seconds > 0);
            assert_eq!(series("pending_lifetime_seconds"), lifetime, "{lineage:#}");
        }
    }
}

#[test]
fn views_of_a_fleet_agree() {
    compare_views(FLEETS / 10);
}

#[test]
fn views_of_every_fleet_agree() {
    compare_views(FLEETS);
}

fn compare_views(fleets: u64) {
    for seed in 0..fleets {
        let fleet = fleet(&mut Rng::with_seed(seed));
        let thresholds = MonitoringArgs::default();
        let verdict = CheckVerdict::new(assess(&fleet, &thresholds));
        let (check, lineages) =
            (verdict.to_json(), fleet.lineages.iter().map(|lineage| lineage.to_json(NOW)).collect::<Value>());
        let text = table::text(assess(&fleet, &thresholds), seed % 2 == 0, Style::PLAIN);
        let context = || format!("seed {seed}: {text}{lineages:#}{check:#}");
        let [findings, values] = ["findings", "values"].map(|key| check[key].as_array().unwrap());

        // The verdict.
        let severity =
            |level: &str| ["ok", "unknown", "warning", "critical"].iter().position(|l| *l == level);
        let worst = findings.iter().filter_map(|finding| severity(finding["level"].as_str().unwrap())).max();
        assert_eq!(severity(check["level"].as_str().unwrap()), worst.or(Some(0)), "{}", context());
        let code = ["ok", "warning", "critical", "unknown"][usize::from(verdict.exit_code())];
        assert_eq!(check["level"], code, "{}", context());
        let head = format!("EDGECERT {} - ", code.to_uppercase());
        assert!(verdict.to_text().starts_with(&head), "{}", context());
        // The metrics.
        let metrics = metrics::format(&fleet, verdict.exit_code(), NOW);
        assert!(
            metrics.contains(&format!("\nedgecert_check_level {}\n", verdict.exit_code())),
            "{}",
            context()
        );

        // Of a part of the fleets, because every series is searched for.
        for lineage in lineages.as_array().unwrap().iter().filter(|_| seed % 10 == 0) {
            for site in lineage["sites"].as_array().unwrap() {
                assert_metrics_agree(&metrics, lineage, site);
            }
        }

        // The table: a row for each site.
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("    ") && line.contains(" l") && !line.contains("sites"))
            .collect();
        for lineage in lineages.as_array().unwrap() {
            let name = lineage["name"].as_str().unwrap();
            let of_lineage: Vec<&str> =
                rows.iter().copied().filter(|row| row.split("  ").any(|cell| cell.trim() == name)).collect();
            assert_eq!(of_lineage.len(), lineage["sites"].as_array().unwrap().len().max(1), "{}", context());
            let worst = of_lineage.iter().map(|row| shown(row)).max_by_key(|sign| " !x".find(*sign));
            let of_lineage = findings.iter().filter(|finding| finding["lineage"] == name);
            assert_eq!(
                worst.unwrap(),
                sign(of_lineage.map(|finding| &finding["level"])),
                "{name} {}",
                context()
            );
        }
        // Each site whose certificate is too old is marked, not only the worst of its lineage.
        for value in values.iter().filter(|value| value["quantity"] == "time_left") {
            let row = rows.iter().find(|row| row.contains(value["site"].as_str().unwrap())).unwrap();
            let is_below = |limit: &str| value["seconds"].as_i64() < value[limit].as_i64();
            if is_below("critical") {
                assert_eq!(shown(row), 'x', "{value} {}", context());
            } else if is_below("warning") {
                assert_ne!(shown(row), ' ', "{value} {}", context());
            }
        }
        // The most urgent lineage comes first.
        if let Some(first) = findings.iter().find_map(|finding| finding["lineage"].as_str()) {
            assert!(rows[0].split("  ").any(|cell| cell.trim() == first), "{first} {}", context());
        }
        // The last line, for alerts that are neither about a lineage nor a state file.
        if fleet.state_errors.is_empty() {
            let of_host = findings.iter().filter(|finding| finding["lineage"].is_null());
            let expected = sign(of_host.map(|finding| &finding["level"]));
            let line = text.lines().find(|line| line.contains("last sync: ")).unwrap();
            assert_eq!(shown(line), expected, "{}", context());
            let worst = text.lines().filter(|line| !line.starts_with("    ")).map(shown);
            let worst = worst.max_by_key(|sign| " !x".find(*sign));
            assert_eq!(
                worst.unwrap(),
                sign(findings.iter().map(|finding| &finding["level"])),
                "{}",
                context()
            );
        }
    }
}
