//! Sites (sections 2.3, 4.4 to 4.9), their states and transitions (section 3).

use std::time::Duration;

use edgecert_sandbox::Options;
use serde_json::{Value, json};

use crate::support::{
    KEY, NO_PACKAGE_KEY, OTHER_KEY, Response, Server, TestCert, assert_contains, plain, with,
};

type IsType = fn(&Value) -> bool;

/// The fields in section 2.3 by their types, and last those whose type is not shown.
const FIELDS: [(IsType, &str); 6] = [
    (Value::is_number, "id origin_http_port origin_https_port cert_id package_id"),
    (
        Value::is_string,
        "domain cname site_status disabled_reason origin_protocol created_at updated_at remark",
    ),
    (Value::is_boolean, "enabled http_enabled https_enabled force_https http2 http3 config_synced"),
    (Value::is_array, "origins cache_rules"),
    (Value::is_object, "security access_control"),
    (|_| true, "ssl_mode ssl_ciphers hsts ocsp_stapling load_balance"),
];

/// A value for every writable field except `domain`, `cert_id` and `package_id`.
fn writable_fields() -> Value {
    json!({
        "origins": [{ "addr": "192.0.2.1", "weight": 10, "status": true }, { "addr": "192.0.2.2", "weight": 1, "status": false }],
        "origin_protocol": "follow", "origin_http_port": 8080, "origin_https_port": 8443,
        "http_enabled": false, "https_enabled": false, "force_https": true, "http2": false, "http3": true,
        "ssl_mode": "modern", "ssl_ciphers": "HIGH", "hsts": { "max_age": 1 }, "ocsp_stapling": true,
        "cache_rules": [{ "path": "/", "ttl": 60 }], "security": { "waf": true }, "access_control": { "deny": [] },
        "load_balance": "weight", "remark": "moved in March",
    })
}

fn create(server: &Server, body: &Value) -> Response {
    server.post("/api/sites", body)
}

/// Section 2.3; with seed 0 a site has no other fields. Section 4.4: "Returns an object with sites (array of Site) and total
/// (number)"; section 4.5: "the same fields as a list element".
#[test]
fn site_has_the_documented_fields() {
    let (server, _) = Server::serving(&["a.example"]);
    let site = server.site(10);
    let mut others = site.as_object().unwrap().clone();
    for (is_type, names) in FIELDS {
        for name in names.split(' ') {
            assert!(others.remove(name).is_some_and(|value| is_type(&value)), "{name}");
        }
    }
    assert!(others.is_empty(), "undocumented: {others:?}");
    for name in ["created_at", "updated_at"] {
        site[name].as_str().unwrap().parse::<jiff::Timestamp>().expect("ISO 8601");
    }
    let list = json!({ "sites": [site, server.site(11), server.site(12)], "total": 3 });
    assert_eq!(server.get("/api/me/sites"), list);
}

/// Section 2.3: "Elements are objects with addr (string), weight (number), status (boolean)", "One of http,
/// https, follow", and the type column.
#[test]
fn wrong_field_types_are_refused() {
    let server = Server::start();
    let before = server.site(10);
    let invalid = [
        ("origins", json!("192.0.2.1")),
        ("origins", json!(["192.0.2.1"])),
        ("origins", json!([{ "weight": 1 }])),
        ("origins", json!([{ "addr": "192.0.2.1", "weight": "1" }])),
        ("origins", json!([{ "addr": "192.0.2.1", "status": 1 }])),
        ("origin_protocol", json!("ftp")),
        ("origin_http_port", json!(0)),
        ("origin_https_port", json!(65536)),
        ("http2", json!("yes")),
        ("cache_rules", json!({})),
        ("security", json!([])),
        ("remark", json!(1)),
        ("package_id", json!("1")),
    ];
    for (name, value) in invalid {
        let message = server.update(&json!({ name: value, "http3": true })).expect_error(400);
        assert!(message.contains(name), "{message}");
    }
    assert_eq!(server.site(10), before);
}

