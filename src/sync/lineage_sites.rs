//! The part of an account that concerns a lineage: its sites, and what its deployment may change. Pure.

use std::collections::HashSet;

use super::scan::Candidate;
use crate::api::{Gap, Site};
use crate::plan::IndexedListing;

/// A site or a record that a deployment may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    Site(u64),
    Record(u64),
}

impl IndexedListing {
    /// The sites of a lineage: those requested, or else those that its leaf covers.
    pub(super) fn sites_of(&self, lineage: &Candidate<'_>) -> Vec<&Site> {
        if !lineage.domains.is_empty() {
            return lineage.domains.iter().filter_map(|domain| self.site(domain)).collect();
        }
        self.sites_covered_by(&lineage.names)
    }

    /// A gap of the listing that may hide a site or a record of a lineage.
    pub(super) fn gap_for(&self, lineage: &Candidate<'_>) -> Option<&Gap> {
        let mut gaps = self.listing().gaps();
        gaps.find(|gap| gap.may_hide(|domain| lineage.names.cover(domain)))
    }

    /// The sites and records that a deployment of a lineage may change.
    pub(super) fn resources(&self, lineage: &Candidate<'_>) -> HashSet<Resource> {
        let mut resources = HashSet::new();
        for site in self.sites_of(lineage) {
            resources.insert(Resource::Site(site.id));
            let stored = self.records_stored_for(site.domain.host()).map(|record| record.id);
            resources.extend(site.cert_id.into_iter().chain(stored).map(Resource::Record));
        }
        // The service binds them to any record that is created.
        let covered = self.sites_covered_by(&lineage.names);
        let unbound = covered.into_iter().filter(|site| site.is_unbound());
        resources.extend(unbound.map(|site| Resource::Site(site.id)));
        resources
    }
}
