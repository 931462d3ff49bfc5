//! What edgecert remembers about the edge of a site between runs: what each address was last seen to serve, and a push
//! that no run has seen end. The slack of the site follows from both.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration as Elapsed;

use serde::{Deserialize, Deserializer, Serialize};
use time::{Duration, OffsetDateTime};

use crate::text::rfc3339;

/// Memory of the edge of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EdgeMemory {
    /// What each address was last seen to serve; those that never showed anything are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<SocketAddr, Sighting>,
    /// When the service confirmed the upload of the current leaf; `None` if its push has ended or the time is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::millis::option")]
    uploaded_at: Option<OffsetDateTime>,
}

/// What an address showed in handshakes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Sighting {
    /// A leaf; if it serves several, the first to expire.
    Leaf(SeenLeaf),
    /// No leaf that visitors accept: the address refuses the name, or its certificate cannot be parsed, does not cover
    /// the site, or is not valid yet.
    Nothing,
}

/// A leaf that an address served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SeenLeaf {
    pub(crate) fingerprint: String,
    #[serde(with = "rfc3339")]
    pub(crate) not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(crate) not_after: OffsetDateTime,
}

/// The result of one round of handshakes with the edge of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewSightings {
    /// What each address showed; `None` if it could not be reached.
    pub(crate) addresses: BTreeMap<SocketAddr, Option<Sighting>>,
    /// Whether these are all addresses of the edge.
    pub(crate) is_complete: bool,
}

impl NewSightings {
    /// Treats addresses without a valid leaf as unreachable.
    pub(crate) fn ignore_refusals(&mut self) {
        for seen in self.addresses.values_mut() {
            seen.take_if(|seen| *seen == Sighting::Nothing);
        }
    }
}

/// What a deployment learned about the edge of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeFindings {
    /// Whether earlier sightings no longer count, because visitors get no certificate, or one of another lineage, or
    /// because verification is off.
    pub(crate) is_void: bool,
    /// In the order of the handshakes.
    pub(crate) seen: Vec<NewSightings>,
    pub(crate) push: Push,
}

/// How long a deployment took to reach the edge of a site, from the response to its upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Push {
    /// Nothing was uploaded.
    #[default]
    NotBegun,
    /// It has not ended. Holds the time of the upload, if known.
    Open(Option<OffsetDateTime>),
    Ended(Elapsed),
}

/// Longer gaps between two looks at an edge do not count towards a push. Every `sync` looks at a site whose push is
/// open, so in such a gap none ran, and the push may have ended at any time.
const MAX_GAP: Duration = Duration::hours(3);

impl EdgeFindings {
    /// The findings for a site whose certificate does not come from this lineage.
    pub(crate) fn left_to_others() -> Self {
        Self { is_void: true, seen: Vec::new(), push: Push::Open(None) }
    }
}

