//! Deploys lineages: concurrently, as tasks on one thread, if they cannot affect each other. Those of one account share
//! its connections and its rate limit.

use std::collections::HashSet;

use futures_util::{StreamExt as _, stream};

use super::ListedAccount;
use super::check::sites_of;
use super::scan::{Candidate, Examiner, Reason};
use super::summary::LineageResult;
use crate::bundle;
use crate::clock::{self, Deadline};
use crate::deploy::Deployment;
use crate::error::{CommandError, ErrorKind, Result};
use crate::hint::{Command, Hint, Place};
use crate::leaf::Leaf;
use crate::names::hosts;
use crate::outcome::Outcome;
use crate::plan::IndexedListing;
use crate::progress::Progress;
use crate::report::{Report, SiteReport, SourceReport};
use crate::text;

/// Maximum number of lineages in progress. More than requests in flight, because many wait for a lock, an edge or the
/// listing that they share. Each takes an open file for its lock, and the usual limit is 1,024.
const MAX_CONCURRENT: usize = 640;

/// A site or a record that a deployment may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Resource {
    Site(u64),
    Record(u64),
}

/// Splits the lineages of an account to deploy: the first share no site and no record, so they may run concurrently; the
/// others may change what another one finds, so they run one by one afterwards. In both, the lineage whose leaf was issued
/// last comes first: it may supersede the others.
pub(super) fn schedule<'a>(
    mut due: Vec<Candidate<'a>>,
    listing: &IndexedListing,
) -> (Vec<Candidate<'a>>, Vec<Candidate<'a>>) {
    due.sort_unstable_by(|a, b| b.leaf.as_ref().map(Leaf::rank).cmp(&a.leaf.as_ref().map(Leaf::rank)));
    let mut taken = HashSet::new();
    due.into_iter().partition(|lineage| {
        let mut resources = HashSet::new();
        for site in sites_of(lineage, listing) {
            resources.insert(Resource::Site(site.id));
            let stored = listing.records_stored_for(site.domain.host()).map(|record| record.id);
            resources.extend(site.cert_id.into_iter().chain(stored).map(Resource::Record));
        }
        // The service binds them to any record that is created.
        let covered = listing.sites_covered_by(&lineage.names);
        let unbound = covered.into_iter().filter(|site| site.is_unbound());
        resources.extend(unbound.map(|site| Resource::Site(site.id)));
        let is_independent = resources.is_disjoint(&taken);
        taken.extend(resources);
        is_independent
    })
}

/// How the work on a lineage ended.
pub(super) enum Ended {
    /// The lineage was deployed, or that failed, or its files are missing; `None`: its state was deleted during this run.
    Done(Option<LineageResult>),
    /// Another run has begun, or the sites or names of the lineage have changed since the scan, so that it may conflict
    /// with others.
    Deferred,
}

/// What all deployments share.
pub(super) struct Workers<'w, 'a> {
    pub(super) examiner: &'w Examiner<'a>,
    /// Progress of each deployment.
    pub(super) progress: &'w Progress,
}

/// A lineage to deploy, with its account.
type Job<'j, 'a> = (&'j ListedAccount, Candidate<'a>);

impl<'a> Workers<'_, 'a> {
    /// Deploys lineages: independent ones concurrently from the listing of their account, conflicting ones in turn, each
    /// from a new listing, because one may change what the next one finds. Returns those that turned out to conflict.
    pub(super) async fn run<'j>(
        &self,
        jobs: Vec<Job<'j, 'a>>,
        are_independent: bool,
        mut on_done: impl FnMut(Candidate<'a>, Option<LineageResult>, Report),
    ) -> Vec<Job<'j, 'a>> {
        let max_concurrent = if are_independent { MAX_CONCURRENT } else { 1 };
        let results = jobs.into_iter().map(async |(account, lineage)| {
            let mut report = Report::new("deploy");
            let ended = self.deploy(account, &lineage, are_independent, &mut report).await;
            let ended = ended.unwrap_or_else(|error| {
                report.fail(error);
                Ended::Done(Some(LineageResult::Failed))
            });
            (account, lineage, ended, report)
        });
        let mut results = stream::iter(results).buffer_unordered(max_concurrent);
        let mut deferred = Vec::new();
        while let Some((account, lineage, ended, report)) = results.next().await {
            match ended {
                Ended::Deferred => deferred.push((account, lineage)),
                Ended::Done(result) => on_done(lineage, result, report),
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
    ) -> Result<Ended> {
        let timeout = scanned.settings.timeout;
        account.clients.wait_for_turn(Deadline::after(timeout)).await;
        report.deployed.source = Some(SourceReport::new(&scanned.source));
        report.set_place(Place {
            command: Command::Sync,
            is_recorded: true,
            lineage: Some(scanned.source.flags()),
            domains: hosts(&scanned.options.given.domains),
        });
        let deadline = Deadline::after(timeout);
        let opened = self.examiner.open(scanned, deadline, report).await?;
        let Some((mut journal, lineage)) = opened else { return Ok(Ended::Done(None)) };
        if use_snapshot {
            if lineage.begun != scanned.begun || lineage.options.domains != scanned.options.domains {
                return Ok(Ended::Deferred);
            }
            journal.expected_names =
                Some(scanned.leaf.as_ref().map(|leaf| leaf.names.clone()).unwrap_or_default());
        }
        // The client may have been replacing them, so they are read again.
        if lineage.reason == Some(Reason::FilesMissing)
            && let Err(file) = bundle::load_settled(lineage.source.files.clone(), deadline, false).await
            && file.is_missing()
        {
            journal.update(|state| state.mark_missing(clock::now()), report);
            let (name, path) = (&lineage.name, text::path(&file.path));
            let message = format!(
                "the files of the lineage are missing ({path}: {}); the deployed certificate stays in place",
                file.reason
            );
            let hint =
                format!("restore the files, or run `edgecert status --forget {name}`; this is reported once");
            report.fail(CommandError::new(ErrorKind::NoInput, message).class("files missing").hint(hint));
            return Ok(Ended::Done(Some(LineageResult::Gone)));
        }
        let deployment = Deployment {
            source: &lineage.source,
            settings: &lineage.settings,
            domains: &lineage.options.domains,
            guards: lineage.options.given.guards,
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
        let is_repeated = |site: &&SiteReport| {
            let is_unconfirmed = site.is_required && site.outcome == Outcome::Uploaded;
            is_unconfirmed && !lineage.is_strict() && lineage.was_uploaded_to(&site.domain)
        };
        let repeated: Vec<_> = report.deployed.sites.iter().filter(is_repeated).map(unpushed).collect();
        for error in repeated {
            report.fail(error);
        }
        let _permit = account.clients.writes.acquire().await;
        journal.finish(result, report).await;
        if let Some(error) = journal.write_error.take() {
            report.fail(error);
        }
        Ok(Ended::Done(Some(LineageResult::of(report))))
    }
}

/// Another upload has not made the service confirm the push of a site either. If its edge cannot be verified, nothing else
/// tells that visitors still get the earlier leaf.
fn unpushed(site: &SiteReport) -> CommandError {
    let message = format_args!("{} is still not confirmed after another upload", site.domain);
    let error = CommandError::new(ErrorKind::Temporary, message).class("unpushed").of_site(&site.domain);
    error.hint(Hint::Retry("; if it stays so, contact the service"))
}
