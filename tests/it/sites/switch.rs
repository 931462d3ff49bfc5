//! `sites enable` and `sites disable` (sections 3 and 4.8).

use serde_json::json;

use super::{set_traffic, shop, site, sites};
use crate::harness::{Fault, request_lines};

/// Section 3 of the API document.
#[test]
fn disabled_site_can_be_enabled() {
    let service = shop();
    sites(&service, &["disable", "shop.example.com"]).succeeds().prints("disabled; acceleration has stopped");
    assert_eq!(site(&service, 10)["enabled"], false);
    assert!(service.edge().iter().all(|name| name["domain"] != "shop.example.com"));
    let json = sites(&service, &["enable", "10", "--wait", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["site"]["enabled"]), (&json!("sites enable"), &json!(true)));
    assert_eq!(json["site"]["config_synced"], true);
}

/// Sections 3 and 7 of the API document.
#[test]
fn exceeded_package_keeps_site_disabled() {
    let service = shop();
    set_traffic(&service, 9999);
    let output = sites(&service, &["enable", "10"]).exits_with(69);
    output.says("shop.example.com (site 10) is still disabled by the system: package traffic exceeded");
    output.says("top it up, renew it or extend it first");
    set_traffic(&service, 0);
    sites(&service, &["enable", "10"]).succeeds();
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
fn switching_sends_no_body() {
    let service = shop();
    sites(&service, &["disable", "10"]).succeeds();
    let request = service.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert!(request.body.is_null(), "{}", request.body);
}

#[test]
fn refusal_without_consequence_is_a_warning() {
    let service = shop();
    service.add_fault(Fault::status("POST /api/sites/*/enable", 409).body("it is enabled already"));
    sites(&service, &["enable", "10"]).succeeds().says("warning: the service refused the request (409)");
}

#[test]
fn unreadable_site_is_not_called_unchanged() {
    let service = shop();
    for (status, code) in [(404, 69), (400, 69)] {
        service.add_fault(Fault::status("GET /api/sites/10", status));
        let output = sites(&service, &["disable", "10"]).exits_with(code);
        assert!(!output.stderr.contains("nothing was changed"), "{}", output.stderr);
        assert!(
            output.stderr.contains(" is gone now (404)") || output.stderr.contains("accepted the request")
        );
    }
}
