//! Decides what to do with lineages, given their states and what the service lists now, and checks those that are not
//! settled: handshakes notice leaves that were replaced under the same IDs. Records what they show, and which sites other lineages
//! supersede.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use time::OffsetDateTime;

use super::ListedAccount;
use super::scan::{Candidate, Examiner, Reason};
use super::summary::LineageResult;
use crate::api::{Gap, Site};
use crate::clock::Deadline;
use crate::error::Result;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::IndexedListing;
use crate::report::{Report, SiteReport, SourceReport};
use crate::settings::Verify;
use crate::sightings::EdgeMemory;
use crate::state::{self, LineageState, ServiceDeployments, SiteState};
use crate::text;
use crate::verify::{Edge, EdgeView, Handshakes};

/// Time limit for one site.
const SITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sites whose edges are observed at once, and lineages whose checks are recorded at once.
const MAX_CONCURRENT: usize = 32;

/// Time to wait for another run on the lineage; what that run records is newer anyway.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// What to check and to record of a lineage.
pub(super) struct Check<'c, 'a> {
    /// If it has a reason, it is deployed, or cannot be, whatever the edges show.
    pub(super) lineage: Candidate<'a>,
    /// The sites on which other lineages supersede it, as a deployment would report them.
    pub(super) superseded: Vec<SiteReport>,
    /// Whether these are all of its sites.
    pub(super) is_superseded: bool,
    /// The sites to handshake with.
    pub(super) sites: Vec<CheckedSite<'c>>,
    /// Whether these are all that can be checked.
    pub(super) is_due: bool,
    /// Whether there is nothing to check, to record or to deploy.
    pub(super) is_settled: bool,
    /// A gap that may hide further sites of it, if other lineages supersede it on all that are listed.
    pub(super) gap: Option<&'c Gap>,
}

/// A site to handshake with.
pub(super) struct CheckedSite<'c> {
    pub(super) site: &'c Site,
    /// The leaf that the lineage reached it with; `None`: the lineage is for it.
    pub(super) reached_with: Option<&'c Leaf>,
    /// What its edge serves; `None`: it was not observed in time.
    pub(super) view: Option<EdgeView>,
}

