//! Slack: the time left to deploy before visitors of a site get an invalid certificate. It is the time until the
//! earliest expiry among the leaves that its edge addresses were last seen to serve, minus the longest push measured
//! on this host.

use time::{Duration, OffsetDateTime};

use super::lineage_status::{EdgeOutcome, LineageStatus, SiteStatus, Validity};
use crate::outcome::Outcome;
use crate::sightings;
use crate::text::people;

/// Fills in `slack` and `serves_leaf` of all sites. Returns the longest push, if any was measured.
pub(super) fn fill(lineages: &mut [LineageStatus], now: OffsetDateTime) -> Option<std::time::Duration> {
    let longest = lineages.iter().filter_map(|lineage| lineage.longest_push).max();
    let push = longest.map_or(Duration::ZERO, |push| push.try_into().unwrap_or(Duration::MAX));
    for lineage in lineages {
        let leaf = lineage.leaf().map(|leaf| leaf.fingerprint.clone());
        for site in &mut lineage.sites {
            site.slack = site.slack_with(push, now);
            site.serves_leaf = leaf.as_ref().and_then(|leaf| site.serves_leaf(leaf));
        }
    }
    longest
}

/// The line of `--wide` that shows the longest push; empty if none was measured.
pub(super) fn push_line(longest: Option<std::time::Duration>) -> String {
    longest.map(|push| format!("longest push: {}\n", people::elapsed(push))).unwrap_or_default()
}

impl SiteStatus {
    /// The slack if a push takes this long. If the edge was never seen, the leaf that follows from the last outcome
    /// counts.
    fn slack_with(&self, push: Duration, now: OffsetDateTime) -> Option<Duration> {
        if self.is_left_to_others() {
            return None;
        }
        let recorded = || Some(sightings::slack(self.expiry()?, push, now));
        self.seen.slack(push, now).or_else(recorded)
    }

    /// Time until the first of the leaves that visitors get expires; zero if an address serves none that they accept.
    pub(super) fn time_left(&self, now: OffsetDateTime) -> Option<Duration> {
        self.slack_with(Duration::ZERO, now)
    }

    /// Dates of the first to expire of the leaves that its addresses were last seen to serve; `None` if none was seen,
    /// or if an address serves none that visitors accept.
    pub(super) fn seen_validity(&self) -> Option<Validity> {
        let leaf = self.seen.first_to_expire().filter(|_| !self.is_left_to_others())?;
        Some(Validity { not_before: leaf.not_before, not_after: leaf.not_after })
    }

    fn serves_leaf(&self, fingerprint: &str) -> Option<bool> {
        if self.is_left_to_others() {
            return None;
        }
        // Earlier releases recorded only the outcome.
        let recorded = || match self.outcome {
            Outcome::Served => Some(self.is_on_record != Some(false)),
            Outcome::Stale => Some(false),
            _ => None,
        };
        let serves_leaf = self.seen.serves(fingerprint).or_else(recorded);
        // Sightings before an upload say nothing about the edge after it.
        let is_outdated =
            matches!(self.outcome, Outcome::Synced | Outcome::Uploaded) && !self.is_seen_stale();
        serves_leaf.filter(|serves_leaf| *serves_leaf || !is_outdated)
    }

    /// Whether the handshakes of `--verify` showed another leaf or a refusal.
    fn is_seen_stale(&self) -> bool {
        self.edge.as_ref().is_some_and(|edge| edge.outcome == EdgeOutcome::Stale)
    }

    /// Whether the certificate of the site does not come from this lineage.
    fn is_left_to_others(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped | Outcome::Superseded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, renewed, until};
    use super::*;
    use crate::sightings::{EdgeMemory, NewSightings, SeenLeaf, Sighting};
    use std::net::SocketAddr;

    /// A memory of one address that serves a leaf which expires in this many days.
    fn seen(fingerprint: &str, days: i64) -> EdgeMemory {
        let Validity { not_before, not_after } = until(NOW + Duration::days(days));
        let leaf = SeenLeaf { fingerprint: fingerprint.into(), not_before, not_after };
        let address = SocketAddr::from(([192, 0, 2, 1], 443));
        let addresses = [(address, Some(Sighting::Leaf(leaf)))].into();
        let mut memory = EdgeMemory::default();
        memory.see(&NewSightings { addresses, is_complete: true });
        memory
    }

    /// The slack of the first site in whole days, and whether the leaf is served.
    fn filled(mut lineage: LineageStatus) -> (Option<i64>, Option<bool>) {
        fill(std::slice::from_mut(&mut lineage), NOW);
        (lineage.sites[0].slack.map(Duration::whole_days), lineage.sites[0].serves_leaf)
    }

    #[test]
    fn sightings_count_before_recorded_outcome() {
        let with = |outcome: Outcome, seen: Option<EdgeMemory>| {
            let mut lineage = deployed("x", 60);
            (lineage.sites[0].outcome, lineage.sites[0].seen) = (outcome, seen.unwrap_or_default());
            lineage
        };
        let own = || Some(seen(&deployed("x", 60).leaf().unwrap().fingerprint, 60));
        let old = || Some(seen("old", 5));
        let mut verified = with(Outcome::Synced, old());
        verified.sites[0].edge = Some(edge(1, Some(5)));
        let mut unknown = with(Outcome::Queued, None);
        unknown.sites[0].validity = None;
        let rows = [
            (with(Outcome::Served, own()), Some(60), Some(true)),
            (with(Outcome::Stale, old()), Some(5), Some(false)),
            (with(Outcome::Synced, own()), Some(60), Some(true)),
            (with(Outcome::Synced, old()), Some(5), None),
            (with(Outcome::Uploaded, old()), Some(5), None),
            (verified, Some(5), Some(false)),
            (with(Outcome::Guarded, old()), Some(5), Some(false)),
            // The edge was never seen.
            (with(Outcome::Synced, None), Some(60), None),
            (with(Outcome::Uploaded, None), Some(60), None),
            (unknown, None, None),
            // State files of earlier releases.
            (with(Outcome::Served, None), Some(60), Some(true)),
            (with(Outcome::Stale, None), Some(60), Some(false)),
            (renewed("x", Duration::HOUR), Some(20), Some(false)),
            // Other lineages provide the certificate.
            (with(Outcome::Superseded, old()), None, None),
            (with(Outcome::Skipped, old()), None, None),
        ];
        for (number, (lineage, slack, serves_leaf)) in rows.into_iter().enumerate() {
            assert_eq!(filled(lineage), (slack, serves_leaf), "row {number}");
        }
    }

    #[test]
    fn longest_push_of_the_host_counts() {
        let measured = |push: Option<u64>| LineageStatus {
            longest_push: push.map(std::time::Duration::from_millis),
            ..deployed("x", 1)
        };
        let slack = |pushes: [Option<u64>; 2]| {
            let mut lineages = pushes.map(measured);
            let longest = fill(&mut lineages, NOW);
            let [first, second] = lineages.map(|lineage| lineage.sites[0].slack.unwrap());
            assert_eq!(first, second, "the same for all lineages");
            (longest.map(|push| push.as_millis()), first)
        };
        let left = Duration::hours(25);
        assert_eq!(slack([None, None]), (None, left));
        assert_eq!(slack([Some(2_500), None]), (Some(2_500), left - Duration::milliseconds(2_500)));
        assert_eq!(slack([Some(1), Some(90_000_000)]), (Some(90_000_000), Duration::ZERO));
        assert!(slack([Some(u64::MAX), None]).1.is_negative(), "no overflow");
    }
}
