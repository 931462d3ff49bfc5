//! What edgecert remembers about the edge of a site between runs: what each address was last seen to serve. The slack of
//! the site follows from it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize};
use time::{Duration, OffsetDateTime};

use crate::leaf::Leaf;

/// Memory of the edge of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EdgeMemory {
    /// What each address was last seen to serve; those that never showed anything are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<SocketAddr, Sighting>,
}

/// What an address showed in handshakes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Sighting {
    /// A leaf; if it serves several, the first to expire.
    Leaf(Leaf),
    /// No leaf that visitors accept: the address refuses the name, or its certificate cannot be parsed, does not cover
    /// the site, or is not valid yet.
    Nothing,
}

/// The result of one round of handshakes with the edge of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewSightings {
    /// What each address showed; `None` if it could not be reached.
    pub(crate) addresses: HashMap<SocketAddr, Option<Sighting>>,
    /// Whether these are all addresses of the edge.
    pub(crate) is_complete: bool,
}

impl Sighting {
    fn leaf(&self) -> Option<&Leaf> {
        if let Self::Leaf(leaf) = self { Some(leaf) } else { None }
    }
}

impl NewSightings {
    /// Treats addresses without a valid leaf as unreachable.
    pub(crate) fn ignore_refusals(&mut self) {
        for seen in self.addresses.values_mut() {
            seen.take_if(|seen| *seen == Sighting::Nothing);
        }
    }
}

/// What a deployment learned about the edge of a site, in the order of the handshakes. `None`: earlier sightings no longer
/// count, because visitors get no certificate, or one of another lineage, or because verification is off.
pub(crate) type EdgeFindings = Option<Vec<NewSightings>>;