/// Decides what to check, to record and to deploy of a lineage. Pure: what an edge serves is only known after the check.
/// `deployments` is what this host deployed to the service.
pub(super) fn decide<'c, 'a>(
    lineage: Candidate<'a>,
    account: &'c IndexedListing,
    deployments: &'c ServiceDeployments,
    now: OffsetDateTime,
) -> Check<'c, 'a> {
    // The sites that the last deployment reported, by host. An id does not identify them: the bare upload reports none, and
    // a site that is created again gets another. A domain that was skipped was not a site at that time.
    let recorded = lineage.sites.iter().filter(|site| site.outcome != Outcome::Skipped);
    let recorded: HashMap<&str, &SiteState> = recorded.map(|site| (site.domain.host(), site)).collect();
    // Which other lineage provides the certificate of a site; `None` if this one does.
    let superseded_by = |site: &Site, leaf: &Leaf| {
        let record = site.cert_id.filter(|id| !account.is_deleted(*id));
        Some(deployments.superseding((&site.domain, record), &lineage.name, leaf, now)?.reason())
    };
    let (mut kept, mut superseded) = (Vec::new(), Vec::new());
    for site in sites_of(&lineage, account) {
        match lineage.leaf.as_ref().and_then(|leaf| superseded_by(site, leaf)) {
            Some(reason) => superseded.push(SiteReport {
                id: Some(site.id),
                cert_id_before: site.cert_id,
                cert_id: site.cert_id,
                findings: None,
                cname: site.cname.as_deref().map(str::to_owned),
                ..SiteReport::new(&site.domain, Outcome::Superseded, Some(reason))
            }),
            None => kept.push(site),
        }
    }
    let is_superseded = kept.is_empty() && !superseded.is_empty();
    // The sites that the lineage was not asked for, but reached through a record that they share with its own sites. As
    // long as the record may hold the leaf that reached one, other lineages are superseded there.
    let reached = lineage.sites.iter().filter_map(|known| {
        if lineage.is_for(known) || !known.outcome.is_bound() {
            return None;
        }
        let site = account.site(known.domain.host()).filter(|site| site.cert_id == known.cert_id)?;
        let own = deployments.on(&known.domain).iter().find(|other| other.lineage == lineage.name)?;
        let leaf: &Leaf = &own.leaf;
        let is_kept = leaf.not_after >= now && superseded_by(site, leaf).is_none();
        is_kept.then_some(CheckedSite { site, reached_with: Some(leaf), view: None })
    });
    let reached: Vec<_> = reached.collect();
    let is_recorded_as = |host: &str, outcome| recorded.get(host).is_some_and(|site| site.outcome == outcome);
    // One that is no longer reached has to be recorded as such.
    let has_stale = lineage.sites.iter().any(|site| site.outcome == Outcome::Stale && !lineage.is_for(site));
    let is_recorded =
        superseded.iter().all(|site| is_recorded_as(site.domain.host(), Outcome::Superseded)) && !has_stale;
    // One that may hide a site or a record of the lineage.
    let gap = account.listing().gaps().find(|gap| gap.may_hide(|domain| lineage.names.cover(domain)));
    // If it is superseded on each, these are all of its sites that are listed.
    let has_all = superseded.len() >= lineage.options.domains.len();
    if is_superseded && has_all && reached.is_empty() {
        // An incomplete listing may lack sites that no other lineage is for.
        let gap = gap.filter(|_| lineage.options.domains.is_empty());
        let are_all_recorded = lineage.sites.iter().all(|site| site.outcome == Outcome::Superseded);
        let is_settled = lineage.reason.is_none() && is_recorded;
        if gap.is_none() || is_settled && are_all_recorded {
            let lineage = Candidate { reason: None, ..lineage };
            return Check { superseded, is_superseded, is_settled, gap, ..Check::new(lineage) };
        }
    }
    let has_any = !kept.is_empty() || !superseded.is_empty();
    // Why it has to be deployed again; `None` if the service lists its sites as the last deployment left them.
    let drift = || {
        if !has_any && recorded.values().any(|site| site.outcome.is_bound()) {
            return Some("the account no longer has its sites".to_owned());
        }
        // By hand, `--skip-unmatched` is for one run; afterwards, nothing has drifted.
        let skipped = lineage.sites.iter().filter(|site| site.outcome == Outcome::Skipped);
        let skipped: Vec<&Domain> = skipped.map(|site| &site.domain).collect();
        let is_missing = if lineage.options.domains.is_empty() {
            !has_any && (skipped.is_empty() || skipped.len() < lineage.sites.len())
        } else {
            let mut domains = lineage.options.domains.iter();
            domains.any(|domain| account.site(domain.host()).is_none() && !skipped.contains(&domain))
        };
        if is_missing && !lineage.settings.skip_unmatched {
            return Some("a site is missing".to_owned());
        }
        let mut changes =
            kept.iter().filter_map(|site| change(site, recorded.get(site.domain.host()).copied(), account));
        gap.map(ToString::to_string).or_else(|| changes.next())
    };
    let until = lineage.leaf.as_ref().map(|leaf| leaf.not_after);
    let expired = until.filter(|until| *until < now && !kept.is_empty()).map(Reason::Expired);
    let reason = lineage.reason.clone().or_else(|| drift().map(Reason::Drifted)).or(expired);
    let is_due = is_due(&lineage, now);
    let are_checked = lineage.settings.verify != Verify::Off && !lineage.settings.verify_every.is_zero();
    // Even if a push is pending: it may be stuck.
    let may_be_checked = |site: &Site| are_checked && site.serves_https() && site.cert_id.is_some();
    // All of them if the lineage's turn has come, otherwise those not known to be served.
    let is_to_check = |CheckedSite { site, .. }: &CheckedSite<'_>| {
        may_be_checked(site) && (is_due || !is_recorded_as(site.domain.host(), Outcome::Served))
    };
    let own = kept.into_iter().map(|site| CheckedSite { site, reached_with: None, view: None });
    let mut sites: Vec<_> = own.chain(reached).filter(is_to_check).collect();
    if reason.is_some() {
        // A deployment does not look at the sites that an earlier one only reached.
        sites.retain(|site| site.reached_with.is_some());
        let lineage = Candidate { reason, ..lineage };
        return Check { sites, ..Check::new(lineage) };
    }
    let is_settled = sites.is_empty() && is_recorded;
    // Unless it is settled, the listing may lack sites that no other lineage is for.
    let is_superseded = is_superseded && is_settled;
    Check { lineage, superseded, is_superseded, sites, is_due, is_settled, gap: None }
}

/// The sites of a lineage: those requested, or else those that its leaf covers.
pub(super) fn sites_of<'c>(lineage: &Candidate<'_>, account: &'c IndexedListing) -> Vec<&'c Site> {
    let domains = &lineage.options.domains;
    if domains.is_empty() {
        return account.sites_covered_by(&lineage.names);
    }
    domains.iter().filter_map(|domain| account.site(domain.host())).collect()
}

