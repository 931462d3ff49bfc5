//! What the records of a service hold, as far as the runs on one lineage know. A leaf is remembered until another one
//! has actually been stored in its record: the guard `Older` depends on it.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{LineageState, SiteState};
use crate::leaf::Leaf;
use crate::outcome::{ChangedRecords, Outcome};
use crate::text::rfc3339;

/// The leaves that the runs on a lineage stored, as far as records still hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RecordMemory {
    pub(super) leaves: Vec<RememberedLeaf>,
}

/// A leaf, and the records of a service that hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RememberedLeaf {
    /// Base URL of the service.
    pub(super) service: String,
    #[serde(rename = "certificate")]
    pub(super) leaf: Leaf,
    pub(super) records: Vec<Holder>,
}

/// A record that holds a leaf, or may hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(super) id: u64,
    /// End of the run that stored it.
    #[serde(with = "rfc3339::millis")]
    pub(super) at: OffsetDateTime,
    /// Whether it may hold an earlier leaf instead: the response to the upload was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_doubtful: bool,
    /// Whether the run only saw it at the edge, which a later leaf may not have reached yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_seen: bool,
}

impl RecordMemory {
    /// Adds a leaf that a run stored, or only saw at the edge. Its records hold nothing else; those that may hold it may
    /// still hold another leaf.
    fn add(&mut self, service: &str, leaf: &Leaf, at: OffsetDateTime, new: &ChangedRecords, is_seen: bool) {
        for known in self.leaves.iter_mut().filter(|known| known.service == service) {
            known.records.retain(|holder| !new.stored.contains(&holder.id));
        }
        let is_same = |known: &RememberedLeaf| known.service == service && known.leaf == *leaf;
        let mut entry = match self.leaves.iter().position(is_same) {
            Some(index) => self.leaves.remove(index),
            None => RememberedLeaf { service: service.into(), leaf: leaf.clone(), records: Vec::new() },
        };
        entry.records.retain(|holder| !(holder.is_doubtful && new.maybe_stored.contains(&holder.id)));
        let certain = new.stored.iter().map(|&id| Holder { id, at, is_doubtful: false, is_seen });
        let doubtful = new.maybe_stored.difference(&new.stored);
        let doubtful = doubtful.map(|&id| Holder { id, at, is_doubtful: true, is_seen: false });
        entry.records.extend(certain.chain(doubtful));
        self.leaves.push(entry);
        self.leaves.retain(|known| !known.records.is_empty());
    }

    /// The records that were not known to hold a leaf that the edge now shows. That does not rule out a leaf that was
    /// issued later, which may have been stored since.
    fn without_known(&self, service: &str, leaf: &Leaf, records: impl Iterator<Item = u64>) -> BTreeSet<u64> {
        let is_known = |known: &Leaf| known == leaf || known.not_before > leaf.not_before;
        let known: HashSet<u64> = self.records_of(service, is_known).collect();
        records.filter(|record| !known.contains(record)).collect()
    }

    /// The records of a service that hold, or may hold, a leaf that passes the filter.
    fn records_of(&self, service: &str, filter: impl Fn(&Leaf) -> bool) -> impl Iterator<Item = u64> {
        let known = self.leaves.iter().filter(move |known| known.service == service && filter(&known.leaf));
        known.flat_map(|known| &known.records).map(|holder| holder.id)
    }
}

impl LineageState {
    /// Remembers what the records hold after the run.
    pub(super) fn remember(&mut self, sites: &[SiteState], changed: &ChangedRecords, now: OffsetDateTime) {
        let (Some(service), Some(leaf)) = (&self.service, &self.leaf) else { return };
        // Not `records()`: this run has ended.
        let memory = &mut self.records;
        // Sites that earlier runs reported have their leaf already.
        let served = sites.iter().filter(|site| site.leaf.is_none() && site.outcome == Outcome::Served);
        let observed = served.filter_map(|site| site.cert_id);
        let stored = memory.without_known(service, leaf, observed);
        memory.add(service, leaf, now, &ChangedRecords { stored, ..ChangedRecords::default() }, true);
        let mut changed = changed.clone();
        if changed.is_any_possible {
            changed.maybe_stored.extend(memory.records_of(service, |_| true));
        }
        memory.add(service, leaf, now, &changed, false);
    }

    /// The records of a service in which runs on this lineage stored a leaf, or may have.
    pub(crate) fn stored_records(&self, service: &str) -> Vec<u64> {
        self.records().records_of(service, |_| true).collect()
    }

