//! Sites (sections 2.3, 4.4 to 4.7 and 4.9).

use serde_json::{Value, json};

use crate::support::{KEY, NO_PACKAGE_KEY, OTHER_KEY, Server, TestCert};

/// Field and type from the table in section 2.3; `any` where the type is not shown.
const FIELDS: [(&str, &str); 29] = [
    ("id", "number"),
    ("domain", "string"),
    ("cname", "string"),
    ("enabled", "boolean"),
    ("site_status", "string"),
    ("disabled_reason", "string"),
    ("origins", "array"),
    ("origin_protocol", "string"),
    ("origin_http_port", "number"),
    ("origin_https_port", "number"),
    ("http_enabled", "boolean"),
    ("https_enabled", "boolean"),
    ("force_https", "boolean"),
    ("http2", "boolean"),
    ("http3", "boolean"),
    ("cert_id", "number"),
    ("ssl_mode", "any"),
    ("ssl_ciphers", "any"),
    ("hsts", "any"),
    ("ocsp_stapling", "any"),
    ("cache_rules", "array"),
    ("security", "object"),
    ("access_control", "object"),
    ("package_id", "number"),
    ("config_synced", "boolean"),
    ("created_at", "string"),
    ("updated_at", "string"),
    ("load_balance", "any"),
    ("remark", "string"),
];

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

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

fn assert_contains(site: &Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&site[name], value, "{name}");
    }
}

/// Section 2.3; with seed 0 a site has no other fields.
#[test]
fn site_has_the_documented_fields() {
    let server = Server::start();
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    let site = server.site(10);
    for (name, expected) in FIELDS {
        let found = site.get(name).map(json_type);
        assert!(found == Some(expected) || (expected == "any" && found.is_some()), "{name} is {found:?}");
    }
    assert_eq!(site.as_object().unwrap().len(), FIELDS.len());
    for name in ["created_at", "updated_at"] {
        site[name].as_str().unwrap().parse::<jiff::Timestamp>().expect("ISO 8601");
    }
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
        let message =
            server.post("/api/sites/10/update", &json!({ name: value, "http3": true })).expect_error(400);
        assert!(message.contains(name), "{message}");
    }
    assert_eq!(server.site(10), before);
}

/// Section 4.4: "Returns an object with sites (array of Site) and total (number)".
#[test]
fn list_has_all_sites_and_total() {
    let server = Server::start();
    let list = server.get("/api/me/sites");
    assert_eq!(list["total"], 3);
    assert_eq!(
        list["sites"],
        json!([server.site(10), server.site(11), server.site(12)]),
        "section 4.5: the same fields"
    );
    assert_eq!(list.as_object().unwrap().len(), 2);
}

/// Section 4.5: "Returns 404 if the site does not exist or is not owned by the caller".
#[test]
fn unknown_site_is_404() {
    let server = Server::start();
    for id in ["999", "20", "0", "-1", "x", "99999999999999999999", ""] {
        server.api("GET", &format!("/api/sites/{id}"), None).expect_error(404);
    }
}

/// Section 4.6: "Response: ok, site (Site object, including id and the assigned cname), ignored_fields".
#[test]
fn create_saves_writable_fields() {
    let server = Server::start();
    let mut body = writable_fields();
    body["domain"] = json!("new.example");
    let response = server.post("/api/sites", &body).expect_ok();
    assert_eq!((&response["ok"], &response["ignored_fields"]), (&json!(true), &json!([])));
    assert_contains(&response["site"], &body);
    let id = response["site"]["id"].as_u64().unwrap();
    assert_eq!(server.site(id), response["site"]);
    assert_eq!(server.get("/api/me/sites")["total"], 4);
}

