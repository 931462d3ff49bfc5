//! Whether what was deployed is still so, as the service lists it now. Pure.

use std::collections::{HashMap, HashSet};

use super::scan::{Lineage, Reason};
use crate::api::{Listing, Site};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::settings::{Settings, Verify};

/// The account by what is looked for.
pub(super) struct AccountIndex<'a> {
    listing: &'a Listing,
    /// By host.
    sites: HashMap<&'a str, &'a Site>,
    /// By the host without its first label.
    below: HashMap<&'a str, Vec<&'a Site>>,
    /// Records by each host that they are stored for.
    stored: HashMap<&'a str, Vec<u64>>,
    records: HashSet<u64>,
}

/// A site or a record that a deployment may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    Site(u64),
    Record(u64),
}

impl<'a> AccountIndex<'a> {
    pub(super) fn new(listing: &'a Listing) -> Self {
        let mut below: HashMap<&str, Vec<&Site>> = HashMap::new();
        for site in &listing.sites {
            if let Some((_, parent)) = site.domain.host().split_once('.') {
                below.entry(parent).or_default().push(site);
            }
        }
        let mut stored: HashMap<&str, Vec<u64>> = HashMap::new();
        for record in &listing.records {
            for domain in record.domains.iter().chain(&record.name) {
                stored.entry(domain.host()).or_default().push(record.id);
            }
        }
        let sites = listing.sites.iter().map(|site| (site.domain.host(), site)).collect();
        let records = listing.records.iter().map(|record| record.id).collect();
        Self { listing, sites, below, stored, records }
    }

    /// The sites that have to have the certificate.
    fn wanted(&self, lineage: &Lineage) -> Vec<&'a Site> {
        if !lineage.domains.is_empty() {
            let find = |domain: &Domain| self.sites.get(domain.host()).copied();
            return lineage.domains.iter().filter_map(find).collect();
        }
        let mut wanted: Vec<&Site> = Vec::new();
        for name in lineage.names.iter().filter_map(|name| name.parse::<Domain>().ok()) {
            wanted.extend(self.sites.get(name.host()));
            if let Some(parent) = name.host().strip_prefix("*.") {
                let below = self.below.get(parent).into_iter().flatten();
                wanted.extend(below.filter(|site| !site.domain.host().starts_with('*')));
            }
        }
        wanted.sort_unstable_by_key(|site| site.id);
        wanted.dedup_by_key(|site| site.id);
        wanted
    }

    /// Why a lineage has to be deployed again that seems to be done; `None`: it does not have to.
    pub(super) fn drift(&self, lineage: &Lineage) -> Option<Reason> {
        let wanted = self.wanted(lineage);
        let missing = wanted.len() < lineage.domains.len() || wanted.is_empty();
        if missing && !lineage.settings.skip_unmatched {
            return Some(Reason::Drifted("a site is gone".into()));
        }
        // One that was skipped was no site then.
        let sites = || lineage.sites.iter().filter(|site| site.outcome != Outcome::Skipped);
        let by_id: HashMap<u64, &crate::state::SiteState> =
            sites().filter_map(|site| Some((site.id?, site))).collect();
        // Of a upload_only upload the numbers are not known.
        let by_host: HashMap<String, &crate::state::SiteState> = sites()
            .filter_map(|site| Some((site.domain.parse::<Domain>().ok()?.host().to_owned(), site)))
            .collect();
        wanted.into_iter().find_map(|site| {
            let Some(known) = by_id.get(&site.id).or_else(|| by_host.get(site.domain.host())) else {
                return Some(Reason::Drifted(format!("{} is a new site", site.domain)));
            };
            self.change(site, known, &lineage.settings).map(Reason::Drifted)
        })
    }

    /// What is not as it was left.
    fn change(&self, site: &Site, known: &crate::state::SiteState, settings: &Settings) -> Option<String> {
        let (domain, record) = (&site.domain, |id: Option<u64>| match id {
            Some(id) => format!("certificate {id}"),
            None => "no certificate".to_owned(),
        });
        if site.cert_id != known.cert_id {
            let (now, before) = (record(site.cert_id), record(known.cert_id));
            return Some(format!("{domain} is bound to {now}, not to {before} any more"));
        }
        // What the service did not list whole may be there all the same.
        let is_listed = |id: &u64| !self.listing.warnings.is_empty() || self.records.contains(id);
        if let Some(gone) = known.cert_id.filter(|id| !is_listed(id)) {
            return Some(format!("{domain} is bound to certificate {gone}, which is gone"));
        }
        // Where nobody looks at the edge, a push that is over is all that there will ever be.
        let unseen = settings.verify == Verify::Off || settings.wait.is_zero();
        let is_open = known.outcome == Outcome::Uploaded && !(unseen && site.config_synced);
        is_open.then(|| format!("the push to {domain} was never confirmed"))
    }

    /// What a deployment of this lineage may change.
    pub(super) fn resources(&self, lineage: &Lineage) -> HashSet<Resource> {
        let mut resources = HashSet::new();
        for site in self.wanted(lineage) {
            resources.insert(Resource::Site(site.id));
            let stored = self.stored.get(site.domain.host()).into_iter().flatten().copied();
            resources.extend(site.cert_id.into_iter().chain(stored).map(Resource::Record));
        }
        resources
    }
}
