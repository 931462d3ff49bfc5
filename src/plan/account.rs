//! The part of an account that a decision for one lineage looks at. All of it would lead to the same decision.

use super::indexed_listing::IndexedListing;
use crate::api::{Record, Site};

/// Sites and records of an account, in the order of the listing.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) listing: &'a IndexedListing,
    pub(crate) sites: Vec<&'a Site>,
    pub(crate) records: Vec<&'a Record>,
}

#[cfg(test)]
impl<'a> Account<'a> {
    /// All sites and records of a listing.
    pub(crate) fn whole(listing: &'a IndexedListing) -> Self {
        let (sites, records) = (&listing.listing().sites, &listing.listing().records);
        Self { listing, sites: sites.iter().collect(), records: records.iter().collect() }
    }
}
