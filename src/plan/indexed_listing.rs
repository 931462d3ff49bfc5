//! A listing with lookup tables, so that the work for one lineage does not grow with the account.
//!
//! The tables hold positions rather than references, because they are moved together with the listing.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::api::{Listing, Record, Site};
use crate::names::{Domain, Names};

/// All sites and records of an account.
#[derive(Debug)]
pub(crate) struct IndexedListing {
    listing: Listing,
    sites_by_host: Table,
    /// Keyed by the host without its first label; wildcard sites are left out.
    sites_by_parent: Table,
    /// The bound sites.
    sites_by_record: Table,
    /// Sites whose binding cannot be read.
    unreadable_bindings: Vec<u32>,
    records_by_id: Table,
    /// Keyed by each host that the record is stored for.
    records_by_host: Table,
}

/// Hashes of the items' keys and positions of the items, sorted. Different keys may have the same hash.
#[derive(Debug, Default)]
struct Table(Vec<(u32, u32)>);

/// The part of an account that a decision for one lineage looks at. All of it would lead to the same decision.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) listing: &'a IndexedListing,
    /// In the order of the listing, as are the records.
    pub(crate) sites: Vec<&'a Site>,
    pub(crate) records: Vec<&'a Record>,
}

impl IndexedListing {
    pub(crate) fn new(listing: Listing) -> Self {
        let sites = || (0..).zip(&listing.sites.items);
        let records = || (0..).zip(&listing.records.items);
        let unreadable = sites().filter(|(_, site)| site.unreadable_cert_id.is_some());
        let stored =
            records().flat_map(|(at, record)| domains_of(record).map(move |domain| (domain.host(), at)));
        Self {
            sites_by_host: Table::new(sites().map(|(at, site)| (site.domain.host(), at))),
            sites_by_parent: Table::new(sites().filter_map(|(at, site)| Some((parent_of(site)?, at)))),
            sites_by_record: Table::new(sites().filter_map(|(at, site)| Some((site.cert_id?, at)))),
            unreadable_bindings: unreadable.map(|(at, _)| at).collect(),
            records_by_id: Table::new(records().map(|(at, record)| (record.id, at))),
            records_by_host: Table::new(stored),
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
        self.listing.records.gaps.is_empty() && !self.has_record(id)
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
        self.listing.sites.items.get(at as usize)
    }

    fn record_at(&self, at: u32) -> Option<&Record> {
        self.listing.records.items.get(at as usize)
    }

    fn at_host(&self, host: &str) -> impl DoubleEndedIterator<Item = u32> {
        let has_host = move |at: &u32| self.site_at(*at).is_some_and(|site| site.domain.host() == host);
        self.sites_by_host.find(host).filter(has_host)
    }

    fn below(&self, parent: &str) -> impl Iterator<Item = u32> {
        let is_below = move |at: &u32| self.site_at(*at).and_then(parent_of) == Some(parent);
        self.sites_by_parent.find(parent).filter(is_below)
    }

    fn bound_to(&self, record: u64) -> impl Iterator<Item = u32> {
        let is_bound = move |at: &u32| self.site_at(*at).is_some_and(|site| site.cert_id == Some(record));
        self.sites_by_record.find(record).filter(is_bound)
    }

    fn with_id(&self, id: u64) -> impl DoubleEndedIterator<Item = u32> {
        let has_id = move |at: &u32| self.record_at(*at).is_some_and(|record| record.id == id);
        self.records_by_id.find(id).filter(has_id)
    }

    fn stored_for(&self, host: &str) -> impl Iterator<Item = u32> {
        let is_stored_for = move |at: &u32| {
            self.record_at(*at).is_some_and(|record| domains_of(record).any(|domain| domain.host() == host))
        };
        self.records_by_host.find(host).filter(is_stored_for)
    }
}

/// The host of a site without its first label; `None` for a wildcard.
fn parent_of(site: &Site) -> Option<&str> {
    let (label, parent) = site.domain.host().split_once('.')?;
    (!label.starts_with('*')).then_some(parent)
}

/// The domains that a record is stored for, and its name.
fn domains_of(record: &Record) -> impl Iterator<Item = &Domain> {
    record.domains.iter().chain(&record.name)
}

fn sort<T: Ord>(items: &mut Vec<T>) {
    items.sort_unstable();
    items.dedup();
}

impl Table {
    fn new<K: Hash>(items: impl Iterator<Item = (K, u32)>) -> Self {
        let mut entries: Vec<(u32, u32)> = items.map(|(key, at)| (hash(key), at)).collect();
        sort(&mut entries);
        Self(entries)
    }

    /// The positions of the items that may have a key.
    fn find<K: Hash>(&self, key: K) -> impl DoubleEndedIterator<Item = u32> + use<'_, K> {
        let hash = hash(key);
        let start = self.0.partition_point(|(known, _)| *known < hash);
        let rest = self.0.get(start..).unwrap_or_default();
        let end = rest.partition_point(|(known, _)| *known == hash);
        rest.get(..end).unwrap_or_default().iter().map(|(_, at)| *at)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a hash is a hash")]
fn hash(key: impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() as u32
}

#[cfg(test)]
impl<'a> Account<'a> {
    /// All sites and records of a listing.
    pub(crate) fn whole(listing: &'a IndexedListing) -> Self {
        let (sites, records) = (&listing.listing().sites.items, &listing.listing().records.items);
        Self { listing, sites: sites.iter().collect(), records: records.iter().collect() }
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
        let (records, sites) = (List::complete(Vec::new()), List::of(&json!(sites)).unwrap());
        let indexed = IndexedListing::new(Listing { records, sites });
        let ids = |host: &str| indexed.at_host(host).collect::<Vec<_>>();
        assert_eq!(
            [ids("liquid.example"), ids("costarring.example"), ids("x.example")],
            [vec![0], vec![1, 3], vec![]]
        );
        assert_eq!(indexed.below("example").collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn only_a_whole_list_shows_that_a_record_is_deleted() {
        let rows = [
            (json!([{"id": 5}]), false),
            (json!([{"id": 6}]), true),
            (json!([{"id": 6}, {"name": "x"}]), false),
        ];
        for (records, expected) in rows {
            let (list, sites) = (List::of(&records).unwrap(), List::complete(Vec::new()));
            let indexed = IndexedListing::new(Listing { records: list, sites });
            assert_eq!(indexed.is_deleted(5), expected, "{records}");
        }
    }
}
