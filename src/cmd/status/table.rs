//! The status as a table: a row for each site of each lineage, those that need attention first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anstyle::AnsiColor;
use time::{Duration, OffsetDateTime};

use super::lineage_status::{DiskStatus, EdgeOutcome, EdgeStatus, LeafAge, LineageStatus, Phase, SiteStatus};
use super::thresholds::Thresholds;
use super::verdict::Level;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::report::{Cell, Sign, Style, Table};
use crate::text::{count, people, sanitize};

const HEADS: [&str; 8] =
    ["site", "state", "expires", "safe for", "lineage", "on disk", "on record", "served"];
/// Number of columns without `--wide`.
const NARROW: usize = 5;

/// Length of a fingerprint that only distinguishes two leaves.
const SHORT_FINGERPRINT: usize = 8;
const EMPTY: &str = "-";

/// A row of the table.
struct Row<'a> {
    lineage: &'a LineageStatus,
    site: Option<&'a SiteStatus>,
    sign: Sign,
    /// The state without its duration; the last line counts the sites in each.
    word: String,
    state: String,
}

/// Formats the table. If it is `wide`, with fingerprints and records.
pub(super) fn text(lineages: &[LineageStatus], wide: bool, now: OffsetDateTime, style: Style) -> String {
    if lineages.is_empty() {
        return "no lineage is known: none has been deployed, and the configuration names none\n".into();
    }
    let rows = rows(lineages, now);
    let heads = if wide { &HEADS } else { HEADS.get(..NARROW).unwrap_or_default() };
    let mut table = Table::new(heads);
    let mut last: Option<&LineageStatus> = None;
    for row in &rows {
        table.row(row.cells(now).into_iter().take(heads.len()));
        if last.is_none_or(|last| !std::ptr::eq(last, row.lineage)) {
            let notes = notes(row.lineage, now);
            notes.iter().take(if wide { notes.len() } else { 1 }).for_each(|note| table.note(note));
        }
        row.edge_notes().for_each(|note| table.note(note));
        last = Some(row.lineage);
    }
    table.to_text(style) + &last_line(&rows, wide, style)
}

/// The rows, those of the lineages that need attention first.
fn rows(lineages: &[LineageStatus], now: OffsetDateTime) -> Vec<Row<'_>> {
    let mut groups: Vec<Vec<Row<'_>>> = Vec::with_capacity(lineages.len());
    for lineage in lineages {
        let mut rows: Vec<Row<'_>> =
            lineage.sites.iter().map(|site| Row::new(lineage, Some(site), now)).collect();
        if rows.is_empty() {
            rows.push(Row::new(lineage, None, now));
        }
        rows.sort_by_key(Row::urgency);
        groups.push(rows);
    }
    groups.sort_by_key(|rows| rows.first().map(Row::urgency));
    groups.into_iter().flatten().collect()
}

