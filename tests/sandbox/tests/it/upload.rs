//! The idempotent upload and its errors (sections 4.2 and 7). Quotes are from section 4.2 unless another is named.

use serde_json::{Value, json};

use crate::support::{OTHER_KEY, Server, TestCert, openssl, test_world};

/// Everything that an upload could change, for comparison.
fn snapshot(server: &Server) -> Value {
    let downloads: Vec<Value> = server
        .certs()
        .iter()
        .map(|cert| server.get(&format!("/api/certs/{}/download", cert["id"])))
        .collect();
    json!([server.get("/api/me/sites"), server.certs(), downloads])
}

/// Uploads, asserts "any failure returns HTTP 400 and nothing is written", and returns the error message.
#[track_caller]
fn upload_refused(server: &Server, body: &Value) -> String {
    let before = snapshot(server);
    let message = server.post("/api/certs/upload", body).expect_error(400);
    assert_eq!(snapshot(server), before);
    message
}

/// A server with a record for a.example.
fn start_with_record() -> Server {
    let server = Server::start();
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    server
}

/// "if a certificate already exists for the domain, its content is replaced in place and its ID is
/// unchanged".
#[test]
fn second_upload_replaces_in_place() {
    let server = start_with_record();
    let cert = TestCert::new(&["a.example"]);
    let response = server.upload("a.example", &cert).expect_ok();
    assert_eq!((&response["id"], &response["created"]), (&json!("1001"), &json!(false)));
    assert_eq!(server.certs().len(), 2);
    let record = server.get("/api/certs/1001/download");
    assert_eq!((&record["cert_pem"], &record["key_pem"]), (&json!(cert.cert_pem), &json!(cert.key_pem)));
}

/// "so sites already bound to it use the new certificate at once": after the next push, whatever their
/// domain.
#[test]
fn bound_sites_serve_the_new_leaf() {
    let server = start_with_record();
    server.post("/api/sites/11/update", &json!({ "cert_id": 1001 })).expect_ok();
    server.push_now();
    let cert = TestCert::new(&["a.example", "b.example"]);
    server.upload("a.example", &cert).expect_ok();
    for site in [10, 11] {
        assert_eq!(server.site(site)["cert_id"], 1001);
        assert_eq!(server.site(site)["config_synced"], false, "site {site}");
    }
    assert_eq!(server.site(12)["config_synced"], true, "site 12 is not bound to the record");
    server.push_now();
    for name in ["a.example", "b.example"] {
        assert_eq!(server.served_leaf(name), Some(cert.fingerprint()));
    }
}

/// "Repeating the same call has the same result as one call".
#[test]
fn repeated_upload_changes_nothing() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    let mut first = server.upload("a.example", &cert).expect_ok();
    let after_one = snapshot(&server);
    let second = server.upload("a.example", &cert).expect_ok();
    first["created"] = json!(false);
    first["bound_sites"] = json!([]);
    assert_eq!(second, first);
    let mut after_two = snapshot(&server);
    for (one, two) in
        after_one[0]["sites"].as_array().unwrap().iter().zip(after_two[0]["sites"].as_array_mut().unwrap())
    {
        two["updated_at"] = one["updated_at"].clone();
    }
    assert_eq!(after_two, after_one);
}

/// Parameters: domain, cert_pem and key_pem are required strings, name is an optional one.
#[test]
fn missing_parameters_are_refused() {
    let server = start_with_record();
    let complete = TestCert::new(&["a.example"]).upload_body("a.example");
    for name in ["domain", "cert_pem", "key_pem"] {
        let mut body = complete.clone();
        body.as_object_mut().unwrap().remove(name);
        assert!(upload_refused(&server, &body).contains(name));
        for wrong in [json!(""), json!(1), json!(null), json!([])] {
            body[name] = wrong;
            assert!(upload_refused(&server, &body).contains(name));
        }
    }
    let mut body = complete;
    body["name"] = json!(1);
    assert!(upload_refused(&server, &body).contains("name"));
}

/// "Must be the domain of a site owned by the caller"; section 7: the status is not shown.
#[test]
fn domain_without_own_site_is_403() {
    let server = Server::start();
    let cert = TestCert::new(&["o.example", "nobody.example"]);
    let before = snapshot(&server);
    for domain in ["o.example", "nobody.example", "not a domain"] {
        server.upload(domain, &cert).expect_error(403);
    }
    assert_eq!(snapshot(&server), before);
    server
        .api_with_key(OTHER_KEY, "POST", "/api/certs/upload", Some(&cert.upload_body("o.example")))
        .expect_ok();
}

/// "Certificate name; defaults to the domain".
#[test]
fn name_defaults_to_the_domain() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example", "b.example"]);
    server.upload("a.example", &cert).expect_ok();
    let mut body = cert.upload_body("b.example");
    body["name"] = json!("shop");
    server.post("/api/certs/upload", &body).expect_ok();
    let names: Vec<Value> = server.certs().iter().map(|cert| cert["name"].clone()).collect();
    assert_eq!(names, ["old.example", "a.example", "shop"]);
}

