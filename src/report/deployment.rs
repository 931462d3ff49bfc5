//! The text of the reports of `deploy`, `plan` and `check`: the certificate, then a line for each check, step and site,
//! failures last.

use std::collections::{BTreeMap, HashMap};

use unicode_width::UnicodeWidthStr as _;

use super::deployed::ServedLeaf;
use super::style::Sign;
use super::text::{Block, Line, finding_counts, finding_line};
use super::{Deployed, Report, ServingReport, SiteReport, UploadReport};
use crate::check::{Check, Finding, Status};
use crate::clock;
use crate::error::{MAX_NAMED, first_names};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::{Step, StepAction};
use crate::text::{count, list, people, sanitize, tally};

const GAP: &str = "  ";
/// What happens to sites, in the order of the last line.
const FATES: [&str; 7] =
    ["to create", "to replace", "to bind", "to upload", "blocked", "skipped", "unchanged"];

pub(super) fn blocks(report: &Report) -> Vec<Block> {
    let body = &report.deployed;
    let mut blocks = Vec::new();
    if let Some(certificate) = &body.certificate {
        let names = first_names(certificate.leaf.names.iter().map(String::as_str));
        let expiry = people::expiry(certificate.leaf.not_after, clock::now());
        blocks.push(format!("{names}   {}, {expiry}", certificate.key_type).into());
    }
    match &body.plan {
        _ if report.command() == "check" => {
            blocks.push(Block::Lines(body.checks.iter().map(check).collect()));
            blocks.push(finding_counts(body.checks.iter().map(|finding| finding.status)).into());
        }
        Some(steps) => blocks.extend(planned(steps, body)),
        None => {
            let steps = checked(&body.checks).into_iter().chain(uploads(body)).chain(sites(&body.sites));
            let steps: Vec<Line> = steps.collect();
            let (is_empty, elapsed) = (steps.is_empty(), people::elapsed(report.start.elapsed()));
            blocks.push(Block::Lines(steps));
            match nothing_to_do(body) {
                _ if is_empty && body.certificate.is_none() => {}
                _ if !report.errors().is_empty() => blocks.push(format!("failed after {elapsed}").into()),
                Some(sentence) => blocks.push(format!("{sentence} ({elapsed})").into()),
                None => blocks.push(format!("done in {elapsed}").into()),
            }
        }
    }
    blocks
}

/// The line of a finding. An error gives the hint of a failed one.
fn check(finding: &Finding) -> Line {
    let hint = finding.hint.as_ref().filter(|_| finding.status != Status::Fail).map(ToString::to_string);
    finding_line(finding.check.to_string(), finding.status, &finding.detail, hint.as_deref())
}

/// Says that no site needs anything, so that nothing was sent or would be.
fn nothing_to_do(report: &Deployed) -> Option<&'static str> {
    let are_all = |wanted: &[Outcome]| report.sites.iter().all(|site| wanted.contains(&site.outcome));
    match () {
        () if report.changed || report.sites.is_empty() || !report.uploads.is_empty() => None,
        () if are_all(&[Outcome::Served, Outcome::Synced]) => {
            Some("nothing to do: every site has this certificate")
        }
        () if are_all(&[Outcome::Served, Outcome::Synced, Outcome::Superseded]) => Some("nothing to do"),
        () => None,
    }
}

/// The line of the local checks: all of them, or those that failed. The errors and warnings give the reasons.
fn checked(checks: &[Finding]) -> Option<Line> {
    let with = |statuses: &[Status]| {
        // That files can be read goes without saying.
        let told =
            checks.iter().filter(|finding| (finding.check, finding.status) != (Check::Pem, Status::Ok));
        let told = told.filter(|finding| statuses.contains(&finding.status));
        let mut words: Vec<String> = told.map(|finding| finding.check.to_string()).collect();
        words.dedup();
        words
    };
    let (failed, passed) = (with(&[Status::Fail]), with(&[Status::Ok, Status::Warn]));
    let warnings = checks.iter().filter(|finding| finding.status == Status::Warn).count();
    if !failed.is_empty() {
        return Some(Line::new(Sign::Failed, &"checked", format!("{} failed", list(&failed))));
    }
    let warned = if warnings > 0 { format!("; {}", count(warnings, "warning")) } else { String::new() };
    let sign = if warnings > 0 { Sign::Warning } else { Sign::Ok };
    (!passed.is_empty()).then(|| Line::new(sign, &"checked", format!("{}{warned}", passed.join(", "))))
}