/// Counts the sites in each state.
fn last_line(rows: &[Row<'_>], wide: bool, style: Style) -> String {
    let mut counts: BTreeMap<&str, (u8, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.site.is_some()) {
        let (urgency, number) = counts.entry(&row.word).or_insert((row.urgency(), 0));
        (*urgency, *number) = ((*urgency).min(row.urgency()), *number + 1);
    }
    let mut counts: Vec<(&str, (u8, usize))> = counts.into_iter().collect();
    counts.sort_by_key(|(_, (urgency, _))| Reverse(*urgency));
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

impl<'a> Row<'a> {
    fn new(lineage: &'a LineageStatus, site: Option<&'a SiteStatus>, now: OffsetDateTime) -> Self {
        let (sign, word, score) = state(lineage, site);
        let is_waiting = matches!(lineage.phase, Phase::Pending | Phase::Renewed | Phase::New);
        let gap = if score.is_empty() { " " } else { ", " };
        let lag = lineage.lag(now).filter(|_| is_waiting).map(|lag| format!("{gap}{}", people::short(lag)));
        let state = format!("{word}{score}{}", lag.unwrap_or_default());
        let mut row = Self { lineage, site, sign, word, state };
        if sign != Sign::Skipped {
            row.sign = sign.max(row.expiry_sign(now));
        }
        row
    }

    /// Severity of the expiry of the leaf that visitors get; `Failed` if there is no slack, or if the leaf on disk has
    /// expired.
    fn expiry_sign(&self, now: OffsetDateTime) -> Sign {
        let on_disk = self.lineage.disk.leaf().filter(|leaf| leaf.not_after < now);
        let is_noticed = self.site.and_then(|site| site.slack).is_some_and(|slack| !slack.is_positive());
        let served = self.leaf().map(|leaf| expiry_sign(&leaf, now));
        if on_disk.is_some() || is_noticed { Sign::Failed } else { served.unwrap_or(Sign::Ok) }
    }

    /// The most urgent first.
    fn urgency(&self) -> u8 {
        match self.sign {
            Sign::Failed => 0,
            Sign::Warning => 1,
            Sign::Skipped => 3,
            _ => 2,
        }
    }

    /// The leaf that visitors get.
    fn leaf(&self) -> Option<Leaf> {
        let deployed = || self.lineage.deployed.clone();
        self.site.and_then(SiteStatus::served_leaf).cloned().or_else(deployed)
    }

    fn cells(&self, now: OffsetDateTime) -> [Cell; 8] {
        let domain = self.site.map_or(EMPTY, |site| &site.domain);
        let state = match self.sign {
            Sign::Ok => Cell::from(&self.state),
            sign => Cell::coloured(&self.state, sign.colour()),
        };
        [
            Cell::signed(self.sign, domain),
            state,
            self.leaf().map_or(EMPTY.into(), |leaf| time_left(&leaf, now)),
            self.site.map_or(EMPTY.into(), |site| safe_for(site, now)),
            Cell::from(&self.lineage.name),
            on_disk(&self.lineage.disk, now),
            self.site.map_or(EMPTY.into(), on_record),
            self.site.map_or(EMPTY.into(), |site| Cell::from(site.outcome.to_string())),
        ]
    }

    /// Faults of the edge that the handshakes found.
    fn edge_notes(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        let edge = self.site.and_then(|site| site.edge.as_ref());
        edge.into_iter().flat_map(|edge| edge.stale.iter().chain(&edge.unreachable))
    }
}

/// The state of a site: its sign, a word, and how many addresses serve the leaf.
fn state(lineage: &LineageStatus, site: Option<&SiteStatus>) -> (Sign, String, String) {
    let without_score = |sign, word: &str| (sign, word.to_owned(), String::new());
    match (lineage.phase, &lineage.disk) {
        (Phase::Superseded, _) => return without_score(Sign::Skipped, "superseded"),
        (_, DiskStatus::Unreadable(_)) => return without_score(Sign::Failed, "unreadable"),
        (Phase::Gone, _) if lineage.is_needed() => return without_score(Sign::Failed, "gone"),
        (Phase::Gone, _) => return without_score(Sign::Skipped, "gone"),
        _ => {}
    }
    let (sign, word, score) = site.map_or_else(|| without_score(Sign::Ok, "no site"), observed);
    let waiting = if lineage.last_error.is_some() { Sign::Failed } else { Sign::Warning };
    match lineage.phase {
        // A pending deployment does not concern a site that has another lineage.
        _ if matches!(sign, Sign::Failed | Sign::Warning | Sign::Skipped) => (sign, word, score),
        Phase::Pending => without_score(waiting, "pending"),
        Phase::Renewed => without_score(Sign::Warning, "renewed"),
        Phase::New => without_score(Sign::Warning, "new"),
        _ if lineage.last_error.is_some() => (sign.max(Sign::Warning), word, score),
        _ => (sign, word, score),
    }
}

/// The state of a site by itself: what its edge served, or else the last outcome.
fn observed(site: &SiteStatus) -> (Sign, String, String) {
    let Some(EdgeStatus { outcome, served, addresses, .. }) = &site.edge else {
        let sign = match &site.outcome {
            Outcome::Skipped | Outcome::Superseded => Sign::Skipped,
            outcome if outcome.is_deployed() => Sign::Ok,
            _ => Sign::Failed,
        };
        return (sign, site.outcome.to_string(), String::new());
    };
    let sign = match outcome {
        EdgeOutcome::Served => Sign::Ok,
        EdgeOutcome::Stale => Sign::Failed,
        EdgeOutcome::Unreachable => Sign::Warning,
    };
    let score = if *addresses > 0 { format!(" {served}/{addresses}") } else { String::new() };
    (sign, outcome.to_string(), score)
}

/// Faults of a lineage, each with its remedy, the most important first.
fn notes(lineage: &LineageStatus, now: OffsetDateTime) -> Vec<String> {
    let mut notes = Vec::new();
    if lineage.is_superseded() {
        return notes;
    }
    match &lineage.disk {
        DiskStatus::Leaf { leaf, .. } if leaf.not_after < now => {
            let date = people::date(leaf.not_after);
            notes.push(format!("the certificate on disk expired on {date}; renew it with the ACME client"));
        }
        DiskStatus::Unreadable(reason) => notes.push(reason.clone()),
        DiskStatus::Missing if lineage.is_needed() => {
            let cert = lineage.cert.as_deref().unwrap_or("its certificate");
            notes.push(format!("{cert} is missing"));
        }
        DiskStatus::Leaf { .. } | DiskStatus::Missing => {}
    }
    notes.extend(lineage.clock_fault(now));
    if let Some(result) = &lineage.last_error {
        let exit_code = || format!("exit code {}", result.exit_code);
        let error = result.error.as_deref().map_or_else(exit_code, sanitize);
        notes.push(error);
    }
    match &lineage.disk {
        DiskStatus::Leaf { age: LeafAge::Newer, .. } if !lineage.is_begun => {
            notes.push("no run has seen the certificate on disk; run `edgecert sync`".into());
        }
        DiskStatus::Leaf { age: LeafAge::Older, .. } => {
            notes.push("the certificate on disk is older than the deployed one".into());
        }
        _ => {}
    }
    notes
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

fn time_left(leaf: &Leaf, now: OffsetDateTime) -> Cell {
    let text = left(leaf.not_after, now);
    match expiry_sign(leaf, now) {
        Sign::Ok => Cell::from(text),
        sign => Cell::coloured(text, sign.colour()),
    }
}

/// Severity of the expiry of a leaf, by the default thresholds of `--check`.
fn expiry_sign(leaf: &Leaf, now: OffsetDateTime) -> Sign {
    let gauge = Thresholds::default().time_left(leaf.not_after - now, leaf);
    match gauge.level() {
        _ if gauge.is_expired() => Sign::Failed,
        Level::Ok => Sign::Ok,
        _ => Sign::Warning,
    }
}

/// The column `SAFE FOR`: the slack, at least zero, or `expired`.
fn safe_for(site: &SiteStatus, now: OffsetDateTime) -> Cell {
    match site.slack {
        None => EMPTY.into(),
        Some(slack) if slack.is_positive() => people::short(slack).into(),
        Some(_) if site.time_left(now).is_some_and(Duration::is_negative) => {
            Cell::coloured("expired", AnsiColor::Red)
        }
        Some(_) => Cell::coloured(people::short(Duration::ZERO), AnsiColor::Red),
    }
}

fn left(until: OffsetDateTime, now: OffsetDateTime) -> String {
    if until < now { "expired".into() } else { people::short(until - now) }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, missing, pending, renewed, until};
    use super::super::slack;
    use super::*;
    use time::Duration;

    fn lineages() -> [LineageStatus; 6] {
        let mut stale = deployed("stale", -3);
        stale.sites[0].outcome = Outcome::Stale;
        let mut fresh = renewed("new", Duration::minutes(9));
        fresh.sites.clear();
        fresh.deployed = None;
        fresh.is_recorded = false;
        let fine = deployed("fine", 60);
        let late = pending("late", 9, Duration::days(3));
        let mut lineages =
            [fine, late, renewed("renewed", Duration::hours(5)), stale, missing("gone"), fresh];
        slack::fill(&mut lineages, NOW);
        lineages
    }

    #[test]
    fn failures_come_first() {
        expect_test::expect![[r"
            SITE         STATE        EXPIRES  SAFE FOR  LINEAGE
            x a.example  pending 3 d  9 d      9 d       late
                the service cannot be reached
            x a.example  stale        expired  expired   stale
                the certificate on disk expired on 18 Nov 2026; renew it with the ACME client
            x a.example  gone         40 d     40 d      gone
                /live/gone/fullchain.pem is missing
            ! a.example  renewed 5 h  20 d     20 d      renewed
                no run has seen the certificate on disk; run `edgecert sync`
            ! -          new 9 min    -        -         new
                no run has seen the certificate on disk; run `edgecert sync`
            * a.example  served       60 d     60 d      fine
            5 sites: 1 served, 1 renewed, 1 gone, 1 pending, 1 stale; 1 lineage without a site
        "]]
        .assert_eq(&text(&lineages(), false, NOW, Style::PLAIN));
        assert!(text(&[], false, NOW, Style::PLAIN).starts_with("no lineage is known"));
    }

    #[test]
    fn wide_table_shows_fingerprints_and_records() {
        let [fine, late, renewed, ..] = lineages();
        expect_test::expect![[r"
            SITE         STATE        EXPIRES  SAFE FOR  LINEAGE  ON DISK                 ON RECORD        SERVED
            x a.example  pending 3 d  9 d      9 d       late     aaaalate 9 d            1042 same leaf   served
                the service cannot be reached
            ! a.example  renewed 5 h  20 d     20 d      renewed  bbbbbbbb 89 d, renewed  1042 other leaf  served
                no run has seen the certificate on disk; run `edgecert sync`
            * a.example  served       60 d     60 d      fine     aaaafine 60 d           1042 same leaf   served
            3 sites: 1 served, 1 renewed, 1 pending
        "]]
        .assert_eq(&text(&[fine, late, renewed], true, NOW, Style::PLAIN));
    }

    #[test]
    fn site_without_slack_is_marked_failed() {
        for (slack, sign, shown) in [(90, "*", "90 s"), (0, "x", "0 s"), (-90, "x", "0 s")] {
            let mut lineage = deployed("x", 60);
            lineage.sites[0].slack = Some(Duration::seconds(slack));
            let text = text(&[lineage], false, NOW, Style::PLAIN);
            let row = text.lines().nth(1).unwrap();
            assert_eq!(row, format!("{sign} a.example  served  60 d     {shown:<8}  x"));
        }
    }

    #[test]
    fn handshake_replaces_recorded_outcome() {
        let row = |edge| {
            let mut lineages = [deployed("x", 60)];
            lineages[0].sites[0].edge = Some(edge);
            slack::fill(&mut lineages, NOW);
            text(&lineages, false, NOW, Style::PLAIN)
        };
        assert!(row(edge(2, None)).contains("* a.example  served 2/2  60 d     60 d "));
        assert!(row(edge(1, Some(6))).contains("x a.example  stale 1/2  6 d      6 d "));
        assert!(row(edge(1, Some(6))).contains("\n    192.0.2.1:443 serves another\n"));
        assert!(row(edge(1, None)).contains("! a.example  unreachable 1/2  "));
        assert!(row(EdgeStatus::unreachable("")).contains("! a.example  unreachable  "));
    }

    #[test]
    fn problems_are_highlighted_on_terminals() {
        let style = Style { colour: true, width: Some(200), ..Style::PLAIN };
        let highlights = |lineage: LineageStatus| {
            let text = text(&[lineage], false, NOW, style);
            text.lines().nth(1).unwrap().matches("\u{1b}[0m").count()
        };
        assert_eq!(highlights(deployed("x", 60)), 1, "the sign");
        assert_eq!(highlights(deployed("x", 13)), 3, "sign, state and days left");
        assert_eq!(highlights(pending("x", 60, Duration::days(1))), 2, "sign and state");
        assert_eq!(highlights(missing("x")), 2);
    }

    #[test]
    fn expiry_is_highlighted_by_lifetime() {
        for (days, left, sign) in [
            (6, 2, Sign::Ok),
            (6, 1, Sign::Warning),
            (90, 15, Sign::Ok),
            (90, 13, Sign::Warning),
            (90, -1, Sign::Failed),
        ] {
            let not_after = NOW + Duration::days(left);
            let leaf = Leaf { not_before: not_after - Duration::days(days), ..until(not_after) };
            assert_eq!(expiry_sign(&leaf.clone(), NOW), sign, "{left} of {days} days");
        }
    }
}
