//! The status as a table: a row for each site of each lineage, those with problems first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::AnsiColor;
use time::{Duration, OffsetDateTime};

use super::fleet::{
    DiskStatus, EdgeOutcome, EdgeStatus, Fleet, LeafAge, LineageStatus, Phase, SiteStatus, Subject,
};
use super::gauge::Gauge;
use super::problem::{Level, Problem, problems};
use crate::cli::MonitoringArgs;
use crate::report::{Cell, Sign, Style, Table};
use crate::state::{LastSync, SyncRecord};
use crate::text::{count, humanize, people};

const HEADS: [&str; 8] =
    ["site", "state", "expires", "safe for", "lineage", "on disk", "on record", "served"];
/// Number of columns without `--wide`.
const NARROW: usize = 5;

/// Length of a fingerprint that only distinguishes two leaves.
const SHORT_FINGERPRINT: usize = 8;
const EMPTY: &str = "-";

/// The problems by the default thresholds.
#[derive(Default)]
struct Judgement<'a> {
    /// The most severe first.
    problems: BTreeMap<Subject<'a>, Vec<Problem<'a>>>,
    /// The position of each lineage that has a problem.
    ranks: BTreeMap<&'a str, usize>,
}

/// A row of the table.
struct Row<'a> {
    lineage: &'a LineageStatus,
    site: Option<&'a SiteStatus>,
    subject: Subject<'a>,
    sign: Sign,
    /// Severity of the expiry of the leaf that visitors get.
    expiry: Level,
    /// The state without its duration; the last line counts the sites in each.
    word: String,
    state: String,
}

/// Formats the table and the last `sync`. If it is `wide`, with fingerprints and records.
pub(super) fn text(fleet: &Fleet, wide: bool, now: OffsetDateTime, style: Style) -> String {
    let judgement = Judgement::new(fleet, now);
    let last_sync = last_sync(&fleet.last_sync, judgement.sign(&[Subject::Sync], Level::Ok), now, style);
    if fleet.lineages.is_empty() {
        let empty = "no lineage is known: none has been deployed, and the configuration names none\n";
        return empty.to_owned() + &last_sync;
    }
    let rows = rows(&fleet.lineages, &judgement, now);
    let heads = if wide { &HEADS } else { HEADS.get(..NARROW).unwrap_or_default() };
    let mut table = Table::new(heads);
    let mut last: Option<&LineageStatus> = None;
    for row in &rows {
        table.row(row.cells(now).into_iter().take(heads.len()));
        let is_first = last.is_none_or(|last| !std::ptr::eq(last, row.lineage));
        let of_lineage = judgement.problems(Subject::Lineage(&row.lineage.name));
        let shown = match () {
            () if !is_first => 0,
            () if wide => of_lineage.len(),
            () => 1,
        };
        let of_site = row.site.map(|_| judgement.problems(row.subject)).unwrap_or_default();
        for problem in of_lineage.iter().take(shown).chain(of_site) {
            table.note(&format!("{}{}", problem.text, problem.rest()));
        }
        last = Some(row.lineage);
    }
    table.to_text(style) + &last_line(&rows, wide, style) + &last_sync
}

