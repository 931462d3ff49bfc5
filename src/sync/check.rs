//! Checks lineages that are not settled: handshakes notice leaves that were replaced under the same IDs. Records what they
//! show, and which sites other lineages supersede.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

use super::scan::{Candidate, Examiner, Reason};
use crate::api::Site;
use crate::bundle;
use crate::clock::Deadline;
use crate::deploy::ClientCache;
use crate::error::CommandError;
use crate::outcome::Outcome;
use crate::report::{Report, SiteReport, SourceReport};
use crate::settings::Verify;
use crate::sightings::EdgeMemory;
use crate::state::SiteState;
use crate::text;
use crate::verify::{Edge, EdgeView, Handshakes};

/// Time limit for one site.
const SITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sites whose edges are observed at once, and lineages in progress.
const MAX_CONCURRENT: usize = 32;

/// Time to wait for another run on the lineage; what that run records is newer anyway.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// What to check and to record of a lineage.
pub(super) struct Check<'c, 'a> {
    pub(super) lineage: Candidate<'a>,
    /// Why it is deployed, or cannot be, whatever the edges show; `None`: they decide.
    pub(super) reason: Option<Reason>,
    /// The sites on which other lineages supersede it, each with the reason.
    pub(super) superseded: Vec<(&'c Site, String)>,
    /// Whether these are all of its sites.
    pub(super) is_superseded: bool,
    /// The sites to handshake with.
    pub(super) sites: Vec<&'c Site>,
    /// Whether these are all that can be checked.
    pub(super) is_due: bool,
    /// What their edges serve, by site. A site whose edge was not observed in time is absent.
    pub(super) views: BTreeMap<u64, EdgeView>,
}

/// Checks lineages until the deadline, and returns each with the reason to deploy it after all and with a report, whose
/// sites are those on which other lineages supersede it, if these are all. The order is random, so that edges which do not
/// respond cannot keep the same lineages from being checked in every run. An error has the number of lineages.
pub(super) async fn run<'c, 'a>(
    mut checks: Vec<Check<'c, 'a>>,
    clients: &ClientCache,
    examiner: &Examiner<'a>,
    state_dir: &Path,
    deadline: Deadline,
    now: OffsetDateTime,
) -> Result<Vec<(Check<'c, 'a>, Option<Reason>, Report)>, (CommandError, usize)> {
    if checks.is_empty() {
        return Ok(Vec::new());
    }
    let handshakes = clients.handshakes().map_err(|error| (error, checks.len()))?;
    let turns = Semaphore::new(MAX_CONCURRENT);
    fastrand::shuffle(&mut checks);
    let observed = checks.into_iter().map(async |mut check| {
        check.observe(handshakes, &turns, deadline).await;
        check
    });
    let observed: Vec<_> = stream::iter(observed).buffer_unordered(MAX_CONCURRENT).collect().await;
    let recorded = observed.into_iter().map(async |mut check| {
        let is_check = check.reason.is_none() || !check.sites.is_empty();
        let reason = check.take_reason();
        let mut report = Report::new("deploy");
        if is_check && let Err(error) = check.record(examiner, state_dir, now, &mut report).await {
            log::info!("{}: {error}", check.lineage.name);
        }
        (check, reason, report)
    });
    Ok(stream::iter(recorded).buffer_unordered(MAX_CONCURRENT).collect().await)
}

impl<'a> Check<'_, 'a> {
    /// A check that has nothing to do yet.
    pub(super) fn new(lineage: Candidate<'a>) -> Self {
        let (superseded, sites, views) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { lineage, reason: None, superseded, is_superseded: false, sites, is_due: false, views }
    }

    pub(super) async fn observe(&mut self, handshakes: &Handshakes, turns: &Semaphore, deadline: Deadline) {
        let (lineage, is_strict) = (&self.lineage, self.is_strict());
        let Some(leaf) = lineage.leaf.as_ref().filter(|_| !self.sites.is_empty()) else { return };
        // The type of the key, which saves handshakes if it is known.
        let chain = bundle::load_chain(&lineage.source.files).ok().and_then(|bundle| bundle.chain.ok());
        let on_disk = chain.map(|chain| chain.leaf).filter(|found| found.fingerprint() == leaf.fingerprint);
        let key_type = on_disk.map(|found| found.public_key.key_type);
        let settings = &lineage.settings;
        let edge = Edge::for_leaf(&leaf.fingerprint, key_type, &settings.edge_addresses, handshakes);
        fastrand::shuffle(&mut self.sites);
        let views = self.sites.iter().map(async |site| {
            let _turn = turns.acquire().await;
            if deadline.left().is_zero() {
                return None;
            }
            let mut view = EdgeView::new(is_strict);
            let deadline = Deadline::after(SITE_TIMEOUT).or_sooner(deadline);
            edge.observe_with_retries(&site.domain, site.cname.as_deref(), &mut view, deadline).await;
            Some((site.id, view))
        });
        let views: Vec<_> = stream::iter(views).buffer_unordered(MAX_CONCURRENT).collect().await;
        self.views.extend(views.into_iter().flatten());
    }