/// How a site differs from what was deployed to it, if anything was.
fn change(site: &Site, deployed: Option<&SiteState>, account: &IndexedListing) -> Option<String> {
    let domain = &site.domain;
    let Some(deployed) = deployed else { return Some(format!("{domain} is a new site")) };
    if deployed.outcome == Outcome::Superseded {
        return Some(format!("{domain} is no longer superseded"));
    }
    if let Some(unreadable) = &site.unreadable_cert_id {
        return Some(format!("{domain} has a cert_id that cannot be read: {unreadable}"));
    }
    if site.cert_id != deployed.cert_id {
        let shown = |id: u64| format!("certificate {id}");
        let [now, old] = [site.cert_id, deployed.cert_id].map(|id| id.map_or("no certificate".into(), shown));
        return Some(format!("{domain} is bound to {now}, no longer to {old}"));
    }
    if let Some(id) = deployed.cert_id.filter(|id| account.is_deleted(*id)) {
        return Some(format!("{domain} is bound to certificate {id}, which no longer exists"));
    }
    let is_unconfirmed = deployed.outcome == Outcome::Uploaded && !site.config_synced;
    is_unconfirmed.then(|| format!("the push to {domain} was never confirmed"))
}

/// Whether the turn of a lineage to have its edges checked has come. Each lineage has its own time within the period,
/// derived from the hash of its name, so that the handshakes of many lineages are spread evenly. One that was
/// never deployed is due.
fn is_due(lineage: &Candidate<'_>, now: OffsetDateTime) -> bool {
    let period = i128::try_from(lineage.settings.verify_every.as_nanos()).unwrap_or(i128::MAX).max(1);
    let offset = i128::from(state::stable_hash(&lineage.name)).rem_euclid(period);
    let turn = |at: OffsetDateTime| (at.unix_timestamp_nanos() - offset).div_euclid(period);
    // A clock that was set back must not delay the check.
    lineage.edge_seen_at.is_none_or(|seen| turn(now) != turn(seen))
}

/// Checks lineages of an account, and returns each with a report, whose sites are those on which other lineages
/// supersede it, if these are all. Those that have to be deployed after all have a reason. The order is random, so that
/// edges which do not respond cannot keep the same lineages from being checked in every run.
pub(super) async fn run<'c, 'a>(
    mut checks: Vec<Check<'c, 'a>>,
    account: &ListedAccount,
    examiner: &Examiner<'a>,
    now: OffsetDateTime,
) -> Result<Vec<(Check<'c, 'a>, Report)>> {
    if checks.is_empty() {
        return Ok(Vec::new());
    }
    fastrand::shuffle(&mut checks);
    // Deployments wait for this.
    let deadline = Deadline::after(account.settings.timeout / 3);
    observe(&mut checks, account.clients.handshakes()?, deadline).await;
    let recorded = checks.into_iter().map(async |mut check| {
        check.conclude();
        let mut report = Report::new("deploy");
        if let Err(error) = check.record(examiner, now, &mut report).await {
            log::info!("{}: {error}", check.lineage.name);
        }
        (check, report)
    });
    Ok(stream::iter(recorded).buffer_unordered(MAX_CONCURRENT).collect().await)
}

/// Observes the edges of the sites to check, those of several lineages in turn: one with many sites delays no other.
pub(super) async fn observe(checks: &mut [Check<'_, '_>], handshakes: &Handshakes, deadline: Deadline) {
    let observations = stream::iter(checks).flat_map_unordered(MAX_CONCURRENT, |check| {
        let Check { lineage, sites, .. } = check;
        let lineage = &*lineage;
        let key_type = if sites.is_empty() { None } else { lineage.key_type() };
        let (is_strict, addresses) = (lineage.is_strict(), &lineage.settings.edge_addresses);
        fastrand::shuffle(sites);
        stream::iter(sites.iter_mut().map(move |CheckedSite { site, reached_with, view }| {
            let leaf = reached_with.or(lineage.leaf.as_ref());
            let key_type = key_type.clone().filter(|_| leaf == lineage.leaf.as_ref());
            async move {
                let Some(leaf) = leaf.filter(|_| !deadline.left().is_zero()) else { return };
                let edge = Edge::for_leaf(&leaf.fingerprint, key_type, addresses, handshakes);
                let view = view.insert(EdgeView::new(is_strict));
                let deadline = Deadline::after(SITE_TIMEOUT).or_sooner(deadline);
                edge.observe_retrying((&site.domain, site.cname.as_deref()), view, deadline).await;
            }
        }))
    });
    observations.buffer_unordered(MAX_CONCURRENT).for_each(std::future::ready).await;
}

