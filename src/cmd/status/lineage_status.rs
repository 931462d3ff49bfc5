//! The status of lineages, sites and edges: `gather` fills it from disk, `verify` adds what the edges serve, the other
//! files show it.

use serde::Serialize;
use time::{Duration, OffsetDateTime};

use crate::cert::KeyType;
use crate::outcome::Outcome;
use crate::settings::EdgeAddresses;
use crate::sightings::EdgeMemory;
use crate::source::AcmeClient;
use crate::state::{MAX_SKEW, RunResult};
use crate::text::{display_as_serialized, rfc3339};

/// The status of a lineage.
pub(super) struct LineageStatus {
    /// Name of its state file, or its path in the configuration if that leads to no lineage.
    pub(super) name: String,
    pub(super) client: Option<AcmeClient>,
    pub(super) cert: Option<String>,
    /// Whether an entry of the configuration names it.
    pub(super) is_configured: bool,
    /// Whether it has a state file.
    pub(super) is_recorded: bool,
    pub(super) generation: u64,
    /// When the last run began; `None`: there was none.
    pub(super) begun_at: Option<OffsetDateTime>,
    /// When `sync` last checked the edges of its sites without deploying; `None` if not since the last deployment.
    pub(super) edge_checked_at: Option<OffsetDateTime>,
    /// Start of the pending deployment, or the time when a leaf that no run has seen was written.
    pub(super) pending_since: Option<OffsetDateTime>,
    /// Whether a run has begun the pending deployment.
    pub(super) is_begun: bool,
    /// Dates of the pending leaf; `None` if nothing is pending or they are unknown.
    pub(super) pending_validity: Option<Validity>,
    pub(super) last_success: Option<OffsetDateTime>,
    /// The last run, if it failed.
    pub(super) last_error: Option<RunResult>,
    pub(super) disk: DiskStatus,
    /// The leaf of the last deployment that succeeded.
    pub(super) deployed: Option<LeafSummary>,
    pub(super) sites: Vec<SiteStatus>,
    /// Edge to connect to instead of those of the sites, as recorded or configured.
    pub(super) edge_address: Option<EdgeAddresses>,
}

/// What the files of a lineage hold.
pub(super) enum DiskStatus {
    Leaf {
        leaf: LeafSummary,
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

/// A leaf, identified by its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeafSummary {
    pub(super) fingerprint: String,
    pub(super) names: Vec<String>,
    pub(super) validity: Validity,
}

/// The dates of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: OffsetDateTime,
    pub(super) not_after: OffsetDateTime,
}

/// The status of a site.
pub(super) struct SiteStatus {
    pub(super) id: Option<u64>,
    pub(super) domain: String,
    pub(super) cname: Option<String>,
    pub(super) cert_id: Option<u64>,
    pub(super) outcome: Outcome,
    pub(super) detail: Option<String>,
    /// Whether its record holds the leaf on disk; `None`: unknown.
    pub(super) is_on_record: Option<bool>,
    /// Dates of the leaf that visitors get, as recorded or just served; `None` if unknown.
    pub(super) validity: Option<Validity>,
    /// What its edge serves now; `None`: it was not checked.
    pub(super) edge: Option<EdgeStatus>,
    /// What its edge was last seen to serve, just now or by an earlier run.
    pub(super) seen: EdgeMemory,
    /// The slack; `None` if it is unknown, or if another lineage provides the certificate.
    pub(super) slack: Option<Duration>,
    /// Whether every address was last seen to serve the leaf; `None` if none was seen, or if another lineage provides
    /// the certificate.
    pub(super) serves_leaf: Option<bool>,
}

/// What the addresses of an edge serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgeStatus {
    pub(super) outcome: EdgeOutcome,
    /// Number of addresses that serve the leaf.
    pub(super) served: usize,
    /// Number of addresses.
    pub(super) addresses: usize,
    /// One message for each address that serves another leaf or refuses the name.
    pub(super) stale: Vec<String>,
    /// Dates of the first of these leaves to expire.
    pub(super) stale_validity: Option<Validity>,
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