impl EdgeMemory {
    /// Deserializes a memory. An invalid one becomes empty, so that the rest of the state file remains usable.
    pub(crate) fn deserialize_lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(serde_json::from_value(value).unwrap_or_default())
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an address was ever seen to serve anything.
    pub(crate) fn has_sightings(&self) -> bool {
        !self.seen.is_empty()
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
    pub(crate) fn add(&mut self, findings: &EdgeFindings) {
        if findings.is_void {
            self.seen.clear();
        }
        for seen in &findings.seen {
            self.see(seen);
        }
        match findings.push {
            Push::NotBegun => {}
            Push::Open(at) => self.uploaded_at = at,
            Push::Ended(_) => self.uploaded_at = None,
        }
    }

    /// Forgets an open push, because another leaf is to be deployed.
    pub(crate) fn abandon_push(&mut self) {
        self.uploaded_at = None;
    }

    /// Ends a push that an earlier run began, given the time of the previous look at the edge. Returns how long it
    /// took, without gaps above `MAX_GAP`; `None` if there is no open push or the clock was set back since.
    pub(crate) fn end_push(&mut self, last_look: OffsetDateTime, now: OffsetDateTime) -> Option<Elapsed> {
        let watched = Elapsed::try_from(last_look - self.uploaded_at.take()?).ok()?;
        let gap = now - last_look;
        let is_watched = gap <= MAX_GAP;
        Some(watched.saturating_add(if is_watched { gap.try_into().ok()? } else { Elapsed::ZERO }))
    }

    /// The slack if a push takes this long; `None` if nothing was seen.
    pub(crate) fn slack(&self, push: Duration, now: OffsetDateTime) -> Option<Duration> {
        let slack = |seen: &Sighting| match seen {
            Sighting::Leaf(leaf) => slack(leaf.not_after, push, now),
            Sighting::Nothing => Duration::ZERO,
        };
        self.seen.values().map(slack).min()
    }

    /// The leaf that expires first; `None`: nothing was seen, or an address serves nothing that visitors accept.
    pub(crate) fn first_to_expire(&self) -> Option<&SeenLeaf> {
        let leaves = self.seen.values().map(|seen| match seen {
            Sighting::Leaf(leaf) => Some(leaf),
            Sighting::Nothing => None,
        });
        leaves.collect::<Option<Vec<_>>>()?.into_iter().min_by_key(|leaf| leaf.not_after)
    }

    /// Whether every address was last seen to serve this leaf; `None`: nothing was seen.
    pub(crate) fn serves(&self, fingerprint: &str) -> Option<bool> {
        let is_leaf =
            |seen: &Sighting| matches!(seen, Sighting::Leaf(leaf) if leaf.fingerprint == fingerprint);
        self.has_sightings().then(|| self.seen.values().all(is_leaf))
    }

    /// Whether two memories hold the same push and the same set of leaves, at whichever addresses.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        let distinct = |memory: &Self| memory.seen.values().cloned().collect::<BTreeSet<_>>();
        self.uploaded_at == other.uploaded_at && distinct(self) == distinct(other)
    }
}

