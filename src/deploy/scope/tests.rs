//! Decisions before anything is sent, each with the account and the edges that lead to it.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use time::macros::datetime;

use super::*;
use crate::api::{List, Listing};
use crate::clock::Deadline;
use crate::deploy::left_behind::{left_behind, left_by_renewal};
use crate::deploy::survey::{Surveyor, tried};
use crate::outcome::ChangedRecords;
use crate::plan::IndexedListing;
use crate::runtime::Runtime;
use crate::settings::Guards;
use crate::source::Source;
use crate::state::fixture::served;
use crate::state::{Deployments, LineageState, Origin, RunOptions};
use crate::verify::fixture::Shown;
use crate::verify::{Edge, Handshakes, OtherLeaf};

const SERVICE: &str = "https://api.example.net";

fn day(days: i64) -> OffsetDateTime {
    datetime!(2026-06-01 00:00 UTC) + time::Duration::days(days)
}

/// A leaf for `a.example` that is valid for 90 days.
fn leaf(fingerprint: &str, issued: i64) -> Leaf {
    let (fingerprint, names) = (fingerprint.to_owned(), vec!["a.example".to_owned()]);
    Leaf { fingerprint, names, not_before: day(issued), not_after: day(issued + 90), issuer: None }
}

/// What lineages deployed to `a.example` in record 5.
fn deployments(deployed: &[(&str, Leaf)]) -> Rc<ServiceDeployments> {
    let states = deployed.iter().map(|(lineage, leaf)| ((*lineage).to_owned(), state(leaf)));
    Deployments::of(&states.collect::<Vec<_>>()).of_service(SERVICE)
}

fn state(leaf: &Leaf) -> LineageState {
    let options =
        RunOptions { service: Some(SERVICE.into()), origin: Origin::Standing, ..RunOptions::default() };
    let mut state = LineageState::begin(None, Source::of_file("/c"), &options, Some(leaf.clone()), day(0));
    let changed = ChangedRecords { stored: [5].into(), ..ChangedRecords::default() };
    state.finish((0, None), served(), &changed, &options, leaf.not_before);
    state
}

/// Why a site that was requested needs no deployment.
pub(in super::super) fn not_needed(scope: &Scope<'_, '_>, site: &Site) -> Option<Action> {
    scope.unwanted(site).filter(|action| *action != Action::Ignore)
}

/// An account, and a lineage `own` with a leaf for `a.example` that was issued today.
struct Scene {
    sites: Value,
    records: Value,
    leaf: Leaf,
    domains: Vec<Domain>,
    deployments: Rc<ServiceDeployments>,
    missed: HashMap<u64, u64>,
    verify: Verify,
    guards: Guards,
    repeats_since: Option<OffsetDateTime>,
    force: bool,
    now: OffsetDateTime,
    /// What the edge of site 1 shows; empty: it was not observed.
    shown: Vec<Shown>,
}

impl Scene {
    fn new() -> Self {
        Self {
            sites: json!([{"id": 1, "domain": "a.example", "cert_id": 5, "config_synced": true}]),
            records: json!([{"id": 5, "domain": "a.example"}]),
            leaf: leaf("mm", 0),
            domains: Vec::new(),
            deployments: Rc::default(),
            missed: HashMap::new(),
            verify: Verify::Auto,
            guards: Guards::default(),
            repeats_since: None,
            force: false,
            now: day(0),
            shown: Vec::new(),
        }
    }

    fn with(edit: impl FnOnce(&mut Self)) -> Self {
        let mut scene = Self::new();
        edit(&mut scene);
        scene
    }

    fn decide<T>(self, decide: impl FnOnce(&Scope<'_, '_>) -> T) -> T {
        let listing =
            Listing { records: List::of(&self.records).unwrap(), sites: List::of(&self.sites).unwrap() };
        let listing = IndexedListing::new(listing);
        let account = Account::whole(&listing);
        let mut scope = Scope {
            lineage: "own",
            names: Names::of(self.leaf.names.iter().map(String::as_str)),
            leaf: self.leaf,
            domains: &self.domains,
            account: &account,
            deployments: &self.deployments,
            missed: &self.missed,
            settings: &Settings { verify: self.verify, ..Settings::example() },
            allow: Allow { rebind: false, guards: self.guards },
            repeats_since: self.repeats_since,
            force: self.force,
            now: self.now,
            survey: Survey::default(),
        };
        if !self.shown.is_empty() {
            let mut view = scope.new_view();
            for (address, shown) in (1..).zip(self.shown) {
                view.show(address, shown);
            }
            scope.survey.add([(account.sites[0], view)].into_iter());
        }
        decide(&scope)
    }

