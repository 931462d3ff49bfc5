//! The sites and records of an account, indexed for lookups by host. Pure.

use std::collections::{HashMap, HashSet};

use super::scan::Candidate;
use crate::api::{Gap, Listing, Site};
use crate::names::Domain;

pub(super) struct AccountIndex<'a> {
    listing: &'a Listing,
    sites: HashMap<&'a str, &'a Site>,
    /// Sites by their host without its first label.
    sites_by_parent: HashMap<&'a str, Vec<&'a Site>>,
    /// Ids of the records that are stored for a host.
    records_by_host: HashMap<&'a str, Vec<u64>>,
    record_ids: HashSet<u64>,
}

/// A site or a record that a deployment may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    Site(u64),
    Record(u64),
}

impl<'a> AccountIndex<'a> {
    pub(super) fn new(listing: &'a Listing) -> Self {
        let mut sites_by_parent: HashMap<&str, Vec<&Site>> = HashMap::new();
        for site in &listing.sites {
            if let Some((_, parent)) = site.domain.host().split_once('.') {
                sites_by_parent.entry(parent).or_default().push(site);
            }
        }
        let mut records_by_host: HashMap<&str, Vec<u64>> = HashMap::new();
        for record in &listing.records {
            for domain in record.domains.iter().chain(&record.name) {
                records_by_host.entry(domain.host()).or_default().push(record.id);
            }
        }
        let sites = listing.sites.iter().map(|site| (site.domain.host(), site)).collect();
        let record_ids = listing.records.iter().map(|record| record.id).collect();
        Self { listing, sites, sites_by_parent, records_by_host, record_ids }
    }

    /// The site of a domain.
    pub(super) fn site(&self, domain: &Domain) -> Option<&'a Site> {
        self.sites.get(domain.host()).copied()
    }

    /// The sites that a lineage is for.
    pub(super) fn sites_of(&self, lineage: &Candidate) -> Vec<&'a Site> {
        if !lineage.domains.is_empty() {
            return lineage.domains.iter().filter_map(|domain| self.site(domain)).collect();
        }
        self.covered_by(lineage)
    }

    /// The sites that the leaf of a lineage covers.
    fn covered_by(&self, lineage: &Candidate) -> Vec<&'a Site> {
        let names = lineage.leaf.iter().flat_map(|leaf| &leaf.names);
        let mut sites: Vec<&Site> = Vec::new();
        for name in names.filter_map(|name| name.parse::<Domain>().ok()) {
            sites.extend(self.sites.get(name.host()));
            if let Some(parent) = name.host().strip_prefix("*.") {
                let below = self.sites_by_parent.get(parent).into_iter().flatten();
                sites.extend(below.filter(|site| !site.domain.host().starts_with('*')));
            }
        }
        sites.sort_unstable_by_key(|site| site.id);
        sites.dedup_by_key(|site| site.id);
        sites
    }

    /// Whether a record no longer exists. An incomplete listing may lack a record that does.
    pub(super) fn is_deleted(&self, record: u64) -> bool {
        self.listing.record_gaps.is_empty() && !self.record_ids.contains(&record)
    }

    /// A gap of the listing that may hide a site or a record of a lineage.
    pub(super) fn gap_for(&self, lineage: &Candidate) -> Option<&'a Gap> {
        let names = lineage.leaf.iter().flat_map(|leaf| &leaf.names).map(String::as_str);
        let covers = |domain: &Domain| domain.is_covered_by_any(names.clone());
        self.listing.gaps().find(|gap| gap.may_hide(covers))
    }

    /// What a deployment of a lineage may change.
    pub(super) fn resources(&self, lineage: &Candidate) -> HashSet<Resource> {
        let mut resources = HashSet::new();
        for site in self.sites_of(lineage) {
            resources.insert(Resource::Site(site.id));
            let stored = self.records_by_host.get(site.domain.host()).into_iter().flatten().copied();
            resources.extend(site.cert_id.into_iter().chain(stored).map(Resource::Record));
        }
        // The service binds them to any record that is created.
        let unbound = self.covered_by(lineage).into_iter().filter(|site| site.is_unbound());
        resources.extend(unbound.map(|site| Resource::Site(site.id)));
        resources
    }
}
