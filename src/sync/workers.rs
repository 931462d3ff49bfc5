//! Deploys lineages next to each other: a few threads, each with a connection of its own, at the limiter that the service
//! allows all of them together.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use time::OffsetDateTime;

use super::scan::{Lineage, Reason};
use crate::api::{ClientConfig, Listing, MAX_CONCURRENT_REQUESTS};
use crate::bundle;
use crate::clock::Deadline;
use crate::deploy::journal::{self, Journal, Past};
use crate::deploy::{ClientCache, Deployment};
use crate::error::{AdHocError, CommandError, ErrorKind, RETRY_HINT};
use crate::file::ReadError;
use crate::report::{DeployReport, SourceReport};
use crate::text;

/// A lineage to be deployed.
pub(super) struct Job<'a> {
    pub(super) lineage: &'a Lineage,
    pub(super) reason: Reason,
    /// Which of the services it is for.
    pub(super) service: usize,
}

/// A service, as it was reached and listed once for all lineages.
pub(super) struct Service {
    pub(super) access: Arc<ClientConfig>,
    pub(super) listing: Listing,
    pub(super) issued: HashMap<u64, OffsetDateTime>,
}

/// What became of a lineage.
pub(super) enum DeployResult {
    Deployed(DeployReport),
    /// Its files are gone.
    Gone(DeployReport),
}

/// What all of them share.
pub(super) struct Workers<'a> {
    pub(super) services: &'a [Service],
    pub(super) directory: &'a Path,
}

impl Workers<'_> {
    /// Deploys all of them; those that share nothing at once, with the listing that is known.
    pub(super) fn deploy(&self, jobs: &[Job<'_>], ended: impl FnMut(&Job<'_>, DeployResult)) {
        self.spread(jobs, MAX_CONCURRENT_REQUESTS, true, ended);
    }

    /// Deploys one after the other, because each may change what the next one finds.
    pub(super) fn deploy_in_turn(&self, jobs: &[Job<'_>], ended: impl FnMut(&Job<'_>, DeployResult)) {
        self.spread(jobs, 1, false, ended);
    }

    fn spread(
        &self,
        jobs: &[Job<'_>],
        most: usize,
        shared: bool,
        mut ended: impl FnMut(&Job<'_>, DeployResult),
    ) {
        let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
        thread::scope(|scope| {
            for _ in 0..most.min(jobs.len()) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    let mut clients = HashMap::new();
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(place) else { break };
                        let _ = sender.send((job, self.one(job, shared, &mut clients)));
                    }
                });
            }
            drop(sender);
            for (job, end) in receiver {
                ended(job, end);
            }
        });
    }

    fn one(&self, job: &Job<'_>, shared: bool, clients: &mut HashMap<usize, ClientCache>) -> DeployResult {
        let mut report = DeployReport::new("deploy");
        report.body.source = Some(SourceReport::new(&job.lineage.source));
        let lineage = job.lineage;
        let order =
            journal::order(Some(&lineage.settings), lineage.asked.clone(), lineage.guards, &lineage.domains);
        let deadline = Deadline::after(lineage.settings.timeout);
        let opened = Journal::open(&lineage.source, order, Some(self.directory), deadline, &mut report);
        let mut journal = match opened.map(|journal| journal.since(lineage.begun)) {
            Ok(Ok(journal)) => journal,
            Ok(Err(superseded)) => {
                report.fail(AdHocError::new(ErrorKind::Temporary, superseded.to_string(), RETRY_HINT));
                return DeployResult::Deployed(report);
            }
            Err(held) => {
                report.fail(held);
                return DeployResult::Deployed(report);
            }
        };
        if job.reason == Reason::Gone
            && let Err(unreadable) = bundle::load(&lineage.source.refresh().files)
            && unreadable.is_missing()
        {
            journal.mark_missing(&mut report);
            report.fail(gone(&unreadable, &lineage.name));
            return DeployResult::Gone(report);
        }
        let result = self.carry_out(job, shared, deadline, &mut journal, clients, &mut report);
        report.record(result);
        journal.finish(&mut report);
        if let Some(unwritable) = journal.unwritten() {
            report.fail(unwritable.clone());
        }
        DeployResult::Deployed(report)
    }

    fn carry_out(
        &self,
        job: &Job<'_>,
        shared: bool,
        deadline: Deadline,
        journal: &mut Journal,
        clients: &mut HashMap<usize, ClientCache>,
        report: &mut DeployReport,
    ) -> Result<(), CommandError> {
        let lineage = job.lineage;
        let Some(service) = self.services.get(job.service) else { return Ok(()) };
        let clients = match clients.entry(job.service) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(ClientCache::new()?),
        };
        if let Some(unwritable) = journal.unwritten() {
            return Err(unwritable.clone().into());
        }
        // It may have been a long way to this moment.
        let source = lineage.source.refresh();
        let task = Deployment {
            source: &source,
            settings: &lineage.settings,
            domains: &lineage.domains,
            guards: &lineage.guards,
            upload_only: false,
            dry_run: false,
            listing: shared.then_some(&service.listing),
            deadline,
        };
        let past = if shared { Past::Known(&service.issued) } else { Past::Unknown };
        task.run(journal, past, clients, &mut || Ok(Arc::clone(&service.access)), report)
    }
}

fn gone(unreadable: &ReadError, name: &str) -> AdHocError {
    let message = format!(
        "{name}: the files of the lineage are gone ({}: {}); what is deployed stays as it is",
        text::path(&unreadable.path),
        unreadable.reason
    );
    let hint = format!("this is said once; `edgecert status --forget {name}` forgets the lineage");
    AdHocError::new(ErrorKind::NoInput, message, hint)
}
