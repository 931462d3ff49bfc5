//! The status of lineages, sites and edges: `gather` fills it from disk, `verify` adds what the edges serve, the other
//! files show it.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::cert::KeyType;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::settings::EdgeAddresses;
use crate::source::AcmeClient;
use crate::state::{LastSync, MAX_SKEW, RunResult, SiteState, StateError};
use crate::text::{display_as_serialized, rfc3339};
use crate::verify::ServedOf;

/// All that is known of the lineages of this host.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) lineages: Vec<LineageStatus>,
    pub(super) state_errors: Vec<StateError>,
    pub(super) last_sync: LastSync,
}

/// What a gauge or a problem is about: the host, a lineage, or a site of a lineage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Subject<'a> {
    pub(super) lineage: Option<&'a str>,
    /// Its domain.
    pub(super) site: Option<&'a str>,
}

/// The status of a lineage.
pub(super) struct LineageStatus {
    /// Name of its state file, or its path in the configuration if that leads to no lineage.
    pub(super) name: String,
    pub(super) client: Option<AcmeClient>,
    pub(super) cert: Option<String>,
    /// Whether an entry of the configuration names it.
    pub(super) is_configured: bool,
    pub(super) generation: u64,
    /// When the last run began; `None`: there was none, so it has no state file.
    pub(super) begun_at: Option<OffsetDateTime>,
    /// The deployment that has not succeeded yet.
    pub(super) pending: Option<Pending>,
    pub(super) last_success: Option<OffsetDateTime>,
    /// The last run, if it failed.
    pub(super) last_error: Option<RunResult>,
    pub(super) disk: DiskStatus,
    /// The service and the leaf of the last run, which tell whether others supersede it.
    pub(super) last_run: Option<(String, Leaf)>,
    /// The leaf of the last deployment that succeeded.
    pub(super) deployed: Option<Leaf>,
    pub(super) sites: Vec<SiteStatus>,
    /// The edges to verify, as recorded or configured for it.
    pub(super) edge_address: Option<EdgeAddresses>,
}

/// A deployment that has not succeeded yet.
pub(super) struct Pending {
    /// When it was begun, or when a leaf that no run has seen was written.
    pub(super) since: OffsetDateTime,
    /// Whether a run has begun it.
    pub(super) is_begun: bool,
    /// `None` if it is unknown.
    pub(super) leaf: Option<Leaf>,
}

/// What the files of a lineage hold.
pub(super) enum DiskStatus {
    Leaf {
        leaf: Leaf,
        key_type: KeyType,
        age: LeafAge,
    },
    Missing,
    /// The message says why.
    Unreadable(String),
}

/// Age of the leaf on disk compared with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafAge {
    Same,
    /// No run has seen it yet.
    Newer,
    Older,
}

/// The status of a site.
pub(super) struct SiteStatus {
    /// As the last run that listed it left it, with what has changed since: it may be superseded, and its edge was seen.
    pub(super) state: SiteState,
    /// Whether its record holds the leaf on disk; `None`: unknown.
    pub(super) is_on_record: Option<bool>,
    /// The leaf that visitors get, as recorded or just served; `None` if unknown.
    pub(super) leaf: Option<Leaf>,
    /// The leaf that the lineage reached it with; `None`: the lineage is for it, did not reach it, or forgot the leaf.
    pub(super) reached_with: Option<Leaf>,
    /// What its edge serves now; `None`: it was not checked.
    pub(super) edge: Option<EdgeStatus>,
}

/// What the addresses of an edge serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct EdgeStatus {
    pub(super) outcome: EdgeOutcome,
    #[serde(flatten)]
    pub(super) score: ServedOf,
    /// One message for each address that serves another leaf or refuses the name.
    pub(super) stale: Vec<String>,
    /// The first of these leaves to expire.
    #[serde(rename = "not_after", serialize_with = "serialize_expiry")]
    pub(super) stale_leaf: Option<Leaf>,
    /// Why the others could not be checked.
    pub(super) unreachable: Vec<String>,
}