impl LineageStatus {
    pub(super) fn phase(&self) -> Phase {
        match &self.disk {
            _ if self.is_superseded() => Phase::Superseded,
            DiskStatus::Missing => Phase::Gone,
            _ if !self.is_recorded => Phase::New,
            _ if self.is_begun => Phase::Pending,
            DiskStatus::Leaf { age: LeafAge::Newer, .. } => Phase::Renewed,
            _ => Phase::Deployed,
        }
    }

    /// The leaf that its sites should serve: the one on disk, or else the one deployed last.
    pub(super) fn leaf(&self) -> Option<&LeafSummary> {
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

    /// Why it is not known how long it has been pending.
    pub(super) fn clock_fault(&self, now: OffsetDateTime) -> Option<String> {
        let since = self.pending_since.filter(|since| *since > now + MAX_SKEW)?;
        let since = rfc3339(since);
        Some(format!("pending since {since}, which is in the future; check the clock of this host"))
    }

    /// Dates of the pending leaf or, if none is pending, of the latest known one.
    pub(super) fn latest_validity(&self) -> Option<Validity> {
        let latest = || self.disk.leaf().or(self.deployed.as_ref()).map(|leaf| leaf.validity);
        self.pending_validity.or_else(latest)
    }

    /// Whether other lineages supersede it on all its sites.
    pub(super) fn is_superseded(&self) -> bool {
        let is_unseen = matches!(self.disk, DiskStatus::Leaf { age: LeafAge::Newer, .. });
        let mut sites = self.sites.iter();
        !is_unseen && !self.sites.is_empty() && sites.all(|site| site.outcome == Outcome::Superseded)
    }

    /// Whether missing files are a problem: the lineage is configured, being deployed, or still served.
    pub(super) fn is_needed(&self) -> bool {
        self.is_configured || self.is_begun || self.sites.iter().any(|site| site.validity.is_some())
    }
}

impl SiteStatus {
    /// Dates of the leaf that visitors get: as served now, or else as recorded.
    pub(super) fn served_validity(&self) -> Option<Validity> {
        self.edge.as_ref().and_then(|edge| edge.stale_validity).or(self.validity)
    }

    /// Expiry of the leaf that visitors get.
    pub(super) fn expiry(&self) -> Option<OffsetDateTime> {
        self.served_validity().map(|validity| validity.not_after)
    }
}

impl Validity {
    /// The lifetime of the leaf; `None` if its dates contradict each other.
    pub(super) fn lifetime(self) -> Option<Duration> {
        Some(self.not_after - self.not_before).filter(|lifetime| lifetime.is_positive())
    }
}

impl EdgeStatus {
    /// The status of an edge that could not be checked.
    pub(super) fn unreachable(reason: &str) -> Self {
        Self {
            outcome: EdgeOutcome::Unreachable,
            served: 0,
            addresses: 0,
            stale: Vec::new(),
            stale_validity: None,
            unreachable: vec![reason.to_owned()],
        }
    }
}

impl DiskStatus {
    pub(super) fn leaf(&self) -> Option<&LeafSummary> {
        match self {
            Self::Leaf { leaf, .. } => Some(leaf),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn lineage_has_one_phase() {
        let renewed = || fixture::renewed("x", Duration::ZERO);
        assert_eq!(fixture::deployed("x", 1).phase(), Phase::Deployed);
        assert_eq!(fixture::pending("x", 1, Duration::ZERO).phase(), Phase::Pending);
        assert_eq!(renewed().phase(), Phase::Renewed);
        assert_eq!(fixture::missing("x").phase(), Phase::Gone);
        assert_eq!(LineageStatus { is_recorded: false, ..renewed() }.phase(), Phase::New);
        let mut superseded = fixture::missing("x");
        superseded.sites[0].outcome = Outcome::Superseded;
        assert_eq!(superseded.phase(), Phase::Superseded);
    }
}