/// The rows, those of the lineages with the most severe problems first.
fn rows<'a>(lineages: &'a [LineageStatus], judgement: &Judgement<'a>, now: OffsetDateTime) -> Vec<Row<'a>> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::with_capacity(lineages.len());
    for lineage in lineages {
        let subject = Subject::Lineage(&lineage.name);
        let are_left = lineage.sites.iter().all(SiteStatus::is_left_to_others);
        let row = |site: Option<&'a SiteStatus>| {
            let own = site.map_or(subject, |site| Subject::Site(&lineage.name, &site.domain));
            // Problems of the lineage do not concern a site that has another one, unless that is so for all of them.
            let is_left = site.is_some_and(SiteStatus::is_left_to_others);
            let of_lineage = if is_left && !are_left { own } else { subject };
            let is_unneeded = lineage.phase() == Phase::Gone && !lineage.is_needed();
            let time_left =
                site.and_then(|site| Gauge::time_left(lineage, site, &MonitoringArgs::default(), now));
            let expiry = time_left.map_or(Level::Ok, |gauge| gauge.level());
            let sign = match judgement.sign(&[own, of_lineage], expiry) {
                Sign::Ok if is_left || is_unneeded || lineage.phase() == Phase::Superseded => Sign::Skipped,
                sign => sign,
            };
            let (word, score) = state(lineage, site);
            let gap = if score.is_empty() { " " } else { ", " };
            let is_waiting = lineage.pending.is_some() && lineage.phase() != Phase::Gone;
            let lag = lineage.lag(now).filter(|_| is_waiting);
            let lag = lag.map(|lag| format!("{gap}{}", people::short(lag))).unwrap_or_default();
            let state = format!("{word}{score}{lag}");
            Row { lineage, site, subject: own, sign, expiry, word, state }
        };
        let mut rows: Vec<_> = lineage.sites.iter().map(|site| row(Some(site))).collect();
        if rows.is_empty() {
            rows.push(row(None));
        }
        rows.sort_by_key(|row| (row.sign == Sign::Skipped, Reverse(row.sign)));
        groups.push(rows);
    }
    let rank = |row: &Row<'_>| judgement.ranks.get(&*row.lineage.name).copied().unwrap_or(usize::MAX);
    groups.sort_by_key(|rows| rows.first().map(|row| (rank(row), row.sign)));
    groups.into_iter().flatten().collect()
}

/// Counts the sites in each state, those without problems first.
fn last_line(rows: &[Row<'_>], wide: bool, style: Style) -> String {
    let mut counts: BTreeMap<&str, (Sign, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.site.is_some()) {
        let (sign, number) = counts.entry(&row.word).or_insert((row.sign, 0));
        (*sign, *number) = ((*sign).max(row.sign), *number + 1);
    }
    let mut counts: Vec<(&str, (Sign, usize))> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (sign, _))| *sign);
    let sites = rows.iter().filter(|row| row.site.is_some()).count();
    let parts: Vec<String> = counts.iter().map(|(word, (_, number))| format!("{number} {word}")).collect();
    let mut line = count(sites, "site");
    if sites > 0 {
        line = format!("{line}: {}", parts.join(", "));
    }
    if rows.len() > sites {
        line = format!("{line}; {} without a site", count(rows.len() - sites, "lineage"));
    }
    let has_hint = style.width.is_some() && !wide;
    line + if has_hint { "   (--wide: fingerprints, records)\n" } else { "\n" }
}

/// Formats the line below the table.
fn last_sync(last: &LastSync, sign: Sign, now: OffsetDateTime, style: Style) -> String {
    let text = match &last.record {
        None if last.faults.is_empty() => "never".into(),
        None => "unknown".into(),
        Some(SyncRecord { ended_at, exit_code, message, failing_since, .. }) => {
            // The clock may have been corrected since.
            let age = (now - *ended_at).max(Duration::ZERO);
            let mut text = format!("{} ago, exit code {exit_code}", humanize(age));
            if let Some(since) = failing_since.filter(|since| since < ended_at) {
                let _ = write!(text, ", failing since {}", people::since(since.min(now), now));
            }
            if let Some(message) = message {
                let _ = write!(text, ": {message}");
            }
            text
        }
    };
    let sign = if sign == Sign::Ok { String::new() } else { style.sign(sign) + " " };
    format!("{sign}last sync: {text}\n")
}

impl<'a> Judgement<'a> {
    fn new(fleet: &'a Fleet, now: OffsetDateTime) -> Self {
        let mut judgement = Self::default();
        for (rank, problem) in problems(fleet, &MonitoringArgs::default(), now).into_iter().enumerate() {
            if let Some(lineage) = problem.subject.lineage() {
                judgement.ranks.entry(lineage).or_insert(rank);
            }
            // A path that several entries name may lead to no lineage.
            let known = judgement.problems.entry(problem.subject).or_default();
            if !known.contains(&problem) {
                known.push(problem);
            }
        }
        judgement
    }

    fn problems(&self, subject: Subject<'a>) -> &[Problem<'a>] {
        self.problems.get(&subject).map(Vec::as_slice).unwrap_or_default()
    }

