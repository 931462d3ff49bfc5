//! `sites enable` and `sites disable` (sections 3 and 4.8).

use serde_json::json;

use super::{set_traffic, shop, site, sites};
use crate::harness::{Fault, request_lines, step};

#[test]
fn switched_site_is_read_again() {
    let service = shop();
    // Section 3 of the API document.
    step("disabled_site_can_be_enabled");
    sites(&service, &["disable", "shop.example.com"]).succeeds().prints("disabled; acceleration has stopped");
    assert_eq!(site(&service, 10)["enabled"], false);
    assert!(service.edge().iter().all(|name| name["domain"] != "shop.example.com"));
    let json = sites(&service, &["enable", "10", "--wait", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["site"]["enabled"]), (&json!("sites enable"), &json!(true)));
    assert_eq!(json["site"]["config_synced"], true);

    // Sections 3 and 7 of the API document.
    step("exceeded_package_keeps_site_disabled");
    set_traffic(&service, 9999);
    let output = sites(&service, &["enable", "10"]).exits_with(69);
    output.says("shop.example.com (site 10) is still disabled by the system: package traffic exceeded");
    output.says("top it up, renew it or extend it first");
    set_traffic(&service, 0);
    sites(&service, &["enable", "10"]).succeeds();

    step("switching_sends_no_body");
    let switches = service.requests().into_iter().filter(|request| request.method == "POST");
    assert!(switches.into_iter().all(|request| request.body.is_null()));
}

/// Section 4.8 of the API document.
#[test]
fn site_is_read_after_switching() {
    let service = shop();
    for command in ["disable", "enable"] {
        service.add_fault(Fault::status(&format!("POST /api/sites/*/{command}"), 200).body("whatever"));
        // The fault does not carry out the request: an enabled site stays enabled.
        let expected = if command == "disable" { 69 } else { 0 };
        sites(&service, &[command, "10"]).exits_with(expected);
        let asked = request_lines(&service);
        let last: Vec<&str> = asked.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(last, ["GET /api/sites/10".to_owned(), format!("POST /api/sites/10/{command}")]);
    }
}

#[test]
fn odd_responses_to_switching_are_explained() {
    let service = shop();
    step("refusal_without_consequence_is_a_warning");
    service.add_fault(Fault::status("POST /api/sites/*/enable", 409).body("it is enabled already"));
    sites(&service, &["enable", "10"]).succeeds().says("warning: the service refused the request (409)");

    step("unreadable_site_is_not_called_unchanged");
    for (status, code) in [(404, 69), (400, 69)] {
        service.add_fault(Fault::status("GET /api/sites/10", status));
        let output = sites(&service, &["disable", "10"]).exits_with(code);
        assert!(!output.stderr.contains("nothing was changed"), "{}", output.stderr);
        assert!(
            output.stderr.contains(" is gone now (404)") || output.stderr.contains("accepted the request")
        );
    }
}
