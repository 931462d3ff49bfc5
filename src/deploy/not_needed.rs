//! Decides which sites need no deployment: those that have the leaf, and those on which another lineage supersedes this
//! one. Pure.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use time::OffsetDateTime;

use super::scope::Scope;
use super::survey::Survey;
use crate::api::Site;
use crate::plan::{Account, NotNeeded};
use crate::settings::Verify;
use crate::state::{LeafRank, ServiceDeployments};

/// A lineage to compare with the others of this host.
pub(super) struct Contender<'a> {
    pub(super) lineage: &'a str,
    pub(super) leaf: LeafRank,
    pub(super) deployments: &'a ServiceDeployments,
    pub(super) now: OffsetDateTime,
}

impl Contender<'_> {
    /// Returns which lineage supersedes this one on a site, if any.
    pub(super) fn superseded_on(&self, site: &Site) -> Option<NotNeeded> {
        let (site, deployments) = ((&site.domain, site.cert_id), self.deployments);
        let later = deployments.superseding(site, self.lineage, &self.leaf, self.now)?;
        Some(NotNeeded::Superseded { lineage: later.lineage.clone(), issued: later.rank.issued })
    }
}

/// The sites that have the leaf. `deployed` is the record of each site that an earlier run deployed the leaf to.
pub(super) fn current_sites(
    scope: &Scope<'_>,
    account: &Account<'_>,
    survey: &Survey,
    deployed: &HashMap<u64, u64>,
    verify: Verify,
) -> Vec<u64> {
    let records = LazyCell::new(|| account.records.iter().map(|record| record.id).collect::<HashSet<u64>>());
    let exists = |record: u64| !account.record_gaps.is_empty() || records.contains(&record);
    let has_leaf = |site: &Site, record: u64| {
        let is_deployed = deployed.get(&site.id) == Some(&record);
        match survey.view(site.id) {
            // Another upload does not make an address respond.
            Some(view) => view.is_current() || is_deployed && !view.may_change(),
            // A handshake cannot show the certificate of a site without HTTPS.
            None => is_deployed && (verify == Verify::Off || !site.serves_https()),
        }
    };
    let is_current =
        |site: &&Site| site.cert_id.is_some_and(|record| has_leaf(site, record) && exists(record));
    let wanted = scope.wanted(account).filter(|site| site.config_synced);
    wanted.filter(is_current).map(|site| site.id).collect()
}
