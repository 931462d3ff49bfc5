//! Judges the facts for monitoring.

use time::{Duration, OffsetDateTime};

use super::facts::{Age, Disk, Lineage, Site, days_left};
use super::verdict::{Finding, Level, Verdict};
use crate::cli::StatusArgs;
use crate::text::{count, humanize, rfc3339, sanitize};

/// A deployment may be pending for so many seconds.
const MAX_LAG: u64 = 24 * 60 * 60;
/// What is deployed must last for so many days.
const WARN_DAYS: u32 = 14;

/// When something is not as it should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    lag: Duration,
    days: i64,
}

impl Limits {
    pub(super) fn of(args: &StatusArgs) -> Self {
        let lag = i64::try_from(args.max_lag.unwrap_or(MAX_LAG)).unwrap_or(i64::MAX);
        Self { lag: Duration::seconds(lag), days: i64::from(args.warn_days.unwrap_or(WARN_DAYS)) }
    }
}

/// Judges the lineages; `strange` is what is strange about memories.
pub(super) fn evaluate(
    lineages: &[Lineage],
    strange: &[String],
    limits: Limits,
    now: OffsetDateTime,
) -> Verdict {
    let about_memories = strange.iter().map(|note| Finding::new(Level::Warning, None, note.clone(), 0));
    let mut findings: Vec<Finding> = about_memories.collect();
    findings.extend(lineages.iter().flat_map(|lineage| of_lineage(lineage, limits, now)));
    // Stable, so that lineages stay in the order of their names.
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.level, finding.urgency)));
    let lags = || lineages.iter().filter_map(|lineage| lineage.lag(now));
    let (pending, lag) = (lags().count(), lags().max().unwrap_or_default());
    let sites = lineages.iter().flat_map(|lineage| &lineage.sites);
    let left = sites.filter_map(Site::expiry).min().map(|until| days_left(until, now));
    Verdict {
        level: findings.first().map_or(Level::Ok, |finding| finding.level),
        findings,
        well: well(lineages.len(), pending, left),
        figures: figures(pending, lag, left, limits),
    }
}

fn of_lineage(lineage: &Lineage, limits: Limits, now: OffsetDateTime) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |level, text, urgency: i64| {
        findings.push(Finding::new(level, Some(lineage.name.clone()), text, urgency));
    };
    if let Some(lag) = lineage.lag(now).filter(|lag| *lag > limits.lag) {
        add(Level::Critical, pending(lineage, lag), lag.whole_seconds());
    }
    if let Some((site, until)) = first_to_expire(lineage) {
        let left = days_left(until, now);
        let at = rfc3339(until);
        if until < now {
            let text = format!("the certificate that {} has expired at {at}", site.domain);
            add(Level::Critical, text, i64::MAX);
        } else if left < limits.days {
            let text = format!(
                "the certificate that {} has expires in {}, at {at}",
                site.domain,
                humanize(until - now)
            );
            add(Level::Warning, text, -left);
        }
    }
    match &lineage.disk {
        Disk::Gone if lineage.is_needed() => {
            let cert = lineage.cert.as_deref().unwrap_or("the lineage");
            add(Level::Warning, format!("{cert} is gone and still needed"), 0);
        }
        Disk::ReadError(reason) => add(Level::Warning, reason.clone(), 0),
        Disk::Leaf { .. } | Disk::Gone => {}
    }
    for site in &lineage.sites {
        // What is pending is not served yet; that is judged by its age.
        let stale = site.served.as_ref().filter(|_| lineage.pending_since.is_none());
        if let Some(stale) = stale.and_then(|served| served.stale.first()) {
            add(Level::Warning, format!("{}: {stale}", site.domain), 0);
        }
    }
    findings
}