    /// What the records hold. If the last run did not end, they may hold its leaf.
    pub(super) fn records(&self) -> RecordMemory {
        let mut memory = self.records.clone();
        if let (Some(service), Some(leaf), None, Some(begun)) =
            (&self.service, &self.leaf, &self.result, self.begun_at)
        {
            let held: HashSet<u64> = memory.records_of(service, |known| known == leaf).collect();
            let maybe_stored = memory.records_of(service, |_| true).filter(|id| !held.contains(id)).collect();
            let changed = ChangedRecords { maybe_stored, ..ChangedRecords::default() };
            memory.add(service, leaf, begun, &changed, false);
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{DAY_1, DAY_2, ISSUED, SERVICE, begin, finish, leaf, served};
    use super::*;

    const OTHER: &str = "https://other.example.net";

    fn add(memory: &mut RecordMemory, service: &str, fingerprint: &str, records: &[u64], maybe: &[u64]) {
        let [stored, maybe_stored] = [records, maybe].map(|list| list.iter().copied().collect());
        let changed = ChangedRecords { stored, maybe_stored, is_any_possible: false };
        memory.add(service, &leaf(fingerprint, ISSUED), DAY_1, &changed, false);
    }

    /// Formats each remembered leaf as `fingerprint records maybe`.
    fn shown(memory: &RecordMemory) -> Vec<String> {
        let ids = |known: &RememberedLeaf, is_doubtful: bool| {
            let holders = known.records.iter().filter(|holder| holder.is_doubtful == is_doubtful);
            holders.map(|holder| holder.id).collect::<Vec<_>>()
        };
        let shown = |known: &RememberedLeaf| {
            format!("{} {:?} {:?}", known.leaf.fingerprint, ids(known, false), ids(known, true))
        };
        memory.leaves.iter().map(shown).collect()
    }

    #[test]
    fn stored_leaf_replaces_earlier_ones() {
        let mut memory = RecordMemory::default();
        let mut add = |service, fingerprint, records: &[u64], maybe: &[u64]| {
            add(&mut memory, service, fingerprint, records, maybe);
            shown(&memory)
        };
        assert_eq!(add(SERVICE, "aa", &[5, 6], &[]), ["aa [5, 6] []"]);
        assert_eq!(add(SERVICE, "bb", &[], &[6, 7]), ["aa [5, 6] []", "bb [] [6, 7]"]);
        add(OTHER, "bb", &[5, 6, 7], &[]);
        assert_eq!(add(SERVICE, "aa", &[], &[5]), ["bb [] [6, 7]", "bb [5, 6, 7] []", "aa [5, 6] [5]"]);
        let all = ["bb [] [7]", "bb [5, 6, 7] []", "aa [5] [5]", "dd [6] [5]"];
        assert_eq!(add(SERVICE, "dd", &[6], &[5]), all);
        assert_eq!(add(SERVICE, "bb", &[5, 6, 7], &[]), ["bb [5, 6, 7] []", "bb [5, 6, 7] []"]);
    }

    #[test]
    fn observation_does_not_disprove_later_leaf() {
        let mut memory = RecordMemory::default();
        add(&mut memory, SERVICE, "aa", &[5], &[]);
        let observed = |fingerprint, issued| {
            let records = memory.without_known(SERVICE, &leaf(fingerprint, issued), [5, 6].into_iter());
            records.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(observed("aa", ISSUED), [6], "known");
        assert_eq!(observed("bb", DAY_1), [5, 6]);
        assert_eq!(observed("bb", ISSUED), [5, 6]);
        assert_eq!(observed("bb", ISSUED - time::Duration::DAY), [6], "an earlier leaf");
    }

    #[test]
    fn site_that_was_not_listed_shows_nothing() {
        let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
        finish(&mut state, 0, served(), &ChangedRecords::default(), DAY_1);
        let hidden = state.sites.clone();
        let mut state = begin(Some(state), leaf("bb", DAY_1), DAY_2);
        finish(&mut state, 76, hidden, &ChangedRecords::default(), DAY_2);
        assert_eq!(shown(&state.records()), ["aa [5] []"]);
    }

    #[test]
    fn unfinished_run_may_have_stored_its_leaf() {
        let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
        finish(&mut state, 0, served(), &ChangedRecords::default(), DAY_1);
        assert_eq!(shown(&state.records()), ["aa [5] []"]);
        let mut state = begin(Some(state), leaf("bb", DAY_1), DAY_2);
        assert_eq!(shown(&state.records()), ["aa [5] []", "bb [] [5]"]);
        let killed = begin(Some(state.clone()), leaf("cc", DAY_1), DAY_2);
        assert_eq!(shown(&killed.records()), ["aa [5] []", "bb [] [5]", "cc [] [5]"]);
        finish(&mut state, 69, Vec::new(), &ChangedRecords::default(), DAY_2);
        assert_eq!(shown(&state.records()), ["aa [5] []"], "it ended, and stored nothing");
        let lost = ChangedRecords { is_any_possible: true, ..ChangedRecords::default() };
        finish(&mut state, 75, Vec::new(), &lost, DAY_2);
        assert_eq!(shown(&state.records()), ["aa [5] []", "bb [] [5]"]);
    }
}
