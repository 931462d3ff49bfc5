//! The facts for monitoring: one line in the style of the Monitoring Plugins, and an exit code.

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::facts::{Age, Disk, Lineage, Site, days_left};
use crate::cli::StatusArgs;
use crate::text::{count, foreign, rfc3339, span};

/// A deployment may be pending for so many seconds.
const MAX_LAG: u64 = 24 * 60 * 60;
/// What is deployed must last for so many days.
const WARN_DAYS: u32 = 14;

/// What is not as it should be; the discriminant is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Level {
    Ok = 0,
    Warning = 1,
    Critical = 2,
}

/// When something is not as it should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    lag: Duration,
    days: i64,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    level: Level,
    /// `None`: it is not about a lineage.
    lineage: Option<String>,
    text: String,
    /// Of the same level the more urgent one comes first.
    urgency: i64,
}

/// What came of it.
pub(super) struct Verdict {
    pub(super) level: Level,
    /// The gravest first.
    findings: Vec<Finding>,
    /// What is said where all is well, and the figures.
    well: String,
    figures: String,
}

impl Limits {
    pub(super) fn of(args: &StatusArgs) -> Self {
        let lag = i64::try_from(args.max_lag.unwrap_or(MAX_LAG)).unwrap_or(i64::MAX);
        Self { lag: Duration::seconds(lag), days: i64::from(args.warn_days.unwrap_or(WARN_DAYS)) }
    }
}

/// Judges the lineages; `strange` is what is strange about memories.
pub(super) fn judge(
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

/// A verdict for a state that cannot be known.
pub(super) fn failed(message: &str) -> Verdict {
    let finding = Finding::new(Level::Critical, None, message.to_owned(), 0);
    Verdict { level: Level::Critical, findings: vec![finding], well: String::new(), figures: String::new() }
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
            let text =
                format!("the certificate that {} has expires in {}, at {at}", site.domain, span(until - now));
            add(Level::Warning, text, -left);
        }
    }
    match &lineage.disk {
        Disk::Gone if lineage.is_needed() => {
            let cert = lineage.cert.as_deref().unwrap_or("the lineage");
            add(Level::Warning, format!("{cert} is gone and still needed"), 0);
        }
        Disk::Unreadable(reason) => add(Level::Warning, reason.clone(), 0),
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
        (Some(end), _) => end.error.as_deref().map(foreign),
        (None, Disk::Leaf { age: Age::Newer, .. }) => Some("no run has seen this certificate".into()),
        (None, _) => Some("no run has finished it".into()),
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("pending for {}{why}", span(lag))
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

impl Finding {
    fn new(level: Level, lineage: Option<String>, text: String, urgency: i64) -> Self {
        Self { level, lineage, text, urgency }
    }

    fn to_text(&self) -> String {
        match &self.lineage {
            Some(lineage) => format!("{lineage}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }

    pub(super) fn exit_code(self) -> u8 {
        self as u8
    }
}

impl Verdict {
    /// The line, with its end.
    pub(super) fn to_line(&self) -> String {
        let said = match self.findings.as_slice() {
            [] => self.well.clone(),
            [only] => only.to_text(),
            [first, rest @ ..] => format!("{}; {} more", first.to_text(), rest.len()),
        };
        // A bar would begin the figures, and a line feed another line.
        let said: String = said.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
        let figures = if self.figures.is_empty() { String::new() } else { format!(" | {}", self.figures) };
        format!("EDGECERT {} - {said}{figures}\n", self.level.word())
    }

    /// The same for scripts, with every finding.
    pub(super) fn to_json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "level": finding.level.word().to_lowercase(),
                "lineage": finding.lineage,
                "text": finding.text,
            })
        };
        json!({
            "level": self.level.word().to_lowercase(),
            "findings": self.findings.iter().map(finding).collect::<Value>(),
        })
    }
}