impl EdgeMemory {
    /// Deserializes a memory. An invalid one becomes empty, so that the rest of the state file remains usable.
    pub(crate) fn deserialize_lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(serde_json::from_value(value).unwrap_or_default())
    }

    /// Whether no address was ever seen to serve anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Adds a round of handshakes. An address that could not be reached keeps its last sighting. Addresses that the
    /// edge no longer has are kept until another one shows something.
    pub(crate) fn see(&mut self, new: &NewSightings) {
        if new.is_complete && new.addresses.values().any(Option::is_some) {
            self.seen.retain(|address, _| new.addresses.contains_key(address));
        }
        let seen = new.addresses.iter().filter_map(|(address, seen)| Some((*address, seen.clone()?)));
        self.seen.extend(seen);
    }

    /// Adds what a deployment learned.
    pub(crate) fn add(&mut self, findings: Option<&[NewSightings]>) {
        match findings {
            Some(rounds) => rounds.iter().for_each(|new| self.see(new)),
            None => self.seen.clear(),
        }
    }

    /// The time until the earliest expiry that was seen; zero if an address serves nothing that visitors accept. `None`
    /// if nothing was seen.
    pub(crate) fn slack(&self, now: OffsetDateTime) -> Option<Duration> {
        let slack = |seen: &Sighting| seen.leaf().map_or(Duration::ZERO, |leaf| leaf.not_after - now);
        self.seen.values().map(slack).min()
    }

    /// The leaf that expires first; `None`: nothing was seen, or an address serves nothing that visitors accept.
    pub(crate) fn first_to_expire(&self) -> Option<&Leaf> {
        let leaves: Option<Vec<&Leaf>> = self.seen.values().map(Sighting::leaf).collect();
        leaves?.into_iter().min_by_key(|leaf| leaf.not_after)
    }

    /// Whether every address was last seen to serve this leaf; `None`: nothing was seen.
    pub(crate) fn serves(&self, fingerprint: &str) -> Option<bool> {
        let is_leaf = |seen: &Sighting| seen.leaf().is_some_and(|leaf| leaf.fingerprint == fingerprint);
        (!self.is_empty()).then(|| self.seen.values().all(is_leaf))
    }

    /// Whether two memories hold the same set of leaves, at whichever addresses.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|memory| memory.seen.values().collect::<HashSet<_>>());
        own == others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-11-22 12:00 UTC);

    fn leaf(fingerprint: &str, hours: i64) -> Sighting {
        let [not_before, not_after] = [-100, hours].map(|hours| NOW + Duration::hours(hours));
        Sighting::Leaf(Leaf {
            fingerprint: fingerprint.into(),
            names: Vec::new(),
            not_before,
            not_after,
            issuer: None,
        })
    }

    /// What handshakes with the addresses 1, 2, … showed.
    fn seen(addresses: &[Option<Sighting>], is_complete: bool) -> NewSightings {
        let address = |number| SocketAddr::from(([192, 0, 2, number], 443));
        let addresses = (1..).zip(addresses).map(|(number, seen)| (address(number), seen.clone())).collect();
        NewSightings { addresses, is_complete }
    }

    fn memory(rounds: &[NewSightings]) -> EdgeMemory {
        let mut memory = EdgeMemory::default();
        for seen in rounds {
            memory.see(seen);
        }
        memory
    }

    #[test]
    fn earliest_expiry_that_was_seen_counts() {
        let (old, new) = (|| Some(leaf("old", 10)), || Some(leaf("new", 90)));
        let nothing = || Some(Sighting::Nothing);
        let complete = |addresses: &[_]| seen(addresses, true);
        // The slack in hours, and whether every address serves `new`.
        let rows = [
            (vec![], None, None),
            (vec![complete(&[None])], None, None),
            (vec![complete(&[new()])], Some(90), Some(true)),
            (vec![complete(&[new(), old()])], Some(10), Some(false)),
            (vec![complete(&[new(), nothing()])], Some(0), Some(false)),
            (vec![complete(&[Some(leaf("new", -2)), nothing()])], Some(-2), Some(false)),
            (vec![complete(&[Some(leaf("new", 0))])], Some(0), Some(true)),
            // An upload that could not be verified: the address was last seen to serve the old leaf.
            (vec![complete(&[old()]), complete(&[None])], Some(10), Some(false)),
            (vec![complete(&[old(), old()]), complete(&[new(), None])], Some(10), Some(false)),
            (
                vec![complete(&[old(), old()]), complete(&[None, None]), complete(&[new(), new()])],
                Some(90),
                Some(true),
            ),
            (vec![complete(&[nothing()]), complete(&[None])], Some(0), Some(false)),
            (vec![complete(&[nothing()]), complete(&[new()])], Some(90), Some(true)),
            // The edge has fewer addresses than before, or they could not be looked up.
            (vec![complete(&[new(), old()]), complete(&[new()])], Some(90), Some(true)),
            (vec![complete(&[new(), old()]), seen(&[new()], false)], Some(10), Some(false)),
            (vec![complete(&[old()]), seen(&[], false)], Some(10), Some(false)),
            (vec![complete(&[None, old()]), complete(&[None])], Some(10), Some(false)),
            (vec![complete(&[None, old()]), complete(&[new()])], Some(90), Some(true)),
        ];
        for (number, (rounds, hours, serves)) in rows.iter().enumerate() {
            let memory = memory(rounds);
            let slack = memory.slack(NOW).map(Duration::whole_hours);
            assert_eq!((slack, memory.serves("new")), (*hours, *serves), "row {number}");
        }
    }

    #[test]
    fn findings_may_void_earlier_sightings() {
        let mut memory = memory(&[seen(&[Some(leaf("new", 1))], true)]);
        memory.add(Some(&[]));
        assert!(!memory.is_empty());
        memory.add(None);
        assert!(memory.is_empty());
    }

    #[test]
    fn only_changes_of_leaves_matter() {
        let new = || Some(leaf("new", 90));
        let one = memory(&[seen(&[new()], true)]);
        let two = memory(&[seen(&[None, new()], true)]);
        assert!(one != two && one.is_equivalent(&two));
        assert!(!one.is_equivalent(&EdgeMemory::default()));
        assert!(!one.is_equivalent(&memory(&[seen(&[new(), Some(Sighting::Nothing)], true)])));
    }

    #[test]
    fn state_file_holds_addresses_and_leaves() {
        let memory = memory(&[seen(&[Some(leaf("ab", 0)), Some(Sighting::Nothing)], true)]);
        let json = serde_json::to_value(&memory).unwrap();
        let expected = serde_json::json!({
            "seen": {
                "192.0.2.1:443": {
                    "fingerprint": "ab",
                    "names": [],
                    "not_before": "2026-11-18T08:00:00Z",
                    "not_after": "2026-11-22T12:00:00Z",
                },
                "192.0.2.2:443": null,
            },
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<EdgeMemory>(json).unwrap(), memory);
        // Whatever else stands there is dropped, and the rest of the state file remains usable.
        for other in ["{}", "5", r#"{"seen":{"nowhere":null}}"#, r#"{"seen":{"192.0.2.1:443":{"later":1}}}"#]
        {
            let mut json = serde_json::Deserializer::from_str(other);
            let memory = EdgeMemory::deserialize_lenient(&mut json).unwrap();
            assert_eq!(memory, EdgeMemory::default(), "{other}");
        }
    }
}
