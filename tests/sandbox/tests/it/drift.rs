//! Other clients of the account, and records whose content changes behind the API.

use edgecert_sandbox::Fault;
use serde_json::json;

use crate::support::{Server, TestCert, assert_contains, plain};

fn is_synced(server: &Server) -> bool {
    server.site(10)["config_synced"].as_bool().unwrap()
}

/// With another key of the account through the API, or by the library, which the log of requests does not show.
#[test]
fn other_clients_replace_the_record() {
    let (server, _) = Server::serving(&["a.example"]);
    let by_second_key = |cert: &TestCert| {
        let body = cert.upload_body("a.example");
        let response =
            server.api_with_key("second-key", "POST", "/api/certs/upload", Some(&body)).expect_ok();
        assert_contains(&response, &json!({ "id": "1001", "created": false }));
    };
    let by_library = |cert: &TestCert| {
        let id = server.sandbox().upload_as_other_client("a.example", &cert.cert_pem, &cert.key_pem);
        assert_eq!(id, 1001);
    };
    for (upload, logged) in [(&by_second_key as &dyn Fn(&TestCert), 1), (&by_library, 0)] {
        let (before, new) = (server.sandbox().requests().len(), TestCert::new(&["a.example"]));
        upload(&new);
        assert_eq!(server.sandbox().requests().len(), before + logged);
        assert!(!is_synced(&server));
        server.push_now();
        assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    }
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
        server.sandbox().replace_cert(1001, &cert.cert_pem, &cert.key_pem);
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
    let before = server.site(10);
    server.sandbox().replace_cert_silently(1001, &new.cert_pem, &new.key_pem);
    assert_eq!(server.site(10), before);
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    server.update(&json!({ "https_enabled": false })).expect_ok();
    server.sandbox().replace_cert_silently(1001, &new.cert_pem, &new.key_pem);
    assert!(!is_synced(&server));
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
}

/// Otherwise a test whose fault never applies would pass without showing anything.
#[test]
#[should_panic(expected = "invalid fault: no endpoint is GET /api/upload")]
fn adding_a_useless_fault_panics() {
    Server::start().sandbox().add_fault(Fault::close_before("GET /api/upload"));
}
