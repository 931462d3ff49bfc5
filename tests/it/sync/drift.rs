//! Drift: changes that others made at the service are found in the listing and repaired.

use serde_json::json;
use tempfile::TempDir;

use super::{LISTING, change, deploy, is_bound_to, requests_during};
use crate::harness::{Host, Lineage, Sandbox};

/// Deploys a lineage, changes something, and runs `sync`.
fn after(change: impl FnOnce(&Sandbox), code: i32) -> (Sandbox, Lineage, crate::harness::Output) {
    let host = Host::with(&["a.example", "b.example"], &["a.example", "*.c.example"]);
    host.hook().succeeds();
    let (requests, _) = requests_during(&host.service, || host.sync().succeeds());
    assert_eq!(requests, LISTING);
    change(&host.service);
    let output = host.sync().args(["--json"]).exits_with(code);
    (host.service, host.lineage, output)
}

fn id(service: &Sandbox, domain: &str) -> u64 {
    service.sites().iter().find(|site| site["domain"] == domain).unwrap()["id"].as_u64().unwrap()
}

fn reason(output: &crate::harness::Output) -> String {
    output.json()["lineages"][0]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn unbound_site_is_bound_again() {
    let unbind = |service: &Sandbox| {
        let path = format!("/api/sites/{}/update", id(service, "a.example"));
        change(service, &path, &json!({"cert_id": null}));
    };
    let (service, lineage, output) = after(unbind, 0);
    assert!(
        reason(&output).contains("a.example is bound to no certificate, no longer to"),
        "{}",
        reason(&output)
    );
    assert!(is_bound_to(&service, "a.example", &lineage) && service.certs().len() == 1);
}

#[test]
fn rebound_site_is_repaired_or_reported() {
    let rebind = |service: &Sandbox| {
        // A certificate of another lineage that also covers the site.
        let other = Lineage::issued_for(&["b.example", "a.example"]);
        let state = TempDir::new().unwrap();
        deploy(service, &other, state.path()).for_domain("b.example").succeeds();
        let site = service.sites().into_iter().find(|site| site["domain"] == "b.example").unwrap();
        let path = format!("/api/sites/{}/update", id(service, "a.example"));
        change(service, &path, &json!({"cert_id": site["cert_id"]}));
    };
    let (service, _, output) = after(rebind, 69);
    assert!(reason(&output).contains("a.example is bound to certificate "), "{}", reason(&output));
    assert_eq!(output.json()["lineages"][0]["sites"][0]["outcome"], "misbound");
    assert_eq!(service.certs().len(), 2);
}

#[test]
fn new_site_gets_the_certificate() {
    let (service, lineage, output) = after(|service| assert!(service.add_site("d.c.example") > 0), 0);
    assert_eq!(reason(&output), "d.c.example is a new site");
    assert!(is_bound_to(&service, "d.c.example", &lineage));
}

#[test]
fn unconfirmed_push_is_checked_again() {
    let host = Host::new();
    host.service.hold_pushes(true);
    let output = host.hook().args(["--wait", "0", "--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: uploaded"]);
    host.service.hold_pushes(false);
    let (requests, output) = requests_during(&host.service, || host.sync().succeeds());
    assert_eq!(requests, LISTING);
    assert_eq!(output.shown(), "1 lineage: 1 unchanged (TIME)\n");
    assert_eq!(host.recorded()["sites"][0]["outcome"], "served");
    let (requests, _) = requests_during(&host.service, || host.sync().succeeds());
    assert_eq!(requests, LISTING);
}
