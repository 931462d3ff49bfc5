//! Other clients of the account, and records whose content changes behind the API.

use serde_json::{Value, json};

use crate::support::{OTHER_KEY, Response, Server, TestCert, test_world};

/// A server whose site 10 is bound to record 1001, which was uploaded and pushed.
fn serving() -> Server {
    let server = Server::start();
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    server.push_now();
    server
}

/// Uploads as another client, through the control port.
fn upload_as_other(server: &Server, body: &Value) -> Response {
    server.control("POST", "/certs/upload", Some(body))
}

/// Replaces record 1001 in place.
fn replace(server: &Server, cert: &TestCert, push: Option<&str>) -> Response {
    let mut body = json!({ "cert_pem": cert.cert_pem, "key_pem": cert.key_pem });
    if let Some(push) = push {
        body["push"] = json!(push);
    }
    server.control("POST", "/certs/1001", Some(&body))
}

fn logged_requests(server: &Server) -> usize {
    server.control("GET", "/requests", None).expect_ok().as_array().unwrap().len()
}

fn is_synced(server: &Server) -> Value {
    server.site(10)["config_synced"].clone()
}

#[test]
fn second_key_replaces_the_record() {
    let server = serving();
    let new = TestCert::new(&["a.example"]);
    let body = new.upload_body("a.example");
    let response = server.api_with_key("second-key", "POST", "/api/certs/upload", Some(&body)).expect_ok();
    assert_eq!((&response["id"], &response["created"]), (&json!("1001"), &json!(false)));
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
}

#[test]
fn other_client_uploads_like_the_api() {
    let server = serving();
    let logged = logged_requests(&server);
    let new = TestCert::new(&["a.example"]);
    let response = upload_as_other(&server, &new.upload_body("a.example")).expect_ok();
    assert_eq!(logged_requests(&server), logged, "not a request of the client under test");
    assert_eq!(response["fingerprint"], new.fingerprint());
    assert_eq!((&response["id"], &response["created"]), (&json!(1001), &json!(false)));
    assert_eq!(is_synced(&server), false);
    server.push_now();
    assert_eq!(is_synced(&server), true);
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    let created = upload_as_other(&server, &TestCert::new(&["b.example"]).upload_body("b.example"));
    assert_eq!(created.expect_ok()["bound_sites"], json!([11]));
    assert_eq!(server.site(11)["cert_id"], 1002);
}

#[test]
fn other_client_chooses_account_and_name() {
    let server = Server::start();
    let mut body = TestCert::new(&["o.example"]).upload_body("o.example");
    body["account"] = json!(2);
    body["name"] = json!("theirs");
    assert_eq!(upload_as_other(&server, &body).expect_ok()["id"], 7);
    let certs = server.api_with_key(OTHER_KEY, "GET", "/api/certs", None).expect_ok();
    assert_eq!(certs["certs"][0]["name"], "theirs");
}

/// The rules of section 4.2 apply to every client.
#[test]
fn other_clients_upload_is_validated() {
    let server = serving();
    let before = server.get("/api/certs/1001/download");
    let valid = TestCert::new(&["a.example"]);
    let rsa = TestCert::rsa(&["a.example"]);
    let with = |name: &str, value: Value| {
        let mut body = valid.upload_body("a.example");
        body[name] = value;
        body
    };
    let rows = [
        (TestCert::expired(&["a.example"]).upload_body("a.example"), "expired"),
        (TestCert::new(&["b.example"]).upload_body("a.example"), "do not cover"),
        (rsa.with_key(&valid.key_pem).upload_body("a.example"), "not a pair"),
        (valid.upload_body("x.example"), "not the domain of a site"),
        (with("account", json!(2)), "not the domain of a site"),
        (with("account", json!(99)), "not the domain of a site"),
        (with("cert_pem", json!("")), "no CERTIFICATE block"),
        (with("cert_pem", json!(7)), "expected a string"),
        (with("push", json!("silent")), "unknown field"),
        (json!({ "domain": "a.example" }), "missing field"),
    ];
    for (body, reason) in rows {
        let error = upload_as_other(&server, &body).expect_error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.get("/api/certs/1001/download"), before);
    assert_eq!(is_synced(&server), true);
}

/// No rule applies: not expiry, not the names, not the pair.
#[test]
fn replaced_content_is_not_validated() {
    let server = serving();
    let foreign = TestCert::new(&["x.example"]);
    let rows = [
        (TestCert::expired(&["a.example"]), true),
        (foreign.clone(), true),
        (foreign.with_key(&TestCert::new(&["x.example"]).key_pem), false),
        (TestCert { cert_pem: "-".to_owned(), key_pem: String::new() }, false),
    ];
    for (cert, is_served) in rows {
        let before = server.site(10);
        replace(&server, &cert, None).expect_ok();
        assert_eq!(is_synced(&server), false);
        server.push_now();
        assert_eq!(server.site(10), before, "IDs and settings are unchanged");
        assert_eq!(server.served_leaf("a.example"), is_served.then(|| cert.fingerprint()));
        assert_eq!(server.get("/api/certs/1001/download")["cert_pem"], json!(cert.cert_pem));
    }
}

#[test]
fn replacement_keeps_name_and_type() {
    let mut world = test_world();
    world["sites"][0]["cert_id"] = json!(5);
    let server = Server::start_with(&world, &[]);
    let before = server.certs();
    let renewed = TestCert::new(&["old.example"]);
    let body = json!({ "cert_pem": renewed.cert_pem, "key_pem": renewed.key_pem });
    server.control("POST", "/certs/5", Some(&body)).expect_ok();
    server.push_now();
    assert_eq!(server.certs(), before);
    assert_eq!(server.served_leaf("a.example"), Some(renewed.fingerprint()));
}

/// `config_synced` is true throughout, even while pushes are held back, and a pending change stays pending.
#[test]
fn silent_replacement_hides_from_the_api() {
    let server = serving();
    let new = TestCert::new(&["a.example"]);
    let before = server.site(10);
    replace(&server, &new, Some("silent")).expect_ok();
    assert_eq!(server.site(10), before);
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    server.post("/api/sites/10/update", &json!({ "http2": false })).expect_ok();
    replace(&server, &TestCert::new(&["a.example"]), Some("silent")).expect_ok();
    assert_eq!(is_synced(&server), false);
    let edge = server.control("GET", "/edge", None).expect_ok();
    assert_eq!(edge[0]["alpn"], json!(["h2", "http/1.1"]));
}

#[test]
fn invalid_replacements_are_rejected() {
    let server = serving();
    let cert = TestCert::new(&["a.example"]);
    let body = json!({ "cert_pem": cert.cert_pem, "key_pem": cert.key_pem });
    for path in ["/certs/9", "/certs/x", "/certs/1001/x"] {
        server.control("POST", path, Some(&body)).expect_error(404);
    }
    server.control("GET", "/certs/1001", None).expect_error(404);
    replace(&server, &cert, Some("loud")).expect_error(400);
    server.control("POST", "/certs/1001", Some(&json!({ "cert_pem": "-" }))).expect_error(400);
}
