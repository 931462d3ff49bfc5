//! The blockers, each with the listing that causes it and the permission that overrides it.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::{Value, json};
use time::macros::datetime;

use super::{Account, Allow, Blocker, IndexedListing, Plan, PlanRequest, RecordLeaf, StepAction};
use crate::api::{List, Listing};
use crate::hint::Hint;
use crate::leaf::Leaf;
use crate::settings::Guards;
use crate::text;

const NO_GUARD: Guards =
    Guards { allow_shrink: false, allow_older: false, replace_lets: false, allow_partial: false };
const NOTHING: Allow = Allow { rebind: false, guards: NO_GUARD };
const REBIND: Allow = Allow { rebind: true, ..NOTHING };
const SHRINK: Allow = without(Guards { allow_shrink: true, ..NO_GUARD });
const OLDER: Allow = without(Guards { allow_older: true, ..NO_GUARD });
const LETS: Allow = without(Guards { replace_lets: true, ..NO_GUARD });
const PARTIAL: Allow = without(Guards { allow_partial: true, ..NO_GUARD });

/// Permission to go without these guards.
const fn without(guards: Guards) -> Allow {
    Allow { guards, ..NOTHING }
}

/// An account as the service lists it, and what is known of its records.
struct Listed {
    sites: Value,
    records: Value,
    /// Whether the leaf in each record was issued later than the new one.
    is_newer: bool,
    must_stay: bool,
    /// Whether the new certificate covers all names of the leaf in each record.
    keeps_names: bool,
}

impl Default for Listed {
    /// A site that is bound to its own record.
    fn default() -> Self {
        let site = json!({"id": 10, "domain": "a.example", "cert_id": 5});
        let record = json!({"id": 5, "domain": "a.example", "name": "a.example"});
        Self {
            sites: json!([site]),
            records: json!([record]),
            is_newer: false,
            must_stay: false,
            keeps_names: false,
        }
    }
}

impl Listed {
    /// The steps to deploy a certificate for `a.example` and `b.example`, and whether more permissions would bind sites.
    #[track_caller]
    fn plan(&self, allow: Allow) -> (Vec<String>, bool) {
        let listing =
            Listing { records: List::of(&self.records).unwrap(), sites: List::of(&self.sites).unwrap() };
        let listing = IndexedListing::new(listing);
        let leaf = Leaf {
            fingerprint: "0123456789abcdef0".into(),
            names: Vec::new(),
            not_before: datetime!(2026-02-01 00:00 UTC),
            not_after: datetime!(2026-05-01 00:00 UTC),
            issuer: Some("Public CA".into()),
        };
        let leaf = RecordLeaf { leaf, is_certain: true, must_stay: self.must_stay };
        let request = PlanRequest {
            covers: &|domain| ["a.example", "b.example"].contains(&domain.host()),
            unwanted: &|_| None,
            later_leaf: &|_| self.is_newer.then(|| leaf.clone()),
            keeps_names: &|_| self.keeps_names,
            missed: &HashMap::new(),
            allow,
        };
        let plan = Plan::new(&Account::whole(&listing), &request);
        let steps = plan.steps().into_iter().map(|step| {
            let bound = (step.action == StepAction::Bind).then(|| step.domain.clone());
            let is_of_site = matches!(step.action, StepAction::Bind | StepAction::Guard | StepAction::Leave);
            assert!(!is_of_site || step.sites == Vec::from_iter(bound), "{step:?}");
            let subject = if step.sites.is_empty() { step.domain.clone() } else { text::list(&step.sites) };
            assert!(step.summary.starts_with(&subject), "{step:?}");
            format!("{} {}: {}", step.action, step.domain, step.reason)
        });
        (steps.collect(), plan.can_rebind)
    }

    #[track_caller]
    fn steps(&self, allow: Allow) -> Vec<String> {
        self.plan(allow).0
    }