/// Section 4.6: "Response: ok, site (Site object, including id and the assigned cname), ignored_fields".
#[test]
fn create_saves_writable_fields() {
    let server = Server::start();
    let body = with(writable_fields(), &json!({ "domain": "new.example" }));
    let response = create(&server, &body).expect_ok();
    assert_contains(&response, &json!({ "ok": true, "ignored_fields": [], "site": server.site(100) }));
    assert_contains(&response["site"], &body);
    assert_eq!(server.get("/api/me/sites")["sites"][3], response["site"]);
}

/// Section 4.6 does not show which fields are required; others get defaults. Section 1: "one record per domain"; the status is
/// not shown.
#[test]
fn create_requires_a_new_domain() {
    let server = Server::start();
    let site = create(&server, &json!({ "domain": "new.example" })).expect_ok()["site"].clone();
    assert_eq!(site.as_object().unwrap().len(), server.site(10).as_object().unwrap().len());
    assert_contains(
        &site,
        &json!({ "enabled": true, "cert_id": null, "cname": "new-example-100.edge.invalid" }),
    );
    for invalid in
        [json!({}), json!({ "domain": "" }), json!({ "domain": "two words" }), json!({ "domain": 1 })]
    {
        create(&server, &invalid).expect_error(400);
    }
    for domain in ["a.example", "A.EXAMPLE.", "o.example"] {
        create(&server, &json!({ "domain": domain })).expect_error(409);
    }
}

/// Section 4.6, rule 1: "a user_id in the request is ignored"; rule 2: "A cname in the request is discarded; the system assigns
/// it"; rule 4: "Fields not in the writable list are dropped without error and their names listed". Section 4.7: "A misspelled
/// field name does not cause an error: the request returns 200 with ok:true, the field is ignored, and only ignored_fields
/// reveals it"; "The response always contains ignored_fields".
#[test]
fn unwritable_fields_are_listed_as_ignored() {
    let server = Server::start();
    let ignored = json!({ "user_id": 2, "cname": "mine.example", "orgins": [], "enabled": false, "id": 1, "config_synced": true });
    let body = with(ignored, &json!({ "domain": "new.example" }));
    let response = create(&server, &body).expect_ok();
    let expected = json!(["cname", "config_synced", "enabled", "id", "orgins", "user_id"]);
    assert_contains(&response, &json!({ "ok": true, "ignored_fields": expected }));
    let kept = json!({ "id": 100, "enabled": true, "config_synced": false, "cname": "new-example-100.edge.invalid" });
    assert_contains(&response["site"], &kept);
    server.api_with_key(OTHER_KEY, "GET", "/api/sites/100", None).expect_error(404);
    let before = server.site(10);
    for name in ["force_htps", "domain", "cname"] {
        let response = server.update(&json!({ name: "z.example", "http3": true }));
        assert_eq!(response.status, 200);
        assert_contains(&response.json(), &json!({ "ok": true, "ignored_fields": [name] }));
        let site = response.json()["site"].clone();
        let changed = json!({ "http3": true, "config_synced": false, "updated_at": site["updated_at"] });
        assert_eq!(site, with(before.clone(), &changed));
    }
}

/// Section 4.6, rule 3: "the system picks one of the caller's purchased, unexpired packages; if present, it
/// is checked to belong to the caller. With no usable package an error is returned"; section 7: its status is
/// not shown, here 400.
#[test]
fn package_is_picked_or_checked() {
    let server = Server::start();
    let create = |key, body| server.api_with_key(key, "POST", "/api/sites", Some(&body));
    for (domain, given) in [("new.example", json!({})), ("two.example", json!({ "package_id": 1 }))] {
        let site = create(KEY, with(given, &json!({ "domain": domain }))).expect_ok()["site"].clone();
        assert_eq!(site["package_id"], 1, "package 2 is expired");
    }
    for package in [2, 3, 999] {
        create(KEY, json!({ "domain": "three.example", "package_id": package })).expect_error(400);
    }
    create(NO_PACKAGE_KEY, json!({ "domain": "three.example" })).expect_error(400);
    change_package(&server, &json!({ "traffic_used": 1001 }));
    create(KEY, json!({ "domain": "three.example" })).expect_error(400);
    assert_eq!(server.get("/api/me/sites")["total"], 5);
}

