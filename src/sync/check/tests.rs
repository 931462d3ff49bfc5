//! Decisions on lineages, and what their checks record.

use std::sync::Arc;

use time::macros::datetime;

use super::*;
use crate::api::{Gap, List, Listing, Record};
use crate::outcome::ChangedRecords;
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::source::Source;
use crate::state::fixture::served;
use crate::state::{Deployments, Origin, RunOptions};
use crate::sync::scan::{LeafOnDisk, Scanned};
use crate::verify::OtherLeaf;
use crate::verify::fixture::Shown;
use Outcome::{Misbound, Queued, Served, Skipped, Stale, Superseded, Synced, Uploaded};

const NOW: OffsetDateTime = datetime!(2026-06-01 00:00 UTC);

fn leaf(fingerprint: &str, days: i64) -> Leaf {
    let not_before = NOW - time::Duration::days(days);
    let names = vec!["a.example".to_owned(), "b.example".to_owned()];
    let not_after = not_before + time::Duration::days(90);
    Leaf { fingerprint: fingerprint.to_owned(), names, not_before, not_after, issuer: None }
}

/// A lineage that was deployed to these sites, whose records have the same ids; `None`: by the bare upload.
fn deployed(leaf: Leaf, sites: &[(&str, Option<u64>, Outcome)]) -> LineageState {
    let service = Some(Settings::example().base_url.to_string());
    let options = RunOptions { service, origin: Origin::Hook, ..RunOptions::default() };
    let mut state = LineageState::begin(None, Source::of_file("/c"), &options, Some(leaf), NOW);
    let site = |(domain, id, outcome): &(&str, Option<u64>, Outcome)| SiteState {
        id: *id,
        domain: domain.parse().unwrap(),
        cert_id: id.or(Some(1)),
        outcome: outcome.clone(),
        ..served().remove(0)
    };
    let sites = sites.iter().map(site).collect();
    state.finish((0, None), sites, &ChangedRecords::default(), &options, NOW);
    state
}

fn site(id: u64, domain: &str) -> Site {
    Site::example(id, domain, Some(id))
}

fn record(site: &Site) -> Record {
    let domains = vec![site.domain.clone()].into();
    Record { id: site.id, name: None, domains, is_system_issued: false }
}

/// A lineage that was deployed to `a.example` and `b.example`, with the account as it left it.
struct Scene {
    own: LineageState,
    other: Option<LineageState>,
    sites: Vec<Site>,
    records: Vec<Record>,
    is_partial: bool,
    settings: Settings,
    now: OffsetDateTime,
}

type Edit = fn(&mut Scene);

impl Scene {
    fn new(edits: &[Edit]) -> Self {
        let sites = vec![site(1, "a.example"), site(2, "b.example")];
        let mut scene = Self {
            own: deployed(leaf("aa", 20), &both(Served, Served)),
            other: None,
            records: sites.iter().map(record).collect(),
            sites,
            is_partial: false,
            settings: Settings::example(),
            now: NOW,
        };
        for edit in edits {
            edit(&mut scene);
        }
        scene
    }

    fn candidate(own: &LineageState, settings: Settings) -> Candidate<'static> {
        let on_disk = LeafOnDisk { is_missing: false, leaf: own.leaf.clone() };
        candidate(own, settings, own.domains.clone(), on_disk)
    }

    fn decide<T>(self, then: impl FnOnce(Check<'_, '_>) -> T) -> T {
        let mut deployments = Deployments::default();
        self.other.iter().for_each(|other| deployments.add("other", other));
        deployments.add("own", &self.own);
        let deployments = deployments.of_service(&self.settings.base_url.to_string());
        let (records, mut sites) = (List::complete(self.records), List::complete(self.sites));
        sites.gaps.extend(self.is_partial.then(Gap::any));
        let account = IndexedListing::new(Listing { records, sites });
        then(decide(Self::candidate(&self.own, self.settings), &account, &deployments, self.now))
    }
}

fn candidate(
    own: &LineageState,
    settings: Settings,
    domains: Vec<Domain>,
    on_disk: LeafOnDisk,
) -> Candidate<'static> {
    let (name, source, begun) = ("own".to_owned(), Source::of_file("/c"), own.begun_at);
    let service = Some(settings.base_url.to_string());
    let options = RunOptions { service, domains, ..RunOptions::default() };
    let lineage = Scanned { name, source, entry: None, begun };
    Candidate::new(lineage, Arc::new(settings), options, on_disk, Some(own.clone()))
}