    /// Returns why the lineage has to be deployed, if it has; the deployment reports what the edges of its sites serve.
    pub(super) fn take_reason(&mut self) -> Option<Reason> {
        let reason = self.reason.take().or_else(|| self.drift())?;
        let own: Vec<u64> =
            self.sites.iter().filter(|site| self.lineage.is_for(&site.domain)).map(|site| site.id).collect();
        self.views.retain(|site, _| !own.contains(site));
        Some(reason)
    }

    /// Why the edges call for a deployment: the edge of a site that it is for serves another leaf, or refuses the name, or
    /// cannot be reached although it has to be.
    pub(super) fn drift(&self) -> Option<Reason> {
        self.sites.iter().filter(|site| self.lineage.is_for(&site.domain)).find_map(|site| {
            let view = self.views.get(&site.id)?;
            let unverified = self.is_strict().then(|| view.unverified()).into_iter().flatten();
            let first = view.others().into_iter().chain(view.refusals()).chain(unverified).next()?;
            Some(Reason::Drifted(format!("{}: {first}", site.domain)))
        })
    }

    /// Records the result, unless another run has begun to deploy the lineage.
    async fn record(
        &self,
        examiner: &Examiner<'a>,
        state_dir: &Path,
        now: OffsetDateTime,
        report: &mut Report,
    ) -> Result<(), CommandError> {
        let lineage = &self.lineage;
        report.deployed.source = Some(SourceReport::new(&lineage.source));
        if !self.is_superseded && !self.has_changes(now) {
            return Ok(());
        }
        let deadline = Deadline::after(LOCK_TIMEOUT);
        let opened = lineage.open(examiner, state_dir, deadline, report).await?;
        let Some((mut journal, _)) = opened.filter(|(_, now)| !now.has_newer_run(lineage)) else {
            return Ok(());
        };
        match &lineage.leaf {
            Some(leaf) if self.is_superseded => {
                report.deployed.sites = self.superseded_sites();
                journal.supersede(leaf.clone(), report).await;
            }
            _ => {
                let update = |site: &mut SiteState| self.update(site, now);
                journal.update(|state| state.update_sites(update, self.checked_at(now)), report);
            }
        }
        Ok(())
    }

    /// Returns `now` if all sites of the lineage were checked.
    pub(super) fn checked_at(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let is_complete = !self.sites.is_empty() && self.views.len() == self.sites.len();
        (self.is_due && is_complete).then_some(now)
    }

    /// Whether there is anything to record.
    pub(super) fn has_changes(&self, now: OffsetDateTime) -> bool {
        let has_changed = |site: &SiteState| {
            let mut updated = site.clone();
            self.update(&mut updated, now);
            // The addresses of an edge may change in every run; only what they serve matters.
            let is_same_edge = updated.edge.is_equivalent(&site.edge);
            !is_same_edge || SiteState { edge: site.edge.clone(), ..updated } != *site
        };
        self.checked_at(now).is_some() || self.lineage.sites.iter().any(has_changed)
    }

    /// Updates what is recorded of a site.
    pub(super) fn update(&self, known: &mut SiteState, now: OffsetDateTime) {
        if let Some((site, reason)) = self.superseded.iter().find(|(site, _)| site.domain == known.domain) {
            known.id = Some(site.id);
            (known.outcome, known.detail) = (Outcome::Superseded, Some(reason.clone()));
            known.edge = EdgeMemory::default();
            return;
        }
        let site = self.sites.iter().find(|site| site.domain == known.domain);
        if site.is_none() && known.outcome == Outcome::Stale && !self.lineage.is_for(&known.domain) {
            // It is no longer reached, or its edge serves no certificate any more.
            (known.outcome, known.detail) = (Outcome::Synced, None);
            known.edge = EdgeMemory::default();
        }
        let Some(view) = site.and_then(|site| self.views.get(&site.id)) else { return };
        let Some(leaf) = &self.lineage.leaf else { return };
        known.edge.see(&view.sightings(leaf, now));
        let is_last_seen = known.edge.serves(&leaf.fingerprint) == Some(true);
        // Only of a site that the lineage is not for: of its own, they are drift.
        let faults = [view.others(), view.refusals()].concat();
        if view.is_served() {
            (known.outcome, known.detail) = (Outcome::Served, None);
        } else if known.outcome.is_bound() && !faults.is_empty() {
            (known.outcome, known.detail) = (Outcome::Stale, Some(text::list(faults)));
        } else if known.outcome.is_deployed() || known.outcome == Outcome::Stale && is_last_seen {
            (known.outcome, known.detail) = (Outcome::Synced, Some(text::list(view.unverified())));
        }
    }

    /// The superseded sites as a deployment would report them.
    pub(super) fn superseded_sites(&self) -> Vec<SiteReport> {
        let report = |(site, reason): &(&Site, String)| SiteReport {
            id: Some(site.id),
            cert_id_before: site.cert_id,
            cert_id: site.cert_id,
            findings: None,
            cname: site.cname.as_deref().map(str::to_owned),
            ..SiteReport::new(&site.domain, Outcome::Superseded, Some(reason.clone()))
        };
        self.superseded.iter().map(report).collect()
    }

    fn is_strict(&self) -> bool {
        self.lineage.settings.verify == Verify::Require
    }
}
