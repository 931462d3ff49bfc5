//! Authentication and ownership (sections 4 and 5).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{KEY, OTHER_KEY, Server, TestCert};

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

/// Sections 4 and 5: "All endpoints require authentication", "Every request carries the header
/// Authorization".
#[test]
fn every_endpoint_requires_a_key() {
    let server = Server::start();
    let before = server.get("/api/me/sites");
    let credentials = [
        None,
        Some("Bearer wrong"),
        Some("Bearer "),
        Some(KEY),
        Some("Basic c2FuZGJveC1rZXk="),
        Some("Basic sandbox-key"),
    ];
    for (method, path) in ENDPOINTS {
        for credentials in credentials {
            let mut headers = vec![("content-type", "application/json")];
            headers.extend(credentials.map(|credentials| ("authorization", credentials)));
            let response = server.send("api", method, path, &headers, r#"{"domain":"a.example"}"#).unwrap();
            response.expect_error(401);
            assert_eq!(response.headers["www-authenticate"], "Bearer", "{method} {path} {credentials:?}");
        }
    }
    assert_eq!(server.get("/api/me/sites"), before);
}

/// Section 5: "A site belongs to the account that owns the calling key".
#[test]
fn keys_of_an_account_are_equivalent() {
    let server = Server::start();
    let sites = |key| server.api_with_key(key, "GET", "/api/me/sites", None).expect_ok();
    assert_eq!(sites(KEY), sites("second-key"));
    assert_eq!(sites(KEY)["total"], 3);
    assert_eq!(sites(OTHER_KEY)["sites"][0]["id"], 20);
}

/// Section 5: "access to other accounts' sites or resources is refused (404 on site lookups …)"; section 4:
/// "Site-related endpoints only act on sites owned by the caller's account". Section 4.3: a download returns key material,
/// so only the owner may have it. An update's site is checked before its body.
#[test]
fn resource_of_another_account_is_404() {
    let server = Server::start();
    let owned = || {
        let get = |path| server.api_with_key(OTHER_KEY, "GET", path, None).expect_ok();
        ["/api/sites/20", "/api/certs/7/download"].map(get)
    };
    let before = owned();
    let sites = &["20", "999", "0", "-1", "x", "99999999999999999999", ""][..];
    let rows = [
        ("GET", "/api/sites/ID", sites),
        ("POST", "/api/sites/ID/update", sites),
        ("POST", "/api/sites/ID/enable", sites),
        ("POST", "/api/sites/ID/disable", sites),
        ("DELETE", "/api/sites/ID", sites),
        ("GET", "/api/certs/ID/download", &["7", "999"]),
        ("GET", "/api/certs/ID/download", &["x"]),
    ];
    for (method, path, ids) in rows {
        let body = path.ends_with("update").then(|| json!({ "cert_id": 7, "remark": "mine now" }));
        let message =
            |id: &&str| server.api(method, &path.replace("ID", id), body.as_ref()).expect_error(404);
        let messages: BTreeSet<String> = ids.iter().map(message).collect();
        assert_eq!(messages.len(), 1, "{method} {path}: {messages:?}");
    }
    assert_eq!(owned(), before);
}

/// Section 5: "403 on references to foreign resources"; section 7: "Update references a resource not owned by
/// the caller".
#[test]
fn reference_to_another_account_is_403() {
    let server = Server::start();
    let before = server.site(10);
    for (name, id) in [("cert_id", 7), ("cert_id", 999), ("package_id", 3), ("package_id", 999)] {
        server.update(&json!({ name: id, "remark": "x" })).expect_error(403);
    }
    assert_eq!(server.site(10), before, "a refused update saves nothing");
    server.post("/api/sites", &json!({ "domain": "new.example", "cert_id": 7 })).expect_error(403);
    assert_eq!(server.get("/api/me/sites")["total"], 3);
}

/// Section 5: "Requests with Content-Type: application/json carry JSON bodies". Section 8: size limits are not shown; the
/// sandbox reads at most 4 MiB.
#[test]
fn body_must_be_declared_json() {
    let server = Server::start();
    let send = |path, content_type, body: &str| {
        let key = format!("Bearer {KEY}");
        let headers = [("authorization", &*key), ("content-type", content_type)];
        server.send("api", "POST", path, &headers, body).unwrap().status
    };
    for path in ["/api/certs/upload", "/api/certs", "/api/sites", "/api/sites/10/update"] {
        let rows =
            [("text/plain", "{}", 415), ("application/json", "{", 400), ("application/json", "[]", 400)];
        for (content_type, body, expected) in rows {
            assert_eq!(send(path, content_type, body), expected, "{path}");
        }
    }
    let upload = TestCert::new(&["a.example"]).upload_body("a.example").to_string();
    assert_eq!(send("/api/certs/upload", "application/json; charset=utf-8", &upload), 200);
    let large = Value::from("x".repeat(5_000_000)).to_string();
    assert_eq!(send("/api/certs/upload", "application/json", &large), 413);
}
