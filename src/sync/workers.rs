//! Deploys lineages concurrently, as tasks on one thread. Those of one account share its connections and its rate
//! limit.

use std::path::Path;

use futures_util::{StreamExt as _, stream};

use super::scan::{Candidate, Reason};
use super::schedule::Job;
use crate::bundle::{self, Wait};
use crate::clock::{self, Deadline};
use crate::deploy::{AccountSnapshot, ClientCache, Deployment, Journal, run_options};
use crate::error::{CommandError, ErrorKind};
use crate::hint::{Command, Place};
use crate::progress::Progress;
use crate::report::{Report, SourceReport};
use crate::text;

/// Maximum number of lineages in progress. More than requests in flight, because many wait for a lock, an edge or the
/// listing that they share. Each takes an open file for its lock, and the usual limit is 1,024.
const MAX_CONCURRENT: usize = 640;

/// An account, reached and listed once for all its lineages.
pub(super) struct ListedAccount {
    pub(super) clients: ClientCache,
    pub(super) snapshot: AccountSnapshot,
}

/// The result of a job.
pub(super) enum JobResult {
    Deployed(Report),
    /// The files of the lineage are missing.
    FilesMissing(Report),
}

/// What all jobs share.
pub(super) struct Workers<'a> {
    pub(super) state_dir: &'a Path,
    /// Progress of each deployment.
    pub(super) progress: &'a dyn Progress,
}

impl Workers<'_> {
    /// Deploys lineages. Those that share no resource are deployed concurrently, from the listing of their account; others
    /// one by one, each with a listing of its own: one may change what the next one finds.
    pub(super) async fn run<'j>(
        &self,
        jobs: impl Iterator<Item = (&'j ListedAccount, &'j Job<'j>)>,
        are_independent: bool,
        mut on_done: impl FnMut(&Job<'_>, JobResult),
    ) {
        let max_concurrent = if are_independent { MAX_CONCURRENT } else { 1 };
        let results =
            jobs.map(async |(account, job)| (job, self.deploy(account, job, are_independent).await));
        let mut results = stream::iter(results).buffer_unordered(max_concurrent);
        while let Some((job, result)) = results.next().await {
            on_done(job, result);
        }
    }

    /// `use_snapshot`: plan from the listing of the account rather than from a new one.
    async fn deploy(&self, account: &ListedAccount, job: &Job<'_>, use_snapshot: bool) -> JobResult {
        let lineage = job.lineage;
        let _turn = account.clients.wait_for_turn(Deadline::after(lineage.settings.timeout)).await;
        let mut report = Report::new("deploy");
        report.deployed.source = Some(SourceReport::new(&lineage.source));
        report.set_place(Place {
            command: Command::Sync,
            is_recorded: true,
            lineage: Some(lineage.source.flags()),
            has_domain_flag: false,
        });
        let deadline = Deadline::after(lineage.settings.timeout);
        let mut journal = match open_journal(lineage, self.state_dir, deadline, &mut report).await {
            Ok(journal) => journal,
            Err(error) => {
                report.fail(error);
                return JobResult::Deployed(report);
            }
        };
        if let Some(error) = missing_files(job, deadline).await {
            journal.update(|state| state.mark_missing(clock::now()), &mut report);
            report.fail(error);
            return JobResult::FilesMissing(report);
        }
        // Without a record of this deployment the next `sync` would not finish it.
        let result = if let Some(error) = journal.take_write_error() {
            Err(error.into())
        } else {
            let snapshot = use_snapshot.then_some(&account.snapshot);
            self.roll_out((account, snapshot), lineage, deadline, &mut journal, &mut report).await
        };
        let _permit = account.clients.write_permit().await;
        journal.finish(result, &mut report).await;
        if let Some(error) = journal.take_write_error() {
            report.fail(error);
        }
        JobResult::Deployed(report)
    }

    async fn roll_out(
        &self,
        (account, snapshot): (&ListedAccount, Option<&AccountSnapshot>),
        lineage: &Candidate,
        deadline: Deadline,
        journal: &mut Journal,
        report: &mut Report,
    ) -> Result<(), CommandError> {
        // The client may have switched the files since the scan.
        let source = lineage.source.refresh();
        let deployment = Deployment {
            source: &source,
            settings: &lineage.settings,
            domains: &lineage.domains,
            guards: lineage.given.guards,
            only_leaf: lineage.only_leaf.as_deref(),
            upload_only: false,
            force: false,
            dry_run: false,
            account: snapshot,
            deadline,
            progress: self.progress,
        };
        deployment.run(journal, &account.clients, report).await
    }
}

/// Locks a lineage and reads its state, unless another run has begun since the scan and must not be overwritten.
pub(super) async fn open_journal(
    lineage: &Candidate,
    state_dir: &Path,
    deadline: Deadline,
    report: &mut Report,
) -> Result<Journal, CommandError> {
    let settings = Some(lineage.settings.as_ref());
    let options = run_options(settings, &lineage.domains, lineage.given.clone(), lineage.origin);
    let mut journal = Journal::open(&lineage.source, options, Some(state_dir), deadline, report).await?;
    journal.compare_with_scan(lineage.begun)?;
    Ok(journal)
}

/// Reads files again that were missing in the scan, because the client may have been replacing them. The error if they
/// are still missing.
async fn missing_files(job: &Job<'_>, deadline: Deadline) -> Option<CommandError> {
    if job.reason != Reason::FilesMissing {
        return None;
    }
    let files = job.lineage.source.refresh().files;
    let file = bundle::load_settled(files, deadline, Wait::FOR_CLIENT, false).await.err()?;
    let (lineage, path) = (&job.lineage.name, text::path(&file.path));
    let message = format!(
        "the files of the lineage are missing ({path}: {}); the deployed certificate stays in place",
        file.reason
    );
    let hint =
        format!("restore the files, or run `edgecert status --forget {lineage}`; this is reported once");
    file.is_missing()
        .then(|| CommandError::new(ErrorKind::NoInput, message).class("files missing").hint(hint))
}
