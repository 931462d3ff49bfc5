//! What somebody else changed at the service since is noticed in the listing and put right.

use serde_json::json;
use tempfile::TempDir;

use super::{LISTING, asked_during, change, deploy, is_fed_by, sync};
use crate::harness::{Lineage, Sandbox, sandbox};

/// A lineage that is deployed to its sites, and `sync` once more after something has changed.
fn after(change: impl FnOnce(&Sandbox), code: i32) -> (Sandbox, Lineage, crate::harness::Outcome) {
    let (edge, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example", "*.c.example"]);
    deploy(&edge, &lineage, state.path()).succeeds();
    let (asked, _) = asked_during(&edge, || sync(&edge, state.path()).succeeds());
    assert_eq!(asked, LISTING);
    change(&edge);
    let outcome = sync(&edge, state.path()).args(["--json"]).fails_with(code);
    (edge, lineage, outcome)
}

fn id(edge: &Sandbox, domain: &str) -> u64 {
    edge.sites().iter().find(|site| site["domain"] == domain).unwrap()["id"].as_u64().unwrap()
}

fn reason(outcome: &crate::harness::Outcome) -> String {
    outcome.json()["lineages"][0]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_site_that_lost_its_certificate_gets_it_back() {
    let unbind = |edge: &Sandbox| {
        let path = format!("/api/sites/{}/update", id(edge, "a.example"));
        change(edge, &path, &json!({"cert_id": null}));
    };
    let (edge, lineage, outcome) = after(unbind, 0);
    assert!(
        reason(&outcome).contains("a.example is bound to no certificate, not to"),
        "{}",
        reason(&outcome)
    );
    assert!(is_fed_by(&edge, "a.example", &lineage) && edge.certs().len() == 1);
}

#[test]
fn a_site_that_was_bound_to_something_else_is_put_right_or_told() {
    let rebind = |edge: &Sandbox| {
        // Another lineage's certificate, which covers the site too.
        let other = Lineage::issued_for(&["b.example", "a.example"]);
        let state = TempDir::new().unwrap();
        deploy(edge, &other, state.path()).for_domain("b.example").succeeds();
        let site = edge.sites().into_iter().find(|site| site["domain"] == "b.example").unwrap();
        let path = format!("/api/sites/{}/update", id(edge, "a.example"));
        change(edge, &path, &json!({"cert_id": site["cert_id"]}));
    };
    let (edge, _, outcome) = after(rebind, 69);
    assert!(reason(&outcome).contains("a.example is bound to certificate "), "{}", reason(&outcome));
    assert_eq!(outcome.json()["lineages"][0]["sites"][0]["outcome"], "misbound");
    assert_eq!(edge.certs().len(), 2);
}

#[test]
fn a_site_that_is_new_gets_the_certificate() {
    let (edge, lineage, outcome) = after(|edge| assert!(edge.add_site("d.c.example") > 0), 0);
    assert_eq!(reason(&outcome), "d.c.example is a new site");
    assert!(is_fed_by(&edge, "d.c.example", &lineage));
}

#[test]
fn a_push_that_was_never_confirmed_is_looked_at_again() {
    let (edge, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    edge.hold_pushes(true);
    let outcome = deploy(&edge, &lineage, state.path()).args(["--wait", "0", "--json"]).succeeds();
    assert_eq!(outcome.sites(), ["a.example: uploaded"]);
    edge.hold_pushes(false);
    let outcome = sync(&edge, state.path()).args(["--json"]).succeeds();
    assert_eq!(reason(&outcome), "the push to a.example was never confirmed");
    assert_eq!(outcome.json()["lineages"][0]["sites"][0]["outcome"], "served");
    let (asked, _) = asked_during(&edge, || sync(&edge, state.path()).succeeds());
    assert_eq!(asked, LISTING);
}
