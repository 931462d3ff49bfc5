//! The status as a table: a row for each site of each lineage.

use anstyle::AnsiColor;
use time::OffsetDateTime;

use super::lineage_status::{
    DiskStatus, EdgeOutcome, EdgeStatus, LeafAge, LineageStatus, SiteStatus, days_left,
};
use crate::outcome::Outcome;
use crate::report::{Cell, Style, Table};
use crate::text::{humanize, sanitize};

const HEADERS: [&str; 8] =
    ["lineage", "site", "on disk", "on record", "served", "pending for", "days left", "last error"];

/// A certificate that expires in fewer days is highlighted.
const SOON_DAYS: i64 = 14;
/// Length of a fingerprint that only distinguishes two leaves.
const SHORT_FINGERPRINT: usize = 8;
const EMPTY: &str = "-";

/// Formats the table.
pub(super) fn text(lineages: &[LineageStatus], now: OffsetDateTime, style: Style) -> String {
    if lineages.is_empty() {
        return "no lineage is known: none has been deployed, and the configuration names none\n".into();
    }
    let mut table = Table::new(&HEADERS);
    for lineage in lineages {
        if lineage.sites.is_empty() {
            table.row(row(lineage, None, now));
        }
        for site in &lineage.sites {
            table.row(row(lineage, Some(site), now));
        }
    }
    table.to_text(style)
}

fn row(lineage: &LineageStatus, site: Option<&SiteStatus>, now: OffsetDateTime) -> [Cell; 8] {
    let deployed = || lineage.deployed.as_ref().map(|leaf| leaf.not_after);
    let until = site.and_then(SiteStatus::expiry).or_else(deployed);
    [
        Cell::from(&lineage.name),
        site.map_or(EMPTY.into(), |site| Cell::from(&site.domain)),
        on_disk(&lineage.disk, now),
        site.map_or(EMPTY.into(), on_record),
        site.map_or(EMPTY.into(), |site| served(site, now)),
        lineage.lag(now).map_or(EMPTY.into(), |lag| Cell::coloured(humanize(lag), AnsiColor::Yellow)),
        until.map_or(EMPTY.into(), |until| days(until, now)),
        last_error(lineage),
    ]
}

fn on_disk(disk: &DiskStatus, now: OffsetDateTime) -> Cell {
    let (leaf, age) = match disk {
        DiskStatus::Leaf { leaf, age, .. } => (leaf, *age),
        DiskStatus::Missing => return Cell::coloured("gone", AnsiColor::Red),
        DiskStatus::Unreadable(_) => return Cell::coloured("unreadable", AnsiColor::Red),
    };
    let fingerprint: String = leaf.fingerprint.chars().take(SHORT_FINGERPRINT).collect();
    let left = time_left(leaf.not_after, now);
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

fn served(site: &SiteStatus, now: OffsetDateTime) -> Cell {
    let Some(edge) = &site.edge else {
        let outcome = site.outcome.to_string();
        let is_good =
            site.outcome.is_deployed() || matches!(site.outcome, Outcome::Skipped | Outcome::Superseded);
        return if is_good { Cell::from(outcome) } else { Cell::coloured(outcome, AnsiColor::Red) };
    };
    let EdgeStatus { outcome, served, addresses, .. } = edge;
    match outcome {
        EdgeOutcome::Served => Cell::from(format!("{outcome} {served}/{addresses}")),
        EdgeOutcome::Stale => {
            let left = edge.stale_until.map_or("no date".into(), |until| time_left(until, now));
            Cell::coloured(format!("{outcome} {served}/{addresses}, {left}"), AnsiColor::Red)
        }
        EdgeOutcome::Unreachable if *served == 0 => Cell::coloured(outcome.to_string(), AnsiColor::Yellow),
        EdgeOutcome::Unreachable => {
            Cell::coloured(format!("{outcome}, served {served}/{addresses}"), AnsiColor::Yellow)
        }
    }
}

fn days(until: OffsetDateTime, now: OffsetDateTime) -> Cell {
    match days_left(until, now) {
        _ if until < now => Cell::coloured("expired", AnsiColor::Red),
        days if days < SOON_DAYS => Cell::coloured(days.to_string(), AnsiColor::Yellow),
        days => Cell::from(days.to_string()),
    }
}

fn time_left(until: OffsetDateTime, now: OffsetDateTime) -> String {
    if until < now { "expired".into() } else { format!("{} d", days_left(until, now)) }
}

fn last_error(lineage: &LineageStatus) -> Cell {
    match (&lineage.disk, &lineage.last_error) {
        (_, Some(result)) => {
            let exit_code = || format!("exit code {}", result.exit_code);
            Cell::coloured(result.error.as_deref().map_or_else(exit_code, sanitize), AnsiColor::Red)
        }
        (DiskStatus::Unreadable(reason), None) => Cell::coloured(reason, AnsiColor::Red),
        _ => EMPTY.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, missing, pending, renewed};
    use super::*;
    use time::Duration;

    const PLAIN: Style = Style { colour: false, width: None };

    #[test]
    fn each_site_has_a_row() {
        let mut expired = deployed("expired", -3);
        expired.sites[0].outcome = Outcome::Stale;
        let mut fresh = renewed("new", Duration::minutes(9));
        fresh.sites.clear();
        fresh.deployed = None;
        let lineages = [
            deployed("fine", 60),
            pending("late", 9, Duration::days(3)),
            renewed("renewed", Duration::hours(5)),
            expired,
            missing("gone"),
            fresh,
        ];
        expect_test::expect![[r"
            lineage  site       on disk                 on record        served  pending for  days left  last error
            fine     a.example  aaaafine 60 d           1042 same leaf   served  -            60         -
            late     a.example  aaaalate 9 d            1042 same leaf   served  3 days       9          the service cannot be reached
            renewed  a.example  bbbbbbbb 89 d, renewed  1042 other leaf  served  5 hours      20         -
            expired  a.example  aexpired expired        1042 same leaf   stale   -            expired    -
            gone     a.example  gone                    1042 same leaf   served  -            40         -
            new      -          bbbbbbbb 89 d, renewed  -                -       9 minutes    -          -
        "]].assert_eq(&text(&lineages, NOW, PLAIN));
        assert!(text(&[], NOW, PLAIN).starts_with("no lineage is known"));
    }

    #[test]
    fn handshake_replaces_recorded_outcome() {
        let row = |edge| {
            let mut lineage = deployed("x", 60);
            lineage.sites[0].edge = Some(edge);
            text(&[lineage], NOW, PLAIN)
        };
        assert!(row(edge(2, None)).contains("  served 2/2  -            60"));
        assert!(row(edge(1, Some(6))).contains("  stale 1/2, 6 d  -            6 "));
        assert!(row(edge(1, None)).contains("  unreachable, served 1/2  "));
        assert!(row(EdgeStatus::unreachable("")).contains("  unreachable  "));
    }

    #[test]
    fn problems_are_highlighted_on_terminals() {
        let style = Style { colour: true, width: Some(200) };
        let highlights =
            |lineage| text(&[lineage], NOW, style).lines().last().unwrap().matches("\u{1b}[0m").count();
        assert_eq!(highlights(deployed("x", 60)), 0);
        assert_eq!(highlights(deployed("x", 13)), 1, "days left");
        assert_eq!(highlights(deployed("x", -1)), 1, "expired");
        assert_eq!(highlights(pending("x", 60, Duration::days(1))), 2, "pending, and why");
        assert_eq!(highlights(missing("x")), 1);
    }
}
