//! Section 5, and the ownership of section 4.

use serde_json::json;

use crate::support::{KEY, Made, OTHER_KEY, Program};

const ENDPOINTS: [(&str, &str); 11] = [
    ("GET", "/api/certs"),
    ("POST", "/api/certs"),
    ("POST", "/api/certs/upload"),
    ("GET", "/api/certs/5/download"),
    ("GET", "/api/me/sites"),
    ("GET", "/api/sites/10"),
    ("POST", "/api/sites"),
    ("POST", "/api/sites/10/update"),
    ("POST", "/api/sites/10/enable"),
    ("POST", "/api/sites/10/disable"),
    ("DELETE", "/api/sites/10"),
];

/// 4, 5: "All endpoints require authentication", "Every request carries the header Authorization".
#[test]
fn section_5_every_endpoint_asks_for_a_valid_key() {
    let program = Program::start();
    let before = program.get("/api/me/sites");
    let body = json!({ "domain": "a.example" });
    let headers: [&[(&str, &str)]; 6] = [
        &[],
        &[("authorization", "Bearer wrong")],
        &[("authorization", "Bearer ")],
        &[("authorization", KEY)],
        &[("authorization", "Basic c2FuZGJveC1rZXk=")],
        &[("authorization", "Basic sandbox-key")],
    ];
    for (method, path) in ENDPOINTS {
        for headers in headers {
            let url = format!("{}{path}", program.url("api"));
            let reply = program.ask(method, &url, headers, (method == "POST").then_some(&body));
            reply.refused(401);
            assert_eq!(reply.headers["www-authenticate"], "Bearer", "{method} {path} {headers:?}");
        }
    }
    assert_eq!(program.get("/api/me/sites"), before);
}

/// 5: "A site belongs to the account that owns the calling key": any of its keys will do.
#[test]
fn section_5_each_key_of_an_account_acts_for_it() {
    let program = Program::start();
    let with = |key| program.api_as(key, "GET", "/api/me/sites", None).ok();
    assert_eq!(with(KEY), with("second-key"));
    assert_eq!(with(KEY)["total"], 3);
    assert_eq!(with(OTHER_KEY)["sites"][0]["id"], 20);
}

/// 5: "access to other accounts' sites or resources is refused (404 on site lookups …)"; 4: "Site-related
/// endpoints only act on sites owned by the caller's account".
#[test]
fn section_5_another_accounts_site_is_not_there() {
    let program = Program::start();
    let before = program.api_as(OTHER_KEY, "GET", "/api/sites/20", None).ok();
    let calls = [
        ("GET", "/api/sites/20"),
        ("POST", "/api/sites/20/update"),
        ("POST", "/api/sites/20/enable"),
        ("POST", "/api/sites/20/disable"),
        ("DELETE", "/api/sites/20"),
    ];
    for (method, path) in calls {
        let missing = path.replace("20", "999");
        let body = path.ends_with("update").then(|| json!({ "remark": "mine now" }));
        let foreign = program.api(method, path, body.as_ref());
        let absent = program.api(method, &missing, body.as_ref());
        assert_eq!(foreign.refused(404), absent.refused(404), "{method} {path}");
    }
    assert_eq!(program.api_as(OTHER_KEY, "GET", "/api/sites/20", None).ok(), before);
}

/// 5: "403 on references to foreign resources"; 7: "Update references a resource not owned by the caller".
#[test]
fn section_5_another_accounts_resource_is_forbidden() {
    let program = Program::start();
    let before = program.site(10);
    for (name, id) in [("cert_id", 7), ("cert_id", 999), ("package_id", 3), ("package_id", 999)] {
        program.post("/api/sites/10/update", &json!({ name: id, "remark": "x" })).refused(403);
    }
    assert_eq!(program.site(10), before, "nothing of a refused update is saved");
    program.post("/api/sites", &json!({ "domain": "new.example", "cert_id": 7 })).refused(403);
    assert_eq!(program.get("/api/me/sites")["total"], 3);
}

/// 4.3 with 5: another account's key material stays with it.
#[test]
fn section_5_another_accounts_certificate_cannot_be_downloaded() {
    let program = Program::start();
    program.api("GET", "/api/certs/7/download", None).refused(404);
    program.api_as(OTHER_KEY, "GET", "/api/certs/7/download", None).ok();
}

/// 5: "Requests with Content-Type: application/json carry JSON bodies".
#[test]
fn section_5_a_body_is_json_and_says_so() {
    let program = Program::start();
    let key = format!("Bearer {KEY}");
    for path in ["/api/certs/upload", "/api/certs", "/api/sites", "/api/sites/10/update"] {
        let url = format!("{}{path}", program.url("api"));
        let send = |kind: &str, body: &str| {
            let request =
                ureq::post(&url).header("authorization", &key).config().http_status_as_error(false).build();
            request.header("content-type", kind).send(body).unwrap().status().as_u16()
        };
        assert_eq!(send("text/plain", "{}"), 415, "{path}");
        assert_eq!(send("application/json", "{"), 400, "{path}");
        assert_eq!(send("application/json", "[]"), 400, "{path}");
    }
    let made = Made::for_names(&["a.example"]);
    let charset = ureq::post(format!("{}/api/certs/upload", program.url("api")))
        .header("authorization", &key)
        .header("content-type", "application/json; charset=utf-8")
        .send(made.body("a.example").to_string());
    assert_eq!(charset.unwrap().status(), 200);
}

/// 8: size limits are not shown; beyond 4 MiB nothing is read.
#[test]
fn section_8_a_body_has_a_limit() {
    let program = Program::start();
    let body = json!({ "domain": "a.example", "cert_pem": "x".repeat(5_000_000) });
    assert_eq!(program.post("/api/certs/upload", &body).status, 413);
    assert_eq!(program.certs().len(), 1);
}
