//! Keeps all lineages of the host deployed: finishes what failed, deploys what was renewed, repairs what drifted.
//!
//! A first pass over the states finds the accounts, each of which is listed once. A second one decides: the files show
//! what was renewed, the states what is pending, and the listing what drifted. Only lineages that need it are deployed, on
//! the same path as in `deploy`. Nothing here prints.

mod check;
mod scan;
mod summary;
mod workers;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use time::OffsetDateTime;

use self::check::Check;
use self::scan::{Candidate, Examiner, Reason, Scanned};
use self::summary::LineageResult;
pub(crate) use self::summary::Summary;
use self::workers::{Workers, schedule};
use crate::clock::{self, Deadline};
use crate::context::Context;
use crate::deploy::{AccountSnapshot, ClientCache, incomplete_listing, left_behind};
use crate::error::{CommandError, Diagnostic as _, ErrorKind, Result};
use crate::inventory::{Inventory, Member};
use crate::kubernetes::{self, Selection};
use crate::plan::IndexedListing;
use crate::progress::{Phase, Progress};
use crate::runtime::Runtime;
use crate::settings::{Layer, Layers, LineageEntry, Settings, SettingsError};
use crate::source::Source;
use crate::state::{self, DamagedFile, Deployments, Shard, Store};
use crate::trust::TrustStores;
use crate::{file, text};

/// Options of a run.
pub(crate) struct SyncOptions<'a> {
    pub(crate) flags: &'a Layer,
    /// Upper limit of the random delay before the start.
    pub(crate) splay: Duration,
    /// The lineages to process; `None` means all.
    pub(crate) shard: Option<Shard>,
    /// The secrets of an API server to process as well.
    pub(crate) secrets: Option<Selection>,
}

/// Processes all lineages of the host.
pub(crate) fn run(options: &SyncOptions<'_>, context: &Context, progress: &Progress) -> Result<Summary> {
    let configuration = context.configuration();
    let layers = Layers::new(options.flags, &context.env, configuration);
    layers.require_valid()?;
    let state_dir = layers.state_dir().ok_or_else(SettingsError::no_state_dir)?;
    let store = Store::open(&state_dir)?;
    store.probe()?;
    std::thread::sleep(options.splay.mul_f64(fastrand::f64()));

    let examiner = Examiner::new(&layers, store.clone());
    let mut sync = Sync { shard: options.shard, ..Sync::default() };
    let mut inventory = Inventory::gather(Some(&store), configuration)?;
    if let Some(selection) = &options.secrets {
        let is_own = |source: &Source| sync.is_own(&state::lineage_name(source));
        let found = kubernetes::find(selection, &context.env, Deadline::after(layers.timeout()), is_own)?;
        found.lineages.into_iter().for_each(|source| inventory.add(source));
        // A shard may have none.
        if inventory.len() == 0 && found.failed.is_empty() && options.shard.is_none() {
            sync.summary.warnings.push("no secret of type kubernetes.io/tls was found".to_owned());
        }
        for (namespace, error) in found.failed {
            sync.summary.add_failed(&namespace, error);
        }
    } else if inventory.len() == 0 {
        sync.summary.warnings.push(format!(
            "no lineage was ever deployed ({} records none), and no [[lineage]] is configured",
            text::path(&state_dir)
        ));
    }
    let mut errors = Vec::new();
    inventory.visit(|member| sync.scan(member, &examiner), |error| errors.push(error));
    errors.retain(|error| error.damaged().is_none_or(|file| sync.is_own(&file.lineage)));
    store.remove_unclaimed(sync.deployed_sites);
    let mut summary = Runtime::new()?.block_on(sync.deploy(&examiner, progress));
    for error in errors {
        match error.damaged() {
            None => {
                let message = format!("{error}; its lineage was not checked");
                let failure = CommandError::new(ErrorKind::Config, message);
                summary.fail(1, error.diagnose().advice().into_iter().fold(failure, CommandError::hint));
            }
            // It was deployed, because it is configured.
            Some(DamagedFile { lineage, path, .. }) if store.has(lineage) => {
                let path = text::path(path);
                let warning =
                    format!("{path} is an invalid state file; {lineage} was treated as a new lineage");
                summary.warnings.push(warning);
            }
            Some(file) if file.is_pending => summary.fail(1, damaged(file)),
            Some(_) => summary.warnings.push(error.to_string()),
        }
    }
    Ok(summary)
}

