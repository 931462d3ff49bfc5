//! Decides what to do with a lineage, given its state and what the service lists now. Pure: what an edge serves is only
//! known after a `Check`.

use std::collections::HashMap;
use std::time::Duration;

use time::OffsetDateTime;

use super::check::Check;
use super::scan::{Candidate, Reason};
use crate::api::Site;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::{self, IndexedListing};
use crate::settings::Verify;
use crate::state::{self, ServiceDeployments};

/// What to do with a lineage.
pub(super) enum Decision<'c, 'a> {
    /// Nothing. It is unchanged, unless others provide the certificate of all its sites.
    Settled { is_superseded: bool },
    /// There is a reason to deploy it, handshakes decide, or there is only something to record.
    Check(Box<Check<'c, 'a>>),
}

/// Decides what to do with a lineage. `deployments` is what this host deployed to the service.
pub(super) fn decide<'c, 'a>(
    lineage: Candidate<'a>,
    account: &'c IndexedListing,
    deployments: &ServiceDeployments,
    now: OffsetDateTime,
) -> Decision<'c, 'a> {
    let recorded = RecordedSites::new(&lineage.sites);
    let sites = account.sites_of(&lineage);
    let has_all = sites.len() >= lineage.domains.len();
    let (kept, superseded) = split(&lineage, sites, account, deployments, now);
    let is_superseded = kept.is_empty() && !superseded.is_empty();
    let is_own = |site: &&Site| superseded_by(&lineage, site, account, deployments, now).is_none();
    let reached: Vec<&Site> = reached_sites(&lineage, account).filter(is_own).collect();
    // One that is no longer reached has to be recorded as such.
    let has_stale =
        lineage.sites.iter().any(|known| known.outcome == Outcome::Stale && !lineage.is_for(&known.domain));
    let is_recorded = recorded.are_superseded(&superseded) && !has_stale;
    if is_superseded && has_all && reached.is_empty() {
        // An incomplete listing may lack sites that no other lineage is for.
        let is_whole = !lineage.domains.is_empty() || account.gap_for(&lineage).is_none();
        let are_all_recorded = lineage.sites.iter().all(|site| site.outcome == Outcome::Superseded);
        if lineage.reason.is_none() && is_recorded && (is_whole || are_all_recorded) {
            return Decision::Settled { is_superseded };
        }
        if is_whole {
            return Decision::Check(Box::new(Check { superseded, is_superseded, ..Check::new(lineage) }));
        }
    }
    let reason = lineage.reason.clone();
    let reason = reason.or_else(|| drift(&lineage, account, &recorded, &kept, !superseded.is_empty()));
    let until = lineage.leaf.as_ref().map(|leaf| leaf.not_after);
    let expired = until.filter(|until| *until < now && !kept.is_empty()).map(Reason::Expired);
    let is_due = is_edge_due(&lineage, now);
    let to_check = |sites: Vec<&'c Site>| sites_to_check(&lineage, &recorded, sites, is_due);
    let check = if let Some(reason) = reason.or(expired) {
        // A deployment does not look at the sites that an earlier one only reached.
        let sites = if matches!(reason, Reason::Expired(_)) { Vec::new() } else { to_check(reached) };
        Check { reason: Some(reason), sites, ..Check::new(lineage) }
    } else {
        let sites = to_check([kept, reached].concat());
        if sites.is_empty() && is_recorded {
            return Decision::Settled { is_superseded };
        }
        Check { superseded, sites, is_due, ..Check::new(lineage) }
    };
    Decision::Check(Box::new(check))
}

/// Separates the sites that the lineage keeps from those on which others supersede it, with the reason.
fn split<'a>(
    lineage: &Candidate<'_>,
    sites: Vec<&'a Site>,
    account: &IndexedListing,
    deployments: &ServiceDeployments,
    now: OffsetDateTime,
) -> (Vec<&'a Site>, Vec<(&'a Site, String)>) {
    let (mut kept, mut superseded) = (Vec::new(), Vec::new());
    for site in sites {
        match superseded_by(lineage, site, account, deployments, now) {
            Some(reason) => superseded.push((site, reason)),
            None => kept.push(site),
        }
    }
    (kept, superseded)
}

/// Which other lineage provides the certificate of a site; `None` if this one does.
fn superseded_by(
    lineage: &Candidate<'_>,
    site: &Site,
    account: &IndexedListing,
    deployments: &ServiceDeployments,
    now: OffsetDateTime,
) -> Option<String> {
    let record = site.cert_id.filter(|id| !account.is_deleted(*id));
    let (place, name) = ((&site.domain, record), &lineage.name);
    let other = deployments.superseding(place, name, lineage.leaf.as_ref()?, now)?;
    Some(plan::superseded_reason(&other.lineage, other.leaf.not_before))
}

/// Why a lineage that was deployed has to be deployed again; `None` if the service lists its sites as it left them.
fn drift(
    lineage: &Candidate<'_>,
    account: &IndexedListing,
    recorded: &RecordedSites<'_>,
    sites: &[&Site],
    has_superseded: bool,
) -> Option<Reason> {
    let has_any = !sites.is_empty() || has_superseded;
    if !has_any && recorded.is_any_bound() {
        return Some(Reason::Drifted("the account no longer has its sites".into()));
    }
    // By hand, `--skip-unmatched` is for one run; afterwards, nothing has drifted.
    let skipped = lineage.sites.iter().filter(|site| site.outcome == Outcome::Skipped);
    let skipped: Vec<&Domain> = skipped.map(|site| &site.domain).collect();
    let is_missing = if lineage.domains.is_empty() {
        !has_any && (skipped.is_empty() || skipped.len() < lineage.sites.len())
    } else {
        lineage.domains.iter().any(|domain| account.site(domain).is_none() && !skipped.contains(&domain))
    };
    if is_missing && !lineage.settings.skip_unmatched {
        return Some(Reason::Drifted("a site is missing".into()));
    }
    if let Some(gap) = account.gap_for(lineage) {
        return Some(Reason::Drifted(gap.to_string()));
    }
    sites.iter().find_map(|site| {
        let Some(known) = recorded.find(site) else {
            return Some(Reason::Drifted(format!("{} is a new site", site.domain)));
        };
        change(site, known, account).map(Reason::Drifted)
    })
}

