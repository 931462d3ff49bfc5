//! `sync` leaves lineages alone that match their options, even if those skip sites or verification.

use serde_json::json;
use tempfile::TempDir;

use super::{LISTING, deploy, is_bound_to, requests_during, sync};
use crate::harness::{Lineage, Options, record, sandbox, sandbox_with, upload_count, world};

#[test]
fn no_wait_causes_no_redeployment() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    let sync = || sync(&service, state.path()).env("EDGECERT_WAIT", "0");
    service.hold_pushes(true);
    let output =
        deploy(&service, &lineage, state.path()).env("EDGECERT_WAIT", "0").args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: uploaded"]);
    service.hold_pushes(false);
    // The push ends before the next run.
    deploy(&service, &lineage, TempDir::new().unwrap().path()).env("EDGECERT_VERIFY", "off").succeeds();
    let (requests, _) = requests_during(&service, || sync().succeeds());
    assert_eq!(requests, LISTING);
}

#[test]
fn skipped_domain_causes_no_redeployment() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    let hook = deploy(&service, &lineage, state.path()).args(["--skip-unmatched"]);
    hook.for_domain("a.example").for_domain("b.example").succeeds();
    let (requests, _) = requests_during(&service, || sync(&service, state.path()).succeeds());
    assert_eq!(requests, LISTING);
    service.add_site("b.example");
    sync(&service, state.path()).succeeds();
    assert!(is_bound_to(&service, "b.example", &lineage));
}

#[test]
fn returned_files_are_watched_again() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    deploy(&service, &lineage, state.path()).succeeds();
    for _ in 0..2 {
        lineage.rename("fullchain.pem", "away.pem");
        sync(&service, state.path()).exits_with(66);
        sync(&service, state.path()).succeeds();
        lineage.rename("away.pem", "fullchain.pem");
        sync(&service, state.path()).succeeds();
        let (requests, _) = requests_during(&service, || sync(&service, state.path()).succeeds());
        assert_eq!(requests, LISTING);
    }
}

#[test]
fn missed_site_causes_no_further_upload() {
    // The service replaces the older one of two records for the domain, but the site is bound to the other one.
    let site = json!({"id": 10, "account": 1, "domain": "a.example", "cert_id": 6});
    let records = [5, 6].map(|id| record(id, "a.example", "upload"));
    let world = world(json!({"sites": [site], "certs": records}));
    let service = sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[]);
    let (state, lineage) = (TempDir::new().unwrap(), Lineage::issued_for(&["a.example"]));
    let output = deploy(&service, &lineage, state.path()).exits_with(69);
    assert!(output.stderr.contains("bound to certificate 6 instead of the uploaded 5"), "{}", output.stderr);
    for _ in 0..2 {
        let output = sync(&service, state.path()).args(["--json"]).exits_with(69);
        assert!(
            output
                .stderr
                .contains("a.example is misbound: it is bound to certificate 6, which is one of several")
        );
        assert_eq!((&output.json()["changed"], upload_count(&service)), (&json!(false), 1));
    }
    deploy(&service, &lineage, state.path()).args(["--force"]).exits_with(69);
    assert_eq!(upload_count(&service), 2);
    lineage.renew(&["a.example"]);
    sync(&service, state.path()).exits_with(69);
    assert_eq!(upload_count(&service), 3, "another leaf is uploaded");
    sync(&service, state.path()).args(["--rebind"]).succeeds();
    assert!(is_bound_to(&service, "a.example", &lineage));
}

#[test]
fn dropped_name_is_reported() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let (kept, both) =
        (Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["a.example", "b.example"]));
    deploy(&service, &kept, state.path()).succeeds();
    service.add_site("b.example");
    both.renew_between(&["a.example", "b.example"], [-80, 10]);
    // Only `b.example`, because `a.example` has a certificate that was issued later.
    deploy(&service, &both, state.path()).succeeds();
    let message = "warning: b.example keeps an earlier certificate of ";
    both.renew(&["a.example"]);
    let output = deploy(&service, &both, state.path()).succeeds();
    assert_eq!(output.stderr.matches(message).count(), 1, "{}", output.stderr);
    let output = sync(&service, state.path()).succeeds();
    assert_eq!(output.stderr.matches(message).count(), 1, "{}", output.stderr);
    both.renew(&["a.example", "b.example"]);
    let output = deploy(&service, &both, state.path()).succeeds();
    assert!(!output.stderr.contains(message), "{}", output.stderr);
}
