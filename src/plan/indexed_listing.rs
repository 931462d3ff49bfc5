//! A listing with lookup tables, so that the work for one lineage does not grow with the account.
//!
//! The tables hold positions rather than references, because they are moved together with the listing.

use std::iter::Copied;
use std::slice::Iter;

use super::account::Account;
use crate::api::{Listing, Record, Site};
use crate::names::{Domain, Names};

/// All sites and records of an account.
#[derive(Debug, Default)]
pub(crate) struct IndexedListing {
    listing: Listing,
    sites_by_host: Table<u32>,
    /// Keyed by the host without its first label; wildcard sites are left out.
    sites_by_parent: Table<u32>,
    /// The bound sites.
    sites_by_record: Table<u32>,
    /// Sites whose binding cannot be read.
    unreadable_bindings: Vec<u32>,
    records_by_id: Table<u32>,
    /// Each with the position of the host in `domains_of`.
    records_by_host: Table<(u32, u32)>,
}

/// Positions of items, sorted by the item's key, then by position.
#[derive(Debug)]
struct Table<P>(Vec<P>);

/// The positions with one key.
type Found<'t, P> = Copied<Iter<'t, P>>;

impl IndexedListing {
    pub(crate) fn new(listing: Listing) -> Self {
        let sites = || (0..).zip(&listing.sites);
        let records = || (0..).zip(&listing.records);
        let below = sites().filter(|(_, site)| !site.domain.host().starts_with('*'));
        let bound = sites().filter(|(_, site)| site.cert_id.is_some());
        let unreadable = sites().filter(|(_, site)| site.unreadable_cert_id.is_some());
        let stored =
            records().flat_map(|(at, record)| (0..).zip(domains_of(record)).map(move |(of, _)| (at, of)));
        Self {
            sites_by_host: Table::new(sites().map(|(at, _)| at), |at| host_of(&listing, at)),
            sites_by_parent: Table::new(below.map(|(at, _)| at), |at| parent_of(&listing, at)),
            sites_by_record: Table::new(bound.map(|(at, _)| at), |at| record_of(&listing, at)),
            unreadable_bindings: unreadable.map(|(at, _)| at).collect(),
            records_by_id: Table::new(records().map(|(at, _)| at), |at| id_of(&listing, at)),
            records_by_host: Table::new(stored, |at| stored_host(&listing, at)),
            listing,
        }
    }

    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The site of a domain.
    pub(crate) fn site(&self, domain: &Domain) -> Option<&Site> {
        self.site_at(self.at_host(domain.host()).next_back()?)
    }

    pub(crate) fn has_site(&self, host: &str) -> bool {
        self.at_host(host).next().is_some()
    }

    pub(crate) fn record(&self, id: u64) -> Option<&Record> {
        self.record_at(self.with_id(id).next_back()?)
    }

    /// Whether a record is listed.
    pub(crate) fn has_record(&self, id: u64) -> bool {
        self.record(id).is_some()
    }

    /// Whether a record no longer exists. An incomplete listing may lack a record that does.
    pub(crate) fn is_deleted(&self, id: u64) -> bool {
        self.listing.record_gaps.is_empty() && !self.has_record(id)
    }

    /// The records that are stored for a host, so that an upload for it may replace them: those named after it and those
    /// that list it.
    pub(crate) fn records_stored_for(&self, host: &str) -> impl Iterator<Item = &Record> {
        self.stored_for(host).filter_map(|at| self.record_at(at))
    }

    /// The sites that are bound to a record, listed or not.
    pub(super) fn sites_bound_to(&self, record: u64) -> impl Iterator<Item = &Site> {
        self.bound_to(record).filter_map(|at| self.site_at(at))
    }

    /// The sites whose binding cannot be read.
    pub(super) fn unreadable_bindings(&self) -> impl Iterator<Item = &Site> {
        self.unreadable_bindings.iter().filter_map(|at| self.site_at(*at))
    }

    /// The sites that these names cover, in the order of the listing.
    pub(crate) fn sites_covered_by(&self, names: &Names) -> Vec<&Site> {
        let mut covered = self.covered_by(names);
        sort(&mut covered);
        covered.into_iter().filter_map(|at| self.site_at(at)).collect()
    }

