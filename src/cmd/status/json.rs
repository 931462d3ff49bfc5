//! The status as JSON; scripts rely on its keys.

use serde::Serialize;
use time::{Duration, OffsetDateTime};

use super::lineage_status::{
    DiskStatus, EdgeOutcome, EdgeStatus, LeafSummary, LineageStatus, Phase, SiteStatus, Validity,
};
use crate::outcome::Outcome;
use crate::source::AcmeClient;
use crate::state::RunResult;
use crate::text::rfc3339;

#[derive(Serialize)]
pub(super) struct LineageJson<'a> {
    name: &'a str,
    client: Option<AcmeClient>,
    cert: Option<&'a str>,
    state: Phase,
    generation: u64,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    pending_since: Option<OffsetDateTime>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    last_success: Option<OffsetDateTime>,
    last_error: Option<&'a RunResult>,
    on_disk: Option<LeafJson<'a>>,
    /// Why `on_disk` is `null` although there is a file.
    on_disk_error: Option<&'a str>,
    deployed: Option<LeafJson<'a>>,
    sites: Vec<SiteJson<'a>>,
}

#[derive(Serialize)]
struct LeafJson<'a> {
    fingerprint: &'a str,
    #[serde(with = "rfc3339")]
    not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    not_after: OffsetDateTime,
    names: &'a [String],
}

#[derive(Serialize)]
struct SiteJson<'a> {
    id: Option<u64>,
    domain: &'a str,
    cert_id: Option<u64>,
    /// Whether the record holds the leaf on disk; `null`: unknown.
    on_record: Option<bool>,
    outcome: &'a Outcome,
    detail: Option<&'a str>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    not_before: Option<OffsetDateTime>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    not_after: Option<OffsetDateTime>,
    served: Option<EdgeJson<'a>>,
    /// Whether every address was last seen to serve the leaf.
    serves_leaf: Option<bool>,
    slack_seconds: Option<i64>,
}

#[derive(Serialize)]
struct EdgeJson<'a> {
    outcome: EdgeOutcome,
    served: usize,
    addresses: usize,
    /// Earliest expiry of the other leaves.
    #[serde(serialize_with = "rfc3339::option::serialize")]
    not_after: Option<OffsetDateTime>,
    stale: &'a [String],
    unreachable: &'a [String],
}

pub(super) fn lineages(lineages: &[LineageStatus]) -> Vec<LineageJson<'_>> {
    lineages.iter().map(LineageJson::new).collect()
}

impl<'a> LineageJson<'a> {
    fn new(lineage: &'a LineageStatus) -> Self {
        let on_disk_error = match &lineage.disk {
            DiskStatus::Unreadable(reason) => Some(reason.as_str()),
            DiskStatus::Leaf { .. } | DiskStatus::Missing => None,
        };
        Self {
            name: &lineage.name,
            client: lineage.client,
            cert: lineage.cert.as_deref(),
            state: lineage.phase(),
            generation: lineage.generation,
            pending_since: lineage.pending_since,
            last_success: lineage.last_success,
            last_error: lineage.last_error.as_ref(),
            on_disk: lineage.disk.leaf().map(LeafJson::new),
            on_disk_error,
            deployed: lineage.deployed.as_ref().map(LeafJson::new),
            sites: lineage.sites.iter().map(SiteJson::new).collect(),
        }
    }
}

impl<'a> LeafJson<'a> {
    fn new(leaf: &'a LeafSummary) -> Self {
        let Validity { not_before, not_after } = leaf.validity;
        Self { fingerprint: &leaf.fingerprint, not_before, not_after, names: &leaf.names }
    }
}

impl<'a> SiteJson<'a> {
    fn new(site: &'a SiteStatus) -> Self {
        Self {
            id: site.id,
            domain: &site.domain,
            cert_id: site.cert_id,
            on_record: site.is_on_record,
            outcome: &site.outcome,
            detail: site.detail.as_deref(),
            not_before: site.validity.map(|validity| validity.not_before),
            not_after: site.validity.map(|validity| validity.not_after),
            served: site.edge.as_ref().map(EdgeJson::new),
            serves_leaf: site.serves_leaf,
            slack_seconds: site.slack.map(Duration::whole_seconds),
        }
    }
}

impl<'a> EdgeJson<'a> {
    fn new(edge: &'a EdgeStatus) -> Self {
        Self {
            outcome: edge.outcome,
            served: edge.served,
            addresses: edge.addresses,
            not_after: edge.stale_validity.map(|validity| validity.not_after),
            stale: &edge.stale,
            unreachable: &edge.unreachable,
        }
    }
}
