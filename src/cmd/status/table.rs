//! The facts for people: a row for each site of each lineage.

use anstyle::AnsiColor;
use time::OffsetDateTime;

use super::facts::{Age, Disk, Lineage, Shown, Site, days_left};
use crate::outcome::Outcome;
use crate::report::{Cell, Style, Table};
use crate::text::{humanize, sanitize};

const HEADS: [&str; 8] =
    ["lineage", "site", "on disk", "on record", "served", "pending for", "days left", "last error"];

/// What expires in fewer days is shown so.
const SOON: i64 = 14;
/// So much of a fingerprint tells two leaves apart.
const SHORT: usize = 8;
const NOTHING: &str = "-";

/// The rows, or that there is none.
pub(super) fn text(lineages: &[Lineage], now: OffsetDateTime, style: Style) -> String {
    if lineages.is_empty() {
        return "no lineage is known: none was deployed, and the configuration names none\n".into();
    }
    let mut table = Table::new(&HEADS);
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

fn row(lineage: &Lineage, site: Option<&Site>, now: OffsetDateTime) -> [Cell; 8] {
    let until = site.and_then(Site::expiry).or(lineage.deployed.as_ref().map(|leaf| leaf.not_after));
    [
        Cell::from(&lineage.name),
        site.map_or(NOTHING.into(), |site| Cell::from(&site.domain)),
        on_disk(&lineage.disk, now),
        site.map_or(NOTHING.into(), on_record),
        site.map_or(NOTHING.into(), |site| served(site, now)),
        lineage.lag(now).map_or(NOTHING.into(), |lag| Cell::coloured(humanize(lag), AnsiColor::Yellow)),
        until.map_or(NOTHING.into(), |until| days(until, now)),
        last_error(lineage),
    ]
}

fn on_disk(disk: &Disk, now: OffsetDateTime) -> Cell {
    let (leaf, age) = match disk {
        Disk::Leaf { leaf, age, .. } => (leaf, *age),
        Disk::Gone => return Cell::coloured("gone", AnsiColor::Red),
        Disk::ReadError(_) => return Cell::coloured("unreadable", AnsiColor::Red),
    };
    let short: String = leaf.fingerprint.chars().take(SHORT).collect();
    let left = words(leaf.not_after, now);
    match age {
        Age::Same => Cell::from(format!("{short} {left}")),
        Age::Newer => Cell::coloured(format!("{short} {left}, renewed"), AnsiColor::Yellow),
        Age::Older => Cell::coloured(format!("{short} {left}, older"), AnsiColor::Yellow),
    }
}

fn on_record(site: &Site) -> Cell {
    let Some(id) = site.cert_id else { return NOTHING.into() };
    match site.is_on_record {
        Some(true) => Cell::from(format!("{id} same leaf")),
        Some(false) => Cell::coloured(format!("{id} other leaf"), AnsiColor::Yellow),
        None => Cell::from(id.to_string()),
    }
}

fn served(site: &Site, now: OffsetDateTime) -> Cell {
    let Some(seen) = &site.served else {
        let outcome = site.outcome.to_string();
        let is_well = site.outcome.is_deployed() || site.outcome == Outcome::Skipped;
        return if is_well { Cell::from(outcome) } else { Cell::coloured(outcome, AnsiColor::Red) };
    };
    let Shown { served, addresses, .. } = seen;
    let word = seen.word();
    match word {
        "served" => Cell::from(format!("{word} {served}/{addresses}")),
        "stale" => {
            let left = seen.stale_until.map_or("no date".into(), |until| words(until, now));
            Cell::coloured(format!("{word} {served}/{addresses}, {left}"), AnsiColor::Red)
        }
        _ if *served == 0 => Cell::coloured(word, AnsiColor::Yellow),
        _ => Cell::coloured(format!("{word}, served {served}/{addresses}"), AnsiColor::Yellow),
    }
}

fn days(until: OffsetDateTime, now: OffsetDateTime) -> Cell {
    match days_left(until, now) {
        _ if until < now => Cell::coloured("expired", AnsiColor::Red),
        days if days < SOON => Cell::coloured(days.to_string(), AnsiColor::Yellow),
        days => Cell::from(days.to_string()),
    }
}

fn words(until: OffsetDateTime, now: OffsetDateTime) -> String {
    if until < now { "expired".into() } else { format!("{} d", days_left(until, now)) }
}

fn last_error(lineage: &Lineage) -> Cell {
    match (&lineage.disk, &lineage.last_error) {
        (_, Some(end)) => {
            let told = end.error.as_deref().map_or_else(|| format!("exit code {}", end.exit_code), sanitize);
            Cell::coloured(told, AnsiColor::Red)
        }
        (Disk::ReadError(reason), None) => Cell::coloured(reason, AnsiColor::Red),
        _ => NOTHING.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Shown;
    use super::super::fixture::{NOW, deployed, gone, pending, renewed};
    use super::*;
    use time::Duration;

    const PLAIN: Style = Style { colour: false, width: None };

    #[test]
    fn each_site_of_each_lineage_has_a_row() {
        let mut expired = deployed("expired", -3);
        expired.sites[0].outcome = Outcome::Stale;
        let mut fresh = renewed("new", Duration::minutes(9));
        fresh.sites.clear();
        fresh.deployed = None;
        let inventory = [
            deployed("fine", 60),
            pending("late", 9, Duration::days(3)),
            renewed("renewed", Duration::hours(5)),
            expired,
            gone("gone"),
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
        "]].assert_eq(&text(&inventory, NOW, PLAIN));
        assert!(text(&[], NOW, PLAIN).starts_with("no lineage is known"));
    }

    #[test]
    fn what_was_seen_now_stands_in_place_of_what_is_remembered() {
        let shown = |served, stale: &[&str], unseen: &[&str]| Shown {
            served,
            addresses: 2,
            is_proven: served == 2,
            stale: stale.iter().map(ToString::to_string).collect(),
            stale_until: (!stale.is_empty()).then_some(NOW + Duration::days(6)),
            unseen: unseen.iter().map(ToString::to_string).collect(),
        };
        let cell = |shown| {
            let mut lineage = deployed("x", 60);
            lineage.sites[0].served = Some(shown);
            text(&[lineage], NOW, PLAIN)
        };
        assert!(cell(shown(2, &[], &[])).contains("  served 2/2  -            60"));
        assert!(cell(shown(1, &["still shows another"], &[])).contains("  stale 1/2, 6 d  -            6 "));
        assert!(cell(shown(1, &[], &["does not report"])).contains("  unreachable, served 1/2  "));
        assert!(cell(Shown::default()).contains("  unreachable  "));
    }

    #[test]
    fn what_needs_attention_is_coloured_on_a_terminal() {
        let style = Style { colour: true, width: Some(200) };
        let painted =
            |lineage| text(&[lineage], NOW, style).lines().last().unwrap().matches("\u{1b}[0m").count();
        assert_eq!(painted(deployed("x", 60)), 0);
        assert_eq!(painted(deployed("x", 13)), 1, "days left");
        assert_eq!(painted(deployed("x", -1)), 1, "expired");
        assert_eq!(painted(pending("x", 60, Duration::days(1))), 2, "pending, and why");
        assert_eq!(painted(gone("x")), 1);
    }
}
