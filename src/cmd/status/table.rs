//! The status as a table: a row for each site of each lineage, those with problems first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use time::{Duration, OffsetDateTime};

use super::assessment::{Assessment, Level, Problem};
use super::fleet::{DiskStatus, EdgeOutcome, LeafAge, LineageStatus, Phase, SiteStatus, Subject};
use crate::report::{Cell, Sign, Style, Table};
use crate::state::LastSync;
use crate::text::{count, humanize, people, sanitize_untruncated, tally};

const HEADS: [&str; 8] =
    ["site", "state", "expires", "safe for", "lineage", "on disk", "on record", "served"];
/// Number of columns without `--wide`.
const NARROW: usize = 5;

/// Length of a fingerprint that only distinguishes two leaves.
const SHORT_FINGERPRINT: usize = 8;
const EMPTY: &str = "-";

/// A row of the table.
struct Row {
    sign: Sign,
    /// The state without its duration; the last line counts the sites in each.
    word: String,
    cells: [Cell; HEADS.len()],
    notes: Vec<String>,
}

/// Formats the table and the last `sync`. If it is `wide`, with fingerprints, records and all problems.
pub(super) fn text(assessment: Assessment<'_>, wide: bool, style: Style) -> String {
    let last_sync = last_sync(assessment, style);
    let mut lineages: Vec<&LineageStatus> = assessment.fleet.lineages.iter().collect();
    if lineages.is_empty() {
        let empty = "no lineage is known: none has been deployed, and the configuration names none\n";
        return empty.to_owned() + &last_sync;
    }
    let (mut problems, mut positions) = (HashMap::<_, Vec<_>>::new(), HashMap::new());
    for (position, problem) in assessment.problems().into_iter().enumerate() {
        positions.entry(problem.subject.lineage).or_insert(position);
        problems.entry(problem.subject).or_default().push(problem);
    }
    lineages.sort_by_key(|lineage| positions.get(&Some(&*lineage.name)).copied().unwrap_or(usize::MAX));
    let heads = if wide { &HEADS } else { HEADS.get(..NARROW).unwrap_or_default() };
    let (mut table, mut counts) = (Table::new(heads), BTreeMap::<_, usize>::new());
    for lineage in &lineages {
        for row in rows(assessment, &problems, lineage, wide) {
            table.row(row.cells.into_iter().take(heads.len()));
            row.notes.iter().for_each(|note| table.note(note));
            if !lineage.sites.is_empty() {
                *counts.entry(row.word).or_default() += 1;
            }
        }
    }
    let mut total = count(counts.values().sum(), "site");
    if !counts.is_empty() {
        total = format!("{total}: {}", tally(counts.iter().map(|(word, number)| (*number, word))));
    }
    let others = lineages.iter().filter(|lineage| lineage.sites.is_empty()).count();
    if others > 0 {
        total = format!("{total}; {} without a site", count(others, "lineage"));
    }
    format!("{}{}\n{last_sync}", table.to_text(style), sanitize_untruncated(&total))
}

/// Formats the line below the table, with its problems.
fn last_sync(assessment: Assessment<'_>, style: Style) -> String {
    let (LastSync { record, faults }, problems) = (&assessment.fleet.last_sync, assessment.sync_problems());
    let text = match record {
        None if faults.is_empty() => "never".into(),
        None => "unknown".into(),
        Some(record) => {
            let age = assessment.since(record.ended_at).value;
            format!("{} ago, exit code {}", humanize(age), record.exit_code)
        }
    };
    let missing = record.is_none().then_some(Level::Ok);
    let sign = match sign(problems.iter().map(|problem| problem.level).chain(missing)) {
        Sign::Ok => String::new(),
        sign => style.sign(sign) + " ",
    };
    // A record that cannot be used is a warning already, and the line says that there is none.
    let notes = problems.iter().filter(|_| record.is_some() && faults.is_empty());
    let notes: Vec<String> = notes.map(|problem| format!("    {}\n", problem.sentence())).collect();
    format!("{sign}last sync: {text}\n{}", notes.concat())
}

/// The sign for the most severe of these levels.
fn sign(levels: impl Iterator<Item = Level>) -> Sign {
    match levels.max() {
        Some(Level::Critical) => Sign::Failed,
        Some(Level::Warning | Level::Unknown) => Sign::Warning,
        Some(Level::Ok) => Sign::Replace,
        None => Sign::Ok,
    }
}