fn describe(check: Check<'_, '_>) -> String {
    match (check.is_settled, check.is_superseded) {
        (true, false) => return "unchanged".into(),
        (true, true) => return "superseded".into(),
        (false, _) => {}
    }
    let due = if check.is_due { " all" } else { "" };
    let superseded = if check.is_superseded { " superseded" } else { "" };
    let ids: Vec<u64> = check.sites.iter().map(|checked| checked.site.id).collect();
    match check.lineage.reason {
        Some(Reason::Expired(_)) => "expired".into(),
        Some(reason) if ids.is_empty() => format!("deploy: {reason}"),
        reason => {
            let reason = reason.map(|reason| format!(", then deploy: {reason}")).unwrap_or_default();
            format!("check{due}{superseded} {ids:?}, {} superseded{reason}", check.superseded.len())
        }
    }
}

fn both(a: Outcome, b: Outcome) -> [(&'static str, Option<u64>, Outcome); 2] {
    [("a.example", Some(1), a), ("b.example", Some(2), b)]
}

const DUE: Edit = |scene| scene.now += time::Duration::days(2);
const FOR_A: Edit = |scene| scene.own.domains = vec!["a.example".parse().unwrap()];
const FOR_BOTH: Edit =
    |scene| scene.own.domains = ["a.example", "b.example"].map(|name| name.parse().unwrap()).to_vec();
const WITHOUT_B: Edit = |scene| drop(scene.sites.pop());
const WITHOUT_SITES: Edit = |scene| scene.sites.clear();
const SKIPS: Edit = |scene| scene.settings.skip_unmatched = true;
const SKIPPED: Edit = |scene| scene.own.sites[1].outcome = Skipped;
const SUPERSEDED_ON_B: Edit = |scene| {
    scene.other = Some(deployed(leaf("bb", 10), &[("b.example", Some(2), Served)]));
};
const EXPIRED: Edit = |scene| scene.own = deployed(leaf("aa", 91), &both(Served, Served));
/// The next leaf was deployed to `a.example` only.
const WITH_NEXT_LEAF: Edit = |scene| {
    scene.own.leaf = Some(leaf("cc", 5));
    scene.own.sites[0].leaf = Some("cc".to_owned());
};
const SUPERSEDED: Edit = |scene| scene.other = Some(deployed(leaf("bb", 10), &both(Served, Served)));
const RECORDED_AS_SUPERSEDED: Edit =
    |scene| scene.own.sites.iter_mut().for_each(|site| site.outcome = Superseded);

#[track_caller]
fn assert_decisions(rows: &[(&[Edit], &str)]) {
    for (number, (edits, expected)) in rows.iter().enumerate() {
        assert_eq!(Scene::new(edits).decide(describe), *expected, "row {number}");
    }
}

#[test]
fn drift_is_whatever_differs_from_the_deployment() {
    assert_decisions(&[
        (&[], "unchanged"),
        (&[DUE], "check all [1, 2], 0 superseded"),
        (&[DUE, |scene| scene.settings.verify = Verify::Off], "unchanged"),
        (&[DUE, |scene| scene.settings.verify_every = Duration::ZERO], "unchanged"),
        (&[DUE, |scene| scene.sites[1].https_enabled = false], "check all [1], 0 superseded"),
        (&[|scene| scene.own.sites[1].outcome = Synced], "check [2], 0 superseded"),
        (&[|scene| scene.own.sites[1].outcome = Uploaded], "check [2], 0 superseded"),
        (&[|scene| scene.sites[1].config_synced = false], "unchanged"),
        (
            &[|scene| {
                (scene.own.sites[1].outcome, scene.sites[1].config_synced) = (Uploaded, false);
            }],
            "deploy: the push to b.example was never confirmed",
        ),
        (
            &[|scene| scene.sites[1].cert_id = Some(9)],
            "deploy: b.example is bound to certificate 9, no longer to certificate 2",
        ),
        (
            &[|scene| scene.sites[1].cert_id = None],
            "deploy: b.example is bound to no certificate, no longer to certificate 2",
        ),
        (
            &[|scene| (scene.sites[1].cert_id, scene.own.sites[1].cert_id) = (None, None), DUE],
            "check all [1], 0 superseded",
        ),
        (
            &[|scene| drop(scene.records.pop())],
            "deploy: b.example is bound to certificate 2, which no longer exists",
        ),
        (
            &[|scene| scene.sites[1].unreadable_cert_id = Some("x".into())],
            "deploy: b.example has a cert_id that cannot be read: x",
        ),
        (&[|scene| drop(scene.own.sites.pop())], "deploy: b.example is a new site"),
        (&[SKIPPED], "deploy: b.example is a new site"),
        (&[|scene| scene.own.sites[1].outcome = Superseded], "deploy: b.example is no longer superseded"),
        (&[|scene| scene.own.pending_since = Some(NOW)], "deploy: pending since 2026-06-01T00:00:00Z"),
    ]);
}

#[test]
fn gap_beside_superseded_sites_is_kept() {
    const PARTIAL: Edit = |scene| scene.is_partial = true;
    let has_gap = |edits: &[Edit]| Scene::new(edits).decide(|check| check.gap.is_some());
    assert!(has_gap(&[SUPERSEDED, RECORDED_AS_SUPERSEDED, PARTIAL]));
    assert!(!has_gap(&[SUPERSEDED, RECORDED_AS_SUPERSEDED]));
    assert!(!has_gap(&[SUPERSEDED, RECORDED_AS_SUPERSEDED, FOR_BOTH, PARTIAL]));
}

#[test]
fn site_that_is_not_listed_is_missing() {
    assert_decisions(&[
        (&[WITHOUT_B], "unchanged"),
        (&[WITHOUT_SITES], "deploy: the account no longer has its sites"),
        (
            &[WITHOUT_SITES, |scene| scene.own.pending_since = Some(NOW)],
            "deploy: pending since 2026-06-01T00:00:00Z",
        ),
        (&[WITHOUT_SITES, |scene| scene.own.sites.clear()], "deploy: a site is missing"),
        (&[WITHOUT_SITES, |scene| scene.own.sites.clear(), SKIPS], "unchanged"),
        (&[WITHOUT_SITES, SKIPS, |scene| scene.own = deployed(leaf("aa", 91), &[])], "unchanged"),
        (&[WITHOUT_SITES, SKIPPED, |scene| scene.own.sites[0].outcome = Skipped], "unchanged"),
        (
            &[WITHOUT_SITES, SKIPPED, |scene| scene.own.sites[0].outcome = Superseded],
            "deploy: a site is missing",
        ),
        (&[FOR_BOTH], "unchanged"),
        (&[FOR_BOTH, WITHOUT_B], "deploy: a site is missing"),
        (&[FOR_BOTH, WITHOUT_B, SKIPS], "unchanged"),
        (&[FOR_BOTH, WITHOUT_B, SKIPPED], "unchanged"),
    ]);
}

/// The lineage is for one site and reached the other through a record that they share.
#[test]
fn reached_sites_are_checked_while_they_share_the_record() {
    assert_decisions(&[
        (&[FOR_A], "unchanged"),
        (&[FOR_A, DUE], "check all [1, 2], 0 superseded"),
        (&[FOR_A, DUE, |scene| scene.sites[1].cert_id = Some(9)], "check all [1], 0 superseded"),
        (&[FOR_A, DUE, |scene| scene.own.sites[1].leaf = None], "check all [1], 0 superseded"),
        (&[FOR_A, DUE, |scene| scene.own.sites[1].outcome = Misbound], "check all [1], 0 superseded"),
        (&[FOR_A, |scene| scene.own.sites[1].outcome = Stale], "check [2], 0 superseded"),
        (&[FOR_A, DUE, WITH_NEXT_LEAF], "check all [1, 2], 0 superseded"),
        (&[EXPIRED, FOR_A, DUE, WITH_NEXT_LEAF], "check all [1], 0 superseded"),
        (
            &[FOR_A, DUE, |scene| {
                scene.other = Some(deployed(leaf("bb", 30), &[("b.example", Some(2), Served)]));
            }],
            "check all [1, 2], 0 superseded",
        ),
        // Another leaf was issued after the one that it left there, although before its next one.
        (
            &[FOR_A, DUE, WITH_NEXT_LEAF, |scene| {
                scene.other = Some(deployed(leaf("bb", 10), &[("b.example", Some(3), Served)]));
            }],
            "check all [1], 0 superseded",
        ),
        (
            &[FOR_A, DUE, |scene| scene.sites[0].cert_id = Some(9)],
            "check [2], 0 superseded, then deploy: a.example is bound to certificate 9, no longer to certificate 1",
        ),
        (
            &[FOR_A, |scene| {
                scene.own.sites[1].outcome = Stale;
                scene.sites[1].cert_id = Some(9);
            }],
            "check [], 0 superseded",
        ),
    ]);
}

#[test]
fn reached_sites_are_checked_although_the_lineage_is_superseded() {
    const SUPERSEDED_ON_A: Edit = |scene| {
        scene.other = Some(deployed(leaf("bb", 10), &[("a.example", Some(1), Served)]));
        scene.own.sites[0].outcome = Superseded;
    };
    assert_decisions(&[
        (&[FOR_A, SUPERSEDED_ON_A], "superseded"),
        (&[FOR_A, SUPERSEDED_ON_A, DUE], "check all [2], 1 superseded"),
        (&[FOR_A, SUPERSEDED_ON_A, |scene| scene.own.sites[1].outcome = Uploaded], "check [2], 1 superseded"),
        (
            &[FOR_A, SUPERSEDED_ON_A, |scene| {
                scene.own.sites[1].outcome = Stale;
                scene.sites[1].cert_id = Some(9);
            }],
            "check superseded [], 1 superseded",
        ),
        (
            &[FOR_A, SUPERSEDED, |scene| {
                scene.own.sites[1].outcome = Stale;
                scene.own.pending_since = Some(NOW);
            }],
            "check superseded [], 1 superseded",
        ),
        // The other lineage provides both.
        (&[FOR_A, SUPERSEDED, DUE, |scene| scene.own.sites[0].outcome = Superseded], "superseded"),
        (
            &[FOR_A, SUPERSEDED, DUE, |scene| scene.own.pending_since = Some(NOW)],
            "check superseded [], 1 superseded",
        ),
    ]);
}

#[test]
fn expired_leaf_is_reported() {
    assert_decisions(&[
        (&[|scene| scene.own = deployed(leaf("aa", 90), &both(Served, Served))], "unchanged"),
        (&[EXPIRED], "expired"),
        (&[EXPIRED, SUPERSEDED], "check superseded [], 2 superseded"),
    ]);
}

#[test]
fn superseded_site_is_recorded_by_its_domain() {
    // After the bare upload, and if the site was deleted and created again since.
    for id in [None, Some(9)] {
        let mut own =
            deployed(leaf("aa", 20), &[("a.example", None, Uploaded), ("b.example", Some(2), Served)]);
        own.sites[0].id = id;
        let mut known = own.sites[0].clone();
        let mut scene = Scene::new(&[|scene| {
            scene.other = Some(deployed(leaf("bb", 10), &[("a.example", Some(1), Served)]));
        }]);
        scene.own = own;
        scene.decide(|check| {
            check.update(&mut known, NOW);
            assert!(check.has_changes(NOW));
        });
        assert_eq!((known.outcome, known.id), (Superseded, Some(1)), "{id:?}");
    }
}

#[test]
fn superseded_sites_are_recorded() {
    assert_decisions(&[
        (&[SUPERSEDED_ON_B], "check [], 1 superseded"),
        (&[SUPERSEDED_ON_B, |scene| scene.own.sites[1].outcome = Superseded], "unchanged"),
        (&[SUPERSEDED, |scene| scene.own.sites[1].outcome = Superseded], "check superseded [], 2 superseded"),
        (&[SUPERSEDED, RECORDED_AS_SUPERSEDED], "superseded"),
        (&[SUPERSEDED, RECORDED_AS_SUPERSEDED, |scene| scene.is_partial = true], "superseded"),
        (
            &[SUPERSEDED_ON_B, |scene| {
                scene.sites.remove(0);
                scene.own.sites[1].outcome = Superseded;
                scene.is_partial = true;
            }],
            "deploy: truncated",
        ),
        (
            &[SUPERSEDED, RECORDED_AS_SUPERSEDED, |scene| scene.own.pending_since = Some(NOW)],
            "check superseded [], 2 superseded",
        ),
        (
            &[SUPERSEDED, RECORDED_AS_SUPERSEDED, |scene| {
                let domain = "c.example".parse().unwrap();
                let site = SiteState { id: Some(3), domain, outcome: Served, ..scene.own.sites[0].clone() };
                scene.own.sites.push(site);
            }],
            "superseded",
        ),
        (
            &[SUPERSEDED_ON_B, |scene| scene.other.as_mut().unwrap().mark_missing(NOW)],
            "check [], 1 superseded",
        ),
        (&[SUPERSEDED, FOR_BOTH, WITHOUT_B], "deploy: a site is missing"),
        (&[SUPERSEDED, FOR_BOTH, |scene| scene.is_partial = true], "check superseded [], 2 superseded"),
    ]);
}

#[test]
fn what_edges_show_is_recorded() {
    let other = OtherLeaf { leaf: leaf("bb", 10), covers_site: true };
    let (own_leaf, unreachable) = (|| Some(Shown::Expected), || Some(Shown::Unreachable));
    // The record of both sites before, what the edge of each shows now, and the record afterwards.
    for (before, shown, is_drift, after) in [
        (Synced, [own_leaf(), own_leaf()], false, [Served, Served]),
        (Served, [own_leaf(), unreachable()], false, [Served, Synced]),
        (Served, [None, None], false, [Served, Served]),
        (Served, [own_leaf(), None], false, [Served, Served]),
        (Queued, [unreachable(), unreachable()], false, [Queued, Queued]),
        (Served, [own_leaf(), Some(Shown::Other(other.clone()))], true, [Served, Stale]),
        (Queued, [own_leaf(), Some(Shown::Other(other))], true, [Served, Queued]),
        (Served, [own_leaf(), Some(Shown::Refusal)], true, [Served, Stale]),
    ] {
        let sites = [site(1, "a.example"), site(2, "b.example")];
        let own = deployed(leaf("aa", 20), &both(before.clone(), before));
        for verify in [Verify::Auto, Verify::Require] {
            for is_due in [false, true] {
                let lineage = Scene::candidate(&own, Settings { verify, ..Settings::example() });
                let view = |shown: &Option<Shown>| {
                    let mut view = EdgeView::new(false);
                    view.show(1, shown.clone()?);
                    Some(view)
                };
                let sites = sites.iter().zip(shown.iter().map(view));
                let sites = sites.map(|(site, view)| CheckedSite { site, reached_with: None, view });
                let sites = sites.collect();
                let mut check = Check { sites, is_due, ..Check::new(lineage) };
                let is_whole = shown.iter().all(Option::is_some);
                assert_eq!(check.checked_at(NOW), (is_due && is_whole).then_some(NOW));
                let is_unreached = shown.iter().any(|shown| matches!(shown, Some(Shown::Unreachable)));
                let is_strict = verify == Verify::Require;
                assert_eq!(check.drift().is_some(), is_drift || is_strict && is_unreached);
                let is_seen = shown.iter().flatten().any(|shown| !matches!(shown, Shown::Unreachable));
                assert_eq!(check.has_changes(NOW), is_seen || is_due && is_whole);
                let mut updated = own.clone();
                check.apply(&mut updated, NOW);
                assert_eq!([0, 1].map(|at| updated.sites[at].outcome.clone()), after);
                assert_eq!(updated.edge_checked_at, check.checked_at(NOW));
                check.lineage.sites = updated.sites;
                assert_eq!(check.has_changes(NOW), is_due && is_whole, "all was recorded");
                check.sites.clear();
                assert_eq!(check.checked_at(NOW), None);
            }
        }
    }
}

/// Nothing that the lineage may send would be for a site that it only reached, so `status` reports what that shows.
#[test]
fn reached_site_is_stale_until_it_is_served() {
    let other = || Shown::Other(OtherLeaf { leaf: leaf("bb", 10), covers_site: true });
    for (before, shown, after) in [
        (Served, other(), Stale),
        (Synced, Shown::Refusal, Stale),
        (Served, Shown::Unreachable, Synced),
        (Stale, Shown::Unreachable, Stale),
        (Stale, Shown::Expected, Served),
    ] {
        let own = deployed(leaf("aa", 20), &both(Served, before.clone()));
        let settings = Settings { verify: Verify::Require, ..Settings::example() };
        let mut lineage = Scene::candidate(&own, settings);
        // It left the site with an earlier leaf.
        lineage.leaf = Some(leaf("cc", 5));
        lineage.options.domains = vec!["a.example".parse().unwrap()];
        let (site, mut view) = (site(2, "b.example"), EdgeView::new(true));
        view.show(1, shown);
        let leaf = leaf("aa", 20);
        let checked = CheckedSite { site: &site, reached_with: Some(&leaf), view: Some(view) };
        let mut check = Check { sites: vec![checked], ..Check::new(lineage) };
        let mut known = own.sites[1].clone();
        check.update(&mut known, NOW);
        assert_eq!((check.drift(), &known.outcome), (None, &after), "{before}");
        assert_eq!(known.edge.serves("aa") == Some(true), after == Served);
        if before == Stale && after == Served {
            // An address cannot be reached, but was seen to serve the leaf.
            check.sites[0].view.as_mut().unwrap().show(2, Shown::Unreachable);
            for (recorded, expected) in [(Stale, Synced), (Queued, Queued)] {
                known.outcome = recorded;
                check.update(&mut known, NOW);
                assert_eq!(known.outcome, expected);
            }
        }
        check.lineage.reason = Some(Reason::New);
        check.conclude();
        assert_eq!(check.lineage.reason, Some(Reason::New));
        assert!(check.sites[0].view.is_some(), "no deployment checks it");
        // It is no longer reached.
        let is_cleared = before == Stale;
        known.outcome = before.clone();
        check.sites.clear();
        check.update(&mut known, NOW);
        assert_eq!(known.outcome, if is_cleared { Synced } else { before });
        assert!(!is_cleared || known.edge.is_empty());
        let mut own = SiteState { outcome: Stale, ..own.sites[0].clone() };
        check.update(&mut own, NOW);
        assert_eq!(own.outcome, Stale, "a deployment decides");
    }
}

#[test]
fn edge_that_was_not_observed_in_time_is_unknown() {
    let own = deployed(leaf("aa", 20), &both(Served, Served));
    let (lineage, site) = (Scene::candidate(&own, Settings::example()), site(1, "a.example"));
    let sites = vec![CheckedSite { site: &site, reached_with: None, view: None }];
    let mut checks = [Check { sites, is_due: true, ..Check::new(lineage) }];
    let handshakes = Arc::new(Handshakes::new(1).unwrap());
    let observed = observe(&mut checks, &handshakes, Deadline::after(Duration::ZERO));
    Runtime::new().unwrap().block_on(observed);
    let [check] = checks;
    assert!(check.sites[0].view.is_none() && check.checked_at(NOW).is_none());
}

#[test]
fn state_and_files_may_call_for_a_deployment() {
    type Edit = fn(&mut LineageState, &mut LeafOnDisk, &mut Vec<Domain>);
    let rows: [(Edit, Option<&str>); 10] = [
        (|_, _, _| {}, None),
        (|_, on_disk, _| on_disk.is_missing = true, Some("its files are missing")),
        (|_, on_disk, _| on_disk.leaf = None, Some("renewed")),
        (|_, on_disk, _| on_disk.leaf = Some(leaf("bb", 10)), Some("renewed")),
        (|state, _, _| state.sites[0].outcome = Queued, Some("renewed")),
        (|state, _, _| state.mark_missing(NOW), Some("its files are back")),
        (|state, _, _| state.pending_since = Some(NOW), Some("pending since 2026-06-01T00:00:00Z")),
        (|state, _, _| state.service = Some("https://other.example.net/".into()), Some("options changed")),
        (|state, _, _| state.service = None, None),
        (|_, _, domains| domains.push("a.example".parse().unwrap()), Some("options changed")),
    ];
    for (number, (edit, expected)) in rows.into_iter().enumerate() {
        let mut state = deployed(leaf("aa", 20), &both(Served, Served));
        let (mut domains, mut on_disk) =
            (Vec::new(), LeafOnDisk { is_missing: false, leaf: state.leaf.clone() });
        edit(&mut state, &mut on_disk, &mut domains);
        let lineage = candidate(&state, Settings::example(), domains, on_disk);
        assert_eq!(lineage.reason.map(|reason| reason.to_string()).as_deref(), expected, "row {number}");
    }
}

/// A deployment records such a site itself, and an expired lineage stays as it is.
#[test]
fn lineage_with_a_reason_keeps_a_stale_site() {
    let stale_on_b: Edit = |scene| {
        scene.own = deployed(leaf("aa", 20), &both(Served, Stale));
        scene.own.domains = vec!["a.example".parse().unwrap()];
        scene.sites[1].cert_id = Some(9);
    };
    for (edit, expected) in [
        ((|_| {}) as Edit, Synced),
        (|scene| scene.own.pending_since = Some(NOW), Stale),
        (|scene| scene.own.leaf.as_mut().unwrap().not_after = NOW - time::Duration::DAY, Stale),
    ] {
        let scene = Scene::new(&[stale_on_b, edit]);
        let mut own = scene.own.clone();
        scene.decide(|mut check| {
            check.conclude();
            if check.has_changes(NOW) {
                check.apply(&mut own, NOW);
            }
        });
        assert_eq!(own.sites[1].outcome, expected);
    }
}
