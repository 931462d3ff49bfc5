//! Deploys lineages concurrently, as tasks on one thread. Those of one account share its connections and its rate
//! limit.

use std::path::Path;

use futures_util::{StreamExt as _, stream};

use super::scan::{Candidate, Examiner, LeafOnDisk, Reason};
use super::schedule::Job;
use crate::bundle;
use crate::clock::{self, Deadline};
use crate::deploy::{AccountSnapshot, ClientCache, Deployment, Journal};
use crate::error::{CommandError, ErrorKind};
use crate::hint::{Command, Hint, Place};
use crate::names::hosts;
use crate::progress::Progress;
use crate::report::{Report, SourceReport};
use crate::settings::Settings;
use crate::state::RunOptions;
use crate::text;

/// Maximum number of lineages in progress. More than requests in flight, because many wait for a lock, an edge or the
/// listing that they share. Each takes an open file for its lock, and the usual limit is 1,024.
const MAX_CONCURRENT: usize = 640;

/// An account, reached and listed once for all its lineages.
pub(super) struct ListedAccount {
    pub(super) clients: ClientCache,
    pub(super) snapshot: AccountSnapshot,
}

/// How a job ended.
pub(super) enum Ended {
    /// The lineage was deployed, or that failed.
    Deployed,
    /// The files of the lineage are missing.
    FilesMissing,
    /// The state of the lineage was deleted during this run.
    Forgotten,
    /// Another run has begun, or the sites or names of the lineage have changed since the scan, so that it may conflict
    /// with other jobs.
    Deferred,
}

/// What all jobs share.
pub(super) struct Workers<'w, 'a> {
    pub(super) examiner: &'w Examiner<'a>,
    pub(super) state_dir: &'w Path,
    /// Progress of each deployment.
    pub(super) progress: &'w dyn Progress,
}

impl<'a> Workers<'_, 'a> {
    /// Deploys lineages: independent ones concurrently from the listing of their account, conflicting ones in turn, each
    /// from a new listing, because one may change what the next one finds. Returns the jobs that turned out to conflict.
    pub(super) async fn run<'j>(
        &self,
        jobs: Vec<(&'j ListedAccount, Job<'a>)>,
        are_independent: bool,
        mut on_done: impl FnMut(Job<'a>, Ended, Report),
    ) -> Vec<(&'j ListedAccount, Job<'a>)> {
        let max_concurrent = if are_independent { MAX_CONCURRENT } else { 1 };
        let results = jobs.into_iter().map(async |(account, job)| {
            let mut report = Report::new("deploy");
            let ended = self.deploy(account, &job.lineage, are_independent, &mut report).await;
            let ended = ended.unwrap_or_else(|error| {
                report.fail(error);
                Ended::Deployed
            });
            (account, job, ended, report)
        });
        let mut results = stream::iter(results).buffer_unordered(max_concurrent);
        let mut deferred = Vec::new();
        while let Some((account, job, ended, report)) = results.next().await {
            match ended {
                Ended::Deferred => deferred.push((account, job)),
                ended => on_done(job, ended, report),
            }
        }
        deferred
    }

    /// `use_snapshot`: plan from the listing of the account rather than from a new one.
    async fn deploy(
        &self,
        account: &ListedAccount,
        scanned: &Candidate<'a>,
        use_snapshot: bool,
        report: &mut Report,
    ) -> Result<Ended, CommandError> {
        let timeout = scanned.settings.timeout;
        account.clients.wait_for_turn(Deadline::after(timeout)).await;
        report.deployed.source = Some(SourceReport::new(&scanned.source));
        report.set_place(Place {
            command: Command::Sync,
            is_recorded: true,
            lineage: Some(scanned.source.flags()),
            domains: hosts(&scanned.given.domains),
        });
        let deadline = Deadline::after(timeout);
        let opened = scanned.open(self.examiner, self.state_dir, deadline, report).await?;
        let Some((mut journal, lineage)) = opened else { return Ok(Ended::Forgotten) };
        if use_snapshot {
            if lineage.has_newer_run(scanned) || lineage.domains != scanned.domains {
                return Ok(Ended::Deferred);
            }
            journal.expected_names =
                Some(scanned.leaf.as_ref().map(|leaf| leaf.names.clone()).unwrap_or_default());
        }
        if lineage.reason == Some(Reason::FilesMissing)
            && let Some(error) = missing_files(&lineage, deadline).await
        {
            journal.update(|state| state.mark_missing(clock::now()), report);
            report.fail(error);
            return Ok(Ended::FilesMissing);
        }
        let deployment = Deployment {
            source: &lineage.source,
            settings: &lineage.settings,
            domains: &lineage.domains,
            guards: lineage.given.guards,
            upload_only: false,
            force: false,
            dry_run: false,
            account: use_snapshot.then_some(&account.snapshot),
            deadline,
            progress: self.progress,
        };
        let result = deployment.run(&mut journal, &account.clients, report).await;
        if journal.has_other_names {
            return Ok(Ended::Deferred);
        }
        let _permit = account.clients.writes.acquire().await;
        journal.finish(result, report).await;
        if let Some(error) = journal.take_write_error() {
            report.fail(error);
        }
        Ok(Ended::Deployed)
    }
}

