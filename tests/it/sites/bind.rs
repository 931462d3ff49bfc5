//! `sites bind`: sets `cert_id` by the update of section 4.7.

use serde_json::json;

use super::{changed_anything, last_body, shop, site, sites};
use crate::harness::{Fault, account, record, record_of, step, test_ca};

#[test]
fn coverage_decides_about_binding() {
    let service = shop();
    step("uncovered_site_is_not_bound");
    let output = sites(&service, &["bind", "11", "5"]).exits_with(65);
    let message = "certificate 5 does not cover plain.example.com (site 11), only shop.example.com; nothing was changed";
    output.says(message);
    assert!(!changed_anything(&service));
    let output = sites(&service, &["bind", "11", "5", "--allow-uncovered"]).succeeds();
    output.says("warning: certificate 5 does not cover");
    assert_eq!(site(&service, 11)["cert_id"], 5);

    step("unknown_coverage_is_a_warning");
    service.add_fault(Fault::status("GET /api/certs/*/download", 403));
    let output = sites(&service, &["bind", "11", "5"]).succeeds();
    output.says("warning: cannot tell whether certificate 5 covers plain.example.com");

    step("covered_site_is_bound");
    let json = sites(&service, &["bind", "shop.example.com", "5", "--wait", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["site"]["cert_id"]), (&json!("sites bind"), &json!(5)));
    assert_eq!(last_body(&service, "/update"), json!({"cert_id": 5}));
}

#[test]
fn certificate_decides_over_the_listing() {
    let issued = test_ca().issue(&["a.example", "*.a.example"]).unwrap();
    let service = account(&[(10, "www.a.example", None)], &[record_of(5, "a.example", &issued)]);
    let output = sites(&service, &["bind", "10", "5", "-vv", "--json"]).succeeds();
    assert_eq!(site(&service, 10)["cert_id"], 5);
    let line = issued.key.lines().nth(1).unwrap();
    assert!(!output.stdout.contains(line) && !output.stderr.contains(line));
}

#[test]
fn declared_domain_does_not_cover() {
    let mut declared = record(5, "b.example", "upload");
    declared["domain"] = json!("a.example");
    let service = account(&[(10, "a.example", None)], &[declared]);
    let output = sites(&service, &["bind", "10", "5"]).exits_with(65);
    output.says("does not cover a.example (site 10), only b.example");
    assert!(!changed_anything(&service));
}

#[test]
fn binding_without_effect_is_exit_69() {
    let service = shop();
    let body = json!({"ok": true, "site": site(&service, 11), "ignored_fields": []});
    service.add_fault(Fault::status("POST /api/sites/*/update", 200).body(body));
    let output = sites(&service, &["bind", "11", "5", "--allow-uncovered"]).exits_with(69);
    output.says("is bound to no certificate, although");
}