/// How a site differs from what was deployed to it.
fn change(site: &Site, deployed: &state::SiteState, account: &IndexedListing) -> Option<String> {
    let domain = &site.domain;
    if deployed.outcome == Outcome::Superseded {
        return Some(format!("{domain} is no longer superseded"));
    }
    if let Some(unreadable) = &site.unreadable_cert_id {
        return Some(format!("{domain} has a cert_id that cannot be read: {unreadable}"));
    }
    if site.cert_id != deployed.cert_id {
        let (now, before) = (certificate(site.cert_id), certificate(deployed.cert_id));
        return Some(format!("{domain} is bound to {now}, no longer to {before}"));
    }
    if let Some(id) = deployed.cert_id.filter(|id| account.is_deleted(*id)) {
        return Some(format!("{domain} is bound to certificate {id}, which no longer exists"));
    }
    let is_unconfirmed = deployed.outcome == Outcome::Uploaded && !site.config_synced;
    is_unconfirmed.then(|| format!("the push to {domain} was never confirmed"))
}

fn certificate(id: Option<u64>) -> String {
    id.map_or_else(|| "no certificate".to_owned(), |id| format!("certificate {id}"))
}

/// The sites that the lineage was not asked for, but reached through a record that they share with its own sites. As long
/// as they are bound to it, other lineages are superseded there.
fn reached_sites<'a>(lineage: &Candidate<'_>, account: &'a IndexedListing) -> impl Iterator<Item = &'a Site> {
    let reached =
        lineage.sites.iter().filter(|known| !lineage.is_for(&known.domain) && known.outcome.is_bound());
    reached.filter_map(|known| {
        let site = account.site(&known.domain)?;
        let has_leaf = known.leaf.as_ref() == lineage.leaf.as_ref().map(|leaf| &leaf.fingerprint);
        (has_leaf && site.cert_id == known.cert_id).then_some(site)
    })
}

/// The sites to handshake with: all of them if the lineage's turn has come, otherwise those not known to be served.
fn sites_to_check<'a>(
    lineage: &Candidate<'_>,
    recorded: &RecordedSites<'_>,
    sites: Vec<&'a Site>,
    is_due: bool,
) -> Vec<&'a Site> {
    let settings = &lineage.settings;
    if settings.verify == Verify::Off || settings.verify_every.is_zero() {
        return Vec::new();
    }
    let is_served = |site: &Site| recorded.find(site).is_some_and(|known| known.outcome == Outcome::Served);
    // Even if a push is pending: it may be stuck.
    let may_be_checked = |site: &&Site| site.serves_https() && site.cert_id.is_some();
    sites.into_iter().filter(may_be_checked).filter(|site| is_due || !is_served(site)).collect()
}

/// Whether the turn of a lineage to have its edges checked has come.
fn is_edge_due(lineage: &Candidate<'_>, now: OffsetDateTime) -> bool {
    let is_due = |seen| is_due(state::stable_hash(&lineage.name), seen, now, lineage.settings.verify_every);
    lineage.edge_seen_at.is_some_and(is_due)
}

/// Whether the edge check of a lineage is due. Each lineage has its own time within the period, derived from the hash
/// of its name, so that the handshakes of many lineages are spread evenly.
pub(super) fn is_due(hash: u64, seen: OffsetDateTime, now: OffsetDateTime, period: Duration) -> bool {
    let period = i128::try_from(period.as_nanos()).unwrap_or(i128::MAX).max(1);
    let offset = i128::from(hash).rem_euclid(period);
    let turn = |at: OffsetDateTime| (at.unix_timestamp_nanos() - offset).div_euclid(period);
    // A clock that was set back must not delay the check.
    turn(now) != turn(seen)
}

/// The sites that the last deployment reported, by host. An id does not identify them: the bare upload reports none, and a
/// site that is created again gets another.
struct RecordedSites<'s>(HashMap<&'s str, &'s state::SiteState>);

impl<'s> RecordedSites<'s> {
    fn new(sites: &'s [state::SiteState]) -> Self {
        // A domain that was skipped was not a site at that time.
        let sites = sites.iter().filter(|site| site.outcome != Outcome::Skipped);
        Self(sites.map(|site| (site.domain.host(), site)).collect())
    }

    fn find(&self, site: &Site) -> Option<&'s state::SiteState> {
        self.0.get(site.domain.host()).copied()
    }

    fn is_any_bound(&self) -> bool {
        self.0.values().any(|site| site.outcome.is_bound())
    }

    fn are_superseded(&self, sites: &[(&Site, String)]) -> bool {
        let is_superseded = |known: &state::SiteState| known.outcome == Outcome::Superseded;
        sites.iter().all(|(site, _)| self.find(site).is_some_and(is_superseded))
    }
}

#[cfg(test)]
mod tests;