/// Processes one lineage for one account; `None` if it has no readable state.
pub(crate) fn run_one(
    (source, entry): (&Source, Option<&LineageEntry>),
    context: &Context,
    progress: &Progress,
) -> Result<Option<Summary>> {
    let (configuration, flags) = (context.configuration(), Layer::default());
    let layers = Layers::new(&flags, &context.env, configuration);
    let name = state::lineage_name(source);
    let Some(state_dir) = layers.state_dir().filter(|directory| directory.is_dir()) else { return Ok(None) };
    let store = Store::at(&state_dir);
    let Some(state) = store.read(&name).ok().flatten() else { return Ok(None) };
    let (mut others, _) = store.read_all();
    others.retain(|(other, _)| *other != name);
    let examiner = Examiner::new(&layers, store);
    let mut sync = Sync { deployments: Deployments::of(&others), ..Sync::default() };
    let member = Member { name, source: Ok(source.clone()), entry, state: Some(state), is_unclaimed: false };
    sync.scan(member, &examiner);
    Ok(Some(Runtime::new()?.block_on(sync.deploy(&examiner, progress))))
}

fn damaged(file: &DamagedFile) -> CommandError {
    let (path, lineage) = (text::path(&file.path), &file.lineage);
    let message = format!("{path} is an invalid state file, so {lineage} {}", file.consequence());
    CommandError::new(ErrorKind::Config, message).hint(format!(
        "deploy the lineage again, for example with `edgecert deploy --lineage DIR`, or run `edgecert status --forget {lineage}`"
    ))
}

fn expired(lineage: &Candidate<'_>, at: OffsetDateTime) -> CommandError {
    let (at, cert) = (text::rfc3339(at), text::path(&lineage.source.files.cert));
    let message = format!("the deployed certificate expired at {at}, and {cert} holds no later one");
    CommandError::new(ErrorKind::Refused, message).class("expired").hint(format!(
        "renew it with its ACME client, or run `edgecert status --forget {}` if it is no longer needed",
        lineage.name
    ))
}

/// The lineages that the first pass finds, and what is reported so far.
#[derive(Default)]
struct Sync<'a> {
    /// The part of the lineages to process; `None` means all.
    shard: Option<Shard>,
    /// The lineages of each account.
    accounts: Vec<(Arc<Settings>, Vec<Scanned<'a>>)>,
    /// The deployments of all lineages, in any shard.
    deployments: Deployments,
    /// The number of sites that lineages were deployed to.
    deployed_sites: usize,
    summary: Summary,
}

impl<'a> Sync<'a> {
    /// Whether a lineage belongs to the shard.
    fn is_own(&self, name: &str) -> bool {
        self.shard.is_none_or(|shard| shard.contains(name))
    }

    fn scan(&mut self, member: Member<'a>, examiner: &Examiner<'a>) {
        let is_own = self.is_own(&member.name);
        if let Some(state) = &member.state {
            self.deployments.add(&member.name, state);
            if let Some(service) = state.sites_service() {
                self.deployed_sites += state.sites.len();
                let hosts = state.sites.iter().map(|site| site.domain.host());
                if is_own && let Err(error) = examiner.store.claim(service, hosts, &member.name) {
                    log::debug!("{error}");
                }
            }
        }
        // A secret that was not listed may be in a namespace that is not this run's.
        if !is_own
            || member.source.as_ref().is_ok_and(|source| file::is_missing_in_memory(&source.files.cert))
        {
            return;
        }
        let name = member.name.clone();
        if member.is_unclaimed {
            return self.summary.warnings.push(format!(
                "{name} is left alone, because no [[lineage]] entry is for its account; to forget it, run `edgecert status --forget {name}`"
            ));
        }
        match examiner.scan(member) {
            Ok(Some((settings, lineage))) => self.add(settings, lineage),
            Ok(None) => self.summary.results.push(LineageResult::Gone),
            Err(error) => self.summary.add_failed(&name, error),
        }
    }

    /// Adds a lineage to its account, which is listed within the longest timeout of its lineages.
    fn add(&mut self, settings: Arc<Settings>, lineage: Scanned<'a>) {
        match self.accounts.iter_mut().find(|(other, _)| other.is_same_service(&settings)) {
            None => self.accounts.push((settings, vec![lineage])),
            Some((known, lineages)) => {
                if settings.timeout > known.timeout {
                    *known = settings;
                }
                lineages.push(lineage);
            }
        }
    }

