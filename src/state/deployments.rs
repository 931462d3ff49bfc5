//! What this host deployed, according to its state files: the leaf in each record, for the guard `Older`, and the lineages
//! of each site, to decide which of them is superseded.

use std::collections::HashMap;

use time::OffsetDateTime;

use super::{LeafState, LineageState, SiteState};
use crate::names::Domain;
use crate::outcome::Outcome;

/// The deployments of all lineages.
#[derive(Debug, Default)]
pub(crate) struct Deployments {
    by_service: HashMap<String, ServiceDeployments>,
}

/// The deployments to one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceDeployments {
    /// By record.
    records: HashMap<u64, DeployedLeaf>,
    /// By host of the site; several lineages may have been deployed to one.
    sites: HashMap<String, Vec<SiteDeployment>>,
}

/// The leaf that was deployed into a record last.
#[derive(Clone, Debug)]
pub(crate) struct DeployedLeaf {
    deployed_at: OffsetDateTime,
    pub(crate) lineage: String,
    pub(crate) rank: LeafRank,
    /// The DNS names that it covers.
    pub(crate) names: Vec<String>,
}

/// The deployment of a lineage to a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteDeployment {
    pub(crate) lineage: String,
    pub(crate) rank: LeafRank,
    /// The record that the site has the leaf from; `None`: unknown.
    record: Option<u64>,
    /// Whether `sync` keeps the site as it is: the lineage is for the site, and its files are there.
    is_maintained: bool,
}

/// Orders leaves by issue date. The other fields break ties, so that two lineages never supersede each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeafRank {
    pub(crate) issued: OffsetDateTime,
    pub(crate) expires: OffsetDateTime,
    pub(crate) fingerprint: String,
}

impl Deployments {
    /// Adds the deployments of a lineage.
    pub(crate) fn add(&mut self, lineage: &str, state: &LineageState) {
        let (Some(service), Some(dated)) = (&state.options.service, &state.sites_leaf) else { return };
        if !self.by_service.contains_key(service) {
            self.by_service.insert(service.clone(), ServiceDeployments::default());
        }
        let Some(service) = self.by_service.get_mut(service) else { return };
        let domains = &state.options.domains;
        for site in &state.sites {
            if let (Some(leaf), Ok(domain)) = (state.leaf_deployed_to(site), site.domain.parse::<Domain>()) {
                let is_for_site = domains.is_empty() || domains.contains(&site.domain);
                let is_maintained = is_for_site && state.missing_since.is_none();
                let deployment = SiteDeployment {
                    lineage: lineage.to_owned(),
                    rank: LeafRank::of(leaf),
                    record: site.cert_id,
                    is_maintained,
                };
                service.sites.entry(domain.host().to_owned()).or_default().push(deployment);
            }
            if let Some(record) = site.cert_id.filter(|_| site.outcome.is_bound()) {
                let (lineage, rank) = (lineage.to_owned(), LeafRank::of(&dated.leaf));
                let names = dated.leaf.names.clone();
                service.add_record(record, DeployedLeaf { deployed_at: dated.at, lineage, rank, names });
            }
        }
    }

    /// The deployments to a service.
    pub(crate) fn of_service(&self, service: &str) -> ServiceDeployments {
        self.by_service.get(service).cloned().unwrap_or_default()
    }

    /// The deployment that supersedes a lineage with this leaf on a site of a service, given with its record, if there is
    /// one.
    pub(crate) fn superseding(
        &self,
        service: &str,
        site: (&Domain, Option<u64>),
        lineage: &str,
        leaf: &LeafRank,
        now: OffsetDateTime,
    ) -> Option<&SiteDeployment> {
        self.by_service.get(service)?.superseding(site, lineage, leaf, now)
    }
}

impl ServiceDeployments {
    /// Two lineages may have used one record: the later deployment counts.
    fn add_record(&mut self, record: u64, leaf: DeployedLeaf) {
        let known = self.records.entry(record).or_insert_with(|| leaf.clone());
        if leaf.deployed_at > known.deployed_at {
            *known = leaf;
        }
    }

    /// The hosts of the sites that this host deployed to, sorted.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.sites.keys().cloned().collect();
        hosts.sort_unstable();
        hosts
    }

    /// The leaf that was deployed into a record last.
    pub(crate) fn leaf_of(&self, record: u64) -> Option<&DeployedLeaf> {
        self.records.get(&record)
    }

    /// The deployment that supersedes a lineage with this leaf on a site, given with its record: that of another lineage,
    /// whose leaf is valid and was issued later. If `sync` does not maintain it, the site must still be bound to its record.
    pub(crate) fn superseding(
        &self,
        (site, record): (&Domain, Option<u64>),
        lineage: &str,
        leaf: &LeafRank,
        now: OffsetDateTime,
    ) -> Option<&SiteDeployment> {
        let deployments = self.sites.get(site.host()).into_iter().flatten();
        let deployments = deployments.filter(|other| other.lineage != lineage && other.rank.expires >= now);
        let deployments = deployments.filter(|other| other.is_maintained || other.record == record);
        deployments.max_by_key(|other| &other.rank).filter(|other| other.rank > *leaf)
    }
}

