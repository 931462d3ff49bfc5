//! `edgecert sync`: finishes what failed, deploys what changed, repairs what drifted.
//!
//! Every lineage is looked at on disk; one listing for all of them tells what is not as it was left; only what has to be
//! deployed is, on the same path as `deploy`.

mod drift;
mod scan;
mod summary;
mod workers;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use self::drift::AccountIndex;
use self::scan::{Found, Lineage, Scan};
use self::summary::Summary;
use self::workers::{DeployResult, Job, Service, Workers};
use crate::api::ClientConfig;
use crate::cli::DeployArgs;
use crate::clock::Deadline;
use crate::context::Context;
use crate::deploy::ClientCache;
use crate::error::{AdHocError, CommandError, ErrorKind, STATE_HINT};
use crate::inventory::{self, Inventory, Member, Shard};
use crate::report::{CommandReport, DeployReport};
use crate::settings::{Layer, Layers, Settings};
use crate::source::Source;
use crate::state::{self, Store};
use crate::text;

/// Options of one `sync`.
pub(crate) struct SyncOptions<'a> {
    pub(crate) flags: &'a Layer,
    /// Upper limit of the random delay before the start.
    pub(crate) splay: Duration,
    /// `None`: all lineages.
    pub(crate) shard: Option<Shard>,
}

/// Brings all lineages to the state that they should be in.
pub(crate) fn run(
    options: &SyncOptions<'_>,
    context: &Context,
    answer: &mut CommandReport,
) -> Result<(), CommandError> {
    let file = context.configuration()?;
    let layers = Layers::new(options.flags, &context.env, file);
    let (store, directory) = memory(layers.state_dir())?;
    std::thread::sleep(options.splay.mul_f64(fastrand::f64()));

    let mut scan = Scan::new(&layers, options.shard);
    let (mut summary, mut lineages) = (Summary::default(), Vec::new());
    let inventory = Inventory::gather(Some(&store), file)?;
    let count = inventory.len();
    let mut strange = Vec::new();
    inventory.visit(|member| sort(scan.look(member), &mut lineages, &mut summary), |note| strange.push(note));
    for strange in strange {
        if strange.is_invalid() {
            answer.warnings.push(strange.to_string());
        } else {
            summary.unread(&strange.to_string());
        }
    }
    if count == 0 {
        answer.warnings.push(nothing_to_do(&directory));
    }
    let sync = Sync { directory: &directory, answer };
    sync.work(&lineages, &scan, &mut summary);
    summary.report(answer, context.style);
    Ok(())
}

/// The same for one lineage, which its client says is unchanged. What is not remembered is deployed.
pub(crate) fn tick(
    source: &Source,
    context: &Context,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    let file = context.configuration()?;
    let args = DeployArgs::default();
    let layers = Layers::new(&args.settings.layer, &context.env, file);
    let name = state::lineage_name(&source.stable_path());
    let directory = layers.state_dir().filter(|directory| directory.is_dir());
    let memory = directory.as_deref().and_then(|directory| Store::at(directory).read(&name).ok()?);
    let (Some(directory), Some(memory)) = (directory, memory) else {
        return crate::cmd::deploy::deploy(&args, source, context, report);
    };
    let entry = inventory::entry_of(file, source);
    let member = Member { name, source: Ok(source.clone()), entry, state: Some(memory) };
    let mut scan = Scan::new(&layers, None);
    let (mut summary, mut lineages) = (Summary::default(), Vec::new());
    sort(scan.look(member), &mut lineages, &mut summary);
    let mut answer = CommandReport::new("sync");
    let sync = Sync { directory: &directory, answer: &mut answer };
    sync.work(&lineages, &scan, &mut summary);
    report.warnings.extend(std::mem::take(&mut answer.warnings));
    summary.report_one(report);
    Ok(())
}

/// The directory of what is remembered, which has to be writable: without it this could not end.
fn memory(directory: Option<PathBuf>) -> Result<(Store, PathBuf), CommandError> {
    let directory = directory.ok_or_else(|| {
        let message = "no state directory is set, and there is no home directory";
        AdHocError::new(ErrorKind::Config, message, STATE_HINT)
    })?;
    let store = Store::open(&directory)?;
    store.probe()?;
    Ok((store, directory))
}

