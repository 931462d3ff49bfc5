//! The status of lineages, sites and edges: `gather` fills it from disk, `verify` adds what the edges serve, the other
//! files show it.

use serde::{Serialize, Serializer};
use serde_json::json;
use time::{Duration, OffsetDateTime};

use crate::cert::KeyType;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::settings::EdgeAddresses;
use crate::sightings::EdgeMemory;
use crate::source::AcmeClient;
use crate::state::{LastSync, MAX_SKEW, RunResult, StateError};
use crate::text::{display_as_serialized, rfc3339};

/// All that is known of the lineages of this host.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) lineages: Vec<LineageStatus>,
    pub(super) state_errors: Vec<StateError>,
    pub(super) last_sync: LastSync,
}

/// What a gauge or a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject<'a> {
    /// The state directory, or the check itself.
    Host,
    Sync,
    Lineage(&'a str),
    /// The name of a lineage, and the domain of one of its sites.
    Site(&'a str, &'a str),
}

/// The status of a lineage; scripts rely on the keys of its JSON.
#[derive(Serialize)]
pub(super) struct LineageStatus {
    /// Name of its state file, or its path in the configuration if that leads to no lineage.
    pub(super) name: String,
    pub(super) client: Option<AcmeClient>,
    pub(super) cert: Option<String>,
    /// Whether an entry of the configuration names it.
    #[serde(skip)]
    pub(super) is_configured: bool,
    /// Whether it has a state file.
    #[serde(skip)]
    pub(super) is_recorded: bool,
    #[serde(rename = "state")]
    pub(super) phase: Phase,
    pub(super) generation: u64,
    /// When the last run began; `None`: there was none.
    #[serde(skip)]
    pub(super) begun_at: Option<OffsetDateTime>,
    /// When `sync` last checked the edges of its sites without deploying; `None` if not since the last deployment.
    #[serde(skip)]
    pub(super) edge_checked_at: Option<OffsetDateTime>,
    /// Start of the pending deployment, or the time when a leaf that no run has seen was written.
    #[serde(serialize_with = "rfc3339::serialize")]
    pub(super) pending_since: Option<OffsetDateTime>,
    /// Whether a run has begun the pending deployment.
    #[serde(skip)]
    pub(super) is_begun: bool,
    /// The pending leaf; `None` if nothing is pending or it is unknown.
    #[serde(skip)]
    pub(super) pending_leaf: Option<Leaf>,
    #[serde(serialize_with = "rfc3339::serialize")]
    pub(super) last_success: Option<OffsetDateTime>,
    /// The last run, if it failed.
    pub(super) last_error: Option<RunResult>,
    #[serde(flatten)]
    pub(super) disk: DiskStatus,
    /// The leaf of the last deployment that succeeded.
    #[serde(serialize_with = "serialize::leaf")]
    pub(super) deployed: Option<Leaf>,
    pub(super) sites: Vec<SiteStatus>,
    /// Edge to connect to instead of those of the sites, as recorded or configured.
    #[serde(skip)]
    pub(super) edge_address: Option<EdgeAddresses>,
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
#[derive(Serialize)]
pub(super) struct SiteStatus {
    pub(super) id: Option<u64>,
    pub(super) domain: String,
    #[serde(skip)]
    pub(super) cname: Option<String>,
    pub(super) cert_id: Option<u64>,
    pub(super) outcome: Outcome,
    pub(super) detail: Option<String>,
    /// Whether its record holds the leaf on disk; `None`: unknown.
    #[serde(rename = "on_record")]
    pub(super) is_on_record: Option<bool>,
    /// The leaf that visitors get, as recorded or just served; `None` if unknown.
    #[serde(flatten, serialize_with = "serialize::dates")]
    pub(super) leaf: Option<Leaf>,
    /// What its edge serves now; `None`: it was not checked.
    #[serde(rename = "served")]
    pub(super) edge: Option<EdgeStatus>,
    /// What its edge was last seen to serve, just now or by an earlier run.
    #[serde(skip)]
    pub(super) seen: EdgeMemory,
    /// The slack; `None` if it is unknown, or if another lineage provides the certificate.
    #[serde(rename = "slack_seconds", serialize_with = "serialize::seconds")]
    pub(super) slack: Option<Duration>,
    /// Whether every address was last seen to serve the leaf; `None` if none was seen, or if another lineage provides
    /// the certificate.
    pub(super) serves_leaf: Option<bool>,
}

/// What the addresses of an edge serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct EdgeStatus {
    pub(super) outcome: EdgeOutcome,
    /// Number of addresses that serve the leaf.
    pub(super) served: usize,
    /// Number of addresses.
    pub(super) addresses: usize,
    /// One message for each address that serves another leaf or refuses the name.
    pub(super) stale: Vec<String>,
    /// The first of these leaves to expire.
    #[serde(rename = "not_after", serialize_with = "serialize::expiry")]
    pub(super) stale_leaf: Option<Leaf>,
    /// Why the others could not be checked.
    pub(super) unreachable: Vec<String>,
}

