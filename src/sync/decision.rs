//! Decides what to do with a lineage, given its state and what the service lists now. Pure: what an edge serves is only
//! known after the check.

use std::collections::HashMap;

use time::OffsetDateTime;

use super::check::{Check, CheckedSite};
use super::scan::{Candidate, Reason};
use crate::api::Site;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::IndexedListing;
use crate::report::SiteReport;
use crate::settings::Verify;
use crate::state::{self, ServiceDeployments, SiteState};

/// Decides what to check, to record and to deploy of a lineage. `deployments` is what this host deployed to the service.
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
        let leaf = deployments.leaf_on(&known.domain, &lineage.name)?;
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
        let is_whole = !lineage.options.domains.is_empty() || gap.is_none();
        let are_all_recorded = lineage.sites.iter().all(|site| site.outcome == Outcome::Superseded);
        let is_settled = lineage.reason.is_none() && is_recorded;
        if is_whole || is_settled && are_all_recorded {
            let lineage = Candidate { reason: None, ..lineage };
            return Check { superseded, is_superseded, is_settled, ..Check::new(lineage) };
        }
    }
    let has_any = !kept.is_empty() || !superseded.is_empty();
    // By hand, `--skip-unmatched` is for one run; afterwards, nothing has drifted.
    let skipped = lineage.sites.iter().filter(|site| site.outcome == Outcome::Skipped);
    let skipped: Vec<&Domain> = skipped.map(|site| &site.domain).collect();
    let is_missing = if lineage.options.domains.is_empty() {
        !has_any && (skipped.is_empty() || skipped.len() < lineage.sites.len())
    } else {
        let mut domains = lineage.options.domains.iter();
        domains.any(|domain| account.site(domain.host()).is_none() && !skipped.contains(&domain))
    };
    // Why it has to be deployed again; `None` if the service lists its sites as the last deployment left them.
    let drift = if !has_any && recorded.values().any(|site| site.outcome.is_bound()) {
        Some("the account no longer has its sites".to_owned())
    } else if is_missing && !lineage.settings.skip_unmatched {
        Some("a site is missing".to_owned())
    } else {
        let mut changes =
            kept.iter().filter_map(|site| change(site, recorded.get(site.domain.host()).copied(), account));
        gap.map(ToString::to_string).or_else(|| changes.next())
    };
    let until = lineage.leaf.as_ref().map(|leaf| leaf.not_after);
    let expired = until.filter(|until| *until < now && !kept.is_empty()).map(Reason::Expired);
    let reason = lineage.reason.clone().or(drift.map(Reason::Drifted)).or(expired);
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
    Check { lineage, superseded, is_superseded, sites, is_due, is_settled }
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

#[cfg(test)]
mod tests;
