//! The facts for scripts.

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::facts::{Disk, Leaf, Lineage, Shown, Site};
use crate::text::rfc3339;

/// The lineages, in the form that scripts rely on.
pub(super) fn lineages(lineages: &[Lineage]) -> Value {
    lineages.iter().map(lineage).collect()
}

fn lineage(lineage: &Lineage) -> Value {
    let problem = match &lineage.disk {
        Disk::Unreadable(reason) => Some(reason),
        Disk::Leaf { .. } | Disk::Gone => None,
    };
    json!({
        "name": lineage.name,
        "client": lineage.client,
        "cert": lineage.cert,
        "state": lineage.state().word(),
        "generation": lineage.generation,
        "pending_since": date(lineage.pending_since),
        "last_success": date(lineage.last_success),
        "last_error": lineage.last_error,
        "on_disk": lineage.disk.leaf().map(leaf),
        "on_disk_error": problem,
        "deployed": lineage.deployed.as_ref().map(leaf),
        "sites": lineage.sites.iter().map(site).collect::<Value>(),
    })
}

fn leaf(leaf: &Leaf) -> Value {
    json!({ "fingerprint": leaf.fingerprint, "not_after": date(leaf.not_after), "names": leaf.names })
}

fn site(site: &Site) -> Value {
    json!({
        "id": site.id,
        "domain": site.domain,
        "cert_id": site.cert_id,
        "on_record": site.is_on_record,
        "outcome": site.outcome,
        "detail": site.detail,
        "not_after": date(site.not_after),
        "served": site.served.as_ref().map(served),
    })
}

fn served(served: &Shown) -> Value {
    json!({
        "outcome": served.word(),
        "served": served.served,
        "addresses": served.addresses,
        "not_after": date(served.stale_until),
        "stale": served.stale,
        "unreachable": served.unseen,
    })
}

fn date(at: Option<OffsetDateTime>) -> Option<String> {
    at.map(rfc3339)
}