/// The result of the handshakes with an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EdgeOutcome {
    /// Every address serves the leaf.
    Served,
    /// An address serves another leaf.
    Stale,
    /// An address could not be checked.
    #[default]
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

impl Fleet {
    /// Completes the lineages: what follows from their other fields is filled in.
    pub(super) fn new(
        mut lineages: Vec<LineageStatus>,
        state_errors: Vec<StateError>,
        last_sync: LastSync,
        now: OffsetDateTime,
    ) -> Self {
        for lineage in &mut lineages {
            lineage.phase = lineage.current_phase();
            let leaf = lineage.leaf().map(|leaf| leaf.fingerprint.clone());
            for site in &mut lineage.sites {
                site.slack = site.time_left(now);
                site.serves_leaf = leaf.as_ref().and_then(|leaf| site.serves_leaf(leaf));
            }
        }
        Self { lineages, state_errors, last_sync }
    }

    /// When a `sync` last checked an edge without deploying.
    pub(super) fn edge_checked_at(&self) -> Option<OffsetDateTime> {
        self.lineages.iter().filter_map(|lineage| lineage.edge_checked_at).max()
    }
}

impl<'a> Subject<'a> {
    pub(super) fn lineage(self) -> Option<&'a str> {
        match self {
            Self::Host | Self::Sync => None,
            Self::Lineage(name) | Self::Site(name, _) => Some(name),
        }
    }

    pub(super) fn site(self) -> Option<&'a str> {
        if let Self::Site(_, domain) = self { Some(domain) } else { None }
    }
}

impl LineageStatus {
    /// The phase that follows from the other fields.
    pub(super) fn current_phase(&self) -> Phase {
        match &self.disk {
            _ if self.is_superseded() => Phase::Superseded,
            DiskStatus::Missing => Phase::Gone,
            _ if !self.is_recorded => Phase::New,
            _ if self.is_begun => Phase::Pending,
            disk if disk.is_unseen() => Phase::Renewed,
            _ => Phase::Deployed,
        }
    }

    /// The leaf that its sites should serve: the one on disk, or else the one deployed last.
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        self.disk.leaf().or(self.deployed.as_ref())
    }

    /// How long it has been pending; `None` if nothing is, or if the clock was or is wrong.
    pub(super) fn lag(&self, now: OffsetDateTime) -> Option<Duration> {
        let past = self.pending_since.filter(|since| *since <= now + MAX_SKEW);
        past.map(|since| (now - since).max(Duration::ZERO))
    }

    /// Its lag, or zero if nothing is pending; `None` if the clock was or is wrong.
    pub(super) fn known_lag(&self, now: OffsetDateTime) -> Option<Duration> {
        if self.pending_since.is_none() { Some(Duration::ZERO) } else { self.lag(now) }
    }

    /// The lifetime of the pending leaf or, if none is pending, of the latest known one.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.pending_leaf.as_ref().or(self.leaf())?.lifetime()
    }

    /// Whether other lineages supersede it on all its sites.
    pub(super) fn is_superseded(&self) -> bool {
        let mut sites = self.sites.iter();
        !self.disk.is_unseen()
            && !self.sites.is_empty()
            && sites.all(|site| site.outcome == Outcome::Superseded)
    }

    /// Whether missing files are a problem: the lineage is configured, being deployed, or still served.
    pub(super) fn is_needed(&self) -> bool {
        self.is_configured || self.is_begun || self.sites.iter().any(|site| site.leaf.is_some())
    }
}

