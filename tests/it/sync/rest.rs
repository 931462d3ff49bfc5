//! `sync` leaves lineages alone that match their options, even if those skip sites or verification.

use serde_json::json;
use tempfile::TempDir;

use super::{LISTING, deploy, requests_during, sync};
use crate::harness::{Host, Lineage, account, record, sandbox, upload_count};

#[test]
fn no_wait_causes_no_redeployment() {
    let host = Host::new();
    let sync = || host.sync().env("EDGECERT_WAIT", "0");
    host.service.hold_pushes(true);
    let output = host.hook().env("EDGECERT_WAIT", "0").args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: uploaded"]);
    host.service.hold_pushes(false);
    // The push ends before the next run.
    deploy(&host.service, &host.lineage, TempDir::new().unwrap().path())
        .env("EDGECERT_VERIFY", "off")
        .succeeds();
    let (requests, _) = requests_during(&host.service, || sync().succeeds());
    assert_eq!(requests, LISTING);
}

#[test]
fn skipped_domain_causes_no_redeployment() {
    let host = Host::with(&["a.example"], &["a.example", "b.example"]);
    let hook = host.hook().args(["--skip-unmatched"]);
    hook.for_domain("a.example").for_domain("b.example").succeeds();
    let (requests, _) = requests_during(&host.service, || host.sync().succeeds());
    assert_eq!(requests, LISTING);
    host.service.add_site("b.example");
    host.sync().succeeds();
    assert!(host.is_bound("b.example"));
}

#[test]
fn returned_files_are_watched_again() {
    let host = Host::deployed();
    for _ in 0..2 {
        host.lineage.rename("fullchain.pem", "away.pem");
        host.sync().exits_with(66);
        host.sync().succeeds();
        host.lineage.rename("away.pem", "fullchain.pem");
        host.sync().succeeds();
        let (requests, _) = requests_during(&host.service, || host.sync().succeeds());
        assert_eq!(requests, LISTING);
    }
}

#[test]
fn missed_site_causes_no_further_upload() {
    // The service replaces the older one of two records for the domain, but the site is bound to the other one.
    let records = [5, 6].map(|id| record(id, "a.example", "upload"));
    let host = Host::of(account(&[(10, "a.example", Some(6))], &records), &["a.example"]);
    let output = host.hook().exits_with(69);
    assert!(output.stderr.contains("bound to certificate 6 instead of the uploaded 5"), "{}", output.stderr);
    for _ in 0..2 {
        let output = host.sync().args(["--json"]).exits_with(69);
        assert!(
            output
                .stderr
                .contains("a.example is misbound: it is bound to certificate 6, which is one of several")
        );
        assert_eq!((&output.json()["changed"], upload_count(&host.service)), (&json!(false), 1));
    }
    host.hook().args(["--force"]).exits_with(69);
    assert_eq!(upload_count(&host.service), 2);
    host.lineage.renew(&["a.example"]);
    host.sync().exits_with(69);
    assert_eq!(upload_count(&host.service), 3, "another leaf is uploaded");
    host.sync().args(["--rebind"]).succeeds();
    assert!(host.is_bound("a.example"));
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
