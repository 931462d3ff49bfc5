//! `edgecert doctor`: finds what is wrong with the set-up before the first renewal does.
//!
//! The facts are gathered here, in order; what they mean is said by a file for each subject. A check that fails stops no
//! other one.

mod clients;
mod coverage;
mod finding;
mod hook_detection;
mod hooks;
mod host;
mod lineages;
mod service;
mod setup;
mod timer;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use time::OffsetDateTime;

use self::coverage::Coverage;
use self::finding::{Finding, Subject};
use self::host::Host;
use self::lineages::{Leaf, Lineage, Order};
use self::service::{Account, Asked};
use crate::api::Site;
use crate::bundle::{self, Files};
use crate::cli::DoctorArgs;
use crate::clock;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::inventory::Inventory;
use crate::report::CommandReport;
use crate::settings::{Configuration, Layers, Settings};
use crate::source::Source;
use crate::state::{IssueDates, Store};

/// Looks at everything and ends with the most severe of what is wrong.
pub(crate) fn run(args: &DoctorArgs, context: &Context, report: &mut CommandReport) {
    let host = Host { root: "/".into(), env: &context.env };
    let findings = look(args, context, &host, clock::now(), report);
    report.body.text = findings.iter().map(|finding| finding.line(context.style)).collect();
    let most_severe = ErrorKind::most_severe(findings.iter().filter_map(|finding| finding.kind));
    report.exit_with(most_severe.map_or(0, ErrorKind::exit_code));
    report.body.set("findings", findings);
}

fn look(
    args: &DoctorArgs,
    context: &Context,
    host: &Host<'_>,
    now: OffsetDateTime,
    report: &mut CommandReport,
) -> Vec<Finding> {
    let none = Configuration::default();
    let (file, understood) = match context.configuration() {
        Ok(file) => (file, Ok(())),
        Err(error) => (&none, Err(error)),
    };
    let layers = Layers::new(&args.settings.layer, host.env, file);
    let inspection = layers.inspect();
    let (settings, has_key) = (layers.inspected_settings(&inspection), inspection.api_key.is_ok());
    let mut findings =
        setup::settings(understood, inspection.unusable, inspection.base_url, inspection.api_key);
    findings.extend(setup::state(inspection.state_dir.as_deref()));

    let asked = settings.as_ref().and_then(|settings| ask(settings, &mut findings));
    if let Some(asked) = &asked {
        findings.extend(service::findings(asked, has_key));
        report.warnings.extend(asked.notes.iter().cloned());
    }
    let store = inspection.state_dir.as_deref().filter(|directory| directory.is_dir()).map(Store::at);
    let mut past = IssueDates::default();
    let inventory = Inventory::gather(store.as_ref(), file).unwrap_or_else(|unreadable| {
        findings.push(Finding::from_error(Subject::State, unreadable));
        Inventory::configured(file)
    });
    let (known, lost) = lineages::known(inventory, &layers, &mut past, |note| {
        report.warnings.push(note.to_string());
    });
    findings.extend(lost);
    let mut known: Vec<Lineage> = known
        .into_iter()
        .map(|(source, order)| {
            let (lineage, found) = lineages::look(source, order, now);
            findings.extend(found);
            lineage
        })
        .collect();
    known.sort_by_key(Lineage::title);
    let readable = known.iter().filter(|lineage| lineage.leaf.is_some());
    findings.extend(readable.map(|lineage| hooks::of_known(lineage, host)));
    if let Some(Asked { account: Ok(account), .. }) = &asked {
        let issued = settings.map(|settings| past.of_service(&settings.base_url.to_string()));
        findings.extend(compare(account, &known, &issued.unwrap_or_default(), host));
    }
    findings.push(timer::look(host));
    findings
}

fn ask(settings: &Settings, findings: &mut Vec<Finding>) -> Option<Asked> {
    match service::ask(settings) {
        Ok(asked) => Some(asked),
        Err(error) => {
            findings.push(Finding::from_error(Subject::Tls, error));
            None
        }
    }
}

/// Lineages against sites, those included that clients keep and edgecert does not know.
fn compare(
    account: &Account,
    known: &[Lineage],
    issued: &HashMap<u64, OffsetDateTime>,
    host: &Host<'_>,
) -> Vec<Finding> {
    let (found, mut findings) = clients::find(host);
    let sites = &account.sites.items;
    // Looked up once: there may be thousands of either.
    let places: HashSet<PathBuf> = known.iter().map(|lineage| lineage.source.real_path()).collect();
    let strangers: Vec<Lineage> = found
        .into_iter()
        .filter(|source| !places.contains(&source.real_path()))
        .filter_map(stranger)
        .collect();
    let covered = |lineage: &Lineage| -> Vec<&Site> {
        sites.iter().filter(|site| lineage.covers(&site.domain)).collect()
    };
    let strangers = strangers.iter().map(|lineage| (lineage, covered(lineage)));
    let strangers: Vec<(&Lineage, Vec<&Site>)> = strangers.filter(|(_, sites)| !sites.is_empty()).collect();
    let (attached, idle): (Vec<&Lineage>, Vec<&Lineage>) =
        strangers.iter().map(|(lineage, _)| *lineage).partition(|lineage| hooks::is_attached(lineage, host));
    for (lineage, covered) in &strangers {
        let is_reached = |site: &Site| {
            known.iter().chain(attached.iter().copied()).any(|other| other.reaches(&site.domain))
        };
        let alone = covered.iter().filter(|site| !is_reached(site)).count();
        findings.push(hooks::of_stranger(lineage, covered, alone, host));
    }
    findings.extend(Coverage { account, known, attached, idle, issued }.findings());
    findings
}

/// A lineage that edgecert does not know, if it can be read.
fn stranger(source: Source) -> Option<Lineage> {
    let certificate = bundle::load(&Files { key: None, ..source.files.clone() }).ok()?;
    let leaf = Leaf::of(certificate.chain.as_ref().ok()?);
    Some(Lineage { source, order: Order::default(), leaf: Some(leaf) })
}
