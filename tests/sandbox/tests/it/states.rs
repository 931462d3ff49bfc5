//! Site states and transitions (sections 3 and 4.8). Quotes are from section 3 unless another is named.

use serde_json::{Value, json};

use crate::support::{OTHER_KEY, Response, Server, TestCert, test_world};

/// A server whose edge serves the returned certificate for a.example and b.example.
fn serving() -> (Server, TestCert) {
    let server = Server::start();
    let cert = TestCert::new(&["a.example", "b.example"]);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
    (server, cert)
}

/// Enables or disables site 10.
fn switch(server: &Server, action: &str) -> Response {
    server.api("POST", &format!("/api/sites/10/{action}"), None)
}

/// Changes package 1, the package of sites 10 to 12.
fn change_package(server: &Server, change: &Value) -> Value {
    server.control("POST", "/packages/1", Some(change)).expect_ok()
}

/// "enabled = false. Acceleration of the domain stops immediately"; section 4.8: "No request body is needed".
#[test]
fn disable_takes_effect_without_push() {
    let (server, _) = serving();
    assert_eq!(switch(&server, "disable").expect_ok(), json!({ "ok": true }));
    assert_eq!(server.served_leaf("a.example"), None, "without a push");
    let site = server.site(10);
    assert_eq!((&site["enabled"], &site["site_status"]), (&json!(false), &json!("stopped")));
    assert_eq!((&site["disabled_reason"], &site["cert_id"]), (&json!(""), &json!(1001)));
    assert!(server.served_leaf("b.example").is_some(), "the other site is not affected");
    switch(&server, "disable").expect_ok();
}

/// "disabled by the customer: enabled = true. Config pushed to edge; see config_synced".
#[test]
fn enable_takes_effect_after_push() {
    let (server, cert) = serving();
    switch(&server, "disable").expect_ok();
    server.push_now();
    assert_eq!(switch(&server, "enable").expect_ok(), json!({ "ok": true }));
    let site = server.site(10);
    assert_eq!((&site["enabled"], &site["config_synced"]), (&json!(true), &json!(false)));
    assert_eq!(server.served_leaf("a.example"), None);
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
    let site = server.site(10);
    assert_eq!((&site["site_status"], &site["config_synced"]), (&json!("running"), &json!(true)));
    switch(&server, "enable").expect_ok();
}

/// "system, package traffic exceeded: disabled, disabled_reason set. Distinct from a customer disable".
#[test]
fn exceeded_traffic_disables_the_packages_sites() {
    let (server, _) = serving();
    server.api("POST", "/api/sites/11/disable", None).expect_ok();
    let response = change_package(&server, &json!({ "traffic_used": 1000 }));
    assert_eq!(response["disabled_sites"], json!([]), "the limit itself is allowed");
    let response = change_package(&server, &json!({ "traffic_used": 1001 }));
    assert_eq!(response["disabled_sites"], json!([10, 12]));
    let (by_system, by_customer) = (server.site(10), server.site(11));
    assert_eq!((&by_system["enabled"], &by_system["site_status"]), (&json!(false), &json!("overlimit")));
    assert_eq!(by_system["disabled_reason"], "package traffic exceeded");
    assert_eq!(by_customer["disabled_reason"], "");
    assert_eq!(server.served_leaf("a.example"), None);
    assert_eq!(server.api_with_key(OTHER_KEY, "GET", "/api/sites/20", None).expect_ok()["enabled"], true);
}

/// "disabled by the system: remains disabled. Enable does not succeed; the package must first be topped up";
/// section 7: the outcome is not shown, here 409.
#[test]
fn enable_fails_until_package_is_topped_up() {
    let (server, cert) = serving();
    change_package(&server, &json!({ "traffic_used": 1001 }));
    switch(&server, "enable").expect_error(409);
    let site = server.site(10);
    assert_eq!(
        (&site["enabled"], &site["disabled_reason"]),
        (&json!(false), &json!("package traffic exceeded"))
    );
    change_package(&server, &json!({ "traffic_limit": 5000 }));
    assert_eq!(server.site(10)["enabled"], false, "topping up alone does not enable it");
    switch(&server, "enable").expect_ok();
    server.push_now();
    assert_eq!(server.site(10)["disabled_reason"], "");
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

/// "topped up, renewed or extended": an expired package prevents enable as well.
#[test]
fn enable_fails_until_package_is_extended() {
    let (server, _) = serving();
    switch(&server, "disable").expect_ok();
    change_package(&server, &json!({ "expires_at": "2020-01-01T00:00:00Z" }));
    switch(&server, "enable").expect_error(409);
    change_package(&server, &json!({ "expires_at": "2099-01-01T00:00:00Z" }));
    switch(&server, "enable").expect_ok();
}

#[test]
fn customer_disable_keeps_the_system_reason() {
    let (server, _) = serving();
    change_package(&server, &json!({ "traffic_used": 1001 }));
    switch(&server, "disable").expect_ok();
    assert_eq!(server.site(10)["disabled_reason"], "package traffic exceeded");
}

/// "any site, create/update saved: config_synced false until pushed, then true".
#[test]
fn every_change_clears_config_synced() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    let synced = |id| server.site(id)["config_synced"].clone();
    let created = server.post("/api/sites", &json!({ "domain": "new.example" })).expect_ok();
    assert_eq!(created["site"]["config_synced"], false);
    assert_eq!(synced(100), false);
    server.push_now();
    assert_eq!(synced(100), true);
    let make_change = |change| {
        let response = match change {
            "update" => server.post("/api/sites/10/update", &json!({ "http3": true })),
            "upload that binds" | "upload that replaces" => server.upload("a.example", &cert),
            "traffic exceeded" => {
                server.control("POST", "/packages/1", Some(&json!({ "traffic_used": 2000 })))
            }
            action => switch(&server, action),
        };
        response.expect_ok();
    };
    let changes =
        ["update", "upload that binds", "upload that replaces", "disable", "enable", "traffic exceeded"];
    for change in changes {
        assert_eq!(synced(10), true, "before {change}");
        make_change(change);
        assert_eq!(synced(10), false, "after {change}");
        server.push_now();
        assert_eq!(synced(10), true, "{change} pushed");
    }
}

/// "Push takes a few seconds".
#[test]
fn push_happens_automatically() {
    let server = Server::start_with(&test_world(), &["--push-seconds", "0.05"]);
    server.hold_pushes(false);
    let cert = TestCert::new(&["a.example"]);
    server.upload("a.example", &cert).expect_ok();
    while server.site(10)["config_synced"] != true {}
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}
