//! `edgecert plan` and `deploy --dry-run`: show what would be done, and change nothing.

use expect_test::expect;
use serde_json::json;

use crate::harness::{Lineage, Options, edgecert, record, request_lines, sandbox, sandbox_with, world};

#[test]
fn plan_gives_reasons_and_changes_nothing() {
    let world = world(json!({
        "sites": [
            {"id": 10, "account": 1, "domain": "a.example", "cert_id": 5},
            {"id": 11, "account": 1, "domain": "b.example", "cert_id": 5},
            {"id": 12, "account": 1, "domain": "c.example"},
            {"id": 13, "account": 1, "domain": "d.example", "cert_id": 6},
            {"id": 14, "account": 1, "domain": "e.example", "cert_id": 7},
            {"id": 15, "account": 1, "domain": "other.test"},
        ],
        "certs": [
            record(5, "b.example", "upload"), record(6, "d.example", "lets"), record(7, "other.test", "upload"),
        ],
    }));
    let service = sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[]);
    let renewed = Lineage::issued_for(&["*.example"]);
    let (sites, records) = (service.sites(), service.certs());

    let output = edgecert().called_by_certbot(&renewed).against(&service).args(["plan"]).exits_with(65);
    expect![[r#"
        *.example   P-256, expires DATE (TIME)
          ~ replace   a.example and b.example (certificate 5)
                      now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
          + create    c.example: no certificate yet
          ! blocked   d.example: the service renews certificate 6 (--replace-lets)
                      now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
          ! blocked   e.example: bound to certificate 7 of other.test (--rebind)
                      now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
        1 to create, 2 to replace, 2 blocked; nothing was changed
        ---
        edgecert: error: d.example is guarded: the service itself issues and renews certificate 6
        edgecert: hint: let the service renew it, or pass --replace-lets to replace it, or --rebind to bind the site to another record
        edgecert: error: e.example is misbound: it is bound to certificate 7, which is stored for other.test, and the new certificate does not cover other.test
        edgecert: hint: bind the site to another record in the service, or pass --rebind to bind the site to the uploaded record
    "#]].assert_eq(&output.snapshot());

    let rebind =
        edgecert().called_by_certbot(&renewed).against(&service).args(["plan", "--rebind", "--replace-lets"]);
    expect![[r#"
        *.example   P-256, expires DATE (TIME)
          ~ replace   a.example and b.example (certificate 5)
                      now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
          ~ replace   d.example (certificate 6)
                      now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
          + create    c.example: no certificate yet
          ~ bind      e.example: to the record uploaded for b.example: it is bound to certificate 7, which is stored for other.test, and the new certificate does not cover other.test
                      now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
        1 to create, 3 to replace, 1 to bind; nothing was changed
        ---
    "#]].assert_eq(&rebind.succeeds().snapshot());

    let dry = edgecert().called_by_certbot(&renewed).against(&service).args(["--dry-run"]).exits_with(65);
    assert_eq!(dry.snapshot(), output.snapshot());
    assert!(
        request_lines(&service).iter().all(|request| request.starts_with("GET ")),
        "{:?}",
        request_lines(&service)
    );
    assert_eq!((service.sites(), service.certs()), (sites, records));
}

#[test]
fn plan_is_in_the_json_report() {
    let service = sandbox(&["a.example"]);
    let renewed = Lineage::issued_for(&["a.example"]);
    let call = || edgecert().called_by_certbot(&renewed).against(&service);
    let json = call().args(["plan", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["ok"], &json["uploads"]), (&json!("plan"), &json!(true), &json!([])));
    let step = json!({
        "step": "create", "domain": "a.example", "cert_ids": [], "sites": ["a.example"],
        "reason": "a.example has no certificate",
    });
    assert_eq!(json["plan"], json!([step]));
    assert_eq!(request_lines(&service).len(), 2, "the two listings");

    let deployed = call().args(["--json"]).succeeds().json();
    assert!(deployed.get("plan").is_none(), "no plan unless requested");
}

#[test]
fn upload_only_plan_needs_no_service() {
    let service = sandbox(&["a.example"]);
    let renewed = Lineage::issued_for(&["a.example"]);
    let hook = edgecert().called_by_certbot(&renewed).against(&service).args(["plan", "--wait", "0"]);
    let output = hook.for_domain("a.example").succeeds();
    assert!(
        output.stdout.contains("+ upload    a.example: --domain with --wait 0: no listing"),
        "{}",
        output.stdout
    );
    assert_eq!(request_lines(&service).len(), 0);
}

#[test]
fn refused_certificate_has_no_plan() {
    let service = sandbox(&["a.example"]);
    let renewed = Lineage::issued_for(&["b.example"]);
    let hook = edgecert().called_by_certbot(&renewed).against(&service).args(["plan"]);
    hook.for_domain("a.example").exits_with(65);
    assert_eq!(request_lines(&service).len(), 0);
}
