//! Certificate records (sections 2.1, 2.2, 4.1 and 4.3) and the note on `POST /api/certs` (section 4.2).

use serde_json::{Value, json};

use crate::support::{OTHER_KEY, Server, TestCert};

/// Sections 2.1 and 4.1: "Returns the caller's certificates; each element has id, name, domain, type".
#[test]
fn list_has_only_own_records() {
    let server = Server::start();
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    let certs = server.certs();
    assert_eq!(certs[0], json!({ "id": 5, "name": "old.example", "domain": "old.example", "type": "lets" }));
    assert_eq!(certs[1], json!({ "id": 1001, "name": "a.example", "domain": "a.example", "type": "upload" }));
    let others = server.api_with_key(OTHER_KEY, "GET", "/api/certs", None).expect_ok();
    assert_eq!(others["certs"].as_array().unwrap().iter().map(|cert| &cert["id"]).collect::<Vec<_>>(), [7]);
}

/// Section 2.1: "the upload response returns id as a string, the download response as a number, and a site's
/// cert_id is a number".
#[test]
fn id_types_differ_by_endpoint() {
    let server = Server::start();
    let uploaded = server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    assert_eq!(uploaded["id"], "1001");
    assert_eq!(server.get("/api/certs/1001/download")["id"], 1001);
    assert_eq!(server.site(10)["cert_id"], 1001);
    server.post("/api/sites/11/update", &json!({ "cert_id": "1001" })).expect_error(400);
    server.post("/api/sites/11/update", &json!({ "cert_id": 1001 })).expect_ok();
}

/// Section 2.1: the id is "the value a site uses in cert_id".
#[test]
fn cert_id_binds_a_site() {
    let server = Server::start();
    server.post("/api/sites/10/update", &json!({ "cert_id": 5 })).expect_ok();
    assert_eq!(server.site(10)["cert_id"], 5);
    server.post("/api/sites/10/update", &json!({ "cert_id": null })).expect_ok();
    assert_eq!(server.site(10)["cert_id"], Value::Null);
}

/// Sections 2.2 and 4.3: "Returns full material of certificate {id}".
#[test]
fn download_returns_chain_and_key() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    let mut body = cert.upload_body("a.example");
    body["name"] = json!("shop");
    server.post("/api/certs/upload", &body).expect_ok();
    let record = server.get("/api/certs/1001/download");
    let expected = json!({ "ok": true, "id": 1001, "domain": "a.example", "name": "shop",
                           "cert_pem": cert.cert_pem, "key_pem": cert.key_pem });
    assert_eq!(record, expected);
    assert!(record["cert_pem"].as_str().unwrap().contains('\n'), "newlines are preserved");
    server.api("GET", "/api/certs/999/download", None).expect_error(404);
    server.api("GET", "/api/certs/x/download", None).expect_error(404);
}

/// Section 4.2, note on `POST /api/certs`: "it would add a duplicate same-domain record while sites remain
/// bound to the old one (automatic binding only affects sites without a certificate), and the edge would keep
/// serving the old certificate".
#[test]
fn create_adds_an_unused_duplicate() {
    let server = Server::start();
    let (old, new) = (TestCert::new(&["a.example"]), TestCert::new(&["a.example"]));
    server.upload("a.example", &old).expect_ok();
    server.push_now();
    let created = server.post("/api/certs", &new.upload_body("a.example")).expect_ok();
    assert_eq!(created["id"], "1002");
    server.push_now();
    let duplicates: Vec<_> =
        server.certs().into_iter().filter(|cert| cert["domain"] == "a.example").collect();
    assert_eq!(duplicates.len(), 2);
    assert_eq!(server.site(10)["cert_id"], 1001);
    assert_eq!(server.served_leaf("a.example"), Some(old.fingerprint()));
}

/// Section 4.2, same note: not even a site without a certificate is bound.
#[test]
fn create_binds_no_site() {
    let server = Server::start();
    server.post("/api/certs", &TestCert::new(&["a.example"]).upload_body("a.example")).expect_ok();
    assert_eq!(server.site(10)["cert_id"], Value::Null);
    assert_eq!(server.site(10)["config_synced"], true);
}

/// Which of two records for a domain an upload replaces is not shown.
#[test]
fn upload_replaces_the_older_duplicate() {
    let server = Server::start();
    for _ in 0..2 {
        server.post("/api/certs", &TestCert::new(&["a.example"]).upload_body("a.example")).expect_ok();
    }
    let second = server.get("/api/certs/1002/download");
    let cert = TestCert::new(&["a.example"]);
    let uploaded = server.upload("a.example", &cert).expect_ok();
    assert_eq!((&uploaded["id"], &uploaded["created"]), (&json!("1001"), &json!(false)));
    assert_eq!(server.get("/api/certs/1001/download")["cert_pem"], cert.cert_pem);
    assert_eq!(server.get("/api/certs/1002/download"), second);
}