    /// Severity of all that is known of these subjects, and of the expiry of a certificate.
    fn sign(&self, subjects: &[Subject<'a>], expiry: Level) -> Sign {
        let problems = subjects.iter().flat_map(|subject| self.problems(*subject));
        let expiry = Some(expiry).filter(|level| *level > Level::Ok);
        match problems.map(|problem| problem.level).chain(expiry).max() {
            Some(Level::Critical) => Sign::Failed,
            Some(Level::Warning | Level::Unknown) => Sign::Warning,
            Some(Level::Ok) => Sign::Replace,
            None => Sign::Ok,
        }
    }
}

impl Row<'_> {
    fn cells(&self, now: OffsetDateTime) -> [Cell; 8] {
        let deployed = || Some(self.lineage.deployed.as_ref()?.not_after);
        let expiry = self.site.and_then(SiteStatus::expiry).or_else(deployed);
        let expiry = expiry.map_or(EMPTY.into(), |expiry| left(expiry, now));
        let state = match self.sign {
            Sign::Ok => Cell::from(&self.state),
            sign => Cell::coloured(&self.state, sign.colour()),
        };
        [
            Cell::signed(self.sign, self.site.map_or(EMPTY, |site| &site.domain)),
            state,
            match self.expiry {
                Level::Ok => Cell::from(expiry),
                Level::Unknown | Level::Warning => Cell::coloured(expiry, AnsiColor::Yellow),
                Level::Critical => Cell::coloured(expiry, AnsiColor::Red),
            },
            self.site.map_or(EMPTY.into(), |site| safe_for(site, now)),
            Cell::from(&self.lineage.name),
            on_disk(&self.lineage.disk, now),
            self.site.map_or(EMPTY.into(), on_record),
            self.site.map_or(EMPTY.into(), |site| Cell::from(site.outcome.to_string())),
        ]
    }
}

/// The state of a site: a word, and how many addresses serve the leaf.
fn state(lineage: &LineageStatus, site: Option<&SiteStatus>) -> (String, String) {
    let (is_deployed, word, score) = match site {
        None => (true, "no site".into(), String::new()),
        Some(SiteStatus { edge: Some(edge), .. }) => {
            let EdgeStatus { outcome, served, addresses, .. } = edge;
            let score = if *addresses > 0 { format!(" {served}/{addresses}") } else { String::new() };
            (*outcome == EdgeOutcome::Served, outcome.to_string(), score)
        }
        Some(site) => (site.outcome.is_deployed(), site.outcome.to_string(), String::new()),
    };
    let instead = match (lineage.phase(), &lineage.disk) {
        (Phase::Superseded, _) => "superseded",
        (_, DiskStatus::Unreadable(_)) => "unreadable",
        (Phase::Gone, _) => "gone",
        (Phase::Deployed, _) => return (word, score),
        // A pending deployment does not concern a site that has another lineage.
        _ if !is_deployed => return (word, score),
        (Phase::Pending, _) => "pending",
        (Phase::Renewed, _) => "renewed",
        (Phase::New, _) => "new",
    };
    (instead.into(), String::new())
}

fn on_disk(disk: &DiskStatus, now: OffsetDateTime) -> Cell {
    let (leaf, age) = match disk {
        DiskStatus::Leaf { leaf, age, .. } => (leaf, *age),
        DiskStatus::Missing => return Cell::coloured("gone", AnsiColor::Red),
        DiskStatus::Unreadable(_) => return Cell::coloured("unreadable", AnsiColor::Red),
    };
    let fingerprint: String = leaf.fingerprint.chars().take(SHORT_FINGERPRINT).collect();
    let left = left(leaf.not_after, now);
    match age {
        LeafAge::Same => Cell::from(format!("{fingerprint} {left}")),
        LeafAge::Newer => Cell::coloured(format!("{fingerprint} {left}, renewed"), AnsiColor::Yellow),
        LeafAge::Older => Cell::coloured(format!("{fingerprint} {left}, older"), AnsiColor::Yellow),
    }
}

fn on_record(site: &SiteStatus) -> Cell {
    let Some(id) = site.cert_id else { return EMPTY.into() };
    match site.is_on_record {
        Some(true) => Cell::from(format!("{id} same leaf")),
        Some(false) => Cell::coloured(format!("{id} other leaf"), AnsiColor::Yellow),
        None => Cell::from(id.to_string()),
    }
}

