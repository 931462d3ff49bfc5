//! Decides which deployments may run at the same time. Pure.

use std::collections::HashSet;

use super::decision::sites_of;
use super::scan::Candidate;
use crate::leaf::Leaf;
use crate::plan::IndexedListing;

/// The lineages of an account to deploy.
#[derive(Default)]
pub(super) struct Schedule<'a> {
    /// Share no site and no record, so they may run concurrently.
    pub(super) independent: Vec<Candidate<'a>>,
    /// May change what another one finds, so they run one by one after the independent ones.
    pub(super) conflicting: Vec<Candidate<'a>>,
}

/// A site or a record that a deployment may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Resource {
    Site(u64),
    Record(u64),
}

impl<'a> Schedule<'a> {
    /// The lineage whose leaf was issued last comes first: it may supersede the others.
    pub(super) fn new(mut due: Vec<Candidate<'a>>, listing: &IndexedListing) -> Self {
        due.sort_by(|a, b| b.leaf.as_ref().map(Leaf::rank).cmp(&a.leaf.as_ref().map(Leaf::rank)));
        let (mut schedule, mut taken) = (Self::default(), HashSet::new());
        for lineage in due {
            let resources = resources(&lineage, listing);
            let is_independent = resources.is_disjoint(&taken);
            taken.extend(resources);
            if is_independent { &mut schedule.independent } else { &mut schedule.conflicting }.push(lineage);
        }
        schedule
    }
}

/// The sites and records that a deployment of a lineage may change.
fn resources(lineage: &Candidate<'_>, listing: &IndexedListing) -> HashSet<Resource> {
    let mut resources = HashSet::new();
    for site in sites_of(lineage, listing) {
        resources.insert(Resource::Site(site.id));
        let stored = listing.records_stored_for(site.domain.host()).map(|record| record.id);
        resources.extend(site.cert_id.into_iter().chain(stored).map(Resource::Record));
    }
    // The service binds them to any record that is created.
    let covered = listing.sites_covered_by(&lineage.names);
    let unbound = covered.into_iter().filter(|site| site.is_unbound());
    resources.extend(unbound.map(|site| Resource::Site(site.id)));
    resources
}
