//! Lineages for the tests of what is shown of them.

use time::macros::datetime;
use time::{Duration, OffsetDateTime};

use super::facts::{Age, Disk, Leaf, Lineage, Site};
use crate::cert::KeyType;
use crate::outcome::Outcome;
use crate::state::RunResult;

pub(super) const NOW: OffsetDateTime = datetime!(2026-11-21 12:00 UTC);

/// A lineage that is deployed to one site, for so many days from now.
pub(super) fn deployed(name: &str, days: i64) -> Lineage {
    let leaf = Leaf {
        fingerprint: format!("{name:a>8}").repeat(8),
        names: vec!["a.example".into()],
        not_after: NOW + Duration::days(days) + Duration::hours(1),
    };
    Lineage {
        name: name.into(),
        client: Some("certbot"),
        cert: Some(format!("/live/{name}/fullchain.pem")),
        configured: false,
        remembered: true,
        generation: 1,
        pending_since: None,
        begun: false,
        last_success: Some(NOW - Duration::days(30)),
        last_error: None,
        sites: vec![Site {
            id: Some(1),
            domain: "a.example".into(),
            cname: None,
            cert_id: Some(1042),
            outcome: Outcome::Served,
            detail: None,
            is_on_record: Some(true),
            not_after: Some(leaf.not_after),
            served: None,
        }],
        disk: Disk::Leaf { leaf: leaf.clone(), key_type: KeyType::P256, age: Age::Same },
        deployed: Some(leaf),
        edge_address: None,
    }
}

/// The same with a successor that has been pending for so long.
pub(super) fn pending(name: &str, days: i64, lag: Duration) -> Lineage {
    let error = Some("the service cannot be reached".into());
    Lineage {
        pending_since: Some(NOW - lag),
        begun: true,
        last_error: Some(RunResult { at: NOW - Duration::HOUR, exit_code: 75, error }),
        ..deployed(name, days)
    }
}

/// A lineage whose files hold a leaf that no run has seen.
pub(super) fn renewed(name: &str, lag: Duration) -> Lineage {
    let mut lineage = deployed(name, 20);
    let leaf = Leaf {
        fingerprint: "b".repeat(64),
        names: Vec::new(),
        not_after: NOW + Duration::days(89) + Duration::hours(1),
    };
    lineage.pending_since = Some(NOW - lag);
    lineage.disk = Disk::Leaf { leaf, key_type: KeyType::P256, age: Age::Newer };
    lineage.sites[0].is_on_record = Some(false);
    lineage
}

/// A lineage whose files are gone.
pub(super) fn gone(name: &str) -> Lineage {
    Lineage { disk: Disk::Gone, ..deployed(name, 40) }
}