/// The column `SAFE FOR`: the slack, at least zero, or `expired`.
fn safe_for(site: &SiteStatus, now: OffsetDateTime) -> Cell {
    match site.slack(now) {
        None => EMPTY.into(),
        Some(slack) if slack.is_positive() => people::short(slack).into(),
        Some(slack) if slack.is_negative() => Cell::coloured("expired", AnsiColor::Red),
        Some(slack) => Cell::coloured(people::short(slack), AnsiColor::Red),
    }
}

fn left(until: OffsetDateTime, now: OffsetDateTime) -> String {
    if until < now { "expired".into() } else { people::short(until - now) }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{
        NOW, deployed, edge, fleet, last_sync, missing, pending, renewed, seen, until, with_pending,
    };
    use super::*;
    use crate::outcome::Outcome;
    use crate::state::SyncRecordFault;

    fn lineages() -> [LineageStatus; 6] {
        let mut stale = deployed("stale", -3);
        stale.sites[0].outcome = Outcome::Stale;
        let mut fresh = renewed("new", Duration::minutes(9));
        fresh.sites.clear();
        fresh.deployed = None;
        fresh.is_recorded = false;
        let fine = deployed("fine", 60);
        let late = pending("late", 9, Duration::days(3));
        [fine, late, renewed("renewed", Duration::hours(5)), stale, missing("gone"), fresh]
    }

    /// The table of these lineages.
    fn table(lineages: impl Into<Vec<LineageStatus>>, wide: bool, style: Style) -> String {
        text(&fleet(lineages), wide, NOW, style)
    }

    #[test]
    fn severe_problems_come_first() {
        expect_test::expect![[r#"
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
            5 sites: 1 served, 1 renewed, 1 gone, 1 pending, 1 stale; 1 lineage without a site
            last sync: 60 seconds ago, exit code 0
        "#]]
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
            3 sites: 1 served, 1 renewed, 1 pending
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
        // Two entries of one path that leads nowhere.
        assert_eq!(notes(&table([expired(), expired()], true, Style::PLAIN)), 4);
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
            lineage.sites[0].seen = seen;
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
        assert!(row(EdgeStatus::default()).contains("! a.example  unreachable  "));
    }

    #[test]
    fn problems_are_highlighted_on_terminals() {
        let style = Style { colour: true, width: Some(200), ..Style::PLAIN };
        let highlights = |lineage: LineageStatus| {
            let text = table([lineage], false, style);
            text.lines().nth(1).unwrap().matches("\u{1b}[0m").count()
        };
        assert_eq!(highlights(deployed("x", 60)), 1, "the sign");
        assert_eq!(highlights(deployed("x", 13)), 3, "sign, state and days left");
        assert_eq!(highlights(pending("x", 60, Duration::days(1))), 2, "sign and state");
        assert_eq!(highlights(missing("x")), 2);
    }

    #[test]
    fn last_line_shows_the_last_sync() {
        let (minutes, hours) = (Duration::minutes(12), Duration::hours(5));
        let fault = SyncRecordFault::NewerVersion { path: "/x".into(), version: 2 };
        let rows = [
            (LastSync { record: None, faults: vec![fault] }, "! last sync: unknown"),
            (LastSync::default(), "~ last sync: never"),
            (last_sync(minutes, 0, None), "last sync: 12 minutes ago, exit code 0"),
            (last_sync(-minutes, 0, None), "last sync: 0 seconds ago, exit code 0"),
            (last_sync(hours, 0, None), "! last sync: 5 hours ago, exit code 0"),
            (last_sync(Duration::days(2), 0, None), "x last sync: 2 days ago, exit code 0"),
            (
                last_sync(minutes, 78, None),
                "! last sync: 12 minutes ago, exit code 78: the service cannot be reached",
            ),
            (
                last_sync(minutes, 75, Some(minutes)),
                "~ last sync: 12 minutes ago, exit code 75: the service cannot be reached",
            ),
            (
                last_sync(minutes, 75, Some(hours)),
                "! last sync: 12 minutes ago, exit code 75, failing since 21 Nov 07:00 UTC (5 hours): \
                 the service cannot be reached",
            ),
        ];
        for (last_sync, expected) in rows {
            let fleet = Fleet { last_sync, ..fleet([deployed("x", 60)]) };
            assert_eq!(text(&fleet, false, NOW, Style::PLAIN).lines().last().unwrap(), expected);
        }
    }
}
