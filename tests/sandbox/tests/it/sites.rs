//! Sections 2.3, 4.4 to 4.7 and 4.9.

use serde_json::{Value, json};

use crate::support::{Made, OTHER_KEY, Program};

/// Field and type as in the table of 2.3; `any` where the type is not shown.
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

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A whole site, to be created or changed.
fn settings() -> Value {
    json!({
        "origins": [{ "addr": "192.0.2.1", "weight": 10, "status": true }, { "addr": "192.0.2.2", "weight": 1, "status": false }],
        "origin_protocol": "follow", "origin_http_port": 8080, "origin_https_port": 8443,
        "http_enabled": false, "https_enabled": false, "force_https": true, "http2": false, "http3": true,
        "ssl_mode": "modern", "ssl_ciphers": "HIGH", "hsts": { "max_age": 1 }, "ocsp_stapling": true,
        "cache_rules": [{ "path": "/", "ttl": 60 }], "security": { "waf": true }, "access_control": { "deny": [] },
        "load_balance": "weight", "remark": "moved in March",
    })
}

fn assert_has(site: &Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&site[name], value, "{name}");
    }
}

/// 2.3: the table of fields, and no other at seed 0.
#[test]
fn section_2_3_a_site_has_the_documented_fields() {
    let program = Program::start();
    program.upload("a.example", &Made::for_names(&["a.example"])).ok();
    let site = program.site(10);
    for (name, wanted) in FIELDS {
        let found = site.get(name).map(kind);
        assert!(found == Some(wanted) || (wanted == "any" && found.is_some()), "{name} is {found:?}");
    }
    assert_eq!(site.as_object().unwrap().len(), FIELDS.len());
    for name in ["created_at", "updated_at"] {
        site[name].as_str().unwrap().parse::<jiff::Timestamp>().expect("ISO 8601");
    }
}