/// Rule 1: "The PEM parses and a validity period can be read".
#[test]
fn malformed_pem_is_refused() {
    let server = start_with_record();
    let cert = TestCert::new(&["a.example"]);
    let damaged = cert.cert_pem.replacen("MII", "AAA", 1);
    let truncated = cert.cert_pem.split_at(cert.cert_pem.len() / 2).0.to_owned();
    for cert_pem in [
        "nonsense".to_owned(),
        cert.key_pem.clone(),
        damaged,
        truncated,
        format!("{}{}", cert.cert_pem, cert.cert_pem.replacen("MII", "AAA", 1)),
    ] {
        let message = upload_refused(
            &server,
            &TestCert { cert_pem, key_pem: cert.key_pem.clone() }.upload_body("a.example"),
        );
        assert!(message.starts_with("invalid cert_pem: "), "{message}");
    }
    for key in ["nonsense", &cert.cert_pem, &cert.key_pem.replacen("MIG", "AAA", 1)] {
        let message = upload_refused(&server, &cert.with_key(key).upload_body("a.example"));
        assert!(message.starts_with("invalid key_pem: "), "{message}");
    }
}

/// "must not be passphrase-encrypted": PKCS#8 and OpenSSL's traditional format.
#[test]
fn encrypted_key_is_refused() {
    let server = start_with_record();
    let rsa = TestCert::rsa(&["a.example"]);
    let modern = openssl(&["pkcs8", "-topk8", "-passout", "pass:secret"], &rsa.key_pem);
    let legacy = openssl(&["rsa", "-traditional", "-aes128", "-passout", "pass:secret"], &rsa.key_pem);
    assert!(legacy.contains("Proc-Type: 4,ENCRYPTED"), "{legacy}");
    for key in [modern, legacy] {
        let message = upload_refused(&server, &rsa.with_key(&key).upload_body("a.example"));
        assert!(message.contains("encrypted"), "{message}");
    }
}

/// Rule 2: "The certificate is not expired".
#[test]
fn expired_certificate_is_refused() {
    let server = start_with_record();
    let message = upload_refused(&server, &TestCert::expired(&["a.example"]).upload_body("a.example"));
    assert_eq!(message, "the certificate expired on 2020-01-01T00:00:00Z");
}

/// Rule 3: "the declared domain is not trusted, only the SAN in the certificate".
#[test]
fn san_must_cover_the_domain() {
    let server = start_with_record();
    for names in
        [&["b.example"][..], &["*.a.example"], &["x.a.example", "aa.example"], &["*.example.a.example"]]
    {
        let message = upload_refused(&server, &TestCert::new(names).upload_body("a.example"));
        assert!(message.contains("do not cover a.example"), "{message}");
    }
    let common_name_only =
        TestCert::from_openssl("other.example", &["-newkey", "rsa:2048", "-subj", "/CN=a.example"]);
    upload_refused(&server, &common_name_only.upload_body("a.example"));
    server.upload("www.a.example", &TestCert::new(&["*.a.example"])).expect_ok();
    server.upload("A.Example", &TestCert::new(&["a.example"])).expect_ok();
}

/// Rule 4: "The certificate and the private key are a pair"; `key_match`: "ok, or unverified for non-RSA
/// certificates whose pairing cannot be verified (not an error)".
#[test]
fn only_rsa_pairs_are_verified() {
    let server = start_with_record();
    let (rsa, other_rsa) = (TestCert::rsa(&["a.example"]), TestCert::rsa(&["a.example"]));
    let (ec, other_ec) = (TestCert::new(&["a.example"]), TestCert::new(&["a.example"]));
    for pair in [rsa.with_key(&other_rsa.key_pem), rsa.with_key(&ec.key_pem), ec.with_key(&rsa.key_pem)] {
        assert!(upload_refused(&server, &pair.upload_body("a.example")).contains("not a pair"));
    }
    assert_eq!(server.upload("a.example", &rsa).expect_ok()["key_match"], "ok");
    assert_eq!(server.upload("a.example", &ec).expect_ok()["key_match"], "unverified");
    assert_eq!(
        server.upload("a.example", &ec.with_key(&other_ec.key_pem)).expect_ok()["key_match"],
        "unverified"
    );
}