    /// Asserts that the site is blocked for this reason, and replaced or bound if that is allowed.
    #[track_caller]
    fn assert_blocked(&self, blocked: &str, allow: Allow, allowed: &[&str]) {
        assert_eq!(self.plan(NOTHING), (vec![blocked.to_owned()], allow.rebind), "{}", self.sites);
        assert_eq!(self.steps(allow), allowed, "{}", self.sites);
    }
}

/// An account without gaps. The site is bound to record 5, and the record is stored for this domain.
fn stored_for(domain: &str, name: &str) -> Listed {
    let records = json!([{"id": 5, "domain": domain, "name": name}]);
    Listed { records, ..Listed::default() }
}

const REPLACED: &[&str] = &["replace a.example: a.example is bound to certificate 5"];

#[test]
fn unreachable_site_needs_rebind() {
    let unknown = Listed { records: json!([]), ..Listed::default() };
    for (listed, reason) in [
        (
            // The name is that of no site, so it is no domain that the record was uploaded for.
            stored_for("c.example", "z.example"),
            "it is bound to certificate 5, which is stored for c.example, and the new certificate does not cover c.example",
        ),
        (
            stored_for("b.example", "b.example"),
            "it is bound to certificate 5, which is stored for b.example, but the account has no such site to upload for",
        ),
        (unknown, "it is bound to certificate 5, which is not among the account's certificates"),
    ] {
        let bound = format!("bind a.example: to the record uploaded for a.example: {reason}");
        let created = "create a.example: there is no record to bind to";
        listed.assert_blocked(&format!("leave a.example: {reason}"), REBIND, &[created, &bound]);
    }
}

#[test]
fn record_of_several_domains_needs_rebind() {
    let reason = "it is bound to certificate 5, which is stored for a.example and z.example; an upload is for one domain";
    let replaced = "replace a.example: certificate 5 is stored for it; if the service creates a certificate instead, they are bound to that";
    let bound = format!("bind a.example: to the record uploaded for a.example: {reason}");
    let listed = stored_for("a.example,z.example", "shop");
    listed.assert_blocked(&format!("leave a.example: {reason}"), REBIND, &[replaced, &bound]);
    let reason = "leave a.example: it is bound to certificate 5, which is stored for no readable domain; an upload is for one domain";
    assert_eq!(stored_for("", "shop").steps(NOTHING), [reason]);
}

#[test]
fn unreadable_binding_needs_rebind() {
    for cert_id in
        [json!("five"), json!(""), json!({"id": 5}), json!([5]), json!(true), json!(-5), json!(5.5)]
    {
        let sites = json!([{"id": 10, "domain": "a.example", "cert_id": cert_id}]);
        let listed = Listed { sites, records: json!([]), ..Listed::default() };
        let reason = format!("its cert_id cannot be read: {cert_id}");
        let bound = format!("bind a.example: to the record uploaded for a.example: {reason}");
        let created = "create a.example: there is no record to bind to";
        listed.assert_blocked(&format!("leave a.example: {reason}"), REBIND, &[created, &bound]);
    }
}

#[test]
fn guards_have_their_permissions() {
    let lets = |domain| Listed {
        records: json!([{"id": 5, "domain": domain, "name": domain, "type": "lets"}]),
        ..Listed::default()
    };
    let reason = "guard a.example: the service itself issues and renews certificate 5";
    lets("a.example").assert_blocked(reason, LETS, REPLACED);
    assert_eq!(lets("c.example").steps(NOTHING), [reason]);

    let site = |id: u64, domain: &str| json!({"id": id, "domain": domain, "cert_id": 5});
    let shared = Listed { sites: json!([site(10, "a.example"), site(11, "c.example")]), ..Listed::default() };
    let reason =
        "guard a.example: certificate 5 is also bound to c.example, which the new certificate does not cover";
    shared.assert_blocked(reason, SHRINK, REPLACED);

    let newer = Listed { is_newer: true, ..Listed::default() };
    let reason = "guard a.example: certificate 5 (issuer Public CA, SHA-256 0123456789abcdef) was issued at 2026-02-01T00:00:00Z, later than the new one";
    newer.assert_blocked(reason, OLDER, REPLACED);
    assert_eq!(newer.steps(REBIND), [reason], "every other record would be older, too");
    assert_eq!(Listed { must_stay: true, ..newer }.steps(OLDER), [reason], "a retry");
}

