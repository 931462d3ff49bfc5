//! Answers that are lost on their way: what may be repeated is, what may not is made up for by reading.

use serde_json::json;

use super::{shop, site, sites};
use crate::harness::{Fault, Sandbox, asked};

fn times(edge: &Sandbox, request: &str) -> usize {
    asked(edge).iter().filter(|asked| *asked == request).count()
}

#[test]
fn a_creation_whose_answer_is_lost_is_found_and_never_repeated() {
    for fault in [Fault::close_after("POST /api/sites"), Fault::truncate("POST /api/sites", 3)] {
        let edge = shop();
        edge.add_fault(fault);
        let arguments = ["create", "new.example.com", "--set", "http3=true", "--origin", "192.0.2.1"];
        let outcome = sites(&edge, &arguments).succeeds();
        assert!(outcome.stdout.contains(" IN CNAME "), "{}", outcome.stdout);
        assert!(outcome.stderr.contains("warning: the response was lost"), "{}", outcome.stderr);
        assert_eq!(times(&edge, "POST /api/sites"), 1);
    }
}

#[test]
fn what_a_lost_answer_would_have_called_ignored_is_still_seen() {
    let edge = shop();
    edge.add_fault(Fault::close_after("POST /api/sites"));
    let outcome = sites(&edge, &["create", "new.example.com", "--set", "waf=1", "--json"]).fails_with(69);
    assert_eq!(outcome.json()["ignored_fields"], json!(["waf"]));
}

#[test]
fn a_creation_that_did_not_reach_the_service_is_exit_75_and_not_repeated() {
    for fault in [Fault::close_before("POST /api/sites"), Fault::status("POST /api/sites", 503)] {
        let edge = shop();
        edge.add_fault(fault);
        let outcome = sites(&edge, &["create", "new.example.com"]).fails_with(75);
        assert!(outcome.stderr.contains("new.example.com was not created"), "{}", outcome.stderr);
        assert_eq!(times(&edge, "POST /api/sites"), 1);
    }
}

#[test]
fn temporary_faults_are_repeated_for_everything_else() {
    let rows: [(&str, &[&str]); 8] = [
        ("GET /api/me/sites", &["list"]),
        ("GET /api/sites/*", &["get", "10"]),
        ("POST /api/sites/*/update", &["update", "10", "--set", "remark=x"]),
        ("POST /api/sites/*/disable", &["disable", "10"]),
        ("POST /api/sites/*/enable", &["enable", "10"]),
        ("POST /api/sites/*/update", &["bind", "11", "5", "--allow-uncovered"]),
        ("GET /api/certs", &["bind", "10", "5"]),
        ("DELETE /api/sites/*", &["delete", "10", "--yes"]),
    ];
    for (pattern, arguments) in rows {
        for fault in [Fault::status(pattern, 503), Fault::close_before(pattern), Fault::close_after(pattern)]
        {
            let edge = shop();
            edge.add_fault(fault.clone());
            sites(&edge, arguments).succeeds();
            assert!(edge.requests().iter().any(|request| request.fault.is_some()), "{pattern} {fault:?}");
        }
    }
}

#[test]
fn a_404_on_the_repetition_of_a_delete_whose_answer_was_lost_is_success() {
    let edge = shop();
    edge.add_fault(Fault::close_after("DELETE /api/sites/*"));
    let json = sites(&edge, &["delete", "10", "--yes", "--json"]).succeeds().json();
    assert_eq!(json["deleted"], true);
    assert_eq!(times(&edge, "DELETE /api/sites/10"), 2);
    assert!(site(&edge, 10).is_null());
}

#[test]
fn a_404_on_the_first_delete_is_none() {
    let edge = shop();
    edge.add_fault(Fault::status("DELETE /api/sites/*", 404));
    let outcome = sites(&edge, &["delete", "10", "--yes"]).fails_with(69);
    assert!(outcome.stderr.contains("the account has no site 10 (404)"), "{}", outcome.stderr);
}

#[test]
fn a_change_whose_fate_is_unknown_says_so() {
    let edge = shop();
    edge.add_fault(Fault::status("POST /api/sites/*/update", 503).times(99).header("Retry-After", "9999"));
    let outcome = sites(&edge, &["update", "10", "--set", "remark=x"]).fails_with(75);
    assert!(
        outcome.stderr.contains("shop.example.com (site 10) may or may not be changed"),
        "{}",
        outcome.stderr
    );
}
