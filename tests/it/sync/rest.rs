//! `sync` leaves lineages alone that match their options, even if those skip sites or verification.

use tempfile::TempDir;

use super::{LISTING, deploy, is_bound_to, requests_during, sync};
use crate::harness::{Lineage, sandbox};

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