/// Section 4.6 does not show which fields are required; others get defaults.
#[test]
fn create_requires_only_a_domain() {
    let server = Server::start();
    let response = server.post("/api/sites", &json!({ "domain": "new.example" })).expect_ok();
    assert_eq!(response["site"].as_object().unwrap().len(), FIELDS.len());
    assert_eq!((&response["site"]["enabled"], &response["site"]["cert_id"]), (&json!(true), &Value::Null));
    for invalid in
        [json!({}), json!({ "domain": "" }), json!({ "domain": "two words" }), json!({ "domain": 1 })]
    {
        server.post("/api/sites", &invalid).expect_error(400);
    }
}

/// Section 1: "one record per domain"; the status is not shown.
#[test]
fn domain_of_an_existing_site_is_409() {
    let server = Server::start();
    for domain in ["a.example", "A.EXAMPLE.", "o.example"] {
        server.post("/api/sites", &json!({ "domain": domain })).expect_error(409);
    }
}

/// Section 4.6, rule 1: "a user_id in the request is ignored".
#[test]
fn owner_is_the_calling_account() {
    let server = Server::start();
    let response = server.post("/api/sites", &json!({ "domain": "new.example", "user_id": 2 })).expect_ok();
    assert_eq!(response["ignored_fields"], json!(["user_id"]));
    let id = &response["site"]["id"];
    server.api("GET", &format!("/api/sites/{id}"), None).expect_ok();
    server.api_with_key(OTHER_KEY, "GET", &format!("/api/sites/{id}"), None).expect_error(404);
}

/// Section 4.6, rule 2: "A cname in the request is discarded; the system assigns it and returns it in the
/// response and lists"; section 2.3: "read-only".
#[test]
fn cname_is_assigned() {
    let server = Server::start();
    let response =
        server.post("/api/sites", &json!({ "domain": "new.example", "cname": "mine.example" })).expect_ok();
    let cname = response["site"]["cname"].as_str().unwrap();
    assert_eq!(cname, "new-example-100.edge.invalid");
    assert_eq!(response["ignored_fields"], json!(["cname"]));
    let list = server.get("/api/me/sites");
    assert_eq!(list["sites"][3]["cname"], cname);
    let update = server.post("/api/sites/100/update", &json!({ "cname": "mine.example" })).expect_ok();
    assert_eq!((&update["site"]["cname"], &update["ignored_fields"]), (&json!(cname), &json!(["cname"])));
}

/// Section 4.6, rule 3: "the system picks one of the caller's purchased, unexpired packages; if present, it
/// is checked to belong to the caller. With no usable package an error is returned"; section 7: its status is
/// not shown, here 400.
#[test]
fn package_is_picked_or_checked() {
    let server = Server::start();
    let create = |key, body| server.api_with_key(key, "POST", "/api/sites", Some(&body));
    let picked = create(KEY, json!({ "domain": "new.example" })).expect_ok();
    assert_eq!(picked["site"]["package_id"], 1, "package 2 is expired");
    let given = create(KEY, json!({ "domain": "two.example", "package_id": 1 })).expect_ok();
    assert_eq!(given["site"]["package_id"], 1);
    for package in [2, 3, 999] {
        create(KEY, json!({ "domain": "three.example", "package_id": package })).expect_error(400);
    }
    create(NO_PACKAGE_KEY, json!({ "domain": "three.example" })).expect_error(400);
    server.control("POST", "/packages/1", Some(&json!({ "traffic_used": 1001 }))).expect_ok();
    create(KEY, json!({ "domain": "three.example" })).expect_error(400);
    assert_eq!(server.get("/api/me/sites")["total"], 5);
}

/// Section 4.6, rule 4: "Fields not in the writable list are dropped without error and their names listed".
#[test]
fn unwritable_fields_are_listed_as_ignored() {
    let server = Server::start();
    let body =
        json!({ "domain": "new.example", "orgins": [], "enabled": false, "id": 1, "config_synced": true });
    let response = server.post("/api/sites", &body).expect_ok();
    assert_eq!(response["ignored_fields"], json!(["config_synced", "enabled", "id", "orgins"]));
    assert_eq!((&response["site"]["enabled"], &response["site"]["id"]), (&json!(true), &json!(100)));
}

