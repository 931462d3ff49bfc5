//! `sync` leaves lineages alone that match their options, even if those skip sites or verification.

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Host, Lineage, account, deploy, record, sandbox, sync, upload_count};

#[test]
fn skipped_domain_causes_no_redeployment() {
    let host = Host::with(&["a.example"], &["a.example", "b.example"]);
    host.hook().args(["--skip-unmatched"]).for_domain("a.example").for_domain("b.example").succeeds();
    host.sync().only_lists(&host.service);
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
        host.sync().only_lists(&host.service);
    }
}

#[test]
fn missed_site_causes_no_further_upload() {
    // The service replaces the older one of two records for the domain, but the site is bound to the other one.
    let records = [5, 6].map(|id| record(id, "a.example", "upload"));
    let host = Host::of(account(&[(10, "a.example", Some(6))], &records), &["a.example"]);
    host.hook().exits_with(69).says("bound to certificate 6 instead of the uploaded 5");
    for _ in 0..2 {
        let output = host.sync().args(["--json"]).exits_with(69);
        output.says("a.example is misbound: it is bound to certificate 6, which is one of several");
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
