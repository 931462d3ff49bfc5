//! The text of the report of `plan`: what would happen to each site, and what its edge serves now.

use std::collections::BTreeMap;

use super::deployment::{checked, nothing_to_do};
use super::edge::ServedLeaf;
use super::style::Sign;
use super::text::{Frame, Line, lines};
use super::{DeployBody, ServingReport};
use crate::outcome::Outcome;
use crate::plan::{Step, StepAction};
use crate::text::{list, sanitize};

pub(super) fn text(steps: &[Step], report: &DeployBody, frame: &Frame<'_>) -> String {
    let mut rows: Vec<Line> =
        checked(&report.checks).filter(|line| line.sign == Sign::Failed).into_iter().collect();
    let mut counts = Counts::default();
    for ((service, cert_id), sites) in unchanged(report) {
        counts.add(Kind::Unchanged, sites.len());
        let record = cert_id.map(|id| format!(" ({id} is this certificate)")).unwrap_or_default();
        let text = format!("{}{record}{}", list(&sites), at(service));
        rows.push(Line::new(Sign::Unchanged, "unchanged", text));
    }
    for step in steps {
        let kind = Kind::of(step);
        counts.add(kind, step.sites.len());
        let summary = format!("{}{}", step.summary, at(step.service.as_deref()));
        let mut line = Line::new(kind.sign(), kind.word(), summary);
        line.notes = served_now(step, report);
        rows.push(line);
    }
    let last = match nothing_to_do(report) {
        Some(sentence) => sentence.to_owned(),
        None if steps.is_empty() => "nothing to do".to_owned(),
        None => format!("{}; nothing was changed", counts.text()),
    };
    lines(&rows, frame.style) + &last + "\n"
}

/// Names the account, if the run plans for several.
fn at(service: Option<&str>) -> String {
    service.map(|service| format!("; at {service}")).unwrap_or_default()
}

/// The sites that have the certificate, by account and record.
fn unchanged(report: &DeployBody) -> BTreeMap<(Option<&str>, Option<u64>), Vec<String>> {
    let mut unchanged: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for site in report.sites.iter().filter(|site| matches!(site.outcome, Outcome::Served | Outcome::Synced)) {
        unchanged.entry((site.service.as_deref(), site.cert_id)).or_default().push(sanitize(&site.domain));
    }
    unchanged
}

/// What the edges of a step's sites serve now, stated once if it is the same for all.
fn served_now(step: &Step, report: &DeployBody) -> Vec<String> {
    let is_of_step = |serving: &&ServingReport| {
        let is_named = match step.sites.as_slice() {
            [] => step.domain == serving.domain,
            sites => sites.contains(&serving.domain),
        };
        is_named && step.service == serving.service
    };
    let serving: Vec<&ServingReport> = report.serving.iter().flatten().filter(is_of_step).collect();
    let mut sentences: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for site in &serving {
        if let Some(served) = served(site) {
            sentences.entry(served).or_default().push(&site.domain);
        }
    }
    let note = |(sentence, domains): (&String, &Vec<&str>)| {
        let is_for_all = domains.len() == serving.len();
        let domains = if is_for_all { String::new() } else { format!("{}: ", sanitize(&list(domains))) };
        format!("now: {domains}{sentence}")
    };
    sentences.iter().map(note).collect()
}

/// What the edge of a site serves; `None` if that was not observed.
fn served(serving: &ServingReport) -> Option<String> {
    match (serving.leaf, &serving.detail) {
        (ServedLeaf::Current, None) => Some("this certificate".into()),
        (ServedLeaf::Current, Some(detail)) => Some(format!("this certificate; {detail}")),
        (ServedLeaf::Other, detail) => detail.clone(),
        (ServedLeaf::Unknown, detail) => detail.as_ref().map(|detail| format!("unknown, because {detail}")),
    }
}

/// What a plan does to a site, in the order of the last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Create,
    Replace,
    Bind,
    Upload,
    Blocked,
    Skipped,
    Unchanged,
}

impl Kind {
    fn of(step: &Step) -> Self {
        match step.action {
            StepAction::Create => Self::Create,
            StepAction::Replace => Self::Replace,
            StepAction::Bind => Self::Bind,
            StepAction::Upload => Self::Upload,
            StepAction::Guard => Self::Blocked,
            StepAction::Leave if step.is_blocked => Self::Blocked,
            StepAction::Leave => Self::Skipped,
        }
    }

    fn sign(self) -> Sign {
        match self {
            Self::Create | Self::Upload => Sign::Create,
            Self::Replace | Self::Bind => Sign::Replace,
            Self::Blocked => Sign::Warning,
            Self::Skipped => Sign::Skipped,
            Self::Unchanged => Sign::Unchanged,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Bind => "bind",
            Self::Upload => "upload",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
            Self::Unchanged => "unchanged",
        }
    }
}

/// The number of sites of each kind.
#[derive(Default)]
struct Counts(BTreeMap<Kind, usize>);

impl Counts {
    /// Counts sites; a step without one counts as one.
    fn add(&mut self, kind: Kind, sites: usize) {
        *self.0.entry(kind).or_default() += sites.max(1);
    }

    fn text(&self) -> String {
        let part = |(kind, number): (&Kind, &usize)| match kind {
            Kind::Create | Kind::Replace | Kind::Bind | Kind::Upload => {
                format!("{number} to {}", kind.word())
            }
            Kind::Blocked | Kind::Skipped | Kind::Unchanged => format!("{number} {}", kind.word()),
        };
        self.0.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}