    /// The part of the account that suffices to decide for a lineage: the sites that its names cover or that `domains`
    /// requests, the records that these are bound to or that are stored for their hosts, and the sites that are bound
    /// to these records or have their hosts. The whole account would lead to the same decisions, because an upload for
    /// a domain only replaces a record that is stored for that domain.
    ///
    /// `records` and the sites bound to them are included, too.
    pub(crate) fn around<'a>(
        &'a self,
        names: &Names,
        domains: &[Domain],
        records: impl IntoIterator<Item = u64>,
    ) -> Account<'a> {
        let mut sites = self.covered_by(names);
        sites.extend(domains.iter().flat_map(|domain| self.at_host(domain.host())));
        sort(&mut sites);
        let own = || sites.iter().filter_map(|at| self.site_at(*at));
        // Includes records that are not listed: other sites may be bound to them.
        let mut ids: Vec<u64> = own().filter_map(|site| site.cert_id).chain(records).collect();
        let mut records: Vec<u32> = ids.iter().flat_map(|id| self.with_id(*id)).collect();
        records.extend(own().flat_map(|site| self.stored_for(site.domain.host())));
        sort(&mut records);
        for record in records.iter().filter_map(|at| self.record_at(*at)) {
            ids.push(record.id);
            sites.extend(domains_of(record).flat_map(|domain| self.at_host(domain.host())));
        }
        sort(&mut ids);
        sites.extend(ids.iter().flat_map(|id| self.bound_to(*id)));
        sort(&mut sites);
        let sites = sites.into_iter().filter_map(|at| self.site_at(at)).collect();
        let records = records.into_iter().filter_map(|at| self.record_at(at)).collect();
        Account { listing: self, sites, records }
    }

    fn covered_by(&self, names: &Names) -> Vec<u32> {
        let exact = names.hosts().flat_map(|host| self.at_host(host));
        exact.chain(names.wildcard_parents().flat_map(|parent| self.below(parent))).collect()
    }

    fn site_at(&self, at: u32) -> Option<&Site> {
        self.listing.sites.get(at as usize)
    }

    fn record_at(&self, at: u32) -> Option<&Record> {
        self.listing.records.get(at as usize)
    }

    fn at_host(&self, host: &str) -> Found<'_, u32> {
        self.sites_by_host.find(&host, |at| host_of(&self.listing, at))
    }

    fn below(&self, parent: &str) -> Found<'_, u32> {
        self.sites_by_parent.find(&parent, |at| parent_of(&self.listing, at))
    }

    fn bound_to(&self, record: u64) -> Found<'_, u32> {
        self.sites_by_record.find(&Some(record), |at| record_of(&self.listing, at))
    }

    fn with_id(&self, record: u64) -> Found<'_, u32> {
        self.records_by_id.find(&Some(record), |at| id_of(&self.listing, at))
    }

    fn stored_for(&self, host: &str) -> impl Iterator<Item = u32> + use<'_> {
        let found = self.records_by_host.find(&host, |at| stored_host(&self.listing, at)).map(|(at, _)| at);
        // A record is nearly always named after its domain.
        let mut last = None;
        found.filter(move |at| last.replace(*at) != Some(*at))
    }
}

fn host_of(listing: &Listing, at: u32) -> &str {
    listing.sites.get(at as usize).map_or("", |site| site.domain.host())
}

/// The host without its first label.
fn parent_of(listing: &Listing, at: u32) -> &str {
    host_of(listing, at).split_once('.').map_or("", |(_, parent)| parent)
}

/// The record that a site is bound to.
fn record_of(listing: &Listing, at: u32) -> Option<u64> {
    listing.sites.get(at as usize)?.cert_id
}

fn id_of(listing: &Listing, at: u32) -> Option<u64> {
    Some(listing.records.get(at as usize)?.id)
}

fn stored_host(listing: &Listing, (at, of): (u32, u32)) -> &str {
    let record = listing.records.get(at as usize);
    record.and_then(|record| domains_of(record).nth(of as usize)).map_or("", Domain::host)
}

/// The domains that a record is stored for, and its name.
fn domains_of(record: &Record) -> impl Iterator<Item = &Domain> {
    record.domains.iter().chain(&record.name)
}

fn sort<T: Ord>(items: &mut Vec<T>) {
    items.sort_unstable();
    items.dedup();
}

impl<P: Copy> Table<P> {
    fn new<K: Ord>(positions: impl Iterator<Item = P>, key: impl Fn(P) -> K) -> Self {
        let mut positions: Vec<P> = positions.collect();
        positions.sort_by_key(|at| key(*at));
        Self(positions)
    }

    /// The positions with a key.
    fn find<K: Ord>(&self, wanted: &K, key: impl Fn(P) -> K) -> Found<'_, P> {
        let start = self.0.partition_point(|at| key(*at) < *wanted);
        let rest = self.0.get(start..).unwrap_or_default();
        let end = rest.partition_point(|at| key(*at) == *wanted);
        rest.get(..end).unwrap_or_default().iter().copied()
    }
}

impl<P> Default for Table<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::List;
    use serde_json::json;

    #[test]
    fn sites_are_found_by_host_and_parent() {
        let names = ["liquid.example", "costarring.example", "other.example", "costarring.example"];
        let sites: Vec<_> = (1..).zip(names).map(|(id, name)| json!({"id": id, "domain": name})).collect();
        let sites: List<Site> = List::of(&json!(sites)).unwrap();
        let indexed = IndexedListing::new(Listing { sites: sites.items, ..Listing::default() });
        let ids = |host: &str| indexed.at_host(host).collect::<Vec<_>>();
        assert_eq!(
            [ids("liquid.example"), ids("costarring.example"), ids("x.example")],
            [vec![0], vec![1, 3], vec![]]
        );
        assert_eq!(indexed.below("example").collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