impl LeafRank {
    pub(crate) fn of(leaf: &LeafState) -> Self {
        Self { issued: leaf.not_before, expires: leaf.not_after, fingerprint: leaf.fingerprint.clone() }
    }
}

impl LineageState {
    /// The leaf that was deployed to a site last.
    fn leaf_deployed_to(&self, site: &SiteState) -> Option<&LeafState> {
        match &site.outcome {
            outcome if outcome.is_bound() => self.sites_leaf.as_ref().map(|dated| &dated.leaf),
            // Without it, a failed renewal would bring back the lineages that it superseded.
            Outcome::Queued | Outcome::Guarded | Outcome::Refused => self.previously_deployed.as_ref(),
            _ => None,
        }
    }

    /// Whether another lineage has superseded this one on every site.
    pub(crate) fn is_superseded(&self) -> bool {
        !self.sites.is_empty() && self.sites.iter().all(|site| site.outcome == Outcome::Superseded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{DAY_1, DAY_2, ISSUED, SERVICE, begin, deployed, leaf, served};
    use super::*;
    use time::macros::datetime;

    fn deployments(states: [&LineageState; 2]) -> Deployments {
        let mut deployments = Deployments::default();
        for (name, state) in ["first", "second"].iter().zip(states) {
            deployments.add(name, state);
        }
        deployments
    }

    fn issued(states: [&LineageState; 2]) -> OffsetDateTime {
        deployments(states).of_service(SERVICE).leaf_of(5).unwrap().rank.issued
    }

    #[test]
    fn later_deployment_decides_issue_date() {
        let first = deployed(leaf("aa", datetime!(2026-01-02 00:00 UTC)), DAY_1);
        let second = deployed(leaf("bb", ISSUED), DAY_2);
        for states in [[&first, &second], [&second, &first]] {
            assert_eq!(issued(states), ISSUED);
            assert!(deployments(states).of_service("https://other.example.net").leaf_of(5).is_none());
        }
    }

    #[test]
    fn run_without_sites_keeps_issue_date() {
        let state = deployed(leaf("aa", ISSUED), DAY_1);
        let mut newer = begin(Some(state.clone()), leaf("bb", DAY_1), DAY_2);
        newer.finish(75, Some("down".into()), Vec::new(), DAY_2);
        assert!(state.has_current_sites() && !newer.has_current_sites());
        assert_eq!(issued([&newer, &newer]), ISSUED);
    }

    #[test]
    fn failed_renewal_supersedes_with_earlier_leaf() {
        use Outcome::{Guarded, Misbound, Queued, Refused, Skipped, Stale, Superseded};
        let first = deployed(leaf("bb", ISSUED), DAY_1);
        let by_second = |before: Option<LineageState>, outcome: &Outcome| {
            let mut second = begin(before, leaf("cc", DAY_2), DAY_2);
            let mut sites = served();
            sites[0].outcome = outcome.clone();
            second.finish(75, None, sites, DAY_2);
            let (known, site) =
                (deployments([&first, &second]).of_service(SERVICE), "a.example".parse().unwrap());
            let other = known.superseding((&site, None), "first", &LeafRank::of(&leaf("bb", ISSUED)), DAY_2);
            other.map(|other| other.rank.issued)
        };
        let before = || Some(deployed(leaf("dd", DAY_1), DAY_1));
        for outcome in [Queued, Guarded, Refused] {
            assert_eq!(by_second(before(), &outcome), Some(DAY_1), "{outcome}");
            assert_eq!(by_second(None, &outcome), None, "{outcome}: never deployed");
        }
        assert_eq!(by_second(before(), &Stale), Some(DAY_2), "bound");
        for outcome in [Misbound, Skipped, Superseded] {
            assert_eq!(by_second(before(), &outcome), None, "{outcome}");
        }
    }

    #[test]
    fn later_valid_leaf_supersedes() {
        let states = [deployed(leaf("aa", ISSUED), DAY_2), deployed(leaf("bb", DAY_1), DAY_1)];
        let known = deployments([&states[0], &states[1]]).of_service(SERVICE);
        let by = |lineage: &str, fingerprint: &str, issued, now| {
            let rank = LeafRank::of(&leaf(fingerprint, issued));
            let site: Domain = "A.example".parse().unwrap();
            known.superseding((&site, None), lineage, &rank, now).map(|other| other.lineage.clone())
        };
        let second = Some("second".to_owned());
        assert_eq!(by("first", "aa", ISSUED, DAY_2), second);
        assert_eq!(by("second", "bb", DAY_1, DAY_2), None);
        assert_eq!(by("second", "cc", ISSUED, DAY_2), None, "its own later leaf");
        assert_eq!(by("first", "bb", DAY_1, DAY_2), None, "the same leaf");
        assert_eq!(by("first", "cc", DAY_1, DAY_2), None, "equal dates: the fingerprint decides");
        assert_eq!(by("first", "ba", DAY_1, DAY_2), second, "equal dates: the fingerprint decides");
        assert_eq!(by("first", "aa", ISSUED, datetime!(2027-01-02 00:00 UTC)), None, "expired");
        let rank = LeafRank::of(&leaf("aa", ISSUED));
        let other: Domain = "b.example".parse().unwrap();
        assert!(known.superseding((&other, None), "first", &rank, DAY_1).is_none());
    }
}