/// Section 4.7: "only the supplied fields change, absent fields stay unchanged". Section 2.1: the id is "the value a site
/// uses in cert_id".
#[test]
fn update_changes_only_supplied_fields() {
    let server = Server::start();
    let changes = writable_fields();
    let changes = changes.as_object().unwrap().iter().map(|(name, value)| json!({ name: value }));
    for change in changes.chain([json!({}), json!({ "cert_id": 5 }), json!({ "cert_id": null })]) {
        let before = server.site(10);
        let response = server.update(&change).expect_ok();
        let saved = json!({ "config_synced": false, "updated_at": response["site"]["updated_at"] });
        let expected = with(with(before, &change), &saved);
        assert_eq!(response, json!({ "ok": true, "site": expected, "ignored_fields": [] }));
        assert_eq!(server.site(10), expected);
    }
    assert_contains(&server.site(10), &writable_fields());
}

/// Section 4.9: "Deletes the site irreversibly, including its DNS resolution records and edge configuration".
#[test]
fn delete_removes_site_dns_and_edge() {
    let (server, cert) = Server::serving(&["a.example"]);
    let is_listed = |path: &str| server.listed(path).iter().any(|entry| entry["domain"] == "a.example");
    assert!(is_listed("/dns") && is_listed("/edge"));
    assert_eq!(server.api("DELETE", "/api/sites/10", None).expect_ok(), json!({ "ok": true }));
    assert!(!is_listed("/dns") && !is_listed("/edge"));
    assert_eq!(server.served_leaf("a.example"), None);
    for (method, path) in
        [("GET", "/api/sites/10"), ("DELETE", "/api/sites/10"), ("POST", "/api/sites/10/enable")]
    {
        server.api(method, path, None).expect_error(404);
    }
    assert_eq!(server.download(1001)["cert_pem"], cert.cert_pem, "the record is kept");
    let recreated = create(&server, &json!({ "domain": "a.example" })).expect_ok();
    assert_contains(&recreated["site"], &json!({ "id": 100, "cert_id": null }));
}

#[test]
fn unsupported_methods_are_405() {
    let server = Server::start();
    let rows = [
        ("PUT", "/api/certs", "GET, POST"),
        ("GET", "/api/certs/upload", "POST"),
        ("DELETE", "/api/me/sites", "GET"),
        ("PATCH", "/api/sites/10", "GET, DELETE"),
        ("GET", "/api/sites/10/enable", "POST"),
    ];
    for (method, path, allowed) in rows {
        let response = server.api(method, path, None);
        response.expect_error(405);
        assert_eq!(response.headers["allow"], allowed, "{method} {path}");
    }
    for path in ["/", "/api", "/api/", "/api/nothing", "/api/sites/10/nothing", "/sites"] {
        server.api("GET", path, None).expect_error(404);
    }
}

/// Enables or disables site 10.
fn switch(server: &Server, action: &str) -> Response {
    server.api("POST", &format!("/api/sites/10/{action}"), None)
}

/// Changes package 1, the package of sites 10 to 12.
fn change_package(server: &Server, change: &Value) -> Value {
    server.control_post("/packages/1", change).expect_ok()
}

/// Section 3: "enabled = false. Acceleration of the domain stops immediately", and back: "disabled by the customer: enabled =
/// true. Config pushed to edge; see config_synced". Section 4.8: "No request body is needed".
#[test]
fn disable_is_immediate_and_enable_pushed() {
    let (server, cert) = Server::serving(&["a.example", "b.example"]);
    let leaf = Some(cert.fingerprint());
    assert_eq!(switch(&server, "disable").expect_ok(), json!({ "ok": true }));
    assert_eq!(server.served_leaf("a.example"), None, "without a push");
    let disabled =
        json!({ "enabled": false, "site_status": "stopped", "disabled_reason": "", "cert_id": 1001 });
    assert_contains(&server.site(10), &disabled);
    assert_eq!(server.served_leaf("b.example"), leaf, "the other site is not affected");
    switch(&server, "disable").expect_ok();
    server.push_now();
    assert_eq!(switch(&server, "enable").expect_ok(), json!({ "ok": true }));
    assert_contains(&server.site(10), &json!({ "enabled": true, "config_synced": false }));
    assert_eq!(server.served_leaf("a.example"), None);
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), leaf);
    assert_contains(&server.site(10), &json!({ "site_status": "running", "config_synced": true }));
    switch(&server, "enable").expect_ok();
}