    /// Whether site 1 needs no deployment, and why.
    fn not_needed(self) -> Option<Action> {
        self.decide(|scope| not_needed(scope, scope.account.sites[0]))
    }

    fn action(self) -> Action {
        self.decide(|scope| scope.plan().targets[0].action.clone())
    }
}

fn other(leaf: Leaf) -> Shown {
    Shown::Other(OtherLeaf { leaf, covers_site: true })
}

#[test]
fn survey_is_skipped_where_it_decides_nothing() {
    for (verify, force, allow_older, expected) in [
        (Verify::Auto, false, false, true),
        (Verify::Auto, true, false, true),
        (Verify::Auto, false, true, true),
        (Verify::Auto, true, true, false),
        (Verify::Off, false, false, false),
    ] {
        let scene = Scene::with(|scene| {
            (scene.verify, scene.force, scene.guards.allow_older) = (verify, force, allow_older);
        });
        scene.decide(|scope| assert_eq!(scope.needs_survey(), expected));
    }
}

#[test]
fn required_verification_needs_every_address() {
    for (verify, is_served) in [(Verify::Auto, true), (Verify::Require, false)] {
        let view = Scene::with(|scene| scene.verify = verify).decide(|scope| {
            let mut view = scope.new_view();
            view.show(1, Shown::Expected);
            view.show(2, Shown::NoRoute);
            view
        });
        assert_eq!(view.is_served(), is_served);
    }
}

/// The guard against older leaves depends on what any of them serves.
#[test]
fn further_sites_are_tried_until_one_serves_a_leaf() {
    // Without a CNAME target, their edges are unknown.
    let sites = [(1, "a.example"), (2, "b.example")].map(|(id, domain)| Site::example(id, domain, Some(5)));
    let group = SurveyGroup { wanted: sites.iter().collect(), others: Vec::new() };
    let (handshakes, end) = (Handshakes::new(1).unwrap(), Deadline::after(Duration::from_secs(60)));
    let edge = Edge::for_leaf("aa", None, &[], &handshakes);
    let observed = Scene::new().decide(|scope| {
        let surveyor = Surveyor { edge: &edge, scope, end };
        Runtime::new().unwrap().block_on(surveyor.observe_first(tried(&group))).len()
    });
    assert_eq!(observed, 2);
}

#[test]
fn other_sites_show_what_a_record_holds() {
    let groups = |allow_older| {
        let mut scene = Scene::new();
        let site = |id: u64| json!({"id": id, "domain": format!("x{id}.example"), "cert_id": 5});
        scene.sites.as_array_mut().unwrap().extend((2..7).map(site));
        scene.guards.allow_older = allow_older;
        scene.decide(|scope| {
            let groups = scope.survey_groups().into_iter();
            groups.map(|group| (group.wanted.len(), group.others.len())).collect::<Vec<_>>()
        })
    };
    assert_eq!((groups(false), groups(true)), (vec![(1, 3)], vec![(1, 0)]));
}

#[test]
fn domains_without_a_site_are_reported() {
    for (domains, name, may_skip, expected) in [
        (&[][..], "a.example", false, Some((true, vec![], 0))),
        (&["a.example"], "a.example", false, Some((true, vec![], 0))),
        (&["a.example", "z.example"], "a.example", false, Some((true, vec![Outcome::Refused], 1))),
        (&["z.example"], "a.example", false, Some((false, vec![Outcome::Refused], 1))),
        (&["z.example"], "a.example", true, Some((false, vec![Outcome::Skipped], 0))),
        (&[], "z.example", false, None),
        (&[], "z.example", true, Some((false, vec![Outcome::Skipped], 0))),
    ] {
        let mut report = Report::new("deploy");
        let scene = Scene::with(|scene| {
            scene.domains = domains.iter().map(|domain| domain.parse().unwrap()).collect();
            scene.leaf.names = vec![name.to_owned()];
        });
        let has_sites = scene.decide(|scope| scope.has_sites(may_skip, &mut report)).ok();
        let outcomes: Vec<Outcome> = report.deployed.sites.iter().map(|site| site.outcome.clone()).collect();
        let found = has_sites.map(|has_sites| (has_sites, outcomes, report.errors().len()));
        assert_eq!(found, expected, "{domains:?} {name} {may_skip}");
    }
}

