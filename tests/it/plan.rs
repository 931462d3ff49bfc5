//! `edgecert plan` and `deploy --dry-run`: show what would be done, and change nothing.

use expect_test::expect;
use serde_json::json;

use crate::harness::{Lineage, account, fresh, record, request_lines, sandbox, sandbox_and_lineage};

#[test]
fn plan_gives_reasons_and_changes_nothing() {
    let sites = [
        (10, "a.example", Some(5)),
        (11, "b.example", Some(5)),
        (12, "c.example", None),
        (13, "d.example", Some(6)),
        (14, "e.example", Some(7)),
        (15, "other.test", None),
    ];
    let records =
        [record(5, "b.example", "upload"), record(6, "d.example", "lets"), record(7, "other.test", "upload")];
    let service = account(&sites, &records);
    let renewed = Lineage::issued_for(&["*.example"]);
    let (sites, records) = (service.sites(), service.certs());

    let output = fresh(&service, &renewed).args(["plan"]).exits_with(65);
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
        edgecert: hint: let the service renew it, or pass --replace-lets to replace it, or pass --rebind to bind the site to another record
        edgecert: error: e.example is misbound: it is bound to certificate 7, which is stored for other.test, and the new certificate does not cover other.test
        edgecert: hint: bind the site to another record in the service, or pass --rebind to bind the site to the uploaded record
    "#]].assert_eq(&output.snapshot());

    let rebind = fresh(&service, &renewed).args(["plan", "--rebind", "--replace-lets"]);
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

    let dry = fresh(&service, &renewed).args(["--dry-run"]).exits_with(65);
    assert_eq!(dry.snapshot(), output.snapshot());
    let requests = request_lines(&service);
    assert!(requests.iter().all(|request| request.starts_with("GET ")), "{requests:?}");
    assert_eq!((service.sites(), service.certs()), (sites, records));
}

#[test]
fn plan_is_in_the_json_report() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let call = || fresh(&service, &renewed);
    let json = call().args(["plan", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["ok"], &json["uploads"]), (&json!("plan"), &json!(true), &json!([])));
    let step = json!({
        "step": "create", "domain": "a.example", "cert_ids": [], "sites": ["a.example"],
        "reason": "a.example has no certificate",
    });
    assert_eq!(json["plan"], json!([step]));
    assert_eq!(request_lines(&service).len(), 2, "the two listings");

    assert!(call().args(["--json"]).succeeds().json().get("plan").is_none(), "no plan unless requested");
}

#[test]
fn upload_only_plan_needs_no_service() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let hook = fresh(&service, &renewed).args(["plan", "--wait", "0"]);
    let output = hook.for_domain("a.example").succeeds();
    output.prints("+ upload    a.example: --domain with --wait 0: no listing");
    assert_eq!(request_lines(&service).len(), 0);
}

#[test]
fn refused_certificate_has_no_plan() {
    let (service, renewed) = (sandbox(&["a.example"]), Lineage::issued_for(&["b.example"]));
    fresh(&service, &renewed).args(["plan"]).for_domain("a.example").exits_with(65);
    assert_eq!(request_lines(&service).len(), 0);
}
