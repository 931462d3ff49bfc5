//! Deploys lineages next to each other: a few threads, each with a connection of its own, at the pace that the service
//! allows all of them together.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use time::OffsetDateTime;

use super::survey::{Lineage, Reason};
use crate::api::{Access, Listing, MOST_AT_ONCE};
use crate::clock::Deadline;
use crate::cmd::journal::{self, Journal, Past};
use crate::cmd::lineage::{Carrier, Task};
use crate::failure::{AGAIN, Decided, Failure, Kind, Problem};
use crate::file::Unreadable;
use crate::material;
use crate::report::{Report, SourceReport};
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
    pub(super) access: Arc<Access>,
    pub(super) listing: Listing,
    pub(super) issued: HashMap<u64, OffsetDateTime>,
}

/// What became of a lineage.
pub(super) enum Ended {
    Deployed(Report),
    /// Its files are gone.
    Gone(Report),
}

/// What all of them share.
pub(super) struct Crew<'a> {
    pub(super) services: &'a [Service],
    pub(super) directory: &'a Path,
}

impl Crew<'_> {
    /// Deploys all of them; those that share nothing at once, with the listing that is known.
    pub(super) fn deploy(&self, jobs: &[Job<'_>], ended: impl FnMut(&Job<'_>, Ended)) {
        self.spread(jobs, MOST_AT_ONCE, true, ended);
    }

    /// Deploys one after the other, because each may change what the next one finds.
    pub(super) fn deploy_in_turn(&self, jobs: &[Job<'_>], ended: impl FnMut(&Job<'_>, Ended)) {
        self.spread(jobs, 1, false, ended);
    }

    fn spread(&self, jobs: &[Job<'_>], most: usize, shared: bool, mut ended: impl FnMut(&Job<'_>, Ended)) {
        let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
        thread::scope(|scope| {
            for _ in 0..most.min(jobs.len()) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    let mut carriers = HashMap::new();
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(place) else { break };
                        let _ = sender.send((job, self.one(job, shared, &mut carriers)));
                    }
                    carriers.into_values().for_each(Carrier::end);
                });
            }
            drop(sender);
            for (job, end) in receiver {
                ended(job, end);
            }
        });
    }

    fn one(&self, job: &Job<'_>, shared: bool, carriers: &mut HashMap<usize, Carrier>) -> Ended {
        let mut report = Report::new("deploy");
        report.source = Some(SourceReport::new(&job.lineage.source));
        let lineage = job.lineage;
        let order =
            journal::order(Some(&lineage.settings), lineage.asked.clone(), &lineage.guards, &lineage.domains);
        let deadline = Deadline::after(lineage.settings.timeout);
        let opened = Journal::open(&lineage.source, order, Some(self.directory), deadline, &mut report);
        let mut journal = match opened.map(|journal| journal.since(lineage.begun.as_deref())) {
            Ok(Ok(journal)) => journal,
            Ok(Err(overtaken)) => {
                let problems = vec![Problem::new(overtaken.to_string(), AGAIN)];
                report.fail(Failure { kind: Kind::Temporary, problems });
                return Ended::Deployed(report);
            }
            Err(held) => {
                report.fail(Failure::from_error(&held.into(), &[]));
                return Ended::Deployed(report);
            }
        };
        if job.reason == Reason::Gone
            && let Err(unreadable) = material::load(&lineage.source.anew().files)
            && unreadable.is_missing()
        {
            journal.lose(&mut report);
            report.fail(gone(&unreadable, &lineage.name));
            return Ended::Gone(report);
        }
        let result = self.carry_out(job, shared, deadline, &mut journal, carriers, &mut report);
        journal.conclude(&result, &mut report);
        if let Err(error) = result {
            let failure = Failure::from_error(&error, &report.checks);
            report.fail(failure);
        }
        if let Some(unwritable) = journal.unwritten() {
            report.add(Kind::Config, super::unwritable(unwritable));
        }
        Ended::Deployed(report)
    }

    fn carry_out(
        &self,
        job: &Job<'_>,
        shared: bool,
        deadline: Deadline,
        journal: &mut Journal,
        carriers: &mut HashMap<usize, Carrier>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let lineage = job.lineage;
        let Some(service) = self.services.get(job.service) else { return Ok(()) };
        let carrier = match carriers.entry(job.service) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(Carrier::new()?),
        };
        if let Some(unwritable) = journal.unwritten() {
            let problem = super::unwritable(unwritable);
            return Err(Decided { kind: Kind::Config, problem }.into());
        }
        // It may have been a long way to this moment.
        let source = lineage.source.anew();
        let task = Task {
            source: &source,
            settings: &lineage.settings,
            domains: &lineage.domains,
            guards: &lineage.guards,
            bare: false,
            dry_run: false,
            listing: shared.then_some(&service.listing),
            deadline,
        };
        let past = if shared { Past::Known(&service.issued) } else { Past::Unknown };
        task.run(journal, past, carrier, &mut || Ok(Arc::clone(&service.access)), report)
    }
}

fn gone(unreadable: &Unreadable, name: &str) -> Failure {
    let message = format!(
        "{name}: the files of the lineage are gone ({}: {}); what is deployed stays as it is",
        text::path(&unreadable.path),
        unreadable.reason
    );
    let hint = format!("this is said once; `edgecert status --forget {name}` forgets the lineage");
    Failure { kind: Kind::NoInput, problems: vec![Problem::new(message, hint)] }
}