/// The result of the handshakes with an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EdgeOutcome {
    /// Every address serves the leaf.
    Served,
    /// An address serves another leaf.
    Stale,
    /// An address could not be checked.
    Unreachable,
}

display_as_serialized!(EdgeOutcome);

/// The phase of a lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    Deployed,
    /// A deployment was begun and has not succeeded.
    Pending,
    /// The files hold a leaf that no run has seen.
    Renewed,
    /// The files are missing.
    Gone,
    /// It was never deployed.
    New,
    /// Other lineages provide the certificate of all its sites.
    Superseded,
}

display_as_serialized!(Phase);

impl LineageStatus {
    /// The lineage, or one of its sites.
    pub(super) fn subject<'a>(&'a self, site: Option<&'a SiteStatus>) -> Subject<'a> {
        Subject { lineage: Some(&self.name), site: site.map(|site| site.state.domain.spelled()) }
    }

    pub(super) fn phase(&self) -> Phase {
        match &self.disk {
            _ if self.is_superseded() => Phase::Superseded,
            DiskStatus::Missing => Phase::Gone,
            _ if self.begun_at.is_none() => Phase::New,
            _ if self.is_begun() => Phase::Pending,
            disk if disk.is_unseen() => Phase::Renewed,
            _ => Phase::Deployed,
        }
    }

    /// Whether a run has begun a deployment that has not succeeded.
    fn is_begun(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_begun)
    }

    /// The leaf that the sites it is for should serve: the one on disk, or else the one deployed last.
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        self.disk.leaf().or(self.deployed.as_ref())
    }

    /// How long it has been pending, zero if it is not; `None` if the clock was or is wrong.
    pub(super) fn lag(&self, now: OffsetDateTime) -> Option<Duration> {
        let since = self.pending.as_ref().map_or(now, |pending| pending.since);
        (since <= now + MAX_SKEW).then(|| (now - since).max(Duration::ZERO))
    }

    /// The lifetime of the pending leaf or, if none is pending, of the latest known one.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        let pending = self.pending.as_ref().and_then(|pending| pending.leaf.as_ref());
        pending.or(self.leaf())?.lifetime()
    }

    /// A row of the table, and a series of the metrics, for each site; a single `None` without sites.
    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = Option<&SiteStatus>> {
        self.sites.iter().map(Some).chain(self.sites.is_empty().then_some(None))
    }

    /// Whether other lineages supersede it on all its sites.
    pub(super) fn is_superseded(&self) -> bool {
        let mut sites = self.sites.iter();
        !self.disk.is_unseen()
            && !self.sites.is_empty()
            && sites.all(|site| site.state.outcome == Outcome::Superseded)
    }

    /// Whether missing files are a problem: the lineage is configured, being deployed, or still served.
    pub(super) fn is_needed(&self) -> bool {
        self.is_configured || self.is_begun() || self.sites.iter().any(|site| site.leaf.is_some())
    }

    /// The JSON object; scripts rely on its keys.
    pub(super) fn to_json(&self, now: OffsetDateTime) -> Value {
        let error = if let DiskStatus::Unreadable(reason) = &self.disk { Some(reason) } else { None };
        json!({
            "name": self.name,
            "client": self.client,
            "cert": self.cert,
            "state": self.phase(),
            "generation": self.generation,
            "pending_since": self.pending.as_ref().map(|pending| rfc3339(pending.since)),
            "last_success": self.last_success.map(rfc3339),
            "last_error": self.last_error,
            "on_disk": self.disk.leaf(),
            "on_disk_error": error,
            "deployed": self.deployed,
            "sites": self.sites.iter().map(|site| site.to_json(self, now)).collect::<Value>(),
        })
    }
}

impl SiteStatus {
    /// The leaf that visitors get: as served now, or else as recorded.
    pub(super) fn served_leaf(&self) -> Option<&Leaf> {
        self.edge.as_ref().and_then(|edge| edge.stale_leaf.as_ref()).or(self.leaf.as_ref())
    }

