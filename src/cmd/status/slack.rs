//! Slack: the time left to deploy before visitors of a site get an invalid certificate. It is the time until the
//! earliest expiry among the leaves that its edge addresses were last seen to serve.

use time::{Duration, OffsetDateTime};

use super::fleet::{EdgeOutcome, SiteStatus};
use crate::leaf::Leaf;
use crate::outcome::Outcome;

impl SiteStatus {
    /// Time until the first of the leaves that visitors get expires; zero if an address serves none that they accept. If
    /// the edge was never seen, the leaf that follows from the last outcome counts.
    pub(super) fn slack(&self, now: OffsetDateTime) -> Option<Duration> {
        if self.is_left_to_others() {
            return None;
        }
        self.seen.slack(now).or_else(|| Some(self.expiry()? - now))
    }

    /// The first to expire of the leaves that its addresses were last seen to serve; `None` if none was seen, or if an
    /// address serves none that visitors accept.
    pub(super) fn seen_leaf(&self) -> Option<&Leaf> {
        self.seen.first_to_expire().filter(|_| !self.is_left_to_others())
    }

    /// Whether every address was last seen to serve this leaf; `None` if none was seen, or if another lineage provides
    /// the certificate.
    pub(super) fn serves_leaf(&self, leaf: Option<&Leaf>) -> Option<bool> {
        if self.is_left_to_others() {
            return None;
        }
        let serves_leaf = self.seen.serves(&leaf?.fingerprint)?;
        // Sightings before an upload say nothing about the edge after it.
        let is_seen_stale = self.edge.as_ref().is_some_and(|edge| edge.outcome == EdgeOutcome::Stale);
        let is_outdated = matches!(self.outcome, Outcome::Synced | Outcome::Uploaded) && !is_seen_stale;
        (serves_leaf || !is_outdated).then_some(serves_leaf)
    }

    /// Whether the certificate of the site does not come from this lineage.
    pub(super) fn is_left_to_others(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped | Outcome::Superseded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, seen};
    use super::super::fleet::LineageStatus;
    use super::*;
    use crate::sightings::EdgeMemory;

    /// The slack of the first site in whole days, and whether the leaf is served.
    fn found(lineage: &LineageStatus) -> (Option<i64>, Option<bool>) {
        let site = &lineage.sites[0];
        (site.slack(NOW).map(Duration::whole_days), site.serves_leaf(lineage.leaf()))
    }

    #[test]
    fn sightings_count_before_recorded_outcome() {
        let with = |outcome: Outcome, seen: Option<EdgeMemory>| {
            let mut lineage = deployed("x", 60);
            (lineage.sites[0].outcome, lineage.sites[0].seen) = (outcome, seen.unwrap_or_default());
            lineage
        };
        let own = || Some(seen(&deployed("x", 60).leaf().unwrap().fingerprint, Duration::days(60)));
        let old = || Some(seen("old", Duration::days(5)));
        let mut verified = with(Outcome::Synced, old());
        verified.sites[0].edge = Some(edge(1, Some(5)));
        let mut unknown = with(Outcome::Queued, None);
        unknown.sites[0].leaf = None;
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
            (with(Outcome::Served, None), Some(60), None),
            // Other lineages provide the certificate.
            (with(Outcome::Superseded, old()), None, None),
            (with(Outcome::Skipped, old()), None, None),
        ];
        for (number, (lineage, slack, serves_leaf)) in rows.into_iter().enumerate() {
            assert_eq!(found(&lineage), (slack, serves_leaf), "row {number}");
        }
    }
}
