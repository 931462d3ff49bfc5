//! The text of the report of `plan`: what would happen to each site, and what its edge serves now.

use std::collections::{BTreeMap, HashMap};

use super::deployed::ServedLeaf;
use super::deployment::{checked, nothing_to_do};
use super::style::Sign;
use super::text::{Block, Line};
use super::{Deployed, ServingReport};
use crate::outcome::Outcome;
use crate::plan::{Step, StepAction};
use crate::text::{list, sanitize};

/// Words for what happens to sites, in the order of the last line.
const WORDS: [&str; 7] = ["create", "replace", "bind", "upload", "blocked", "skipped", "unchanged"];

pub(super) fn blocks(steps: &[Step], report: &Deployed) -> [Block; 2] {
    let mut rows: Vec<Line> =
        checked(&report.checks).filter(|line| line.sign == Sign::Failed).into_iter().collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for ((service, cert_id), sites) in unchanged(report) {
        *counts.entry("unchanged").or_default() += sites.len();
        let record = cert_id.map(|id| format!(" ({id} is this certificate)")).unwrap_or_default();
        let text = format!("{}{record}{}", list(&sites), at(service));
        rows.push(Line::new(Sign::Unchanged, &"unchanged", text));
    }
    for step in steps {
        let (sign, word) = shown(step);
        // A step without a site counts as one.
        *counts.entry(word).or_default() += step.sites.len().max(1);
        let summary = format!("{}{}", step.summary, at(step.service.as_deref()));
        rows.push(Line { notes: served_now(step, report), ..Line::new(sign, &word, summary) });
    }
    let last = match nothing_to_do(report) {
        Some(sentence) => sentence.to_owned(),
        None if steps.is_empty() => "nothing to do".to_owned(),
        None => {
            let count = |word| Some((*counts.get(word)?, word));
            let part = |(number, word)| match word {
                "blocked" | "skipped" | "unchanged" => format!("{number} {word}"),
                _ => format!("{number} to {word}"),
            };
            let parts: Vec<String> = WORDS.into_iter().filter_map(count).map(part).collect();
            format!("{}; nothing was changed", parts.join(", "))
        }
    };
    [Block::Lines(rows), last.into()]
}

/// How a step is shown.
fn shown(step: &Step) -> (Sign, &'static str) {
    match step.action {
        StepAction::Create => (Sign::Create, "create"),
        StepAction::Upload => (Sign::Create, "upload"),
        StepAction::Replace => (Sign::Replace, "replace"),
        StepAction::Bind => (Sign::Replace, "bind"),
        StepAction::Leave if !step.is_blocked => (Sign::Skipped, "skipped"),
        StepAction::Leave | StepAction::Guard => (Sign::Warning, "blocked"),
    }
}

/// Names the account, if the run plans for several.
fn at(service: Option<&str>) -> String {
    service.map(|service| format!("; at {service}")).unwrap_or_default()
}

/// The sites that have the certificate, by account and record.
fn unchanged(report: &Deployed) -> BTreeMap<(Option<&str>, Option<u64>), Vec<String>> {
    let mut unchanged: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for site in report.sites.iter().filter(|site| matches!(site.outcome, Outcome::Served | Outcome::Synced)) {
        unchanged.entry((site.service.as_deref(), site.cert_id)).or_default().push(site.domain.to_string());
    }
    unchanged
}

/// What the edges of a step's sites serve now, stated once if it is the same for all.
fn served_now(step: &Step, report: &Deployed) -> Vec<String> {
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
