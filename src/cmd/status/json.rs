//! The facts for scripts. The fields are what scripts rely on.

use serde::Serialize;
use time::OffsetDateTime;

use super::facts::{self, Disk};
use crate::outcome::Outcome;
use crate::state::RunResult;
use crate::text::rfc3339;

#[derive(Serialize)]
pub(super) struct Lineage<'a> {
    name: &'a str,
    client: Option<&'a str>,
    cert: Option<&'a str>,
    state: &'static str,
    generation: u64,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    pending_since: Option<OffsetDateTime>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    last_success: Option<OffsetDateTime>,
    last_error: Option<&'a RunResult>,
    on_disk: Option<Leaf<'a>>,
    /// Why that is not known, where there is a file.
    on_disk_error: Option<&'a str>,
    deployed: Option<Leaf<'a>>,
    sites: Vec<Site<'a>>,
}

#[derive(Serialize)]
struct Leaf<'a> {
    fingerprint: &'a str,
    #[serde(with = "rfc3339")]
    not_after: OffsetDateTime,
    names: &'a [String],
}

#[derive(Serialize)]
struct Site<'a> {
    id: Option<u64>,
    domain: &'a str,
    cert_id: Option<u64>,
    /// Whether the record holds the leaf that is on disk, as far as is known.
    on_record: Option<bool>,
    outcome: &'a Outcome,
    detail: Option<&'a str>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    not_after: Option<OffsetDateTime>,
    served: Option<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    outcome: &'static str,
    served: usize,
    addresses: usize,
    /// When the first of the other leaves expires.
    #[serde(serialize_with = "rfc3339::option::serialize")]
    not_after: Option<OffsetDateTime>,
    stale: &'a [String],
    unreachable: &'a [String],
}

/// The lineages.
pub(super) fn lineages(lineages: &[facts::Lineage]) -> Vec<Lineage<'_>> {
    lineages.iter().map(Lineage::of).collect()
}

impl<'a> Lineage<'a> {
    fn of(facts: &'a facts::Lineage) -> Self {
        let on_disk_error = match &facts.disk {
            Disk::ReadError(reason) => Some(reason.as_str()),
            Disk::Leaf { .. } | Disk::Gone => None,
        };
        Self {
            name: &facts.name,
            client: facts.client,
            cert: facts.cert.as_deref(),
            state: facts.state().word(),
            generation: facts.generation,
            pending_since: facts.pending_since,
            last_success: facts.last_success,
            last_error: facts.last_error.as_ref(),
            on_disk: facts.disk.leaf().map(Leaf::of),
            on_disk_error,
            deployed: facts.deployed.as_ref().map(Leaf::of),
            sites: facts.sites.iter().map(Site::of).collect(),
        }
    }
}

impl<'a> Leaf<'a> {
    fn of(leaf: &'a facts::Leaf) -> Self {
        Self { fingerprint: &leaf.fingerprint, not_after: leaf.not_after, names: &leaf.names }
    }
}

impl<'a> Site<'a> {
    fn of(site: &'a facts::Site) -> Self {
        Self {
            id: site.id,
            domain: &site.domain,
            cert_id: site.cert_id,
            on_record: site.is_on_record,
            outcome: &site.outcome,
            detail: site.detail.as_deref(),
            not_after: site.not_after,
            served: site.served.as_ref().map(Shown::of),
        }
    }
}

impl<'a> Shown<'a> {
    fn of(shown: &'a facts::Shown) -> Self {
        Self {
            outcome: shown.word(),
            served: shown.served,
            addresses: shown.addresses,
            not_after: shown.stale_until,
            stale: &shown.stale,
            unreachable: &shown.unseen,
        }
    }
}
