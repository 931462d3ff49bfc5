//! States for unit tests.

use time::OffsetDateTime;
use time::macros::datetime;

use super::{Given, LineageState, Origin, RunOptions, SiteState};
use crate::leaf::Leaf;
use crate::outcome::{ChangedRecords, Outcome};
use crate::sightings::EdgeMemory;
use crate::source::Source;

pub(super) const ISSUED: OffsetDateTime = datetime!(2026-01-01 00:00 UTC);
pub(super) const DAY_1: OffsetDateTime = datetime!(2026-02-01 00:00 UTC);
pub(super) const DAY_2: OffsetDateTime = datetime!(2026-02-02 00:00 UTC);
pub(super) const SERVICE: &str = "https://api.example.net";

pub(super) fn leaf(fingerprint: &str, not_before: OffsetDateTime) -> Leaf {
    Leaf {
        fingerprint: fingerprint.into(),
        names: vec!["a.example".into()],
        not_before,
        not_after: datetime!(2027-01-01 00:00 UTC),
        issuer: None,
    }
}

pub(super) fn source() -> Source {
    Source::of_file("/c")
}

pub(super) fn begin(before: Option<LineageState>, leaf: Leaf, now: OffsetDateTime) -> LineageState {
    LineageState::begin(before, source(), &options(), Some(leaf), now)
}

/// Those of a hook without any.
pub(super) fn options() -> RunOptions {
    let given = Given::default();
    RunOptions {
        service: Some(SERVICE.into()),
        domains: Vec::new(),
        given,
        origin: Origin::Hook,
        is_configured: false,
    }
}

pub(super) fn finish(
    state: &mut LineageState,
    exit_code: u8,
    sites: Vec<SiteState>,
    changed: &ChangedRecords,
    now: OffsetDateTime,
) {
    state.finish((exit_code, None), sites, changed, &options(), now);
}

/// A site to which record 5 is bound.
pub(crate) fn served() -> Vec<SiteState> {
    vec![SiteState {
        id: Some(1),
        domain: "a.example".parse().unwrap(),
        cname: None,
        cert_id: Some(5),
        outcome: Outcome::Served,
        detail: None,
        leaf: None,
        edge: EdgeMemory::default(),
    }]
}

pub(super) fn deployed(leaf: Leaf, now: OffsetDateTime) -> LineageState {
    let mut state = begin(None, leaf, now);
    let changed = ChangedRecords { stored: [5].into(), ..ChangedRecords::default() };
    finish(&mut state, 0, served(), &changed, now);
    state
}
