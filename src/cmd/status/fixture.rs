//! Lineages for unit tests.

use std::net::SocketAddr;

use time::macros::datetime;
use time::{Duration, OffsetDateTime};

use super::assessment::Assessment;
use super::fleet::{DiskStatus, EdgeOutcome, EdgeStatus, Fleet, LeafAge, LineageStatus, Pending, SiteStatus};
use crate::cert::KeyType;
use crate::cli::MonitoringArgs;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::sightings::{EdgeMemory, NewSightings, Sighting};
use crate::source::AcmeClient;
use crate::state::{LastSync, RunResult, SiteState, SyncRecord};
use crate::verify::ServedOf;

pub(super) const NOW: OffsetDateTime = datetime!(2026-11-21 12:00 UTC);

/// A leaf with a lifetime of 90 days.
pub(super) fn until(not_after: OffsetDateTime) -> Leaf {
    let (fingerprint, names) = ("b".repeat(64), Vec::new());
    Leaf { fingerprint, names, not_before: not_after - Duration::days(90), not_after, issuer: None }
}

/// A lineage that is deployed to one site and expires in this many days.
pub(super) fn deployed(name: &str, days: i64) -> LineageStatus {
    let leaf = Leaf {
        fingerprint: format!("{name:a>8}").repeat(8),
        names: vec!["a.example".into()],
        ..until(NOW + Duration::days(days) + Duration::hours(1))
    };
    LineageStatus {
        name: name.into(),
        client: Some(AcmeClient::Certbot),
        cert: Some(format!("/live/{name}/fullchain.pem")),
        is_configured: false,
        generation: 1,
        begun_at: Some(NOW),
        last_success: Some(NOW - Duration::days(30)),
        last_run: None,
        pending: None,
        last_error: None,
        sites: vec![SiteStatus {
            state: SiteState {
                id: Some(1),
                domain: "a.example".parse().unwrap(),
                cname: None,
                cert_id: Some(1042),
                outcome: Outcome::Served,
                detail: None,
                leaf: None,
                edge: EdgeMemory::default(),
            },
            is_on_record: Some(true),
            leaf: Some(leaf.clone()),
            reached_with: None,
            edge: None,
        }],
        disk: DiskStatus::Leaf { leaf: leaf.clone(), key_type: KeyType::P256, age: LeafAge::Same },
        deployed: Some(leaf),
        edge_address: None,
    }
}

/// A deployed lineage whose next deployment has been pending for this long.
pub(super) fn pending(name: &str, days: i64, lag: Duration) -> LineageStatus {
    let error = Some("the service cannot be reached".into());
    LineageStatus {
        pending: Some(Pending { since: NOW - lag, is_begun: true, leaf: None }),
        last_error: Some(RunResult { at: NOW - Duration::HOUR, exit_code: 75, error }),
        ..deployed(name, days)
    }
}

/// The lineage with this leaf pending.
pub(super) fn with_pending(lineage: LineageStatus, leaf: Leaf) -> LineageStatus {
    let pending = lineage.pending.map(|pending| Pending { leaf: Some(leaf), ..pending });
    LineageStatus { pending, ..lineage }
}

/// A deployed lineage whose files have held another leaf for this long.
pub(super) fn renewed(name: &str, lag: Duration) -> LineageStatus {
    let mut lineage = deployed(name, 20);
    let leaf = until(NOW + Duration::days(89) + Duration::hours(1));
    lineage.pending = Some(Pending { since: NOW - lag, is_begun: false, leaf: Some(leaf.clone()) });
    lineage.disk = DiskStatus::Leaf { leaf, key_type: KeyType::P256, age: LeafAge::Newer };
    lineage.sites[0].is_on_record = Some(false);
    lineage
}

/// A deployed lineage without files.
pub(super) fn missing(name: &str) -> LineageStatus {
    LineageStatus { disk: DiskStatus::Missing, ..deployed(name, 40) }
}

/// An edge with two addresses of which some serve the leaf; the others serve one that expires in this many days, or
/// cannot be reached.
pub(super) fn edge(served: usize, stale_days: Option<i64>) -> EdgeStatus {
    let outcome = match stale_days {
        Some(_) => EdgeOutcome::Stale,
        None if served == 2 => EdgeOutcome::Served,
        None => EdgeOutcome::Unreachable,
    };
    let others = |message: &str| vec![message.to_owned(); 2 - served];
    EdgeStatus {
        outcome,
        score: ServedOf { served, addresses: 2 },
        stale: if stale_days.is_some() { others("192.0.2.1:443 serves another") } else { Vec::new() },
        stale_leaf: stale_days.map(|days| until(NOW + Duration::days(days))),
        unreachable: if stale_days.is_none() { others("192.0.2.1:443 does not answer") } else { Vec::new() },
    }
}

/// A memory of one address that serves a leaf with this much time left.
pub(super) fn seen(fingerprint: &str, left: Duration) -> EdgeMemory {
    let leaf = Leaf { fingerprint: fingerprint.into(), ..until(NOW + left) };
    let address = SocketAddr::from(([192, 0, 2, 1], 443));
    let mut memory = EdgeMemory::default();
    memory
        .see(&NewSightings { addresses: [(address, Some(Sighting::Leaf(leaf)))].into(), is_complete: true });
    memory
}

/// A `sync` that ended this long ago, in a series of failures if it failed.
pub(super) fn last_sync(age: Duration, exit_code: u8, failing_for: Option<Duration>) -> LastSync {
    let error = (exit_code != 0).then(|| "the service cannot be reached".into());
    let record = SyncRecord::after(None, RunResult { at: NOW - age, exit_code, error }, true);
    let failing_since = failing_for.map(|age| NOW - age);
    LastSync { record: Some(SyncRecord { failing_since, ..record }), faults: Vec::new() }
}

/// A host on which `sync` ended a minute ago.
pub(super) fn fleet(lineages: impl Into<Vec<LineageStatus>>) -> Fleet {
    let last_sync = last_sync(Duration::MINUTE, 0, None);
    Fleet { lineages: lineages.into(), state_errors: Vec::new(), last_sync }
}

/// An assessment at `NOW`.
pub(super) fn assess<'a>(fleet: &'a Fleet, thresholds: &'a MonitoringArgs) -> Assessment<'a> {
    Assessment { fleet, thresholds, now: NOW }
}
