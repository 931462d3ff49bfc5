//! Compares what was deployed with what the service lists now. Pure.

use std::collections::{HashMap, HashSet};

use super::scan::{Candidate, Reason};
use crate::api::{Listing, Site};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::settings::{Settings, Verify};
use crate::state;

/// The sites and records of an account, indexed for lookups by host.
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

    /// The sites that must have the certificate of a lineage.
    fn wanted(&self, lineage: &Candidate) -> Vec<&'a Site> {
        if !lineage.domains.is_empty() {
            let find = |domain: &Domain| self.sites.get(domain.host()).copied();
            return lineage.domains.iter().filter_map(find).collect();
        }
        let mut wanted: Vec<&Site> = Vec::new();
        for name in lineage.names.iter().filter_map(|name| name.parse::<Domain>().ok()) {
            wanted.extend(self.sites.get(name.host()));
            if let Some(parent) = name.host().strip_prefix("*.") {
                let below = self.sites_by_parent.get(parent).into_iter().flatten();
                wanted.extend(below.filter(|site| !site.domain.host().starts_with('*')));
            }
        }
        wanted.sort_unstable_by_key(|site| site.id);
        wanted.dedup_by_key(|site| site.id);
        wanted
    }

    /// Why a lineage that was deployed has to be deployed again; `None` if its sites are unchanged.
    pub(super) fn drift(&self, lineage: &Candidate) -> Option<Reason> {
        let wanted = self.wanted(lineage);
        let is_missing = wanted.len() < lineage.domains.len() || wanted.is_empty();
        if is_missing && !lineage.settings.skip_unmatched {
            return Some(Reason::Drifted("a site is missing".into()));
        }
        // A domain that was skipped was not a site at that time.
        let deployed = || lineage.sites.iter().filter(|site| site.outcome != Outcome::Skipped);
        let by_id: HashMap<u64, &state::SiteState> =
            deployed().filter_map(|site| Some((site.id?, site))).collect();
        // An upload without a listing reports no ids.
        let by_host: HashMap<String, &state::SiteState> = deployed()
            .filter_map(|site| Some((site.domain.parse::<Domain>().ok()?.host().to_owned(), site)))
            .collect();
        wanted.into_iter().find_map(|site| {
            let Some(known) = by_id.get(&site.id).or_else(|| by_host.get(site.domain.host())) else {
                return Some(Reason::Drifted(format!("{} is a new site", site.domain)));
            };
            self.change(site, known, &lineage.settings).map(Reason::Drifted)
        })
    }

    /// How a site differs from what was deployed to it.
    fn change(&self, site: &Site, deployed: &state::SiteState, settings: &Settings) -> Option<String> {
        let domain = &site.domain;
        if site.cert_id != deployed.cert_id {
            let (now, before) = (certificate(site.cert_id), certificate(deployed.cert_id));
            return Some(format!("{domain} is bound to {now}, no longer to {before}"));
        }
        // An incomplete listing may lack a record that exists.
        let is_complete = self.listing.warnings.is_empty();
        if let Some(id) = deployed.cert_id.filter(|id| is_complete && !self.record_ids.contains(id)) {
            return Some(format!("{domain} is bound to certificate {id}, which no longer exists"));
        }
        // Without handshakes, a finished push is all that can be confirmed.
        let needs_no_handshake = settings.verify == Verify::Off || settings.wait.is_zero();
        let is_unconfirmed =
            deployed.outcome == Outcome::Uploaded && !(needs_no_handshake && site.config_synced);
        is_unconfirmed.then(|| format!("the push to {domain} was never confirmed"))
    }

    /// What a deployment of a lineage may change.
    pub(super) fn resources(&self, lineage: &Candidate) -> HashSet<Resource> {
        let mut resources = HashSet::new();
        for site in self.wanted(lineage) {
            resources.insert(Resource::Site(site.id));
            let stored = self.records_by_host.get(site.domain.host()).into_iter().flatten().copied();
            resources.extend(site.cert_id.into_iter().chain(stored).map(Resource::Record));
        }
        resources
    }
}

fn certificate(id: Option<u64>) -> String {
    id.map_or_else(|| "no certificate".to_owned(), |id| format!("certificate {id}"))
}