/// An account with these sites, each with its record, and with records 5 for `a.example` and 6 for `b.example`.
fn with_records(sites: &[(&str, u64)], kind: &str) -> Listed {
    let sites = (10..).zip(sites);
    let sites = sites.map(|(id, (domain, record))| json!({"id": id, "domain": domain, "cert_id": record}));
    let records = json!([
        {"id": 5, "domain": "a.example", "name": "a.example", "type": kind},
        {"id": 6, "domain": "b.example", "name": "b.example"},
    ]);
    Listed { sites: sites.collect(), records, ..Listed::default() }
}

#[test]
fn unused_record_is_preferred() {
    let listed = with_records(&[("a.example", 8), ("b.example", 9), ("c.example", 5)], "");
    let guards = Guards { allow_shrink: true, ..NO_GUARD };
    let steps = listed.steps(Allow { rebind: true, guards });
    assert_eq!(steps[0], "replace b.example: certificate 6 is stored for it");
}

#[test]
fn sites_share_a_record() {
    let steps = with_records(&[("a.example", 5), ("b.example", 5)], "").steps(NOTHING);
    assert_eq!(steps, ["replace a.example: a.example and b.example are bound to certificate 5"]);
}

#[test]
fn rebind_is_suggested_where_there_is_a_record() {
    assert!(!with_records(&[("a.example", 5)], "lets").plan(NOTHING).1);
    assert!(with_records(&[("a.example", 5), ("b.example", 6)], "lets").plan(NOTHING).1);
    let domain = || "a.example".parse().unwrap();
    for blocker in [
        Blocker::UnknownRecord(5),
        Blocker::NotCovered(5, domain()),
        Blocker::Ambiguous { id: 5, domain: domain() },
        Blocker::SystemIssued(5),
        Blocker::Shrink { id: 5, uncovered_sites: Vec::new() },
    ] {
        for can_rebind in [false, true] {
            let Hint::Override { flags, .. } = blocker.hint(can_rebind) else { panic!("{blocker:?}") };
            assert_eq!(flags.iter().any(|known| known.flag == "--rebind"), can_rebind, "{blocker:?}");
        }
    }
}

/// Otherwise, each run would bind the sites to the records that the one before took them from.
#[test]
fn sites_to_bind_do_not_decide_which_record_is_best() {
    let record = |id: u64, domain: &str| json!({"id": id, "domain": domain, "name": domain});
    let (a, b) = ("a.example", "b.example");
    let records = json!([record(5, a), record(6, a), record(7, b), record(8, b)]);
    let site = |id: u64, domain: &str, record: u64| json!({"id": id, "domain": domain, "cert_id": record});
    for bound in [5, 7] {
        let sites = json!([site(10, a, bound), site(11, b, bound)]);
        let listed = Listed { sites, records: records.clone(), ..Listed::default() };
        let upload =
            "replace a.example: certificates 5 and 6 are stored for it; one of them will be replaced";
        assert_eq!(listed.steps(REBIND)[0], upload, "bound to {bound}");
    }
}