/// PKCS#1, SEC1 and PKCS#8; RSA, P-256, P-384, P-521 and Ed25519.
#[test]
fn common_key_formats_are_accepted() {
    let server = Server::start();
    let rsa = TestCert::rsa(&["a.example"]);
    let pkcs1 = openssl(&["rsa", "-traditional"], &rsa.key_pem);
    assert!(pkcs1.contains("RSA PRIVATE KEY"));
    assert_eq!(
        server.upload("a.example", &TestCert { key_pem: pkcs1, ..rsa }).expect_ok()["key_match"],
        "ok"
    );
    let ec = TestCert::new(&["a.example"]);
    let sec1 = openssl(&["ec"], &ec.key_pem);
    let with_parameters = format!("{}{sec1}", openssl(&["ecparam", "-name", "prime256v1"], ""));
    for key in [sec1, with_parameters] {
        server.upload("a.example", &TestCert { key_pem: key, ..ec.clone() }).expect_ok();
    }
    let curve = |name: &str| -> [String; 4] {
        ["-newkey".into(), "ec".into(), "-pkeyopt".into(), format!("ec_paramgen_curve:{name}")]
    };
    for name in ["P-384", "P-521"] {
        let args = curve(name);
        let cert = TestCert::from_openssl("a.example", &args.each_ref().map(String::as_str));
        assert_eq!(server.upload("a.example", &cert).expect_ok()["key_match"], "unverified", "{name}");
    }
    server.upload("a.example", &TestCert::from_openssl("a.example", &["-newkey", "ed25519"])).expect_ok();
}

/// With seed 0 the response has no other fields.
#[test]
fn response_has_the_documented_fields() {
    let server = Server::start();
    let response = server.upload("a.example", &TestCert::new(&["a.example", "b.example"])).expect_ok();
    let expected = json!({
        "ok": true, "id": "1001", "created": true, "domain": "a.example", "not_after": "2099-01-01T00:00:00Z",
        "key_match": "unverified",
        "bound_sites": [{ "id": 10, "domain": "a.example" }, { "id": 11, "domain": "b.example" }],
    });
    assert_eq!(response, expected);
}

/// "On creation, sites that have no certificate yet and whose domain is covered are bound automatically and
/// listed here".
#[test]
fn creation_binds_covered_unbound_sites() {
    let server = Server::start();
    server.post("/api/sites/11/update", &json!({ "cert_id": 5 })).expect_ok();
    server.push_now();
    let response = server
        .upload("a.example", &TestCert::new(&["a.example", "b.example", "*.a.example", "o.example"]))
        .expect_ok();
    let bound: Vec<&Value> =
        response["bound_sites"].as_array().unwrap().iter().map(|site| &site["id"]).collect();
    assert_eq!(bound, [10, 12], "11 has a certificate, 20 belongs to account 2");
    assert_eq!([10, 11, 12].map(|site| server.site(site)["cert_id"].clone()), [1001, 5, 1001]);
    assert_eq!([10, 11, 12].map(|site| server.site(site)["config_synced"].clone()), [false, true, false]);
    let others = server.api_with_key(OTHER_KEY, "GET", "/api/sites/20", None).expect_ok();
    assert_eq!(others["cert_id"], Value::Null);
}

/// "on replacement the binding is unchanged", even of a covered site without a certificate.
#[test]
fn replacement_binds_no_site() {
    let server = start_with_record();
    let response = server.upload("a.example", &TestCert::new(&["a.example", "b.example"])).expect_ok();
    assert_eq!(response["bound_sites"], json!([]));
    assert_eq!(server.site(11)["cert_id"], Value::Null);
}

/// Uploads are idempotent per domain and account.
#[test]
fn record_of_another_account_is_kept() {
    let mut world = test_world();
    world["certs"][1]["domain"] = json!("a.example");
    let server = Server::start_with(&world, &[]);
    let response = server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    assert_eq!((&response["id"], &response["created"]), (&json!("1001"), &json!(true)));
}

/// The validation rules do not include notBefore, so the hook must check it.
#[test]
fn not_yet_valid_certificate_is_accepted() {
    let server = Server::start();
    server.upload("a.example", &TestCert::not_yet_valid(&["a.example"])).expect_ok();
}

#[test]
fn u_label_matches_its_a_label() {
    let mut world = test_world();
    world["sites"][0]["domain"] = json!("bücher.example");
    let server = Server::start_with(&world, &[]);
    let cert = TestCert::new(&["xn--bcher-kva.example"]);
    for domain in ["bücher.example", "xn--bcher-kva.example"] {
        assert_eq!(server.upload(domain, &cert).expect_ok()["id"], "1001", "{domain}");
    }
    server.push_now();
    assert_eq!(server.served_leaf("xn--bcher-kva.example"), Some(cert.fingerprint()));
}

/// Unknown parameters are accepted and reported as notices.
#[test]
fn unknown_parameters_are_reported() {
    use std::io::BufRead;
    let server = Server::start();
    let mut body = TestCert::new(&["a.example"]).upload_body("a.example");
    body["certificate"] = json!("x");
    server.post("/api/certs/upload", &body).expect_ok();
    let requests = server.control("GET", "/requests", None).expect_ok();
    assert_eq!(requests[0]["notices"], json!(["unknown field certificate"]));
    let output = std::io::BufReader::new(server.stderr()).lines().next().unwrap().unwrap();
    assert_eq!(output, "edgecert-sandbox: notice: POST /api/certs/upload: unknown field certificate");
}
