//! The account as the planner sees it: all of it, or the part around a lineage, which leads to the same plan.

use crate::api::{Gap, Listing, Record, Site};

/// Sites and records of the account, in the order of the listing.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) sites: Vec<&'a Site>,
    pub(crate) records: Vec<&'a Record>,
    /// The number of all sites of the account.
    pub(crate) site_count: usize,
    /// Records that unreadable sites are bound to.
    pub(crate) unreadable: &'a [u64],
    /// Whether a site that is not among `sites` may be bound to any record.
    pub(crate) hides_bindings: bool,
    /// Why sites may be missing.
    pub(crate) site_gaps: &'a [Gap],
    /// Why records may be missing.
    pub(crate) record_gaps: &'a [Gap],
}

impl<'a> Account<'a> {
    /// All sites and records of a listing.
    pub(crate) fn whole(listing: &'a Listing) -> Self {
        Self::new(listing, listing.sites.iter().collect(), listing.records.iter().collect())
    }

    /// Some of the sites and records of a listing.
    pub(super) fn new(listing: &'a Listing, sites: Vec<&'a Site>, records: Vec<&'a Record>) -> Self {
        Self {
            sites,
            records,
            site_count: listing.sites.len(),
            unreadable: &listing.unreadable,
            hides_bindings: listing.hides_bindings,
            site_gaps: &listing.site_gaps,
            record_gaps: &listing.record_gaps,
        }
    }
}