fn pending(lineage: &Lineage, lag: Duration) -> String {
    let why = match (&lineage.last_error, &lineage.disk) {
        (Some(end), _) => end.error.as_deref().map(sanitize),
        (None, Disk::Leaf { age: Age::Newer, .. }) => Some("no run has seen this certificate".into()),
        (None, _) => Some("no run has finished it".into()),
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("pending for {}{why}", humanize(lag))
}

fn first_to_expire(lineage: &Lineage) -> Option<(&Site, OffsetDateTime)> {
    let dated = lineage.sites.iter().filter_map(|site| Some((site, site.expiry()?)));
    dated.min_by_key(|(_, until)| *until)
}

fn well(lineages: usize, pending: usize, left: Option<i64>) -> String {
    let pending =
        if pending == 0 { "nothing pending".into() } else { format!("{pending} pending, not for long") };
    let left = left.map(|days| format!(", {} left", count(usize::try_from(days).unwrap_or(0), "day")));
    format!("{}, {pending}{}", count(lineages, "lineage"), left.unwrap_or_default())
}

/// Performance data: `label=value[unit];warning;critical`, a threshold `N:` for values that must not be below.
fn figures(pending: usize, lag: Duration, left: Option<i64>, limits: Limits) -> String {
    let most = limits.lag.whole_seconds();
    let left = left.map(|days| format!(" days_left={days};{}:;0:", limits.days)).unwrap_or_default();
    format!("pending={pending} lag={}s;{most};{most}{left}", lag.whole_seconds())
}

#[cfg(test)]
mod tests {
    use super::super::facts::Shown;
    use super::super::fixture::{NOW, deployed, gone, pending, renewed};
    use super::*;

    const LIMITS: Limits = Limits { lag: Duration::seconds(86400), days: 14 };

    fn line(lineages: &[Lineage]) -> (u8, String) {
        let verdict = evaluate(lineages, &[], LIMITS, NOW);
        (verdict.level.exit_code(), verdict.to_line())
    }

    /// The exit code and the words between the level and the figures.
    fn said(lineages: &[Lineage]) -> (u8, String) {
        let (code, line) = line(lineages);
        let words = line.split_once(" - ").unwrap().1.split(" | ").next().unwrap().to_owned();
        (code, words)
    }

    #[test]
    fn the_line_has_the_level_the_gravest_finding_and_the_figures() {
        let inventory =
            [deployed("fine", 60), deployed("soon", 5), pending("shop", 20, Duration::days(3)), gone("left")];
        assert_eq!(
            line(&inventory),
            (
                2,
                "EDGECERT CRITICAL - shop: pending for 3 days (the service cannot be reached); 2 more | \
                 pending=1 lag=259200s;86400;86400 days_left=5;14:;0:\n"
                    .into()
            )
        );
        let well = "EDGECERT OK - 1 lineage, nothing pending, 60 days left | \
                    pending=0 lag=0s;86400;86400 days_left=60;14:;0:\n";
        assert_eq!(line(&[deployed("fine", 60)]), (0, well.into()));
        let none = "EDGECERT OK - 0 lineages, nothing pending | pending=0 lag=0s;86400;86400\n";
        assert_eq!(line(&[]), (0, none.into()));
    }

    #[test]
    fn each_fault_has_its_level() {
        let mut unreadable = deployed("x", 60);
        unreadable.disk = Disk::ReadError("cannot read /x: permission denied".into());
        let mut useless = gone("x");
        useless.sites.clear();
        let mut configured = Lineage { configured: true, remembered: false, ..gone("x") };
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
            (gone("x"), 1),
            (useless, 0),
            (configured, 1),
            (unreadable, 1),
        ];
        for (number, (lineage, code)) in rows.into_iter().enumerate() {
            let (found, line) = line(&[lineage]);
            assert_eq!(found, code, "row {number}: {line}");
        }
    }

    #[test]
    fn a_damaged_memory_is_a_warning() {
        let verdict = evaluate(&[deployed("x", 60)], &["x.damaged is damaged".into()], LIMITS, NOW);
        assert_eq!(verdict.level, Level::Warning);
        assert!(verdict.to_line().starts_with("EDGECERT WARNING - x.damaged is damaged | "));
    }

    #[test]
    fn what_no_run_has_seen_is_said_so_and_the_most_urgent_comes_first() {
        let late = |name, days| renewed(name, Duration::days(days));
        let (code, words) = said(&[late("a", 3), late("b", 9), late("c", 4)]);
        assert_eq!((code, &*words), (2, "b: pending for 9 days (no run has seen this certificate); 2 more"));
        let (_, words) = said(&[deployed("a", 9), deployed("b", 3)]);
        assert_eq!(
            words,
            "b: the certificate that a.example has expires in 3 days, at 2026-11-24T13:00:00Z; 1 more"
        );
    }

    #[test]
    fn an_edge_that_shows_another_leaf_is_a_warning_unless_one_is_pending() {
        let stale = |mut lineage: Lineage, days| {
            let shown = Shown {
                addresses: 1,
                stale: vec!["192.0.2.1:443 still shows it".into()],
                stale_until: Some(NOW + Duration::days(days)),
                ..Shown::default()
            };
            lineage.sites.iter_mut().for_each(|site| site.served = Some(shown.clone()));
            lineage
        };
        let words = "x: a.example: 192.0.2.1:443 still shows it";
        assert_eq!(said(&[stale(deployed("x", 60), 30)]), (1, words.into()));
        assert_eq!(said(&[stale(pending("x", 60, Duration::hours(1)), 30)]).0, 0);
        assert_eq!(said(&[stale(deployed("x", 60), -1)]).0, 2, "what is seen counts, not what is remembered");
    }

    #[test]
    fn foreign_words_stay_within_the_one_line() {
        let mut lineage = pending("x", 60, Duration::days(3));
        lineage.last_error.as_mut().unwrap().error = Some("a|b\nEDGECERT OK - c".into());
        let (_, line) = line(&[lineage]);
        assert_eq!((line.matches('|').count(), line.lines().count()), (1, 1), "{line}");
    }
}
