//! Renews a lineage in a large account without listing its sites: a leaf that keeps all names of the one before goes to
//! the same records.
//!
//! The lineage's own sites are read one by one, and the records are listed: what an upload replaces depends on them. Other
//! sites stay unknown, as after an incomplete listing. The guard for those holds here, too: a site that was bound to
//! one of the records meanwhile has the earlier leaf, and the new one covers all its names. Sites that are new are left
//! to `sync`. Whatever is not as the last deployment left it calls for the full listing.

use std::collections::BTreeSet;

use futures_util::future::try_join;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::timeout;

use super::request::RolloutRequest;
use super::survey::Survey;
use crate::api::{Listing, MAX_CONCURRENT_REQUESTS, Site};
use crate::names::{Domain, Names};
use crate::outcome::Outcome;
use crate::plan::{Action, Allow, IndexedListing, Plan};
use crate::state::{LeafState, LineageState, ServiceDeployments, SiteState};
use crate::verify::EdgeView;

/// The sites of a lineage as its last deployment left them.
#[derive(Debug)]
pub(super) struct Renewal {
    sites: Vec<DeployedSite>,
    /// The number of sites of the account when it was last listed.
    pub(super) site_count: usize,
}

#[derive(Debug)]
struct DeployedSite {
    id: u64,
    domain: Domain,
    record: u64,
}

/// An account is large if it has more sites.
pub(super) const MAX_SMALL_ACCOUNT: usize = 1_000;

/// Listing is cheaper if the account has fewer sites for each of the lineage.
const MIN_SITES_PER_OWN: usize = 30;

impl Renewal {
    /// Returns `None` if the account has to be listed. `leaf` is the new one; `deployments` are all of this host.
    pub(super) fn new(
        lineage: &str,
        state: &LineageState,
        leaf: &LeafState,
        service: &str,
        deployments: &ServiceDeployments,
    ) -> Option<Self> {
        let (earlier, site_count) = state.settled_in_large_account(service)?;
        let names = Names::of(leaf.names.iter().map(String::as_str));
        let keeps = |name: &String| name.parse::<Domain>().is_ok_and(|name| names.cover(&name));
        let is_renewal = leaf.fingerprint != earlier.fingerprint && earlier.names.iter().all(keeps);
        let site = |site: &SiteState| {
            let domain: Domain = site.domain.parse().ok()?;
            let is_kept = matches!(site.outcome, Outcome::Served | Outcome::Synced) && names.cover(&domain);
            is_kept.then_some(DeployedSite { id: site.id?, domain, record: site.cert_id? })
        };
        let sites: Vec<DeployedSite> = state.sites.iter().map(site).collect::<Option<_>>()?;
        let records: BTreeSet<u64> = sites.iter().map(|site| site.record).collect();
        let has_earlier = |record: &u64| {
            let known = deployments.leaves_in(*record);
            !known.is_empty()
                && known.iter().all(|known| {
                    known.is_certain
                        && known.lineage == lineage
                        && known.rank.fingerprint == earlier.fingerprint
                })
        };
        // A record that the lineage used before may hold a leaf that nobody renews; only a listing can tell.
        let has_no_other = state.stored_records(service).iter().all(|record| records.contains(record));
        let is_small = sites.len() * MIN_SITES_PER_OWN < site_count;
        let is_known = !sites.is_empty() && records.iter().all(has_earlier) && has_no_other;
        (is_renewal && is_known && is_small).then_some(Self { sites, site_count })
    }

    /// Whether a run with these options may go without a listing: only one that is for every covered site and overrides
    /// nothing.
    pub(super) fn is_allowed(domains: &[Domain], allow: Allow) -> bool {
        let Allow { rebind, shrink, older, lets, partial } = allow;
        domains.is_empty() && !(rebind || shrink || older || lets || partial)
    }

    /// Reads the sites and lists the records. `None` if that fails, or if a site is not as it was left.
    pub(super) async fn read(&self, request: &RolloutRequest<'_>) -> Option<IndexedListing> {
        let reads = self.sites.iter().map(|site| request.client.site(site.id));
        let sites = stream::iter(reads)
            .buffered(MAX_CONCURRENT_REQUESTS)
            .map_ok(|site| site.known)
            .try_collect::<Vec<Site>>();
        // The rest of the time is for the listing.
        let answers = timeout(request.deadline.left() / 4, try_join(sites, request.client.records())).await;
        let (sites, records) = match answers {
            Ok(Ok(answers)) => answers,
            Ok(Err(failed)) => {
                log::info!("listing the account: {failed}");
                return None;
            }
            Err(_) => return None,
        };
        let is_left = |(site, left): (&Site, &DeployedSite)| {
            site.domain == left.domain && site.cert_id == Some(left.record)
        };
        if !records.gaps.is_empty() || !sites.iter().zip(&self.sites).all(is_left) {
            return None;
        }
        let listing = Listing { records: records.items, sites, hides_bindings: true, ..Listing::default() };
        Some(IndexedListing::new(listing))
    }

    /// Whether a plan only replaces the records that the sites are bound to, and the leaf in each of them has been seen:
    /// another client may have stored one that was issued later or has other names.
    pub(super) fn is_followed_by(plan: &Plan<'_>, survey: &Survey) -> bool {
        let replaces_own = plan.targets.iter().all(|target| {
            let upload = match target.action {
                Action::Replace(upload) => plan.uploads.get(upload),
                _ => None,
            };
            let record = target.site.cert_id;
            upload.is_some_and(|upload| !upload.may_create && upload.replaces.iter().copied().eq(record))
        });
        let sites = || plan.targets.iter().map(|target| target.site);
        let has_leaf = |site: &&Site| survey.view(site.id).is_some_and(EdgeView::has_leaf);
        let seen: BTreeSet<u64> = sites().filter(has_leaf).filter_map(|site| site.cert_id).collect();
        let is_seen = |site: &Site| site.cert_id.is_some_and(|record| seen.contains(&record));
        replaces_own && sites().all(is_seen)
    }

    /// What the report says about it.
    pub(super) fn note(&self) -> String {
        format!(
            "the sites of this account ({} at the last listing) were not listed; new sites are left to the next `edgecert sync`",
            self.site_count
        )
    }
}
