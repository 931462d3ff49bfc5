//! Makes the plan of a rollout from what was listed, recorded and observed. Pure.

use std::collections::HashMap;

use time::OffsetDateTime;

use super::not_needed::current_sites;
use super::scope::Scope;
use super::survey::Survey;
use crate::api::Listing;
use crate::plan::{Account, Allow, NotNeeded, Plan, PlanRequest, RecordLeaf};
use crate::settings::Verify;
use crate::state::ServiceDeployments;

/// What a plan depends on.
pub(super) struct PlanInputs<'a, 'l> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) listing: &'l Listing,
    pub(super) survey: &'a Survey,
    /// What this host deployed to the service.
    pub(super) deployments: &'a ServiceDeployments,
    /// The record of each site that an earlier run deployed this leaf to.
    pub(super) deployed: &'a HashMap<u64, u64>,
    /// The record of each site that an earlier upload of this leaf did not reach.
    pub(super) missed: &'a HashMap<u64, u64>,
    /// When the leaf was issued.
    pub(super) issued: OffsetDateTime,
    pub(super) verify: Verify,
    pub(super) allow: Allow,
    /// Upload even for sites that have the leaf.
    pub(super) force: bool,
}

impl<'l> PlanInputs<'_, 'l> {
    /// Makes the plan.
    pub(super) fn plan(&self) -> Plan<'l> {
        let listing = self.listing;
        let account =
            Account { sites: &listing.sites, records: &listing.records, unreadable: &listing.unreadable };
        let request = PlanRequest {
            covers: &|domain| self.scope.covers(domain),
            issued: self.issued,
            domains: self.scope.domains(),
            leaf_of: &|record| self.leaf_of(record),
            not_needed: &self.not_needed(),
            missed: self.missed,
            allow: self.allow,
        };
        Plan::new(&account, &request)
    }

    fn not_needed(&self) -> HashMap<u64, NotNeeded> {
        let mut not_needed = self.scope.superseded().clone();
        if !self.force {
            let current = current_sites(self.scope, self.listing, self.survey, self.deployed, self.verify);
            not_needed.extend(current.into_iter().map(|site| (site, NotNeeded::Current)));
        }
        not_needed
    }

    /// The leaf in a record, as far as it is known.
    fn leaf_of(&self, record: u64) -> Option<RecordLeaf> {
        let served = self.survey.leaf_of(record).cloned();
        let deployed = self.deployments.leaf_of(record).map(|leaf| RecordLeaf {
            issued: leaf.issued,
            fingerprint: leaf.fingerprint.clone(),
            issuer: None,
        });
        served.into_iter().chain(deployed).max_by_key(|leaf| leaf.issued)
    }
}