#[test]
fn account_without_the_earlier_sites_is_refused() {
    let site = |domain: &str| json!({"id": 1, "domain": domain});
    // The account, the lineage that was deployed to `a.example`, and whether that is read only if it is asked for.
    for (sites, deployed, is_asked_for, is_refused) in [
        (json!([site("a.example")]), "own", false, false),
        (json!([site("b.example")]), "own", false, false),
        (json!([site("c.example")]), "own", false, true),
        (json!([site("c.example")]), "own", true, false),
        (json!([site("c.example")]), "other", false, false),
        (json!({"sites": [site("c.example")], "total": 2}), "own", false, false),
        (json!([]), "other", false, true),
        (json!([]), "other", true, true),
    ] {
        let deployments = deployments(&[(deployed, leaf("mm", 0))]);
        let scene = Scene::with(|scene| {
            scene.leaf.names.push("b.example".into());
            scene.sites = sites.clone();
            if !is_asked_for {
                scene.deployments = Rc::clone(&deployments);
            }
        });
        let all = || is_asked_for.then_some(deployments);
        let found = scene.decide(|scope| scope.require_earlier(all).is_err());
        assert_eq!(found, is_refused, "{sites} {deployed} {is_asked_for}");
    }
}

#[test]
fn later_lineage_supersedes_unless_older_is_allowed() {
    for (allow_older, is_retry, is_superseded) in
        [(false, false, true), (true, false, false), (true, true, true), (false, true, true)]
    {
        let scene = || {
            Scene::with(|scene| {
                scene.deployments = deployments(&[("second", leaf("zz", 1))]);
                scene.guards.allow_older = allow_older;
                scene.repeats_since = is_retry.then_some(day(0));
            })
        };
        let reason = format!("lineage second provides the certificate, issued at {}", text::rfc3339(day(1)));
        let superseded = Action::Superseded(reason);
        assert_eq!(scene().not_needed(), is_superseded.then_some(superseded), "{allow_older} {is_retry}");
        assert_eq!(scene().decide(|scope| scope.wanted().count()), usize::from(!is_superseded));
    }
}

#[test]
fn missing_lineage_supersedes_while_its_record_exists() {
    let mut missing = state(&leaf("zz", 1));
    missing.mark_missing(day(1));
    let mut deployments = Deployments::default();
    deployments.add("second", &missing);
    for (records, is_superseded) in [
        (json!([{"id": 5, "domain": "a.example"}]), true),
        (json!({"certs": [], "total": 1}), true),
        (json!([]), false),
    ] {
        let scene = Scene::with(|scene| {
            scene.deployments = deployments.of_service(SERVICE);
            scene.records = records.clone();
        });
        assert_eq!(scene.not_needed().is_some(), is_superseded, "{records}");
    }
}

#[test]
fn site_is_current_if_it_has_the_leaf() {
    type Edit = fn(&mut Scene);
    let deployed: Edit = |scene| scene.deployments = deployments(&[("own", leaf("mm", 0))]);
    let shows: Edit = |scene| scene.shown = vec![Shown::Expected];
    let rows: [(&[Edit], bool); 17] = [
        (&[], false),
        (&[shows], true),
        (&[shows, |scene| scene.force = true], false),
        (&[shows, |scene| scene.sites[0]["config_synced"] = json!(false)], false),
        (&[shows, |scene| scene.sites[0]["cert_id"] = json!(null)], false),
        (&[shows, |scene| scene.records = json!([])], false),
        (&[shows, |scene| scene.domains = vec!["b.example".parse().unwrap()]], false),
        (&[deployed], false),
        (&[deployed, |scene| scene.verify = Verify::Off], true),
        (&[deployed, |scene| scene.sites[0]["https_enabled"] = json!(false)], true),
        (&[|scene| scene.verify = Verify::Off], false),
        (&[|scene| scene.sites[0]["https_enabled"] = json!(false)], false),
        (&[deployed, |scene| scene.shown = vec![Shown::Unreachable]], true),
        (&[|scene| scene.shown = vec![Shown::Unreachable]], false),
        (&[deployed, |scene| scene.shown = vec![Shown::Refusal]], false),
        (&[deployed, |scene| scene.shown = vec![other(leaf("old", -1))]], false),
        (&[deployed, |scene| (scene.sites[0]["cert_id"], scene.verify) = (json!(6), Verify::Off)], false),
    ];
    for (number, (edits, is_current)) in rows.into_iter().enumerate() {
        let scene = Scene::with(|scene| edits.iter().for_each(|edit| edit(scene)));
        assert_eq!(scene.not_needed(), is_current.then_some(Action::Current), "row {number}");
    }
}