/// A line for each upload that the service has stored. The errors are about the others.
fn uploads(report: &Deployed) -> Vec<Line> {
    let stored: Vec<&UploadReport> = report.uploads.iter().filter(|upload| upload.id.is_some()).collect();
    // The domain is that of a site below, unless there was no listing.
    let is_named = stored.len() > 1 || report.sites.iter().any(|site| site.id.is_none());
    let line = |upload: &UploadReport| {
        // As they were read afterwards, or as the service said when it created the record.
        let is_bound = |site: &&SiteReport| {
            site.id.is_some() && (site.cert_id, &site.service) == (upload.id, &upload.service)
        };
        let listed = upload.bound_sites.as_array().map_or(0, Vec::len);
        let bound = report.sites.iter().filter(is_bound).count().max(listed);
        let parts = [
            upload.id.map(|id| format!("certificate {id}")),
            is_named.then(|| format!(" for {}", sanitize(&upload.domain))),
            upload.service.as_ref().map(|service| format!(" at {service}")),
            upload.created.map(|created| if created { " (created)" } else { " (replaced)" }.to_owned()),
            (bound > 0).then(|| format!(", bound to {}", count(bound, "site"))),
            (!upload.ok).then(|| "; the response does not confirm it".to_owned()),
        ];
        let sign = if upload.ok { Sign::Ok } else { Sign::Warning };
        Line::new(sign, &"uploaded", parts.into_iter().flatten().collect())
    };
    stored.into_iter().map(line).collect()
}