    /// Lists each account once, all at the same time, and deploys or checks each lineage as needed.
    async fn deploy(self, examiner: &Examiner<'a>, progress: &Progress) -> Summary {
        progress(Phase::Reading);
        let stores = Arc::default();
        let Self { accounts, deployments, mut summary, .. } = self;
        let lists = accounts.iter().map(|(settings, _)| list_account(settings, &deployments, &stores));
        let lists = join_all(lists).await.into_iter().zip(accounts);
        let lists = lists.filter_map(|(account, (_, lineages))| {
            let account = account.map_err(|error| summary.add_unreached(&error, lineages.len())).ok()?;
            Some((account, lineages))
        });
        let (listed, scanned): (Vec<_>, Vec<_>) = lists.unzip();
        let (mut independent, mut conflicting) = (Vec::new(), Vec::new());
        for (account, lineages) in listed.iter().zip(scanned) {
            let AccountSnapshot { listing, deployments } = &account.snapshot;
            for gap in listing.listing().gaps() {
                // If it is known to hide nothing but certain domains, the lineages for these report it.
                if gap.may_hide(|_| false) {
                    summary.fail(0, incomplete_listing(gap));
                } else {
                    summary.warnings.push(gap.to_string());
                }
            }
            summary.warnings.extend(left_behind(listing.listing(), deployments, clock::now()));
            let now = clock::now();
            let (mut due, mut checks) = (Vec::new(), Vec::new());
            for lineage in lineages {
                let name = lineage.name.clone();
                let candidate = examiner.examine(lineage, &account.settings);
                match candidate.map(|lineage| Some(check::decide(lineage?, listing, deployments, now))) {
                    // One that may hide any domain was reported above, once for the account.
                    Ok(Some(Check { gap: Some(gap), .. })) if !gap.may_hide(|_| false) => {
                        summary.add_failed(&name, incomplete_listing(gap));
                    }
                    Ok(Some(check)) if check.is_settled => summary.results.push(check.result()),
                    Ok(check) => checks.extend(check),
                    Err(error) => summary.add_failed(&name, error),
                }
            }
            let number = checks.len();
            let checked = check::run(checks, account, examiner, now).await;
            let checked = checked.map_err(|error| summary.add_unreached(&error, number)).unwrap_or_default();
            for (check, report) in checked {
                let (result, lineage) = (check.result(), check.lineage);
                match lineage.reason {
                    Some(Reason::Expired(at)) => summary.add_failed(&lineage.name, expired(&lineage, at)),
                    Some(_) => due.push(lineage),
                    None => summary.add(&lineage.name, result, None, report),
                }
            }
            let (first, later) = schedule(due, listing);
            account.clients.has_several.set(first.len() > 1);
            independent.extend(first.into_iter().map(|lineage| (account, lineage)));
            conflicting.extend(later.into_iter().map(|lineage| (account, lineage)));
        }
        let (mut done, total) = (0, independent.len() + conflicting.len());
        progress(Phase::Lineages { done, total });
        // Several deployments at once have no common phase.
        let progress_of_each: &Progress = if total == 1 { progress } else { &|_| {} };
        let workers = Workers { examiner, progress: progress_of_each };
        let mut on_done = |Candidate { name, reason, .. }: Candidate<'_>, result, report| {
            done += 1;
            progress(Phase::Lineages { done, total });
            if let Some(result) = result {
                summary.add(&name, result, reason.filter(|_| result != LineageResult::Gone), report);
            }
        };
        let mut later = workers.run(independent, true, &mut on_done).await;
        for account in &listed {
            account.clients.has_several.set(false);
        }
        later.extend(conflicting);
        workers.run(later, false, &mut on_done).await;
        summary
    }
}

/// An account, reached and listed once for all its lineages.
struct ListedAccount {
    settings: Arc<Settings>,
    clients: ClientCache,
    snapshot: AccountSnapshot,
}

async fn list_account(
    settings: &Arc<Settings>,
    deployments: &Deployments,
    stores: &Arc<TrustStores>,
) -> Result<ListedAccount> {
    let deadline = Deadline::after(settings.timeout);
    let clients = ClientCache::for_many(Arc::clone(stores));
    let listing = Rc::new(IndexedListing::new(clients.listing(settings, deadline).await?));
    let deployments = deployments.of_service(&settings.base_url.to_string());
    let snapshot = AccountSnapshot { listing, deployments };
    Ok(ListedAccount { settings: Arc::clone(settings), clients, snapshot })
}

#[cfg(test)]
pub(crate) mod histories;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_has_longest_timeout_of_its_lineages() {
        let mut sync = Sync::default();
        for seconds in [1, 90, 30] {
            let settings = Settings { timeout: Duration::from_secs(seconds), ..Settings::example() };
            let (name, source) = (seconds.to_string(), Source::of_file("/c"));
            sync.add(Arc::new(settings), Scanned { name, source, entry: None, begun: None });
        }
        let accounts = sync.accounts.iter();
        let accounts = accounts.map(|(settings, lineages)| (settings.timeout.as_secs(), lineages.len()));
        assert_eq!(accounts.collect::<Vec<_>>(), [(90, 3)]);
    }
}
