//! Section 3, with 4.8.

use serde_json::{Value, json};

use crate::support::{Made, OTHER_KEY, Program};

/// A program that serves a.example and b.example.
fn serving() -> (Program, Made) {
    let program = Program::start();
    let made = Made::for_names(&["a.example", "b.example"]);
    program.upload("a.example", &made).ok();
    program.push();
    assert_eq!(program.served("a.example"), Some(made.fingerprint()));
    (program, made)
}

fn switch(program: &Program, what: &str) -> crate::support::Reply {
    program.api("POST", &format!("/api/sites/10/{what}"), None)
}

fn package(program: &Program, change: &Value) -> Value {
    program.control("POST", "/packages/1", Some(change)).ok()
}

/// "POST disable: enabled = false. Acceleration of the domain stops immediately"; 4.8: "No request body is needed".
#[test]
fn section_3_disable_stops_at_once() {
    let (program, _) = serving();
    assert_eq!(switch(&program, "disable").ok(), json!({ "ok": true }));
    assert_eq!(program.served("a.example"), None, "before any push");
    let site = program.site(10);
    assert_eq!((&site["enabled"], &site["site_status"]), (&json!(false), &json!("stopped")));
    assert_eq!((&site["disabled_reason"], &site["cert_id"]), (&json!(""), &json!(1001)));
    assert!(program.served("b.example").is_some(), "the other site goes on");
    switch(&program, "disable").ok();
}

/// "POST enable, disabled by the customer: enabled = true. Config pushed to edge; see config_synced".
#[test]
fn section_3_enable_takes_effect_by_the_push() {
    let (program, made) = serving();
    switch(&program, "disable").ok();
    program.push();
    assert_eq!(switch(&program, "enable").ok(), json!({ "ok": true }));
    let site = program.site(10);
    assert_eq!((&site["enabled"], &site["config_synced"]), (&json!(true), &json!(false)));
    assert_eq!(program.served("a.example"), None);
    program.push();
    assert_eq!(program.served("a.example"), Some(made.fingerprint()));
    let site = program.site(10);
    assert_eq!((&site["site_status"], &site["config_synced"]), (&json!("running"), &json!(true)));
    switch(&program, "enable").ok();
}

/// "system, package traffic exceeded, automatic: disabled, disabled_reason set. Distinct from a customer disable".
#[test]
fn section_3_exceeding_the_traffic_disables_the_packages_sites() {
    let (program, _) = serving();
    program.api("POST", "/api/sites/11/disable", None).ok();
    let said = package(&program, &json!({ "traffic_used": 1000 }));
    assert_eq!(said["disabled_sites"], json!([]), "at the limit is not over it");
    let said = package(&program, &json!({ "traffic_used": 1001 }));
    assert_eq!(said["disabled_sites"], json!([10, 12]));
    let (by_system, by_customer) = (program.site(10), program.site(11));
    assert_eq!((&by_system["enabled"], &by_system["site_status"]), (&json!(false), &json!("overlimit")));
    assert_eq!(by_system["disabled_reason"], "package traffic exceeded");
    assert_eq!(by_customer["disabled_reason"], "");
    assert_eq!(program.served("a.example"), None);
    assert_eq!(program.api_as(OTHER_KEY, "GET", "/api/sites/20", None).ok()["enabled"], true);
}

/// "disabled by the system: remains disabled. Enable does not succeed; the package must first be topped up";
/// 7: its outcome is not shown, here 409.
#[test]
fn section_3_enable_waits_for_the_package() {
    let (program, made) = serving();
    package(&program, &json!({ "traffic_used": 1001 }));
    switch(&program, "enable").refused(409);
    let site = program.site(10);
    assert_eq!(
        (&site["enabled"], &site["disabled_reason"]),
        (&json!(false), &json!("package traffic exceeded"))
    );
    package(&program, &json!({ "traffic_limit": 5000 }));
    assert_eq!(program.site(10)["enabled"], false, "topping up alone enables nothing");
    switch(&program, "enable").ok();
    program.push();
    assert_eq!(program.site(10)["disabled_reason"], "");
    assert_eq!(program.served("a.example"), Some(made.fingerprint()));
}

/// "topped up, renewed or extended": an expired package is no better, and extending it helps.
#[test]
fn section_3_an_expired_package_has_to_be_extended() {
    let (program, _) = serving();
    switch(&program, "disable").ok();
    package(&program, &json!({ "expires_at": "2020-01-01T00:00:00Z" }));
    switch(&program, "enable").refused(409);
    package(&program, &json!({ "expires_at": "2099-01-01T00:00:00Z" }));
    switch(&program, "enable").ok();
}

/// Disabling what the system disabled keeps the reason.
#[test]
fn section_3_a_customers_disable_does_not_hide_the_systems() {
    let (program, _) = serving();
    package(&program, &json!({ "traffic_used": 1001 }));
    switch(&program, "disable").ok();
    assert_eq!(program.site(10)["disabled_reason"], "package traffic exceeded");
}

/// "any site, create/update saved: config_synced false until pushed, then true", for every kind of change.
#[test]
fn section_3_every_saved_change_waits_for_its_push() {
    let program = Program::start();
    let made = Made::for_names(&["a.example"]);
    let synced = |id| program.site(id)["config_synced"].clone();
    let created = program.post("/api/sites", &json!({ "domain": "new.example" })).ok();
    assert_eq!(created["site"]["config_synced"], false);
    assert_eq!(synced(100), false);
    program.push();
    assert_eq!(synced(100), true);
    let change = |what| {
        let reply = match what {
            "update" => program.post("/api/sites/10/update", &json!({ "http3": true })),
            "upload that binds" | "upload that replaces" => program.upload("a.example", &made),
            "traffic exceeded" => {
                program.control("POST", "/packages/1", Some(&json!({ "traffic_used": 2000 })))
            }
            switched => switch(&program, switched),
        };
        reply.ok();
    };
    let changes =
        ["update", "upload that binds", "upload that replaces", "disable", "enable", "traffic exceeded"];
    for what in changes {
        assert_eq!(synced(10), true, "before {what}");
        change(what);
        assert_eq!(synced(10), false, "after {what}");
        program.push();
        assert_eq!(synced(10), true, "{what} pushed");
    }
}

/// "Push takes a few seconds": it comes by itself.
#[test]
fn section_3_the_push_comes_by_itself() {
    let program = Program::with(&crate::support::world(), &["--push-seconds", "0.05"]);
    program.hold(false);
    let made = Made::for_names(&["a.example"]);
    program.upload("a.example", &made).ok();
    while program.site(10)["config_synced"] != true {}
    assert_eq!(program.served("a.example"), Some(made.fingerprint()));
}