#[test]
fn later_leaf_of_a_record_is_known() {
    let own = |fingerprint, issued| ("own", leaf(fingerprint, issued));
    let second = |fingerprint, issued| ("second", leaf(fingerprint, issued));
    for (stored, served, expected) in [
        (vec![], None, None),
        (vec![second("aa", 1)], None, Some("aa")),
        (vec![own("aa", 1)], None, Some("aa")),
        (vec![second("aa", -1)], None, None),
        // Of equal dates, the fingerprint decides between lineages.
        (vec![second("zz", 0)], None, Some("zz")),
        (vec![second("aa", 0)], None, None),
        (vec![second("mm", 0)], None, None),
        (vec![own("zz", 0)], None, None),
        (vec![second("zz", 0)], Some(leaf("qq", 0)), Some("zz")),
        (vec![second("zz", 0)], Some(leaf("zz", 0)), Some("zz")),
        // What the edge serves counts like what was stored.
        (vec![], Some(leaf("aa", 1)), Some("aa")),
        (vec![], Some(leaf("zz", 0)), None),
        (vec![second("aa", 1)], Some(leaf("bb", 2)), Some("bb")),
        (vec![second("aa", 2)], Some(leaf("bb", 1)), Some("aa")),
    ] {
        let scene = Scene::with(|scene| {
            scene.deployments = deployments(&stored);
            scene.shown = served.clone().map(other).into_iter().collect();
        });
        let found = scene.decide(|scope| scope.later_leaf(5));
        let found = found.map(|known| known.leaf.fingerprint);
        assert_eq!(found.as_deref(), expected, "{stored:?} {served:?}");
    }
    for (seconds, expected) in [(0, true), (1, false)] {
        let scene = Scene::with(|scene| {
            scene.deployments = deployments(&[second("aa", 1)]);
            scene.now = day(91) + time::Duration::seconds(seconds);
        });
        assert_eq!(scene.decide(|scope| scope.later_leaf(5).is_some()), expected, "until it expires");
    }
}

#[test]
fn retry_leaves_what_replaced_its_leaf() {
    let second = ("second", leaf("zz", 1));
    for (stored, since, must_stay) in [
        (vec![("own", leaf("mm", 0)), second.clone()], Some(-1), true),
        (vec![("own", leaf("mm", 0)), second.clone()], None, false),
        (vec![("own", leaf("mm", 0)), second.clone()], Some(0), false),
        (vec![second], Some(-1), false),
        (vec![("own", leaf("mm", 1))], Some(-1), false),
    ] {
        let scene = Scene::with(|scene| {
            (scene.deployments, scene.repeats_since) = (deployments(&stored), since.map(day));
        });
        let found = scene.decide(|scope| scope.later_leaf(5).unwrap().must_stay);
        assert_eq!(found, must_stay, "{stored:?} {since:?}");
    }
}

/// A site that is not listed cannot lose coverage if the names in the record stay covered.
#[test]
fn names_in_a_record_are_kept() {
    let named = |names: [&str; 2]| Leaf { names: names.map(str::to_owned).to_vec(), ..leaf("old", -1) };
    let uncovering = OtherLeaf { leaf: named(["b.example", "c.example"]), covers_site: false };
    let rows: [(Option<Leaf>, Vec<Shown>, bool); 8] = [
        (None, vec![], false),
        (Some(leaf("old", -1)), vec![], true),
        (Some(leaf("old", -1)), vec![Shown::Other(uncovering)], false),
        (Some(named(["a.example", "b.example"])), vec![], false),
        (None, vec![other(leaf("old", -1))], true),
        (Some(leaf("old", -1)), vec![other(named(["a.example", "b.example"]))], false),
        (None, vec![Shown::Expected], true),
        // The push of what was stored since may be held.
        (Some(named(["a.example", "b.example"])), vec![Shown::Expected], false),
    ];
    for (number, (stored, shown, is_kept)) in rows.into_iter().enumerate() {
        let scene = Scene::with(|scene| {
            let site = json!({"id": 1, "domain": "a.example", "cert_id": 5, "config_synced": false});
            scene.sites = json!({"sites": [site], "total": 2});
            scene.deployments =
                deployments(&stored.map(|leaf| ("own", leaf)).into_iter().collect::<Vec<_>>());
            scene.shown = shown;
        });
        assert_eq!(scene.action() == Action::Replace(0), is_kept, "row {number}");
    }
}

#[test]
fn missed_record_is_only_replaced_by_force() {
    for (force, is_replaced) in [(false, false), (true, true)] {
        let scene = Scene::with(|scene| {
            scene.records = json!([{"id": 5, "domain": "a.example"}, {"id": 6, "domain": "a.example"}]);
            (scene.missed, scene.force) = (HashMap::from([(1, 5)]), force);
        });
        assert_eq!(scene.action() == Action::Replace(0), is_replaced);
    }
}