/// Section 4.7: "only the supplied fields change, absent fields stay unchanged".
#[test]
fn update_changes_only_supplied_fields() {
    let server = Server::start();
    for (name, value) in writable_fields().as_object().unwrap() {
        let before = server.site(11);
        let response = server.post("/api/sites/11/update", &json!({ name: value })).expect_ok();
        assert_eq!((&response["ok"], &response["ignored_fields"]), (&json!(true), &json!([])));
        let mut expected = before;
        expected[name] = value.clone();
        expected["config_synced"] = json!(false);
        expected["updated_at"] = response["site"]["updated_at"].clone();
        assert_eq!(response["site"], expected, "{name}");
        assert_eq!(server.site(11), expected);
    }
    assert_contains(&server.site(11), &writable_fields());
}

/// Section 4.7: "A misspelled field name does not cause an error: the request returns 200 with ok:true, the
/// field is ignored, and only ignored_fields reveals it"; "The response always contains ignored_fields".
#[test]
fn misspelled_field_is_only_listed() {
    let server = Server::start();
    let response = server.post("/api/sites/10/update", &json!({ "force_htps": true, "http3": true }));
    assert_eq!(response.status, 200);
    let response = response.expect_ok();
    assert_eq!((&response["ok"], &response["ignored_fields"]), (&json!(true), &json!(["force_htps"])));
    assert_eq!((&response["site"]["force_https"], &response["site"]["http3"]), (&json!(false), &json!(true)));
    let empty = server.post("/api/sites/10/update", &json!({})).expect_ok();
    assert_eq!(empty["ignored_fields"], json!([]));
    let immutable = server.post("/api/sites/10/update", &json!({ "domain": "z.example" })).expect_ok();
    assert_eq!(
        (&immutable["ignored_fields"], &immutable["site"]["domain"]),
        (&json!(["domain"]), &json!("a.example"))
    );
}

/// Section 4.7: "404: Site does not exist or is not owned by the caller"; this is checked before the body.
#[test]
fn update_of_unknown_site_is_404() {
    let server = Server::start();
    server.post("/api/sites/20/update", &json!({ "cert_id": 7 })).expect_error(404);
    server.post("/api/sites/999/update", &json!({ "remark": "x" })).expect_error(404);
}

/// Section 4.9: "Deletes the site irreversibly, including its DNS resolution records and edge configuration".
#[test]
fn delete_removes_site_dns_and_edge() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    let names = |path: &str| -> Vec<Value> {
        let list = server.control("GET", path, None).expect_ok();
        list.as_array().unwrap().iter().map(|entry| entry["domain"].clone()).collect()
    };
    assert!(names("/dns").contains(&json!("a.example")) && names("/edge").contains(&json!("a.example")));
    assert_eq!(server.api("DELETE", "/api/sites/10", None).expect_ok(), json!({ "ok": true }));
    assert!(!names("/dns").contains(&json!("a.example")) && !names("/edge").contains(&json!("a.example")));
    assert_eq!(server.served_leaf("a.example"), None);
    for (method, path) in
        [("GET", "/api/sites/10"), ("DELETE", "/api/sites/10"), ("POST", "/api/sites/10/enable")]
    {
        server.api(method, path, None).expect_error(404);
    }
    assert_eq!(server.get("/api/certs/1001/download")["cert_pem"], cert.cert_pem, "the record is kept");
    let recreated = server.post("/api/sites", &json!({ "domain": "a.example" })).expect_ok();
    assert_eq!(
        (&recreated["site"]["id"], &recreated["site"]["cert_id"]),
        (&json!(100), &Value::Null),
        "a new site"
    );
}

#[test]
fn unsupported_methods_are_405() {
    let server = Server::start();
    let rows = [
        ("PUT", "/api/certs", "GET, HEAD, POST"),
        ("GET", "/api/certs/upload", "POST"),
        ("DELETE", "/api/me/sites", "GET, HEAD"),
        ("PATCH", "/api/sites/10", "GET, HEAD, DELETE"),
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