impl<'a> Check<'_, 'a> {
    /// A check that has nothing to do yet.
    pub(super) fn new(lineage: Candidate<'a>) -> Self {
        let (superseded, sites) = (Vec::new(), Vec::new());
        Self { lineage, superseded, is_superseded: false, sites, is_due: false, is_settled: false, gap: None }
    }

    /// The result if it is not deployed.
    pub(super) fn result(&self) -> LineageResult {
        if self.is_superseded { LineageResult::Superseded } else { LineageResult::Unchanged }
    }

    /// Finds out whether the lineage has to be deployed; if so, the deployment reports what the edges of its sites serve.
    pub(super) fn conclude(&mut self) {
        self.lineage.reason = self.lineage.reason.take().or_else(|| self.drift());
        if self.lineage.reason.is_some() {
            let own = self.sites.iter_mut().filter(|site| site.reached_with.is_none());
            own.for_each(|site| site.view = None);
        }
    }

    /// Why the edges call for a deployment: the edge of a site that it is for serves another leaf, or refuses the name, or
    /// cannot be reached although it has to be.
    pub(super) fn drift(&self) -> Option<Reason> {
        let mut own = self.sites.iter().filter(|site| site.reached_with.is_none());
        own.find_map(|CheckedSite { site, view, .. }| {
            let view = view.as_ref()?;
            let unverified = self.lineage.is_strict().then(|| view.unverified()).into_iter().flatten();
            let first = view.others("serves").into_iter().chain(view.refusals()).chain(unverified).next()?;
            Some(Reason::Drifted(format!("{}: {first}", site.domain)))
        })
    }

    /// Records the result, unless another run has begun to deploy the lineage.
    async fn record(&self, examiner: &Examiner<'a>, now: OffsetDateTime, report: &mut Report) -> Result<()> {
        let lineage = &self.lineage;
        report.deployed.source = Some(SourceReport::new(&lineage.source));
        if !self.is_superseded && !self.has_changes(now) {
            return Ok(());
        }
        let opened = examiner.open(lineage, Deadline::after(LOCK_TIMEOUT), report).await?;
        let Some((mut journal, _)) = opened.filter(|(_, current)| current.begun == lineage.begun) else {
            return Ok(());
        };
        if self.is_superseded {
            report.deployed.sites.clone_from(&self.superseded);
            journal.supersede(lineage.leaf.clone(), report).await;
        } else {
            journal.update(|state| self.apply(state, now), report);
        }
        Ok(())
    }

    /// Updates the state of the lineage without a deployment.
    pub(super) fn apply(&self, state: &mut LineageState, now: OffsetDateTime) {
        state.sites.iter_mut().for_each(|site| self.update(site, now));
        state.edge_checked_at = self.checked_at(now).or(state.edge_checked_at);
    }

    /// Returns `now` if all sites of the lineage were checked.
    pub(super) fn checked_at(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let is_complete = !self.sites.is_empty() && self.sites.iter().all(|site| site.view.is_some());
        (self.is_due && is_complete).then_some(now)
    }

    /// Whether there is anything to record. Nothing is if there is a reason and no site to handshake with: the deployment
    /// records what it finds, and an expired lineage stays as it is.
    pub(super) fn has_changes(&self, now: OffsetDateTime) -> bool {
        if self.lineage.reason.is_some() && self.sites.is_empty() {
            return false;
        }
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
        if let Some(site) = self.superseded.iter().find(|site| site.domain == known.domain) {
            known.id = site.id;
            (known.outcome, known.detail) = (site.outcome.clone(), site.detail.clone());
            known.edge = EdgeMemory::default();
            return;
        }
        let checked = self.sites.iter().find(|checked| checked.site.domain == known.domain);
        if checked.is_none() && known.outcome == Outcome::Stale && !self.lineage.is_for(known) {
            // It is no longer reached, the leaf has expired, or its edge serves no certificate any more.
            (known.outcome, known.detail) = (Outcome::Synced, None);
            known.edge = EdgeMemory::default();
        }
        let Some(CheckedSite { reached_with, view: Some(view), .. }) = checked else { return };
        let Some(leaf) = reached_with.or(self.lineage.leaf.as_ref()) else { return };
        known.edge.see(&view.sightings(leaf, now));
        let is_last_seen = known.edge.serves(&leaf.fingerprint) == Some(true);
        // Only of a site that the lineage is not for: of its own, they are drift.
        let faults = [view.others("serves"), view.refusals()].concat();
        if view.is_served() {
            (known.outcome, known.detail) = (Outcome::Served, None);
        } else if known.outcome.is_bound() && !faults.is_empty() {
            (known.outcome, known.detail) = (Outcome::Stale, Some(text::list(faults)));
        } else if known.outcome.is_deployed() || known.outcome == Outcome::Stale && is_last_seen {
            (known.outcome, known.detail) = (Outcome::Synced, Some(text::list(view.unverified())));
        }
    }
}

#[cfg(test)]
mod tests;