/// Section 3: "system, package traffic exceeded: disabled, disabled_reason set. Distinct from a customer disable"; "remains
/// disabled. Enable does not succeed; the package must first be topped up, renewed or extended"; section 7: the outcome is not
/// shown, here 409.
#[test]
fn exceeded_traffic_disables_until_topped_up() {
    let (server, cert) = Server::serving(&["a.example"]);
    server.api("POST", "/api/sites/11/disable", None).expect_ok();
    let used =
        |traffic| change_package(&server, &json!({ "traffic_used": traffic }))["disabled_sites"].clone();
    assert_eq!(used(1000), json!([]), "the limit itself is allowed");
    assert_eq!(used(1001), json!([10, 12]));
    let by_system = json!({ "enabled": false, "site_status": "overlimit", "disabled_reason": "package traffic exceeded" });
    assert_contains(&server.site(10), &by_system);
    assert_eq!(server.site(11)["disabled_reason"], "");
    assert_eq!(server.served_leaf("a.example"), None);
    assert_eq!(server.api_with_key(OTHER_KEY, "GET", "/api/sites/20", None).expect_ok()["enabled"], true);
    switch(&server, "enable").expect_error(409);
    switch(&server, "disable").expect_ok();
    assert_contains(&server.site(10), &by_system);
    change_package(&server, &json!({ "traffic_limit": 5000 }));
    assert_eq!(server.site(10)["enabled"], false, "topping up alone does not enable it");
    change_package(&server, &json!({ "expires_at": "2020-01-01T00:00:00Z" }));
    switch(&server, "enable").expect_error(409);
    change_package(&server, &json!({ "expires_at": "2099-01-01T00:00:00Z" }));
    switch(&server, "enable").expect_ok();
    server.push_now();
    assert_eq!(server.site(10)["disabled_reason"], "");
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

/// Section 3: "any site, create/update saved: config_synced false until pushed, then true".
#[test]
fn every_change_clears_config_synced() {
    let server = Server::start();
    let cert = TestCert::new(&["new.example"]);
    let change = |path: &str, body: &Value| server.post(path, body);
    let rows: [(&str, &dyn Fn() -> Response); 7] = [
        ("create", &|| change("/api/sites", &json!({ "domain": "new.example" }))),
        ("update", &|| change("/api/sites/100/update", &json!({ "http3": true }))),
        ("upload that binds", &|| server.upload("new.example", &cert)),
        ("upload that replaces", &|| server.upload("new.example", &cert)),
        ("disable", &|| change("/api/sites/100/disable", &Value::Null)),
        ("enable", &|| change("/api/sites/100/enable", &Value::Null)),
        ("traffic exceeded", &|| server.control_post("/packages/1", &json!({ "traffic_used": 2000 }))),
    ];
    for (change, make) in rows {
        make().expect_ok();
        assert_eq!(server.site(100)["config_synced"], false, "after {change}");
        server.push_now();
        assert_eq!(server.site(100)["config_synced"], true, "{change} pushed");
    }
}

/// Section 3: "Push takes a few seconds".
#[test]
fn push_happens_automatically() {
    let server = Server::start_with(Options { push_delay: Duration::from_millis(50), ..plain() });
    server.hold_pushes(false);
    let cert = TestCert::new(&["a.example"]);
    server.upload("a.example", &cert).expect_ok();
    while server.site(10)["config_synced"] != true {}
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}
