//! Makes the plan of a rollout from what was listed, recorded and observed. Pure.

use std::collections::{HashMap, HashSet};

use super::conversion::record_leaf;
use super::not_needed::{Contender, current_sites};
use super::scope::Scope;
use super::survey::Survey;
use crate::api::Site;
use crate::names::Domain;
use crate::plan::{Account, Allow, NotNeeded, Plan, PlanRequest, RecordLeaf};
use crate::settings::Verify;
use crate::verify::EdgeView;

/// What a plan depends on.
pub(super) struct PlanInputs<'a, 'l> {
    pub(super) scope: &'a Scope<'a>,
    /// The part of the account around the lineage.
    pub(super) account: &'a Account<'l>,
    pub(super) survey: &'a Survey,
    pub(super) contender: &'a Contender<'a>,
    /// The record of each site that an earlier run deployed this leaf to.
    pub(super) deployed: &'a HashMap<u64, u64>,
    /// The record of each site that an earlier upload of this leaf did not reach.
    pub(super) missed: &'a HashMap<u64, u64>,
    pub(super) verify: Verify,
    pub(super) allow: Allow,
    /// Upload even for sites that have the leaf.
    pub(super) force: bool,
}

impl<'l> PlanInputs<'_, 'l> {
    /// Makes the plan.
    pub(super) fn plan(&self) -> Plan<'l> {
        let has_leaf = |site: &&&Site| self.survey.view(site.id).is_some_and(EdgeView::is_current);
        let current = self.account.sites.iter().filter(has_leaf).filter_map(|site| site.cert_id);
        let current: HashSet<u64> = current.collect();
        let request = PlanRequest {
            covers: &|domain| self.scope.covers(domain),
            domains: self.scope.domains(),
            later_leaf: &|record| self.later_leaf(record),
            keeps_names: &|record| current.contains(&record) || self.keeps_names(record),
            not_needed: &self.not_needed(),
            missed: self.missed,
            allow: self.allow,
        };
        Plan::new(self.account, &request)
    }

    /// Whether the new leaf covers all names of every leaf that the record is known to hold, and at least one is known.
    fn keeps_names(&self, record: u64) -> bool {
        let served = self.survey.leaf_of(record).map(|leaf| &leaf.names);
        let deployed = self.contender.deployments.leaves_in(record);
        let deployed = deployed.iter().map(|leaf| &leaf.names);
        let covers = |name: &String| name.parse::<Domain>().is_ok_and(|name| self.scope.covers(&name));
        let mut known = served.into_iter().chain(deployed).peekable();
        known.peek().is_some() && known.flatten().all(covers)
    }

    fn not_needed(&self) -> HashMap<u64, NotNeeded> {
        let mut not_needed = self.scope.superseded().clone();
        if !self.force {
            let current = current_sites(self.scope, self.account, self.survey, self.deployed, self.verify);
            not_needed.extend(current.into_iter().map(|site| (site, NotNeeded::Current)));
        }
        not_needed
    }

    /// The valid leaf in a record if it was issued later than the new one, as far as it is known. Of lineages of this host
    /// with equal issue dates, the same one must prevail that supersedes the other, or they would replace each other.
    fn later_leaf(&self, record: u64) -> Option<RecordLeaf> {
        let Contender { lineage, leaf: own, deployments, now } = self.contender;
        let served = self.survey.leaf_of(record);
        let deployed = deployments.leaves_in(record).into_iter().filter(|leaf| {
            let is_present = served.is_none_or(|served| served.fingerprint == leaf.rank.fingerprint);
            leaf.rank.issued > own.issued || leaf.lineage != *lineage && leaf.rank > *own && is_present
        });
        let deployed = deployed.map(record_leaf);
        let served = served.filter(|leaf| leaf.issued > own.issued).cloned();
        let valid = served.into_iter().chain(deployed).filter(|leaf| leaf.expires >= *now);
        valid.max_by_key(|leaf| leaf.issued)
    }
}
