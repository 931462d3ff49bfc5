//! `sites enable` and `sites disable` (sections 3 and 4.8).

use serde_json::json;

use super::{shop, site, sites, traffic};
use crate::harness::{Fault, asked};

#[test]
fn section_3_disable_stops_the_acceleration_at_once() {
    let edge = shop();
    let outcome = sites(&edge, &["disable", "shop.example.com"]).succeeds();
    assert!(outcome.stdout.contains("disabled; acceleration has stopped"), "{}", outcome.stdout);
    assert_eq!(site(&edge, 10)["enabled"], false);
    assert!(edge.edge().iter().all(|name| name["domain"] != "shop.example.com"));
}

#[test]
fn section_3_a_site_that_the_customer_disabled_is_enabled_again() {
    let edge = shop();
    sites(&edge, &["disable", "10"]).succeeds();
    let json = sites(&edge, &["enable", "10", "--wait", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["site"]["enabled"]), (&json!("sites enable"), &json!(true)));
    assert_eq!(json["site"]["config_synced"], true);
}

#[test]
fn section_3_and_7_a_site_whose_package_is_exceeded_stays_disabled_and_the_reason_is_told() {
    let edge = shop();
    traffic(&edge, 9999);
    let outcome = sites(&edge, &["enable", "10"]).fails_with(69);
    let message = "shop.example.com (site 10) is still disabled by the system: package traffic exceeded";
    assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("top it up, renew it or extend it first"), "{}", outcome.stderr);
    let json = sites(&edge, &["enable", "10", "--json"]).fails_with(69).json();
    assert_eq!(json["site"]["enabled"], false);
    traffic(&edge, 0);
    sites(&edge, &["enable", "10"]).succeeds();
}

#[test]
fn section_3_the_systems_disabling_is_distinct_from_the_customers() {
    let edge = shop();
    sites(&edge, &["disable", "11"]).succeeds();
    traffic(&edge, 9999);
    let reason = |id: &str| {
        let json = sites(&edge, &["get", id, "--json"]).succeeds().json();
        json["site"]["disabled_reason"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!((reason("10").as_str(), reason("11").as_str()), ("package traffic exceeded", ""));
}

#[test]
fn section_4_8_the_site_is_read_again_because_the_answer_proves_nothing() {
    let edge = shop();
    for command in ["disable", "enable"] {
        edge.add_fault(Fault::status(&format!("POST /api/sites/*/{command}"), 200).body("whatever"));
        // The fault does not carry it out: a site that is enabled stays so.
        let expected = if command == "disable" { 69 } else { 0 };
        sites(&edge, &[command, "10"]).fails_with(expected);
        let asked = asked(&edge);
        let last: Vec<&str> = asked.iter().rev().take(2).map(String::as_str).collect();
        assert_eq!(last, ["GET /api/sites/10".to_owned(), format!("POST /api/sites/10/{command}")]);
    }
}

#[test]
fn no_request_body_is_sent() {
    let edge = shop();
    sites(&edge, &["disable", "10"]).succeeds();
    let request = edge.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert!(request.body.is_null(), "{}", request.body);
}

#[test]
fn a_site_that_is_missing_or_anothers_is_exit_69() {
    let edge = shop();
    for (command, id) in [("enable", "99"), ("disable", "20"), ("enable", "nobody.example")] {
        let outcome = sites(&edge, &[command, id]).fails_with(69);
        assert!(outcome.stderr.contains("the account has no site"), "{}", outcome.stderr);
    }
    assert_eq!(site(&edge, 20)["enabled"], true);
}

#[test]
fn a_refusal_of_what_is_so_nevertheless_is_a_warning() {
    let edge = shop();
    edge.add_fault(Fault::status("POST /api/sites/*/enable", 409).body("it is enabled already"));
    let outcome = sites(&edge, &["enable", "10"]).succeeds();
    assert!(outcome.stderr.contains("warning: the service refused the request (409)"), "{}", outcome.stderr);
}

#[test]
fn a_site_that_cannot_be_read_again_is_not_said_to_be_unchanged() {
    let edge = shop();
    for (status, code) in [(404, 69), (400, 69)] {
        edge.add_fault(Fault::status("GET /api/sites/10", status));
        let outcome = sites(&edge, &["disable", "10"]).fails_with(code);
        assert!(!outcome.stderr.contains("nothing was changed"), "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains(" is gone now (404)") || outcome.stderr.contains("accepted the request")
        );
    }
}
