//! Deploys lineages concurrently: a few threads, each with a connection of its own, within one rate limit per account.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::error::SyncError;
use super::scan::{Candidate, Reason};
use super::schedule::Job;
use crate::api::{ClientConfig, MAX_CONCURRENT_REQUESTS};
use crate::bundle;
use crate::clock::Deadline;
use crate::deploy::{self, AccountSnapshot, ClientCache, Deployment, Journal, recorded_options};
use crate::hint::{Command, Place};
use crate::progress::Progress;
use crate::report::{DeployReport, SourceReport};
use crate::state::Origin;
use crate::trust::TrustStores;

/// An account, reached and listed once for all its lineages.
pub(super) struct ListedAccount {
    pub(super) config: Arc<ClientConfig>,
    pub(super) snapshot: AccountSnapshot,
}

/// The result of a job.
pub(super) enum JobResult {
    Deployed(DeployReport),
    /// The files of the lineage are missing.
    FilesMissing(DeployReport),
}

/// What all workers share.
pub(super) struct Workers<'a> {
    pub(super) accounts: &'a [ListedAccount],
    pub(super) state_dir: &'a Path,
    pub(super) stores: &'a Arc<TrustStores>,
    /// Progress of each deployment.
    pub(super) progress: &'a dyn Progress,
}

impl Workers<'_> {
    /// Deploys lineages that share no resource concurrently, from the listing of their account.
    pub(super) fn deploy_independent(&self, jobs: &[Job<'_>], on_done: impl FnMut(&Job<'_>, JobResult)) {
        self.run(jobs, MAX_CONCURRENT_REQUESTS, true, on_done);
    }

    /// Deploys lineages one by one, each with a listing of its own: one may change what the next one finds.
    pub(super) fn deploy_conflicting(&self, jobs: &[Job<'_>], on_done: impl FnMut(&Job<'_>, JobResult)) {
        self.run(jobs, 1, false, on_done);
    }

    fn run(
        &self,
        jobs: &[Job<'_>],
        max_threads: usize,
        use_snapshot: bool,
        mut on_done: impl FnMut(&Job<'_>, JobResult),
    ) {
        let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
        thread::scope(|scope| {
            for _ in 0..max_threads.min(jobs.len()) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    let mut worker = Worker { shared: self, use_snapshot, clients: HashMap::new() };
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let _ = sender.send((job, worker.run(job)));
                    }
                });
            }
            drop(sender);
            for (job, result) in receiver {
                on_done(job, result);
            }
        });
    }
}

/// One thread.
struct Worker<'a> {
    shared: &'a Workers<'a>,
    /// Whether to plan from the listing of the account rather than from a new one.
    use_snapshot: bool,
    /// By account.
    clients: HashMap<usize, ClientCache>,
}

impl Worker<'_> {
    fn run(&mut self, job: &Job<'_>) -> JobResult {
        let lineage = job.lineage;
        let mut report = DeployReport::new("deploy");
        report.body.source = Some(SourceReport::new(&lineage.source));
        report.set_place(Place {
            command: Command::Sync,
            is_recorded: true,
            lineage: Some(lineage.source.flags()),
            has_domain_flag: false,
        });
        let deadline = Deadline::after(lineage.settings.timeout);
        let mut journal = match open_journal(lineage, self.shared.state_dir, deadline, &mut report) {
            Ok(journal) => journal,
            Err(error) => {
                report.fail(error);
                return JobResult::Deployed(report);
            }
        };
        if let Some(error) = missing_files(job, deadline) {
            journal.mark_missing(&mut report);
            report.fail(error);
            return JobResult::FilesMissing(report);
        }
        let result = self.deploy(job, deadline, &mut journal, &mut report);
        journal.finish(result, &mut report);
        if let Some(error) = journal.take_write_error() {
            report.fail(error);
        }
        JobResult::Deployed(report)
    }

    fn deploy(
        &mut self,
        job: &Job<'_>,
        deadline: Deadline,
        journal: &mut Journal,
        report: &mut DeployReport,
    ) -> Result<(), deploy::DeployError> {
        let lineage = job.lineage;
        let Some(account) = self.shared.accounts.get(job.account) else { return Ok(()) };
        let clients = match self.clients.entry(job.account) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (config, stores) = (Arc::clone(&account.config), Arc::clone(self.shared.stores));
                new.insert(ClientCache::with_config(config, stores)?)
            }
        };
        // Without a record of this deployment the next `sync` would not finish it.
        if let Some(error) = journal.take_write_error() {
            return Err(deploy::DeployError::NotRecorded(error));
        }
        // The client may have switched the files since the scan.
        let source = lineage.source.refresh();
        let deployment = Deployment {
            source: &source,
            settings: &lineage.settings,
            domains: &lineage.domains,
            guards: lineage.guards,
            only_leaf: lineage.only_leaf.as_deref(),
            upload_only: false,
            force: false,
            dry_run: false,
            account: self.use_snapshot.then_some(&account.snapshot),
            deadline,
            progress: self.shared.progress,
        };
        deployment.run(journal, clients, report)
    }
}

/// Locks a lineage and reads its state, unless another run has begun since the scan and must not be overwritten.
pub(super) fn open_journal(
    lineage: &Candidate,
    state_dir: &Path,
    deadline: Deadline,
    report: &mut DeployReport,
) -> Result<Journal, deploy::DeployError> {
    let (settings, overrides) = (Some(lineage.settings.as_ref()), lineage.overrides.clone());
    let options = recorded_options(settings, overrides, lineage.guards, &lineage.domains);
    let options = (options, Origin::State);
    let mut journal = Journal::open(&lineage.source, options, Some(state_dir), deadline, report)?;
    journal.compare_with_scan(lineage.begun)?;
    Ok(journal)
}

/// Reads files again that were missing in the scan, because the client may have been replacing them. The error if they
/// are still missing.
fn missing_files(job: &Job<'_>, deadline: Deadline) -> Option<SyncError> {
    if job.reason != Reason::FilesMissing {
        return None;
    }
    let file = bundle::load(&job.lineage.source.refresh().files, deadline).err()?;
    file.is_missing().then(|| SyncError::FilesMissing { lineage: job.lineage.name.clone(), file })
}
