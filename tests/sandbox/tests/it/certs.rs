//! Sections 2.1, 2.2, 4.1, 4.3 and the note on `POST /api/certs`.

use serde_json::{Value, json};

use crate::support::{Made, OTHER_KEY, Program};

/// 2.1, 4.1: "Returns the caller's certificates; each element has id, name, domain, type".
#[test]
fn section_4_1_the_list_has_the_callers_certificates() {
    let program = Program::start();
    program.upload("a.example", &Made::for_names(&["a.example"])).ok();
    let certs = program.certs();
    assert_eq!(certs[0], json!({ "id": 5, "name": "old.example", "domain": "old.example", "type": "lets" }));
    assert_eq!(certs[1], json!({ "id": 1001, "name": "a.example", "domain": "a.example", "type": "upload" }));
    let theirs = program.api_as(OTHER_KEY, "GET", "/api/certs", None).ok();
    assert_eq!(theirs["certs"].as_array().unwrap().iter().map(|cert| &cert["id"]).collect::<Vec<_>>(), [7]);
}

/// 2.1: "ID typing: the upload response returns id as a string, the download response as a number, and a site's
/// cert_id is a number".
#[test]
fn section_2_1_an_id_is_a_string_here_and_a_number_there() {
    let program = Program::start();
    let uploaded = program.upload("a.example", &Made::for_names(&["a.example"])).ok();
    assert_eq!(uploaded["id"], "1001");
    assert_eq!(program.get("/api/certs/1001/download")["id"], 1001);
    assert_eq!(program.site(10)["cert_id"], 1001);
    program.post("/api/sites/11/update", &json!({ "cert_id": "1001" })).refused(400);
    program.post("/api/sites/11/update", &json!({ "cert_id": 1001 })).ok();
}

/// 2.1: the id is "the value a site uses in cert_id"; 1: "type value lets" is what the system issued.
#[test]
fn section_2_1_a_site_can_be_bound_through_cert_id() {
    let program = Program::start();
    program.post("/api/sites/10/update", &json!({ "cert_id": 5 })).ok();
    assert_eq!(program.site(10)["cert_id"], 5);
    program.post("/api/sites/10/update", &json!({ "cert_id": null })).ok();
    assert_eq!(program.site(10)["cert_id"], Value::Null);
}

/// 2.2, 4.3: "Returns full material of certificate {id}".
#[test]
fn section_4_3_a_download_has_the_full_material() {
    let program = Program::start();
    let made = Made::for_names(&["a.example"]);
    let mut body = made.body("a.example");
    body["name"] = json!("shop");
    program.post("/api/certs/upload", &body).ok();
    let record = program.get("/api/certs/1001/download");
    let expected = json!({ "ok": true, "id": 1001, "domain": "a.example", "name": "shop",
                           "cert_pem": made.cert, "key_pem": made.key });
    assert_eq!(record, expected);
    assert!(record["cert_pem"].as_str().unwrap().contains('\n'), "a PEM chain with newlines");
    program.api("GET", "/api/certs/999/download", None).refused(404);
    program.api("GET", "/api/certs/x/download", None).refused(404);
}

/// 4.2, note: "it would add a duplicate same-domain record while sites remain bound to the old one (automatic
/// binding only affects sites without a certificate), and the edge would keep serving the old certificate".
#[test]
fn section_4_2_the_plain_create_adds_a_duplicate_that_nothing_uses() {
    let program = Program::start();
    let (old, new) = (Made::for_names(&["a.example"]), Made::for_names(&["a.example"]));
    program.upload("a.example", &old).ok();
    program.push();
    let created = program.post("/api/certs", &new.body("a.example")).ok();
    assert_eq!(created["id"], "1002");
    program.push();
    let same: Vec<_> = program.certs().into_iter().filter(|cert| cert["domain"] == "a.example").collect();
    assert_eq!(same.len(), 2);
    assert_eq!(program.site(10)["cert_id"], 1001);
    assert_eq!(program.served("a.example"), Some(old.fingerprint()));
}

/// The same note: a record made so binds nothing, also where a site has no certificate.
#[test]
fn section_4_2_the_plain_create_binds_nothing() {
    let program = Program::start();
    program.post("/api/certs", &Made::for_names(&["a.example"]).body("a.example")).ok();
    assert_eq!(program.site(10)["cert_id"], Value::Null);
    assert_eq!(program.site(10)["config_synced"], true);
}

/// With two records for a domain, an upload replaces the oldest and leaves the other.
#[test]
fn section_4_2_an_upload_replaces_the_oldest_of_two() {
    let program = Program::start();
    for _ in 0..2 {
        program.post("/api/certs", &Made::for_names(&["a.example"]).body("a.example")).ok();
    }
    let second = program.get("/api/certs/1002/download");
    let made = Made::for_names(&["a.example"]);
    let uploaded = program.upload("a.example", &made).ok();
    assert_eq!((&uploaded["id"], &uploaded["created"]), (&json!("1001"), &json!(false)));
    assert_eq!(program.get("/api/certs/1001/download")["cert_pem"], made.cert);
    assert_eq!(program.get("/api/certs/1002/download"), second);
}