impl<'a> Candidate<'a> {
    /// Locks a lineage and examines it again: its client or another run may have changed it since the scan. `None` if its
    /// state was deleted and the configuration does not name it.
    pub(super) async fn open(
        &self,
        examiner: &Examiner<'a>,
        state_dir: &Path,
        deadline: Deadline,
        report: &mut Report,
    ) -> Result<Option<(Journal, Self)>, CommandError> {
        let mut journal =
            Journal::open(self.name.clone(), &self.source, Some(state_dir), deadline, report).await?;
        // Without a record of this run the next `sync` would not finish it.
        if let Some(error) = journal.take_write_error() {
            return Err(error.into());
        }
        if journal.has_no_state && self.begun.is_some() && self.entry.is_none() {
            return Ok(None);
        }
        let state = journal.before().cloned();
        // The client may have switched the files.
        let place = (self.name.clone(), self.source.refresh(), self.entry);
        let leaf = LeafOnDisk::read(&place.1, state.as_ref());
        let now = examiner.candidate(place, leaf, state)?;
        now.require_service(&self.settings)?;
        journal.options = RunOptions {
            service: Some(now.settings.base_url.to_string()),
            domains: now.domains.clone(),
            given: now.given.clone(),
            origin: now.origin,
            is_configured: now.entry.is_some(),
        };
        Ok(Some((journal, now)))
    }

    /// Fails if the account is no longer the one that was listed.
    pub(super) fn require_service(&self, listed: &Settings) -> Result<(), CommandError> {
        if self.settings.is_same_service(listed) {
            return Ok(());
        }
        let message = "the account of the lineage changed during this run; nothing was sent for it";
        Err(CommandError::new(ErrorKind::Temporary, message).hint(Hint::RETRY))
    }

    /// Whether another run has begun since an earlier examination.
    pub(super) fn has_newer_run(&self, earlier: &Self) -> bool {
        // Not `>`: the clock may have been set back in between.
        self.begun != earlier.begun
    }
}

/// Reads files again that were missing in the scan, because the client may have been replacing them. The error if they
/// are still missing.
async fn missing_files(lineage: &Candidate<'_>, deadline: Deadline) -> Option<CommandError> {
    let files = lineage.source.files.clone();
    let file = bundle::load_settled(files, deadline, false).await.err()?;
    let (lineage, path) = (&lineage.name, text::path(&file.path));
    let message = format!(
        "the files of the lineage are missing ({path}: {}); the deployed certificate stays in place",
        file.reason
    );
    let hint =
        format!("restore the files, or run `edgecert status --forget {lineage}`; this is reported once");
    file.is_missing()
        .then(|| CommandError::new(ErrorKind::NoInput, message).class("files missing").hint(hint))
}