    /// The slack: the time until the first of the leaves that visitors get expires; zero if an address serves none that
    /// they accept. If the edge was never seen, the leaf that follows from the last outcome counts.
    pub(super) fn slack(&self, now: OffsetDateTime) -> Option<Duration> {
        if self.is_left_to_others() {
            return None;
        }
        self.state.edge.slack(now).or_else(|| Some(self.served_leaf()?.not_after - now))
    }

    /// Whether every address was last seen to serve the leaf that it should; `None` if none was seen, or if another
    /// lineage provides the certificate.
    pub(super) fn serves_leaf(&self, lineage: &LineageStatus) -> Option<bool> {
        if self.is_left_to_others() {
            return None;
        }
        let leaf = self.reached_with.as_ref().or(lineage.leaf())?;
        let serves_leaf = self.state.edge.serves(&leaf.fingerprint)?;
        // Sightings before an upload say nothing about the edge after it.
        let is_seen_stale = self.edge.as_ref().is_some_and(|edge| edge.outcome == EdgeOutcome::Stale);
        let is_outdated = matches!(self.state.outcome, Outcome::Synced | Outcome::Uploaded) && !is_seen_stale;
        (serves_leaf || !is_outdated).then_some(serves_leaf)
    }

    /// Whether the certificate of the site does not come from this lineage.
    pub(super) fn is_left_to_others(&self) -> bool {
        matches!(self.state.outcome, Outcome::Skipped | Outcome::Superseded)
    }

    /// The JSON object.
    fn to_json(&self, lineage: &LineageStatus, now: OffsetDateTime) -> Value {
        json!({
            "id": self.state.id,
            "domain": self.state.domain,
            "cert_id": self.state.cert_id,
            "outcome": self.state.outcome,
            "detail": self.state.detail,
            "on_record": self.is_on_record,
            "not_before": self.leaf.as_ref().map(|leaf| rfc3339(leaf.not_before)),
            "not_after": self.leaf.as_ref().map(|leaf| rfc3339(leaf.not_after)),
            "served": self.edge,
            "slack_seconds": self.slack(now).map(Duration::whole_seconds),
            "serves_leaf": self.serves_leaf(lineage),
        })
    }
}

impl DiskStatus {
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        if let Self::Leaf { leaf, .. } = self { Some(leaf) } else { None }
    }

    /// Whether there is a leaf that no run has seen yet.
    pub(super) fn is_unseen(&self) -> bool {
        matches!(self, Self::Leaf { age: LeafAge::Newer, .. })
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn serialize_expiry<S: Serializer>(leaf: &Option<Leaf>, serializer: S) -> Result<S::Ok, S::Error> {
    leaf.as_ref().map(|leaf| rfc3339(leaf.not_after)).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, edge, missing, pending, renewed, seen};
    use super::*;
    use crate::sightings::EdgeMemory;

    #[test]
    fn lineage_has_one_phase() {
        let renewed = || renewed("x", Duration::ZERO);
        assert_eq!(deployed("x", 1).phase(), Phase::Deployed);
        assert_eq!(pending("x", 1, Duration::ZERO).phase(), Phase::Pending);
        assert_eq!(renewed().phase(), Phase::Renewed);
        assert_eq!(missing("x").phase(), Phase::Gone);
        assert_eq!(LineageStatus { begun_at: None, ..renewed() }.phase(), Phase::New);
        let mut superseded = missing("x");
        superseded.sites[0].state.outcome = Outcome::Superseded;
        assert_eq!(superseded.phase(), Phase::Superseded);
    }

    /// The slack of the first site in whole days, and whether the leaf is served.
    fn found(lineage: &LineageStatus) -> (Option<i64>, Option<bool>) {
        let site = &lineage.sites[0];
        (site.slack(NOW).map(Duration::whole_days), site.serves_leaf(lineage))
    }

    #[test]
    fn sightings_count_before_recorded_outcome() {
        let with = |outcome: Outcome, seen: Option<EdgeMemory>| {
            let mut lineage = deployed("x", 60);
            (lineage.sites[0].state.outcome, lineage.sites[0].state.edge) =
                (outcome, seen.unwrap_or_default());
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
