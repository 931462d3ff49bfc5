//! Authentication and ownership (sections 4 and 5).

use serde_json::json;

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
            let url = format!("{}{path}", server.url("api"));
            let response = server.send(method, &url, headers, (method == "POST").then_some(&body));
            response.expect_error(401);
            assert_eq!(response.headers["www-authenticate"], "Bearer", "{method} {path} {headers:?}");
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
/// "Site-related endpoints only act on sites owned by the caller's account".
#[test]
fn site_of_another_account_is_404() {
    let server = Server::start();
    let before = server.api_with_key(OTHER_KEY, "GET", "/api/sites/20", None).expect_ok();
    let calls = [
        ("GET", "/api/sites/20"),
        ("POST", "/api/sites/20/update"),
        ("POST", "/api/sites/20/enable"),
        ("POST", "/api/sites/20/disable"),
        ("DELETE", "/api/sites/20"),
    ];
    for (method, path) in calls {
        let unknown_path = path.replace("20", "999");
        let body = path.ends_with("update").then(|| json!({ "remark": "mine now" }));
        let others = server.api(method, path, body.as_ref());
        let unknown = server.api(method, &unknown_path, body.as_ref());
        assert_eq!(others.expect_error(404), unknown.expect_error(404), "{method} {path}");
    }
    assert_eq!(server.api_with_key(OTHER_KEY, "GET", "/api/sites/20", None).expect_ok(), before);
}

/// Section 5: "403 on references to foreign resources"; section 7: "Update references a resource not owned by
/// the caller".
#[test]
fn resource_of_another_account_is_403() {
    let server = Server::start();
    let before = server.site(10);
    for (name, id) in [("cert_id", 7), ("cert_id", 999), ("package_id", 3), ("package_id", 999)] {
        server.post("/api/sites/10/update", &json!({ name: id, "remark": "x" })).expect_error(403);
    }
    assert_eq!(server.site(10), before, "a refused update saves nothing");
    server.post("/api/sites", &json!({ "domain": "new.example", "cert_id": 7 })).expect_error(403);
    assert_eq!(server.get("/api/me/sites")["total"], 3);
}

/// Sections 4.3 and 5: a download returns key material, so only the owner may have it.
#[test]
fn download_of_another_account_is_404() {
    let server = Server::start();
    server.api("GET", "/api/certs/7/download", None).expect_error(404);
    server.api_with_key(OTHER_KEY, "GET", "/api/certs/7/download", None).expect_ok();
}

/// Section 5: "Requests with Content-Type: application/json carry JSON bodies".
#[test]
fn body_must_be_declared_json() {
    let server = Server::start();
    let key = format!("Bearer {KEY}");
    for path in ["/api/certs/upload", "/api/certs", "/api/sites", "/api/sites/10/update"] {
        let url = format!("{}{path}", server.url("api"));
        let send = |content_type: &str, body: &str| {
            let request =
                ureq::post(&url).header("authorization", &key).config().http_status_as_error(false).build();
            request.header("content-type", content_type).send(body).unwrap().status().as_u16()
        };
        assert_eq!(send("text/plain", "{}"), 415, "{path}");
        assert_eq!(send("application/json", "{"), 400, "{path}");
        assert_eq!(send("application/json", "[]"), 400, "{path}");
    }
    let cert = TestCert::new(&["a.example"]);
    let with_charset = ureq::post(format!("{}/api/certs/upload", server.url("api")))
        .header("authorization", &key)
        .header("content-type", "application/json; charset=utf-8")
        .send(cert.upload_body("a.example").to_string());
    assert_eq!(with_charset.unwrap().status(), 200);
}

/// Section 8: size limits are not shown; the sandbox reads at most 4 MiB.
#[test]
fn body_over_4_mib_is_413() {
    let server = Server::start();
    let body = json!({ "domain": "a.example", "cert_pem": "x".repeat(5_000_000) });
    assert_eq!(server.post("/api/certs/upload", &body).status, 413);
    assert_eq!(server.certs().len(), 1);
}