fn nothing_to_do(directory: &Path) -> String {
    format!(
        "nothing was ever deployed (nothing is remembered in {}), and no [[lineage]] is configured",
        text::path(directory)
    )
}

fn sort(found: Option<Found>, lineages: &mut Vec<Lineage>, summary: &mut Summary) {
    match found {
        Some(Found::Lineage(lineage)) => lineages.push(*lineage),
        Some(Found::Gone) => summary.gone_before(),
        Some(Found::Failed(name, error)) => summary.failed(&name, error),
        None => {}
    }
}

struct Sync<'a> {
    directory: &'a Path,
    answer: &'a mut CommandReport,
}

impl Sync<'_> {
    /// Lists each service once, and deploys what is not as it should be.
    fn work(self, lineages: &[Lineage], scan: &Scan<'_>, summary: &mut Summary) {
        let mut services: Vec<Service> = Vec::new();
        let (mut independent, mut conflicting) = (Vec::new(), Vec::new());
        for (settings, members) in by_service(lineages) {
            let service = match reach(&settings, scan) {
                Ok(service) => service,
                Err(error) => {
                    summary.unreached(&error, &members);
                    continue;
                }
            };
            self.answer.warnings.extend(service.listing.warnings.iter().cloned());
            let (first, second) = jobs(&members, &AccountIndex::new(&service.listing), services.len());
            summary.unchanged(members.len() - first.len() - second.len());
            services.push(service);
            independent.extend(first);
            conflicting.extend(second);
        }
        let workers = Workers { services: &services, directory: self.directory };
        let progress = progress(independent.len() + conflicting.len());
        let mut tell = |job: &Job<'_>, ended: DeployResult| {
            progress.inc(1);
            match ended {
                DeployResult::Deployed(report) => summary.deployed(&job.lineage.name, &job.reason, report),
                DeployResult::Gone(report) => summary.gone(&job.lineage.name, report),
            }
        };
        workers.deploy(&independent, &mut tell);
        workers.deploy_in_turn(&conflicting, &mut tell);
        progress.finish_and_clear();
    }
}

/// The lineages of each service and account.
fn by_service(lineages: &[Lineage]) -> Vec<(Arc<Settings>, Vec<&Lineage>)> {
    let mut services: Vec<(Arc<Settings>, Vec<&Lineage>)> = Vec::new();
    for lineage in lineages {
        let own = &lineage.settings;
        match services.iter_mut().find(|(other, _)| Arc::ptr_eq(other, own) || other.is_same_service(own)) {
            Some((_, members)) => members.push(lineage),
            None => services.push((Arc::clone(own), vec![lineage])),
        }
    }
    services
}

fn reach(settings: &Settings, scan: &Scan<'_>) -> Result<Service, CommandError> {
    let access = Arc::new(ClientConfig::new(settings)?);
    let mut clients = ClientCache::new()?;
    let listing = clients.list(&access, settings, Deadline::after(settings.timeout));
    let issued = scan.issued.of_service(&settings.base_url.to_string());
    Ok(Service { access, listing: listing?, issued })
}

/// What has to be deployed: first the lineages that share nothing, then those of which one may change what another finds.
fn jobs<'a>(
    members: &[&'a Lineage],
    index: &AccountIndex<'_>,
    service: usize,
) -> (Vec<Job<'a>>, Vec<Job<'a>>) {
    let (mut independent, mut conflicting, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
    for &lineage in members {
        let Some(reason) = lineage.reason.clone().or_else(|| index.drift(lineage)) else { continue };
        let resources = index.resources(lineage);
        let job = Job { lineage, reason, service };
        if resources.is_disjoint(&taken) {
            independent.push(job);
        } else {
            conflicting.push(job);
        }
        taken.extend(resources);
    }
    (independent, conflicting)
}

/// A bar on a terminal; nothing elsewhere.
fn progress(lineages: usize) -> ProgressBar {
    const SHORT: usize = 2;
    if lineages < SHORT {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(lineages as u64);
    let style = ProgressStyle::with_template("{pos} of {len} lineages {wide_bar} {eta}");
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}