/// A site that is not listed may be bound to the record and lose coverage.
#[test]
fn hidden_sites_are_guarded() {
    let site = json!({"id": 10, "domain": "a.example", "cert_id": 5});
    let guarded = "guard a.example: the service's list of sites is incomplete; a site that it lacks may be bound to certificate 5 and lose coverage";
    let other = |cert_id: Value| json!({"id": 11, "domain": "c.example", "cert_id": cert_id});
    for (sites, is_guarded) in [
        (json!({"sites": [site], "total": 2}), true),
        (json!([site, {"cert_id": 5}]), true),
        (json!([site, {"cert_id": 6}]), false),
        (json!([site, {"cert_id": []}]), true),
        (json!([site, other(json!([]))]), true),
        (json!([site, other(json!(6))]), false),
    ] {
        let listed = |keeps_names| Listed { sites: sites.clone(), keeps_names, ..Listed::default() };
        let found = if is_guarded { &[guarded] } else { REPLACED };
        assert_eq!(listed(false).steps(NOTHING), found, "{sites}");
        for allow in [PARTIAL, SHRINK] {
            assert_eq!(listed(false).steps(allow), REPLACED, "{sites}");
        }
        assert_eq!(listed(true).steps(NOTHING), REPLACED, "{sites}");
    }
    // No listed site shows what the record holds now.
    for (record, allow) in [(json!(null), NOTHING), (json!(4), REBIND)] {
        let sites = json!({"sites": [{"id": 10, "domain": "a.example", "cert_id": record}], "total": 2});
        let listed = Listed { sites, keeps_names: true, ..Listed::default() };
        assert_eq!(listed.steps(allow), [guarded], "{record}");
    }
}

/// An upload may replace a record that is not listed.
#[test]
fn hidden_records_are_guarded() {
    for records in [
        json!(null),
        json!({"certs": null}),
        json!({"certs": [], "total": 1}),
        json!([{"id": 7}, {"name": "x"}]),
    ] {
        let sites = json!([{"id": 10, "domain": "a.example", "cert_id": null}]);
        let listed = Listed { sites, records, ..Listed::default() };
        let guarded = "guard a.example: the service's list of certificates is incomplete; an upload for a.example may replace one that it lacks";
        listed.assert_blocked(guarded, PARTIAL, &["create a.example: a.example has no certificate"]);
    }
    let sites = json!([{"id": 10, "domain": "a.example", "cert_id": null}]);
    let of_another_domain = json!([{"id": 7, "domain": "c.example"}, {"domain": "b.example"}]);
    let listed = Listed { sites, records: of_another_domain, ..Listed::default() };
    assert_eq!(listed.steps(NOTHING), ["create a.example: a.example has no certificate"]);
}

/// A wildcard with one record for thousands of sites must not look at every site once for each site.
#[test]
fn record_of_many_sites_is_judged_once() {
    const SITES: u64 = 300;
    let record = |id| json!({"id": id, "domain": "a.example"});
    for (records, domain_of_last, allow) in [
        (json!([record(5)]), "x.a.example", NOTHING),
        (json!([record(5)]), "c.example", NOTHING),
        (json!([record(5)]), "c.example", REBIND),
        (json!([record(5), record(6)]), "x.a.example", REBIND),
    ] {
        let domain = |id| match id {
            0 => "a.example".to_owned(),
            SITES => domain_of_last.to_owned(),
            id => format!("x{id}.a.example"),
        };
        let sites = (0..=SITES).map(|id| json!({"id": id, "domain": domain(id), "cert_id": 5}));
        let sites = sites.collect::<Value>();
        let listing = Listing { records: List::of(&records).unwrap(), sites: List::of(&sites).unwrap() };
        let (listing, looks) = (IndexedListing::new(listing), Cell::new(0));
        let request = PlanRequest {
            covers: &|domain| {
                looks.set(looks.get() + 1);
                domain.host() != "c.example"
            },
            unwanted: &|_| None,
            later_leaf: &|_| None,
            keeps_names: &|_| false,
            missed: &HashMap::new(),
            allow,
        };
        Plan::new(&Account::whole(&listing), &request);
        assert!(looks.get() < 10 * SITES, "{} looks", looks.get());
    }
}