#[test]
fn findings_say_what_visitors_get() {
    for (https, verify, outcome, is_known) in [
        (true, Verify::Auto, Outcome::Served, true),
        (true, Verify::Off, Outcome::Synced, false),
        (true, Verify::Off, Outcome::Stale, true),
        (false, Verify::Auto, Outcome::Synced, false),
        (true, Verify::Auto, Outcome::Superseded, false),
    ] {
        let scene = Scene::with(|scene| {
            (scene.sites[0]["https_enabled"], scene.verify) = (json!(https), verify);
        });
        let findings = scene.decide(|scope| scope.findings(scope.account.sites[0], None, &outcome));
        assert_eq!(findings.is_some(), is_known, "{https} {outcome}");
    }
}

#[test]
fn first_leaf_of_a_group_decides_on_the_rest() {
    let other_leaf = || other(leaf("old", -1));
    for (shown, is_deployed, may_be_current) in [
        (vec![], false, false),
        (vec![], true, true),
        (vec![Shown::Expected], false, true),
        (vec![other_leaf()], true, false),
        (vec![Shown::Unreachable], false, false),
        (vec![Shown::Unreachable, Shown::Expected], false, true),
        (vec![Shown::Expected, other_leaf()], false, true),
    ] {
        let mut scene = Scene::new();
        scene.sites =
            (1..4).map(|id| json!({"id": id, "domain": format!("x{id}.example"), "cert_id": 5})).collect();
        scene.leaf.names = vec!["*.example".into()];
        if is_deployed {
            scene.deployments = deployments(&[("own", leaf("mm", 0))]);
        }
        scene.decide(|scope| {
            let (mut survey, groups, observed) = (Survey::default(), scope.survey_groups(), shown.len());
            for (site, shown) in scope.account.sites.iter().copied().zip(shown) {
                let mut view = EdgeView::new(false);
                view.show(1, shown);
                survey.add([(site, view)].into_iter());
            }
            assert_eq!(survey.may_be_current(&groups[0], scope), may_be_current);
            assert_eq!(survey.due(&groups, |_| true).len(), 3 - observed);
            assert!(survey.due(&groups, |_| false).is_empty());
        });
    }
}

#[test]
fn leaf_issued_last_counts_for_a_record() {
    Scene::new().decide(|scope| {
        let mut survey = Survey::default();
        for (fingerprint, issued, latest) in
            [("aa", 0, "aa"), ("bb", 1, "bb"), ("cc", -1, "bb"), ("dd", 1, "bb")]
        {
            let mut view = EdgeView::new(false);
            view.show(1, other(leaf(fingerprint, issued)));
            survey.add([(scope.account.sites[0], view)].into_iter());
            assert_eq!(survey.leaf_of(5).unwrap().fingerprint, latest);
        }
    });
}

#[test]
fn site_that_a_renewal_left_is_reported() {
    type Edit = fn(&mut Scene);
    let rows: [(Edit, usize); 6] = [
        (|_| {}, 1),
        (|scene| scene.leaf.names = vec!["a.example".into()], 0),
        (|scene| scene.deployments = deployments(&[("second", leaf("old", -1))]), 0),
        (|scene| scene.deployments = deployments(&[("own", leaf("old", -1)), ("second", leaf("aa", -2))]), 0),
        (|scene| scene.sites[0]["domain"] = json!("c.example"), 0),
        (|scene| scene.sites[0]["https_enabled"] = json!(false), 0),
    ];
    for (number, (edit, expected)) in rows.into_iter().enumerate() {
        let scene = Scene::with(|scene| {
            scene.leaf.names = vec!["b.example".into()];
            scene.deployments = deployments(&[("own", leaf("old", -1))]);
            edit(scene);
        });
        let left = scene.decide(|scope| left_by_renewal(scope).len());
        assert_eq!(left, expected, "row {number}");
    }
}

#[test]
fn site_that_no_lineage_renews_is_due_in_two_weeks() {
    for (now, is_deployed, expected) in [(76, false, 0), (77, false, 1), (77, true, 0)] {
        let (mut own, mut deployments) = (state(&leaf("mm", 0)), Deployments::default());
        if !is_deployed {
            own.sites.clear();
        }
        deployments.add("own", &own);
        let (account, deployments) = (Scene::new(), deployments.of_service(SERVICE));
        let listing =
            |scope: &Scope<'_, '_>| left_behind(scope.account.listing.listing(), &deployments, day(now));
        assert_eq!(account.decide(listing).len(), expected, "{now}");
    }
}