/// 2.3: "Elements are objects with addr (string), weight (number), status (boolean)", "One of http, https,
/// follow", and the other types.
#[test]
fn section_2_3_a_field_of_the_wrong_type_is_refused() {
    let program = Program::start();
    let before = program.site(10);
    let wrong = [
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
    for (name, value) in wrong {
        let reason =
            program.post("/api/sites/10/update", &json!({ name: value, "http3": true })).refused(400);
        assert!(reason.contains(name), "{reason}");
    }
    assert_eq!(program.site(10), before);
}

/// 4.4: "Returns an object with sites (array of Site) and total (number)".
#[test]
fn section_4_4_the_list_has_every_site_and_their_number() {
    let program = Program::start();
    let list = program.get("/api/me/sites");
    assert_eq!(list["total"], 3);
    assert_eq!(
        list["sites"],
        json!([program.site(10), program.site(11), program.site(12)]),
        "4.5: the same fields"
    );
    assert_eq!(list.as_object().unwrap().len(), 2);
}

/// 4.5: "Returns 404 if the site does not exist or is not owned by the caller".
#[test]
fn section_4_5_a_site_that_is_not_there_is_404() {
    let program = Program::start();
    for id in ["999", "20", "0", "-1", "x", "99999999999999999999", ""] {
        program.api("GET", &format!("/api/sites/{id}"), None).refused(404);
    }
}

/// 4.6: "Response: ok, site (including id and the assigned cname), ignored_fields"; the body has writable fields.
#[test]
fn section_4_6_create_takes_writable_fields() {
    let program = Program::start();
    let mut body = settings();
    body["domain"] = json!("new.example");
    let reply = program.post("/api/sites", &body).ok();
    assert_eq!((&reply["ok"], &reply["ignored_fields"]), (&json!(true), &json!([])));
    assert_has(&reply["site"], &body);
    let id = reply["site"]["id"].as_u64().unwrap();
    assert_eq!(program.site(id), reply["site"]);
    assert_eq!(program.get("/api/me/sites")["total"], 4);
}

/// 4.6: what is not given has a value nevertheless.
#[test]
fn section_4_6_a_domain_is_enough() {
    let program = Program::start();
    let reply = program.post("/api/sites", &json!({ "domain": "new.example" })).ok();
    assert_eq!(reply["site"].as_object().unwrap().len(), FIELDS.len());
    assert_eq!((&reply["site"]["enabled"], &reply["site"]["cert_id"]), (&json!(true), &Value::Null));
    for wrong in
        [json!({}), json!({ "domain": "" }), json!({ "domain": "two words" }), json!({ "domain": 1 })]
    {
        program.post("/api/sites", &wrong).refused(400);
    }
}

/// 1: "one record per domain"; the status is not shown, here 409.
#[test]
fn section_1_a_domain_is_a_site_once() {
    let program = Program::start();
    for domain in ["a.example", "A.EXAMPLE.", "o.example"] {
        program.post("/api/sites", &json!({ "domain": domain })).refused(409);
    }
}

/// 4.6, rule 1: "a user_id in the request is ignored".
#[test]
fn section_4_6_rule_1_the_owner_is_the_keys_account() {
    let program = Program::start();
    let reply = program.post("/api/sites", &json!({ "domain": "new.example", "user_id": 2 })).ok();
    assert_eq!(reply["ignored_fields"], json!(["user_id"]));
    let id = &reply["site"]["id"];
    program.api("GET", &format!("/api/sites/{id}"), None).ok();
    program.api_as(OTHER_KEY, "GET", &format!("/api/sites/{id}"), None).refused(404);
}

/// 4.6, rule 2: "A cname in the request is discarded; the system assigns it and returns it in the response and
/// lists"; 2.3: "read-only".
#[test]
fn section_4_6_rule_2_the_cname_is_assigned() {
    let program = Program::start();
    let reply = program.post("/api/sites", &json!({ "domain": "new.example", "cname": "mine.example" })).ok();
    let cname = reply["site"]["cname"].as_str().unwrap();
    assert_eq!(cname, "new-example-100.edge.invalid");
    assert_eq!(reply["ignored_fields"], json!(["cname"]));
    let list = program.get("/api/me/sites");
    assert_eq!(list["sites"][3]["cname"], cname);
    let update = program.post("/api/sites/100/update", &json!({ "cname": "mine.example" })).ok();
    assert_eq!((&update["site"]["cname"], &update["ignored_fields"]), (&json!(cname), &json!(["cname"])));
}

/// 4.6, rule 3: "the system picks one of the caller's purchased, unexpired packages; if present, it is checked to
/// belong to the caller. With no usable package an error is returned"; 7: its status is not shown, here 400.
#[test]
fn section_4_6_rule_3_a_package_is_picked_or_checked() {
    let program = Program::start();
    let create = |key, body| program.api_as(key, "POST", "/api/sites", Some(&body));
    let picked = create(crate::support::KEY, json!({ "domain": "new.example" })).ok();
    assert_eq!(picked["site"]["package_id"], 1, "2 is expired");
    let given = create(crate::support::KEY, json!({ "domain": "two.example", "package_id": 1 })).ok();
    assert_eq!(given["site"]["package_id"], 1);
    for package in [2, 3, 999] {
        create(crate::support::KEY, json!({ "domain": "three.example", "package_id": package })).refused(400);
    }
    create("poor-key", json!({ "domain": "three.example" })).refused(400);
    program.control("POST", "/packages/1", Some(&json!({ "traffic_used": 1001 }))).ok();
    create(crate::support::KEY, json!({ "domain": "three.example" })).refused(400);
    assert_eq!(program.get("/api/me/sites")["total"], 5);
}

/// 4.6, rule 4: "Fields not in the writable list are dropped without error and their names listed".
#[test]
fn section_4_6_rule_4_other_fields_are_dropped_and_listed() {
    let program = Program::start();
    let body =
        json!({ "domain": "new.example", "orgins": [], "enabled": false, "id": 1, "config_synced": true });
    let reply = program.post("/api/sites", &body).ok();
    assert_eq!(reply["ignored_fields"], json!(["config_synced", "enabled", "id", "orgins"]));
    assert_eq!((&reply["site"]["enabled"], &reply["site"]["id"]), (&json!(true), &json!(100)));
}

/// 4.7: "only the supplied fields change, absent fields stay unchanged".
#[test]
fn section_4_7_an_update_changes_only_what_it_names() {
    let program = Program::start();
    for (name, value) in settings().as_object().unwrap() {
        let before = program.site(11);
        let reply = program.post("/api/sites/11/update", &json!({ name: value })).ok();
        assert_eq!((&reply["ok"], &reply["ignored_fields"]), (&json!(true), &json!([])));
        let mut expected = before;
        expected[name] = value.clone();
        expected["config_synced"] = json!(false);
        expected["updated_at"] = reply["site"]["updated_at"].clone();
        assert_eq!(reply["site"], expected, "{name}");
        assert_eq!(program.site(11), expected);
    }
    assert_has(&program.site(11), &settings());
}

/// 4.7: "A misspelled field name does not cause an error: the request returns 200 with ok:true, the field is
/// ignored, and only ignored_fields reveals it"; "The response always contains ignored_fields"; 7, last line.
#[test]
fn section_4_7_a_misspelt_field_is_only_listed() {
    let program = Program::start();
    let reply = program.post("/api/sites/10/update", &json!({ "force_htps": true, "http3": true }));
    assert_eq!(reply.status, 200);
    let reply = reply.ok();
    assert_eq!((&reply["ok"], &reply["ignored_fields"]), (&json!(true), &json!(["force_htps"])));
    assert_eq!((&reply["site"]["force_https"], &reply["site"]["http3"]), (&json!(false), &json!(true)));
    let nothing = program.post("/api/sites/10/update", &json!({})).ok();
    assert_eq!(nothing["ignored_fields"], json!([]));
    let domain = program.post("/api/sites/10/update", &json!({ "domain": "z.example" })).ok();
    assert_eq!(
        (&domain["ignored_fields"], &domain["site"]["domain"]),
        (&json!(["domain"]), &json!("a.example"))
    );
}

/// 4.7: "404: Site does not exist or is not owned by the caller", before anything else is looked at.
#[test]
fn section_4_7_an_update_of_a_site_that_is_not_there_is_404() {
    let program = Program::start();
    program.post("/api/sites/20/update", &json!({ "cert_id": 7 })).refused(404);
    program.post("/api/sites/999/update", &json!({ "remark": "x" })).refused(404);
}

/// 4.9: "Deletes the site irreversibly, including its DNS resolution records and edge configuration".
#[test]
fn section_4_9_delete_removes_site_dns_and_edge() {
    let program = Program::start();
    let made = Made::for_names(&["a.example"]);
    program.upload("a.example", &made).ok();
    program.push();
    let names = |path: &str| -> Vec<Value> {
        let list = program.control("GET", path, None).ok();
        list.as_array().unwrap().iter().map(|entry| entry["domain"].clone()).collect()
    };
    assert!(names("/dns").contains(&json!("a.example")) && names("/edge").contains(&json!("a.example")));
    assert_eq!(program.api("DELETE", "/api/sites/10", None).ok(), json!({ "ok": true }));
    assert!(!names("/dns").contains(&json!("a.example")) && !names("/edge").contains(&json!("a.example")));
    assert_eq!(program.served("a.example"), None);
    for (method, path) in
        [("GET", "/api/sites/10"), ("DELETE", "/api/sites/10"), ("POST", "/api/sites/10/enable")]
    {
        program.api(method, path, None).refused(404);
    }
    assert_eq!(program.get("/api/certs/1001/download")["cert_pem"], made.cert, "the record stays");
    let again = program.post("/api/sites", &json!({ "domain": "a.example" })).ok();
    assert_eq!((&again["site"]["id"], &again["site"]["cert_id"]), (&json!(100), &Value::Null), "a new site");
}

/// Methods that an endpoint does not have.
#[test]
fn section_4_other_methods_are_not_allowed() {
    let program = Program::start();
    let rows = [
        ("PUT", "/api/certs", "GET, POST"),
        ("GET", "/api/certs/upload", "POST"),
        ("DELETE", "/api/me/sites", "GET"),
        ("PATCH", "/api/sites/10", "GET, DELETE"),
        ("GET", "/api/sites/10/enable", "POST"),
    ];
    for (method, path, allowed) in rows {
        let reply = program.api(method, path, None);
        reply.refused(405);
        assert_eq!(reply.headers["allow"], allowed, "{method} {path}");
    }
    for path in ["/", "/api", "/api/", "/api/nothing", "/api/sites/10/nothing", "/sites"] {
        program.api("GET", path, None).refused(404);
    }
}
