//! A listing with lookup tables, so that the work for one lineage does not grow with the account.
//!
//! The tables hold positions rather than references, because they are moved together with the listing.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::iter::once;

use crate::api::{Listing, Record, Site};
use crate::names::{Domain, Names};

/// All sites and records of an account.
#[derive(Debug)]
pub(crate) struct IndexedListing {
    listing: Listing,
    sites: Table,
    records: Table,
}

/// What sites and records are looked up by.
#[derive(Clone, Copy, PartialEq, Hash)]
enum Key<'k> {
    /// The host of a site, or one that a record is stored for.
    Host(&'k str),
    /// The host of a site without its first label; wildcard sites have none.
    Parent(&'k str),
    /// The id of a record, or of the one that a site is bound to.
    Record(u64),
    /// That of all sites whose binding cannot be read.
    Unreadable,
}

trait Keyed {
    /// All keys of an item.
    fn keys(&self) -> impl Iterator<Item = Key<'_>>;
}

/// Hashes of the items' keys and positions of the items, sorted. Different keys may have the same hash.
#[derive(Debug)]
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
        let (sites, records) = (Table::new(&listing.sites.items), Table::new(&listing.records.items));
        Self { listing, sites, records }
    }

    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The site of a host; the last one, if the service has sent a page twice.
    pub(crate) fn site(&self, host: &str) -> Option<&Site> {
        Some(self.sites_with(Key::Host(host)).last()?.1)
    }

    pub(crate) fn record(&self, id: u64) -> Option<&Record> {
        Some(self.records_with(Key::Record(id)).last()?.1)
    }

    /// Whether a record no longer exists. An incomplete listing may lack a record that does.
    pub(crate) fn is_deleted(&self, id: u64) -> bool {
        self.listing.records.gaps.is_empty() && self.record(id).is_none()
    }

    /// The records that are stored for a host, so that an upload for it may replace them: those named after it and those
    /// that list it.
    pub(crate) fn records_stored_for(&self, host: &str) -> impl Iterator<Item = &Record> {
        self.records_with(Key::Host(host)).map(|(_, record)| record)
    }

    /// The sites that are bound to a record, listed or not.
    pub(super) fn sites_bound_to(&self, record: u64) -> impl Iterator<Item = &Site> {
        self.sites_with(Key::Record(record)).map(|(_, site)| site)
    }

    /// The sites whose binding cannot be read.
    pub(super) fn unreadable_bindings(&self) -> impl Iterator<Item = &Site> {
        self.sites_with(Key::Unreadable).map(|(_, site)| site)
    }

    /// The sites that these names cover, in the order of the listing.
    pub(crate) fn sites_covered_by(&self, names: &Names) -> Vec<&Site> {
        self.covered_by(names).into_values().collect()
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
        sites.extend(domains.iter().flat_map(|domain| self.sites_with(Key::Host(domain.host()))));
        // Includes records that are not listed: other sites may be bound to them. Many sites may be bound to one record.
        let mut ids: HashSet<u64> = sites.values().filter_map(|site| site.cert_id).chain(records).collect();
        let bound = ids.iter().flat_map(|id| self.records_with(Key::Record(*id)));
        let stored = sites.values().flat_map(|site| self.records_with(Key::Host(site.domain.host())));
        let mut records = BTreeMap::new();
        records.extend(bound.chain(stored));
        for record in records.values() {
            ids.insert(record.id);
            sites.extend(record.all_domains().flat_map(|domain| self.sites_with(Key::Host(domain.host()))));
        }
        sites.extend(ids.iter().flat_map(|id| self.sites_with(Key::Record(*id))));
        Account {
            listing: self,
            sites: sites.into_values().collect(),
            records: records.into_values().collect(),
        }
    }

    fn covered_by(&self, names: &Names) -> BTreeMap<u32, &Site> {
        let (hosts, parents) = (names.hosts().map(Key::Host), names.wildcard_parents().map(Key::Parent));
        let mut sites = BTreeMap::new();
        sites.extend(hosts.chain(parents).flat_map(|key| self.sites_with(key)));
        sites
    }

    fn sites_with(&self, key: Key<'_>) -> impl Iterator<Item = (u32, &Site)> {
        self.sites.find(&self.listing.sites.items, key)
    }

    fn records_with(&self, key: Key<'_>) -> impl Iterator<Item = (u32, &Record)> {
        self.records.find(&self.listing.records.items, key)
    }
}

impl Keyed for Site {
    fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        let host = self.domain.host();
        let unreadable = self.unreadable_cert_id.is_some().then_some(Key::Unreadable);
        let parent = host.split_once('.').filter(|(label, _)| !label.starts_with('*'));
        let parent = parent.map(|(_, parent)| Key::Parent(parent));
        [self.cert_id.map(Key::Record), Some(Key::Host(host)), parent, unreadable].into_iter().flatten()
    }
}

impl Keyed for Record {
    fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        once(Key::Record(self.id)).chain(self.all_domains().map(|domain| Key::Host(domain.host())))
    }
}

impl Table {
    fn new<T: Keyed>(items: &[T]) -> Self {
        let entries = (0..).zip(items).flat_map(|(at, item)| item.keys().map(move |key| (hash(key), at)));
        let mut entries: Vec<(u32, u32)> = entries.collect();
        entries.sort_unstable();
        entries.dedup();
        Self(entries)
    }

    /// The items that have a key, with their positions.
    fn find<'i, T: Keyed>(&self, items: &'i [T], key: Key<'_>) -> impl Iterator<Item = (u32, &'i T)> {
        let hash = hash(key);
        let start = self.0.partition_point(|(known, _)| *known < hash);
        let found = self.0.iter().skip(start).take_while(move |(known, _)| *known == hash);
        let found = found.filter_map(|(_, at)| Some((*at, items.get(*at as usize)?)));
        found.filter(move |(_, item)| item.keys().any(|own| own == key))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part of a hash is a hash")]
fn hash(key: Key<'_>) -> u32 {
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
        let names =
            ["liquid.example", "costarring.example", "other.example", "costarring.example", "*.example"];
        let sites: Vec<_> = (1..).zip(names).map(|(id, name)| json!({"id": id, "domain": name})).collect();
        let records = json!([{"id": 5, "name": "a.example"}, {"id": 5, "name": "b.example"}]);
        let (records, sites) = (List::of(&records).unwrap(), List::of(&json!(sites)).unwrap());
        let indexed = IndexedListing::new(Listing { records, sites });
        let found = |key| indexed.sites_with(key).map(|(at, _)| at).collect::<Vec<_>>();
        let ids = |host| found(Key::Host(host));
        assert_eq!(
            [ids("liquid.example"), ids("costarring.example"), ids("x.example")],
            [vec![0], vec![1, 3], vec![]]
        );
        assert_eq!(found(Key::Parent("example")), [0, 1, 2, 3]);
        // The later of two pages counts.
        assert_eq!(indexed.site("costarring.example").map(|site| site.id), Some(4));
        assert_eq!(indexed.record(5).and_then(|record| record.name.as_ref()).unwrap().host(), "b.example");
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
