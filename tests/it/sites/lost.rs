//! Lost responses: repeatable requests are retried, others are followed by a listing.

use serde_json::json;

use super::{shop, site, sites};
use crate::harness::{Fault, Sandbox, at_once, request_lines, step};

fn request_count(service: &Sandbox, request: &str) -> usize {
    request_lines(service).iter().filter(|asked| *asked == request).count()
}

#[test]
fn lost_creation_response_lists_the_sites() {
    for fault in [Fault::close_after("POST /api/sites"), Fault::truncate("POST /api/sites", 3)] {
        let service = shop();
        service.add_fault(fault);
        let arguments = ["create", "new.example.com", "--set", "http3=true", "--origin", "192.0.2.1"];
        sites(&service, &arguments).succeeds().prints(" IN CNAME ").says("warning: the response was lost");
        assert_eq!(request_count(&service, "POST /api/sites"), 1);
    }
}

#[test]
fn lost_responses_are_followed_up() {
    let service = shop();

    step("lost_response_still_shows_ignored_fields");
    service.add_fault(Fault::close_after("POST /api/sites"));
    let output = sites(&service, &["create", "new.example.com", "--set", "waf=1", "--json"]).exits_with(69);
    assert_eq!(output.json()["ignored_fields"], json!(["waf"]));

    step("uncertain_change_is_reported");
    service.add_fault(Fault::status("POST /api/sites/*/update", 503).times(99).header("Retry-After", "9999"));
    let output = sites(&service, &["update", "10", "--set", "remark=x"]).exits_with(75);
    output.says("shop.example.com (site 10) may or may not have been changed");

    step("retried_delete_accepts_404");
    service.add_fault(Fault::close_after("DELETE /api/sites/*"));
    assert_eq!(sites(&service, &["delete", "10", "--yes", "--json"]).succeeds().json()["deleted"], true);
    assert_eq!(request_count(&service, "DELETE /api/sites/10"), 2);
    assert!(site(&service, 10).is_null());
}

#[test]
fn failed_creation_is_not_repeated() {
    for fault in [Fault::close_before("POST /api/sites"), Fault::status("POST /api/sites", 503)] {
        let service = shop();
        service.add_fault(fault);
        let output = sites(&service, &["create", "new.example.com"]).exits_with(75);
        output.says("new.example.com was not created");
        assert_eq!(request_count(&service, "POST /api/sites"), 1);
    }
}

#[test]
fn other_requests_are_retried() {
    let rows: [(&str, &[&str]); 8] = [
        ("GET /api/me/sites", &["list"]),
        ("GET /api/sites/*", &["get", "10"]),
        ("POST /api/sites/*/update", &["update", "10", "--set", "remark=x"]),
        ("POST /api/sites/*/disable", &["disable", "10"]),
        ("POST /api/sites/*/enable", &["enable", "10"]),
        ("POST /api/sites/*/update", &["bind", "11", "5", "--allow-uncovered"]),
        ("GET /api/certs/*/download", &["bind", "10", "5"]),
        ("DELETE /api/sites/*", &["delete", "10", "--yes"]),
    ];
    let rows = rows.into_iter().flat_map(|(pattern, arguments)| {
        let faults = [Fault::status(pattern, 503), Fault::close_before(pattern), Fault::close_after(pattern)];
        faults.map(|fault| (pattern, arguments, fault))
    });
    at_once(rows, |(pattern, arguments, fault)| {
        let service = shop();
        service.add_fault(fault.clone());
        sites(&service, arguments).succeeds();
        assert!(service.requests().iter().any(|request| request.fault.is_some()), "{pattern} {fault:?}");
    });
}

/// Sections 4.7, 4.9 and 7 of the API document.
#[test]
fn site_may_vanish_before_its_request() {
    for (request, arguments) in [
        ("DELETE /api/sites/*", &["delete", "10", "--yes"][..]),
        ("POST /api/sites/*/update", &["update", "10", "--set", "remark=x"]),
    ] {
        let service = shop();
        service.add_fault(Fault::status(request, 404));
        sites(&service, arguments).exits_with(69).says("the account has no site 10 (404)");
    }
}