/// The rows of a lineage, one for each site, those that need attention first; the first has the problems of the lineage,
/// or only the most severe one.
fn rows<'a>(
    assessment: Assessment<'a>,
    problems: &HashMap<Subject<'a>, Vec<Problem<'a>>>,
    lineage: &'a LineageStatus,
    wide: bool,
) -> Vec<Row> {
    let problems_of = |subject| problems.get(&subject).map(Vec::as_slice).unwrap_or_default();
    let of_lineage = problems_of(lineage.subject(None));
    let are_left = lineage.sites.iter().all(SiteStatus::is_left_to_others);
    let (now, phase) = (assessment.now, lineage.phase());
    let is_unneeded = phase == Phase::Gone && !lineage.is_needed();
    let lag = lineage.lag(now).filter(|_| lineage.pending.is_some() && phase != Phase::Gone);
    let time = |time: Option<Duration>| Cell::from(time.map_or(EMPTY.into(), left));
    let mut rows = Vec::new();
    for site in lineage.rows() {
        let own = site.map(|site| problems_of(lineage.subject(Some(site)))).unwrap_or_default();
        let is_left = site.is_some_and(SiteStatus::is_left_to_others);
        // Problems of the lineage do not concern a site that has another one, unless that is so for all of them.
        let concerning = own.iter().chain(of_lineage.iter().filter(|_| are_left || !is_left));
        let expiry = site.and_then(|site| assessment.time_left(lineage, site)).map(|gauge| gauge.level());
        let expiry = expiry.filter(|level| *level > Level::Ok);
        let sign = match sign(concerning.map(|problem| problem.level).chain(expiry)) {
            Sign::Ok if is_left || is_unneeded => Sign::Skipped,
            sign => sign,
        };
        let (word, score) = state(lineage, phase, site);
        let gap = if score.is_empty() { " " } else { ", " };
        let lag = lag.map(|lag| format!("{gap}{}", people::short(lag))).unwrap_or_default();
        let state = format!("{word}{score}{lag}");
        let leaf = site.and_then(SiteStatus::served_leaf).or(lineage.deployed.as_ref());
        let cells = [
            Cell::signed(sign, site.map_or(EMPTY, |site| site.state.domain.spelled())),
            if sign == Sign::Ok { Cell::from(state) } else { Cell::coloured(state, sign.colour()) },
            time(leaf.map(|leaf| leaf.not_after - now)),
            time(site.and_then(|site| site.slack(now))),
            Cell::from(&lineage.name),
            Cell::from(on_disk(&lineage.disk, now)),
            Cell::from(site.and_then(on_record).unwrap_or(EMPTY.into())),
            Cell::from(site.map_or(EMPTY.into(), |site| site.state.outcome.to_string())),
        ];
        rows.push(Row { sign, word, cells, notes: own.iter().map(Problem::sentence).collect() });
    }
    rows.sort_by_key(|row| (row.sign == Sign::Skipped, Reverse(row.sign)));
    let shown = if wide { of_lineage.len() } else { 1 };
    if let Some(first) = rows.first_mut() {
        first.notes.splice(..0, of_lineage.iter().take(shown).map(Problem::sentence));
    }
    rows
}

/// The state of a site: a word, and how many addresses serve the leaf.
fn state(lineage: &LineageStatus, phase: Phase, site: Option<&SiteStatus>) -> (String, String) {
    let (is_deployed, word, score) = match site {
        None => (true, "no site".into(), String::new()),
        Some(SiteStatus { edge: Some(edge), .. }) => {
            let score = format!(" {}/{}", edge.score.served, edge.score.addresses);
            let score = Some(score).filter(|_| edge.score.addresses > 0).unwrap_or_default();
            (edge.outcome == EdgeOutcome::Served, edge.outcome.to_string(), score)
        }
        Some(site) => (site.state.outcome.is_deployed(), site.state.outcome.to_string(), String::new()),
    };
    match (phase, &lineage.disk) {
        (Phase::Superseded | Phase::Gone, _) => (phase.to_string(), String::new()),
        (_, DiskStatus::Unreadable(_)) => ("unreadable".into(), String::new()),
        // A pending deployment does not concern a site that has another lineage.
        (Phase::Pending | Phase::Renewed | Phase::New, _) if is_deployed => {
            (phase.to_string(), String::new())
        }
        _ => (word, score),
    }
}