/// The slack of a leaf with this expiry if a push takes this long.
pub(crate) fn slack(not_after: OffsetDateTime, push: Duration, now: OffsetDateTime) -> Duration {
    (not_after - now).saturating_sub(push)
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-11-22 12:00 UTC);
    const PUSH: Duration = Duration::HOUR;

    fn leaf(fingerprint: &str, hours: i64) -> Sighting {
        let [not_before, not_after] = [-100, hours].map(|hours| NOW + Duration::hours(hours));
        Sighting::Leaf(SeenLeaf { fingerprint: fingerprint.into(), not_before, not_after })
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
        // The slack in hours with a push of one hour, and whether every address serves `new`.
        let rows = [
            (vec![], None, None),
            (vec![complete(&[None])], None, None),
            (vec![complete(&[new()])], Some(89), Some(true)),
            (vec![complete(&[new(), old()])], Some(9), Some(false)),
            (vec![complete(&[new(), nothing()])], Some(0), Some(false)),
            (vec![complete(&[Some(leaf("new", -2)), nothing()])], Some(-3), Some(false)),
            (vec![complete(&[Some(leaf("new", 0))])], Some(-1), Some(true)),
            // An upload that could not be verified: the address was last seen to serve the old leaf.
            (vec![complete(&[old()]), complete(&[None])], Some(9), Some(false)),
            (vec![complete(&[old(), old()]), complete(&[new(), None])], Some(9), Some(false)),
            (
                vec![complete(&[old(), old()]), complete(&[None, None]), complete(&[new(), new()])],
                Some(89),
                Some(true),
            ),
            (vec![complete(&[nothing()]), complete(&[None])], Some(0), Some(false)),
            (vec![complete(&[nothing()]), complete(&[new()])], Some(89), Some(true)),
            // The edge has fewer addresses than before, or they could not be looked up.
            (vec![complete(&[new(), old()]), complete(&[new()])], Some(89), Some(true)),
            (vec![complete(&[new(), old()]), seen(&[new()], false)], Some(9), Some(false)),
            (vec![complete(&[old()]), seen(&[], false)], Some(9), Some(false)),
            (vec![complete(&[None, old()]), complete(&[None])], Some(9), Some(false)),
            (vec![complete(&[None, old()]), complete(&[new()])], Some(89), Some(true)),
        ];
        for (number, (rounds, hours, serves)) in rows.iter().enumerate() {
            let memory = memory(rounds);
            let slack = memory.slack(PUSH, NOW).map(Duration::whole_hours);
            assert_eq!((slack, memory.serves("new")), (*hours, *serves), "row {number}");
        }
        let expired = memory(&[complete(&[Some(leaf("new", -1))])]);
        assert_eq!(expired.slack(Duration::MAX, NOW), Some(Duration::MIN), "no overflow");
    }

    #[test]
    fn push_ends_once() {
        const HOUR: i64 = 3600;
        // Seconds before now of the upload and of the previous look, and the result.
        let rows = [
            (0, 0, Some(0)),
            (90, 90, Some(90)),
            (90, 60, Some(90)),
            (4 * HOUR, 3 * HOUR, Some(4 * HOUR)),
            // Gaps above the limit.
            (4 * HOUR, 3 * HOUR + 1, Some(HOUR - 1)),
            (2_000 * HOUR, 1_999 * HOUR, Some(HOUR)),
            // The clock was set back.
            (60, 90, None),
            (-10, 90, None),
            (-20, -10, None),
        ];
        for (uploaded, looked, took) in rows {
            let mut memory = EdgeMemory::default();
            let [uploaded_at, last_look] = [uploaded, looked].map(|seconds| NOW - Duration::seconds(seconds));
            memory.add(&EdgeFindings { push: Push::Open(Some(uploaded_at)), ..EdgeFindings::default() });
            let ended = memory.end_push(last_look, NOW).map(|took| i64::try_from(took.as_secs()).unwrap());
            assert_eq!((ended, memory.end_push(last_look, NOW)), (took, None), "{uploaded} {looked}");
        }
        let mut memory = memory(&[seen(&[Some(leaf("new", 1))], true)]);
        let steps = [
            (Push::NotBegun, None),
            (Push::Open(Some(NOW)), Some(NOW)),
            (Push::NotBegun, Some(NOW)),
            (Push::Open(None), None),
            (Push::Open(Some(NOW)), Some(NOW)),
            (Push::Ended(Elapsed::ZERO), None),
        ];
        for (push, uploaded_at) in steps {
            memory.add(&EdgeFindings { push, ..EdgeFindings::default() });
            assert_eq!(memory.uploaded_at, uploaded_at, "{push:?}");
        }
        memory.add(&EdgeFindings { push: Push::Open(Some(NOW)), is_void: true, ..EdgeFindings::default() });
        assert_eq!((memory.has_sightings(), memory.uploaded_at), (false, Some(NOW)), "the push goes on");
        memory.add(&EdgeFindings::left_to_others());
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
        let mut memory = memory(&[seen(&[Some(leaf("ab", 0)), Some(Sighting::Nothing)], true)]);
        memory.add(&EdgeFindings { push: Push::Open(Some(NOW)), ..EdgeFindings::default() });
        let json = serde_json::to_value(&memory).unwrap();
        let expected = serde_json::json!({
            "seen": {
                "192.0.2.1:443": {
                    "fingerprint": "ab",
                    "not_before": "2026-11-18T08:00:00Z",
                    "not_after": "2026-11-22T12:00:00Z",
                },
                "192.0.2.2:443": null,
            },
            "uploaded_at": "2026-11-22T12:00:00Z",
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<EdgeMemory>(json).unwrap(), memory);
        assert_eq!(
            serde_json::from_value::<EdgeMemory>(serde_json::json!({})).unwrap(),
            EdgeMemory::default()
        );
    }
}