impl SiteStatus {
    /// The leaf that visitors get: as served now, or else as recorded.
    pub(super) fn served_leaf(&self) -> Option<&Leaf> {
        self.edge.as_ref().and_then(|edge| edge.stale_leaf.as_ref()).or(self.leaf.as_ref())
    }

    /// Expiry of the leaf that visitors get.
    pub(super) fn expiry(&self) -> Option<OffsetDateTime> {
        self.served_leaf().map(|leaf| leaf.not_after)
    }
}

impl DiskStatus {
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        match self {
            Self::Leaf { leaf, .. } => Some(leaf),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }

    /// Whether there is a leaf that no run has seen yet.
    pub(super) fn is_unseen(&self) -> bool {
        matches!(self, Self::Leaf { age: LeafAge::Newer, .. })
    }
}

impl Serialize for DiskStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = if let Self::Unreadable(reason) = self { Some(reason) } else { None };
        json!({"on_disk": self.leaf().map(serialize::to_json), "on_disk_error": error}).serialize(serializer)
    }
}

/// Parts of the JSON.
#[expect(clippy::ref_option, reason = "as serde passes fields")]
mod serialize {
    use serde_json::Value;

    use super::{Duration, Leaf, OffsetDateTime, Serialize as _, Serializer, json, rfc3339};

    /// Unlike a state file, the report always has the names.
    pub(super) fn to_json(leaf: &Leaf) -> Value {
        let Leaf { fingerprint, names, not_before, not_after, .. } = leaf;
        let [not_before, not_after] = [*not_before, *not_after].map(rfc3339);
        json!({"fingerprint": fingerprint, "names": names, "not_before": not_before, "not_after": not_after})
    }

    pub(super) fn leaf<S: Serializer>(leaf: &Option<Leaf>, serializer: S) -> Result<S::Ok, S::Error> {
        leaf.as_ref().map(to_json).serialize(serializer)
    }

    pub(super) fn dates<S: Serializer>(leaf: &Option<Leaf>, serializer: S) -> Result<S::Ok, S::Error> {
        let date = |date: fn(&Leaf) -> OffsetDateTime| leaf.as_ref().map(|leaf| rfc3339(date(leaf)));
        let (not_before, not_after) = (date(|leaf| leaf.not_before), date(|leaf| leaf.not_after));
        json!({"not_before": not_before, "not_after": not_after}).serialize(serializer)
    }

    pub(super) fn expiry<S: Serializer>(leaf: &Option<Leaf>, serializer: S) -> Result<S::Ok, S::Error> {
        leaf.as_ref().map(|leaf| rfc3339(leaf.not_after)).serialize(serializer)
    }

    pub(super) fn seconds<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(Duration::whole_seconds).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn lineage_has_one_phase() {
        let renewed = || fixture::renewed("x", Duration::ZERO);
        assert_eq!(fixture::deployed("x", 1).current_phase(), Phase::Deployed);
        assert_eq!(fixture::pending("x", 1, Duration::ZERO).current_phase(), Phase::Pending);
        assert_eq!(renewed().current_phase(), Phase::Renewed);
        assert_eq!(fixture::missing("x").current_phase(), Phase::Gone);
        assert_eq!(LineageStatus { is_recorded: false, ..renewed() }.current_phase(), Phase::New);
        let mut superseded = fixture::missing("x");
        superseded.sites[0].outcome = Outcome::Superseded;
        assert_eq!(superseded.current_phase(), Phase::Superseded);
    }
}