fn on_disk(disk: &DiskStatus, now: OffsetDateTime) -> String {
    match disk {
        DiskStatus::Leaf { leaf, age, .. } => {
            let fingerprint: String = leaf.fingerprint.chars().take(SHORT_FINGERPRINT).collect();
            let age = match age {
                LeafAge::Same => "",
                LeafAge::Newer => ", renewed",
                LeafAge::Older => ", older",
            };
            format!("{fingerprint} {}{age}", left(leaf.not_after - now))
        }
        DiskStatus::Missing => "gone".into(),
        DiskStatus::Unreadable(_) => "unreadable".into(),
    }
}

fn on_record(site: &SiteStatus) -> Option<String> {
    let leaf = match site.is_on_record {
        Some(true) => " same leaf",
        Some(false) => " other leaf",
        None => "",
    };
    site.state.cert_id.map(|id| format!("{id}{leaf}"))
}

/// Formats the time that is left.
fn left(left: Duration) -> String {
    if left.is_negative() { "expired".into() } else { people::short(left) }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{
        NOW, assess, deployed, edge, fleet, last_sync, missing, pending, renewed, seen, until, with_pending,
    };
    use super::super::fleet::{EdgeStatus, Fleet};
    use super::*;
    use crate::cli::MonitoringArgs;
    use crate::outcome::Outcome;
    use crate::state::{LastSync, StateError};
    use crate::verify::ServedOf;

    fn lineages() -> [LineageStatus; 6] {
        let mut stale = deployed("stale", -3);
        stale.sites[0].state.outcome = Outcome::Stale;
        let mut fresh = renewed("new", Duration::minutes(9));
        fresh.sites.clear();
        fresh.deployed = None;
        fresh.begun_at = None;
        let fine = deployed("fine", 60);
        let late = pending("late", 9, Duration::days(3));
        [fine, late, renewed("renewed", Duration::hours(5)), stale, missing("gone"), fresh]
    }

    /// The table of these lineages.
    fn table(lineages: impl Into<Vec<LineageStatus>>, wide: bool, style: Style) -> String {
        text(assess(&fleet(lineages), &MonitoringArgs::default()), wide, style)
    }

    #[test]
    fn severe_problems_come_first() {
        expect_test::expect![[r"
            SITE         STATE        EXPIRES  SAFE FOR  LINEAGE
            x a.example  stale        expired  expired   stale
                the certificate on disk expired at 2026-11-18T13:00:00Z; renew it with the ACME client
                certificate expired 2 days ago (a.example, at 2026-11-18T13:00:00Z)
            x a.example  pending 3 d  9 d      9 d       late
                pending for 3 days (the service cannot be reached)
                certificate expires in 9 days (a.example, at 2026-11-30T13:00:00Z)
            ! a.example  gone         40 d     40 d      gone
                certificate is missing but still needed: /live/gone/fullchain.pem; restore the files, or run `edgecert status --forget` for it
            ~ a.example  renewed 5 h  20 d     20 d      renewed
                pending for 5 hours (no run has seen this certificate); run `edgecert sync`
            ~ -          new 9 min    -        -         new
                pending for 9 minutes (no run has seen this certificate); run `edgecert sync`
            * a.example  served       60 d     60 d      fine
            5 sites: 1 gone, 1 pending, 1 renewed, 1 served, 1 stale; 1 lineage without a site
            last sync: 60 seconds ago, exit code 0
        "]]
        .assert_eq(&table(lineages(), false, Style::PLAIN));
        assert!(table([], false, Style::PLAIN).starts_with("no lineage is known"));
    }

    #[test]
    fn wide_table_shows_fingerprints_and_records() {
        let [fine, late, renewed, ..] = lineages();
        expect_test::expect![[r"
            SITE         STATE        EXPIRES  SAFE FOR  LINEAGE  ON DISK                 ON RECORD        SERVED
            x a.example  pending 3 d  9 d      9 d       late     aaaalate 9 d            1042 same leaf   served
                pending for 3 days (the service cannot be reached)
                certificate expires in 9 days (a.example, at 2026-11-30T13:00:00Z)
            ~ a.example  renewed 5 h  20 d     20 d      renewed  bbbbbbbb 89 d, renewed  1042 other leaf  served
                pending for 5 hours (no run has seen this certificate); run `edgecert sync`
            * a.example  served       60 d     60 d      fine     aaaafine 60 d           1042 same leaf   served
            3 sites: 1 pending, 1 renewed, 1 served
            last sync: 60 seconds ago, exit code 0
        "]]
        .assert_eq(&table([fine, late, renewed], true, Style::PLAIN));
    }

    #[test]
    fn lineage_without_site_shows_its_first_problem() {
        let expired = || {
            let [.., fresh] = lineages();
            with_pending(fresh, until(NOW - Duration::DAY))
        };
        let notes = |table: &str| table.lines().filter(|line| line.starts_with("    ")).count();
        assert_eq!(notes(&table([expired()], false, Style::PLAIN)), 1);
        assert_eq!(notes(&table([expired()], true, Style::PLAIN)), 2);
    }

    #[test]
    fn slack_is_shown() {
        let rows = [
            (seen("old", Duration::days(20)), "! a.example  served  60 d     20 d      x"),
            (seen("old", Duration::days(9)), "! a.example  served  60 d     9 d       x"),
            (seen("old", Duration::days(2)), "x a.example  served  60 d     2 d       x"),
            (seen("old", Duration::ZERO), "x a.example  served  60 d     0 s       x"),
            (seen("old", -Duration::DAY), "x a.example  served  60 d     expired   x"),
        ];
        for (seen, expected) in rows {
            let mut lineage = deployed("x", 60);
            lineage.sites[0].state.edge = seen;
            assert_eq!(table([lineage], false, Style::PLAIN).lines().nth(1).unwrap(), expected);
        }
    }

    #[test]
    fn handshake_replaces_recorded_outcome() {
        let row = |edge| {
            let mut lineage = deployed("x", 60);
            lineage.sites[0].edge = Some(edge);
            table([lineage], false, Style::PLAIN)
        };
        assert!(row(edge(2, None)).contains("* a.example  served 2/2  60 d     60 d "));
        assert!(row(edge(1, Some(6))).contains("! a.example  stale 1/2  6 d      6 d "));
        assert!(row(edge(1, Some(6))).contains("\n    a.example: 192.0.2.1:443 serves another\n"));
        assert!(row(edge(1, None)).contains("~ a.example  unreachable 1/2  "));
        let unresolved = EdgeStatus { score: ServedOf::default(), ..edge(0, None) };
        assert!(row(unresolved).contains("! a.example  unreachable  "));
    }

    #[test]
    fn problems_are_highlighted_on_terminals() {
        let style = Style { colour: true, ..Style::PLAIN };
        let highlights = |lineage: LineageStatus| {
            let text = table([lineage], false, style);
            text.lines().nth(1).unwrap().matches("\u{1b}[0m").count()
        };
        assert_eq!(highlights(deployed("x", 60)), 1, "the sign");
        assert_eq!(highlights(deployed("x", 13)), 2, "sign and state");
    }

    #[test]
    fn last_line_shows_the_last_sync() {
        let (minutes, hours) = (Duration::minutes(12), Duration::hours(5));
        let fault = StateError::NewerVersion { path: "/x".into(), version: 2 };
        let rows = [
            (LastSync { record: None, faults: vec![fault] }, "! last sync: unknown"),
            (LastSync::default(), "~ last sync: never"),
            (last_sync(minutes, 0, None), "last sync: 12 minutes ago, exit code 0"),
            (last_sync(-minutes, 0, None), "last sync: 0 seconds ago, exit code 0"),
            (
                last_sync(hours, 0, None),
                "! last sync: 5 hours ago, exit code 0\n    sync last ran 5 hours ago; \
                 check its timer with `edgecert doctor`",
            ),
            (
                last_sync(Duration::days(2), 0, None),
                "x last sync: 2 days ago, exit code 0\n    sync last ran 2 days ago; \
                 check its timer with `edgecert doctor`",
            ),
            (
                last_sync(minutes, 78, None),
                "! last sync: 12 minutes ago, exit code 78\n    \
                 sync failed with exit code 78: the service cannot be reached",
            ),
            (
                last_sync(minutes, 75, Some(minutes)),
                "~ last sync: 12 minutes ago, exit code 75\n    \
                 sync failed for 12 minutes, last with exit code 75: the service cannot be reached",
            ),
            (
                last_sync(minutes, 75, Some(hours)),
                "! last sync: 12 minutes ago, exit code 75\n    \
                 sync failed for 5 hours, last with exit code 75: the service cannot be reached",
            ),
        ];
        for (last_sync, expected) in rows {
            let fleet = Fleet { last_sync, ..fleet([deployed("x", 60)]) };
            let text = text(assess(&fleet, &MonitoringArgs::default()), false, Style::PLAIN);
            assert_eq!(text.lines().skip(3).collect::<Vec<_>>().join("\n"), expected);
        }
    }
}
