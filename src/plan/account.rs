//! The account as the planner sees it: all of it, or the part around a lineage, which leads to the same plan.

use crate::api::{Listing, Record, Site};

/// Sites and records of an account, in the order of the listing.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) sites: Vec<&'a Site>,
    pub(crate) records: Vec<&'a Record>,
    /// Whether a site that is not among `sites` may be bound to any record.
    pub(crate) hides_bindings: bool,
}

#[cfg(test)]
impl<'a> Account<'a> {
    /// All sites and records of a listing.
    pub(crate) fn whole(listing: &'a Listing) -> Self {
        let (sites, records) = (listing.sites.iter().collect(), listing.records.iter().collect());
        Self { listing, sites, records, hides_bindings: listing.hides_bindings }
    }
}