/// The sites, failures last. Many that share an outcome are counted; the first of those that failed are named.
fn sites(sites: &[SiteReport]) -> Vec<Line> {
    // An upload without a listing says no more about its site than the line of the upload.
    let sites = sites.iter().filter(|site| !(site.id.is_none() && site.outcome == Outcome::Uploaded));
    let mut groups: BTreeMap<(Sign, String, String), Vec<&SiteReport>> = BTreeMap::new();
    for site in sites {
        let detail = site.detail.clone().filter(|_| !site.is_explained).unwrap_or_default();
        groups.entry((sign(site), site.outcome.to_string(), detail)).or_default().push(site);
    }
    let listed = groups.values().filter(|sites| sites.len() <= MAX_NAMED).flatten();
    let width = listed.map(|site| name(site).width()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for ((sign, outcome, detail), sites) in &groups {
        let line = |name: &str, score: String| {
            let parts = [format!("{name:<width$}"), score, detail.clone()];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            Line::new(*sign, outcome, parts.join(GAP))
        };
        if sites.len() > MAX_NAMED {
            let mut line = line(&count(sites.len(), "site"), score(sites));
            if *sign >= Sign::Warning {
                line.notes.push(first_names(sites.iter().map(|site| site.domain.spelled())));
            }
            lines.push(line);
        } else {
            lines.extend(sites.iter().map(|site| line(&name(site), score(&[site]))));
        }
    }
    lines
}

/// The domain, with the service if the run deployed to several accounts.
fn name(site: &SiteReport) -> String {
    let service = site.service.as_ref().map(|service| format!(" at {service}"));
    format!("{}{}", site.domain, service.unwrap_or_default())
}

/// How many edge addresses serve the leaf, of how many.
fn score(sites: &[&SiteReport]) -> String {
    let edges = || sites.iter().filter_map(|site| site.edge);
    let (served, addresses): (usize, usize) =
        (edges().map(|edge| edge.served).sum(), edges().map(|edge| edge.addresses).sum());
    if addresses > 0 { format!("{served}/{addresses}") } else { String::new() }
}

fn sign(site: &SiteReport) -> Sign {
    match &site.outcome {
        // A warning says why it is not verified.
        Outcome::Synced | Outcome::Uploaded if site.is_explained => Sign::Warning,
        Outcome::Served | Outcome::Synced | Outcome::Uploaded => Sign::Ok,
        Outcome::Skipped | Outcome::Superseded => Sign::Skipped,
        _ if site.is_required => Sign::Failed,
        _ => Sign::Skipped,
    }
}

/// What a plan does to each site, what its edge serves now, and the number of sites for each step.
fn planned(steps: &[Step], report: &Deployed) -> [Block; 2] {
    let mut rows: Vec<Line> =
        checked(&report.checks).filter(|line| line.sign == Sign::Failed).into_iter().collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    // Those that have the certificate, by account and record.
    let mut unchanged: BTreeMap<_, Vec<&Domain>> = BTreeMap::new();
    for site in report.sites.iter().filter(|site| matches!(site.outcome, Outcome::Served | Outcome::Synced)) {
        unchanged.entry((site.service.as_deref(), site.cert_id)).or_default().push(&site.domain);
    }
    for ((service, cert_id), sites) in unchanged {
        *counts.entry("unchanged".into()).or_default() += sites.len();
        let record = cert_id.map(|id| format!(" ({id} is this certificate)")).unwrap_or_default();
        let text = format!("{}{record}{}", list(&sites), at(service));
        rows.push(Line::new(Sign::Unchanged, &"unchanged", text));
    }
    for step in steps {
        let (sign, word) = match step.action {
            StepAction::Create | StepAction::Upload => (Sign::Create, step.action.to_string()),
            StepAction::Replace | StepAction::Bind => (Sign::Replace, step.action.to_string()),
            StepAction::Leave if !step.is_blocked => (Sign::Skipped, "skipped".into()),
            StepAction::Leave | StepAction::Guard => (Sign::Warning, "blocked".into()),
        };
        let summary = format!("{}{}", step.summary, at(step.service.as_deref()));
        rows.push(Line { notes: served_now(step, report), ..Line::new(sign, &word, summary) });
        let fate = if step.action.is_change() { format!("to {word}") } else { word };
        // A step without a site counts as one.
        *counts.entry(fate).or_default() += step.sites.len().max(1);
    }
    let last = match nothing_to_do(report) {
        Some(sentence) => sentence.to_owned(),
        None if steps.is_empty() => "nothing to do".to_owned(),
        None => {
            let numbers = FATES.map(|fate| (counts.get(fate).copied().unwrap_or_default(), fate));
            format!("{}; nothing was changed", tally(numbers))
        }
    };
    [Block::Lines(rows), last.into()]
}

/// Names the account, if the run plans for several.
fn at(service: Option<&str>) -> String {
    service.map(|service| format!("; at {service}")).unwrap_or_default()
}

/// What the edges of a step's sites serve now, stated once if it is the same for all.
fn served_now(step: &Step, report: &Deployed) -> Vec<String> {
    let is_of_step = |serving: &&ServingReport| {
        (step.domain == serving.domain || step.sites.contains(&serving.domain))
            && step.service == serving.service
    };
    let serving: Vec<&ServingReport> = report.serving.iter().flatten().filter(is_of_step).collect();
    let mut sentences: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for site in &serving {
        let sentence = match (site.leaf, &site.detail) {
            (ServedLeaf::Current, None) => "this certificate".to_owned(),
            (ServedLeaf::Current, Some(detail)) => format!("this certificate; {detail}"),
            (ServedLeaf::Other, Some(detail)) => detail.clone(),
            (ServedLeaf::Unknown, Some(detail)) => format!("unknown, because {detail}"),
            // It was not observed.
            (ServedLeaf::Other | ServedLeaf::Unknown, None) => continue,
        };
        sentences.entry(sentence).or_default().push(&site.domain);
    }
    let note = |(sentence, domains): (&String, &Vec<&str>)| {
        let is_for_all = domains.len() == serving.len();
        let domains = if is_for_all { String::new() } else { format!("{}: ", sanitize(&list(domains))) };
        format!("now: {domains}{sentence}")
    };
    sentences.iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn bound_sites_of_any_shape_are_counted() {
        let shown = |created, bound_sites: Value| {
            let upload = UploadReport {
                service: None,
                domain: "a.example".into(),
                ok: true,
                id: Some(5),
                created: Some(created),
                not_after: None,
                key_match: Some("unverified".into()),
                bound_sites,
                attempts: 1,
                error: None,
            };
            uploads(&Deployed { uploads: vec![upload], ..Deployed::default() }).remove(0).text
        };
        let rows = [
            (json!([]), ""),
            (json!(null), ""),
            (json!([1, 2]), ", bound to 2 sites"),
            (json!([{"id": 1, "domain": "a.example"}]), ", bound to 1 site"),
        ];
        for (value, expected) in rows {
            assert_eq!(shown(true, value), format!("certificate 5 (created){expected}"));
        }
        assert_eq!(shown(false, json!(["a.example"])), "certificate 5 (replaced), bound to 1 site");
    }
}
