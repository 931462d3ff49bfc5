//! Other clients of the account, and records whose content changes behind the API.

use edgecert_sandbox::Fault;
use serde_json::json;

use crate::support::{OTHER_KEY, Server, TestCert, assert_contains, plain, with};

fn is_synced(server: &Server) -> bool {
    server.site(10)["config_synced"].as_bool().unwrap()
}

/// With another key of the account through the API, or unseen by its log through the control port and by the library.
#[test]
fn other_clients_replace_the_record() {
    let (server, _) = Server::serving(&["a.example"]);
    let new = [(); 3].map(|()| TestCert::new(&["a.example"]));
    let body = |index: usize| new[index].upload_body("a.example");
    let by_second_key = || {
        let response =
            server.api_with_key("second-key", "POST", "/api/certs/upload", Some(&body(0))).expect_ok();
        assert_contains(&response, &json!({ "id": "1001", "created": false }));
    };
    let by_control_port = || {
        let response = server.control_post("/certs/upload", &body(1)).expect_ok();
        let expected = json!({ "ok": true, "id": 1001, "created": false, "fingerprint": new[1].fingerprint(), "bound_sites": [] });
        assert_eq!(response, expected);
    };
    let by_library = || {
        let id = server.sandbox().upload_as_other_client("a.example", &new[2].cert_pem, &new[2].key_pem);
        assert_eq!(id, 1001);
    };
    let rows: [(&dyn Fn(), usize); 3] = [(&by_second_key, 1), (&by_control_port, 0), (&by_library, 0)];
    for ((upload, logged), new) in rows.into_iter().zip(&new) {
        let before = server.sandbox().requests().len();
        upload();
        assert_eq!(server.sandbox().requests().len(), before + logged);
        assert!(!is_synced(&server));
        server.push_now();
        assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    }
    let created =
        server.control_post("/certs/upload", &TestCert::new(&["b.example"]).upload_body("b.example"));
    assert_contains(&created.expect_ok(), &json!({ "id": 1002, "created": true, "bound_sites": [11] }));
    assert_eq!(server.site(11)["cert_id"], 1002);
}

#[test]
fn other_client_chooses_account_and_name() {
    let server = Server::start();
    let body = TestCert::new(&["o.example"]).upload_body("o.example");
    let body = with(body, &json!({ "account": 2, "name": "theirs" }));
    assert_eq!(server.control_post("/certs/upload", &body).expect_ok()["id"], 7);
    let certs = server.api_with_key(OTHER_KEY, "GET", "/api/certs", None).expect_ok();
    assert_eq!(certs["certs"][0]["name"], "theirs");
}

/// The rules of section 4.2 apply to every client.
#[test]
fn other_clients_upload_is_validated() {
    let (server, valid) = Server::serving(&["a.example"]);
    let before = server.download(1001);
    let changed = |change| with(valid.upload_body("a.example"), &change);
    let rows = [
        (TestCert::valid(&["a.example"], [2019, 2020]).upload_body("a.example"), "expired"),
        (TestCert::new(&["b.example"]).upload_body("a.example"), "do not cover"),
        (TestCert::rsa(&["a.example"]).with_key(&valid.key_pem).upload_body("a.example"), "not a pair"),
        (valid.upload_body("x.example"), "not the domain of a site"),
        (changed(json!({ "account": 2 })), "not the domain of a site"),
        (changed(json!({ "account": 99 })), "not the domain of a site"),
        (changed(json!({ "cert_pem": "" })), "no CERTIFICATE block"),
        (changed(json!({ "cert_pem": 7 })), "expected a string"),
        (changed(json!({ "push": "silent" })), "unknown field"),
        (json!({ "domain": "a.example" }), "missing field"),
    ];
    for (body, reason) in rows {
        let error = server.control_post("/certs/upload", &body).expect_error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.download(1001), before);
    assert!(is_synced(&server));
}

/// No rule applies: not expiry, not the names, not the pair.
#[test]
fn replaced_content_is_not_validated() {
    let (server, _) = Server::serving(&["a.example"]);
    let foreign = TestCert::new(&["x.example"]);
    let rows = [
        (TestCert::valid(&["a.example"], [2019, 2020]), true),
        (foreign.unpaired(), false),
        (TestCert { cert_pem: "-".to_owned(), key_pem: String::new() }, false),
        (foreign, true),
    ];
    for (cert, is_served) in rows {
        let before = server.site(10);
        server.control_post("/certs/1001", &cert.body()).expect_ok();
        assert!(!is_synced(&server));
        server.push_now();
        assert_eq!(server.site(10), before, "IDs and settings are unchanged");
        assert_eq!(server.served_leaf("a.example"), is_served.then(|| cert.fingerprint()));
        assert_contains(&server.download(1001), &cert.body());
    }
}

#[test]
fn replacement_keeps_name_and_type() {
    let mut options = plain();
    options.world.sites[0].cert_id = Some(5);
    let server = Server::start_with(options);
    let before = server.certs();
    let renewed = TestCert::new(&["old.example"]);
    server.sandbox().replace_cert(5, &renewed.cert_pem, &renewed.key_pem);
    server.push_now();
    assert_eq!(server.certs(), before);
    assert_eq!(server.served_leaf("a.example"), Some(renewed.fingerprint()));
}

/// `config_synced` is true throughout, even while pushes are held back, and a pending change stays pending.
#[test]
fn silent_replacement_hides_from_the_api() {
    let (server, _) = Server::serving(&["a.example"]);
    let new = TestCert::new(&["a.example"]);
    let silent = with(new.body(), &json!({ "push": "silent" }));
    let before = server.site(10);
    server.control_post("/certs/1001", &silent).expect_ok();
    assert_eq!(server.site(10), before);
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    server.update(&json!({ "http2": false })).expect_ok();
    server.sandbox().replace_cert_silently(1001, &new.cert_pem, &new.key_pem);
    assert!(!is_synced(&server));
    assert_eq!(server.listed("/edge")[0]["alpn"], json!(["h2", "http/1.1"]));
}

#[test]
fn invalid_replacements_are_rejected() {
    let (server, cert) = Server::serving(&["a.example"]);
    for path in ["/certs/9", "/certs/x", "/certs/1001/x"] {
        server.control_post(path, &cert.body()).expect_error(404);
    }
    server.control("GET", "/certs/1001").expect_error(404);
    for body in [with(cert.body(), &json!({ "push": "loud" })), json!({ "cert_pem": "-" })] {
        server.control_post("/certs/1001", &body).expect_error(400);
    }
}

/// Otherwise a test whose fault never applies would pass without showing anything.
#[test]
#[should_panic(expected = "invalid fault: no endpoint is GET /api/upload")]
fn adding_a_useless_fault_panics() {
    Server::start().sandbox().add_fault(Fault::close_before("GET /api/upload"));
}
