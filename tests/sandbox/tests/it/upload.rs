//! Certificate records (sections 2.1, 2.2, 4.1, 4.3) and the idempotent upload with its errors (sections 4.2 and 7). Quotes
//! are from section 4.2 unless another is named.

use serde_json::{Value, json};

use crate::support::{OTHER_KEY, Server, TestCert, assert_contains, openssl, plain, with};

/// Everything that an upload could change, for comparison.
fn snapshot(server: &Server) -> Value {
    let downloads: Vec<Value> =
        server.certs().iter().map(|cert| server.download(cert["id"].as_u64().unwrap())).collect();
    json!([server.get("/api/me/sites"), server.certs(), downloads])
}

/// Sections 2.1 and 4.1: "Returns the caller's certificates; each element has id, name, domain, type". Name: "defaults to
/// the domain".
#[test]
fn list_has_only_own_records() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example", "b.example"]);
    server.upload("a.example", &cert).expect_ok();
    server
        .post("/api/certs/upload", &with(cert.upload_body("b.example"), &json!({ "name": "shop" })))
        .expect_ok();
    let record = |id, name: &str, domain: &str, kind: &str| json!({ "id": id, "name": name, "domain": domain, "type": kind });
    let expected = [
        record(5, "old.example", "old.example", "lets"),
        record(1001, "a.example", "a.example", "upload"),
        record(1002, "shop", "b.example", "upload"),
    ];
    assert_eq!(server.certs(), expected);
    let others = server.api_with_key(OTHER_KEY, "GET", "/api/certs", None).expect_ok();
    assert_eq!(others["certs"], json!([record(7, "o.example", "o.example", "upload")]));
}

/// Sections 2.2 and 4.3: "Returns full material of certificate {id}". Section 2.1: "the upload response returns id as a
/// string, the download response as a number, and a site's cert_id is a number".
#[test]
fn download_returns_chain_and_key() {
    let (server, cert) = Server::serving(&["a.example"]);
    let expected = json!({ "ok": true, "id": 1001, "domain": "a.example", "name": "a.example",
                           "cert_pem": cert.cert_pem, "key_pem": cert.key_pem });
    assert_eq!(server.download(1001), expected);
    assert!(cert.cert_pem.contains('\n'), "newlines are preserved");
    server.update(&json!({ "cert_id": "1001" })).expect_error(400);
}

/// Note on `POST /api/certs`: "it would add a duplicate same-domain record while sites remain bound to the old one (automatic
/// binding only affects sites without a certificate), and the edge would keep serving the old certificate". Not even a site
/// without a certificate is bound. Which of two records an upload replaces is not shown.
#[test]
fn create_adds_an_unused_duplicate() {
    let (server, old) = Server::serving(&["a.example"]);
    let before = server.get("/api/me/sites");
    let new = TestCert::new(&["a.example", "b.example"]);
    for id in ["1002", "1003"] {
        assert_eq!(server.post("/api/certs", &new.upload_body("a.example")).expect_ok()["id"], id);
    }
    server.push_now();
    assert_eq!(server.get("/api/me/sites"), before, "11 is unbound");
    assert_eq!(server.served_leaf("a.example"), Some(old.fingerprint()));
    let duplicate = server.download(1002);
    assert_contains(
        &server.upload("a.example", &new).expect_ok(),
        &json!({ "id": "1001", "created": false }),
    );
    assert_eq!(server.download(1001)["cert_pem"], new.cert_pem, "the oldest is replaced");
    assert_eq!(server.download(1002), duplicate);
}

/// "On creation, sites that have no certificate yet and whose domain is covered are bound automatically and
/// listed here". With seed 0 the response has no other fields.
#[test]
fn creation_binds_covered_unbound_sites() {
    let server = Server::start();
    server.post("/api/sites/11/update", &json!({ "cert_id": 5 })).expect_ok();
    server.push_now();
    let names = ["a.example", "b.example", "*.a.example", "o.example"];
    let expected = json!({
        "ok": true, "id": "1001", "created": true, "domain": "a.example", "not_after": "2099-01-01T00:00:00Z",
        "key_match": "unverified",
        "bound_sites": [{ "id": 10, "domain": "a.example" }, { "id": 12, "domain": "www.a.example" }],
    });
    assert_eq!(
        server.upload("a.example", &TestCert::new(&names)).expect_ok(),
        expected,
        "11 has a certificate"
    );
    for (id, cert, is_synced) in [(10, 1001, false), (11, 5, true), (12, 1001, false)] {
        assert_contains(&server.site(id), &json!({ "cert_id": cert, "config_synced": is_synced }));
    }
    let others = server.api_with_key(OTHER_KEY, "GET", "/api/sites/20", None).expect_ok();
    assert_eq!(others["cert_id"], Value::Null);
}

/// "if a certificate already exists for the domain, its content is replaced in place and its ID is unchanged, so sites
/// already bound to it use the new certificate at once": after the next push, whatever their domain. "on replacement the
/// binding is unchanged", even of a covered site without a certificate.
#[test]
fn replacement_reaches_bound_sites() {
    let (server, _) = Server::serving(&["a.example"]);
    server.post("/api/sites/11/update", &json!({ "cert_id": 1001 })).expect_ok();
    server.push_now();
    let cert = TestCert::new(&["a.example", "b.example", "www.a.example"]);
    let response = server.upload("a.example", &cert).expect_ok();
    assert_contains(&response, &json!({ "id": "1001", "created": false, "bound_sites": [] }));
    for (id, cert, is_synced) in [(10, json!(1001), false), (11, json!(1001), false), (12, Value::Null, true)]
    {
        assert_contains(&server.site(id), &json!({ "cert_id": cert, "config_synced": is_synced }));
    }
    assert_eq!(server.certs().len(), 2);
    assert_contains(&server.download(1001), &cert.body());
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
    let first = server.upload("a.example", &cert).expect_ok();
    let after_one = snapshot(&server);
    let second = server.upload("a.example", &cert).expect_ok();
    assert_eq!(second, with(first, &json!({ "created": false, "bound_sites": [] })));
    let mut after_two = snapshot(&server);
    for site in 0..3 {
        after_two[0]["sites"][site]["updated_at"] = after_one[0]["sites"][site]["updated_at"].clone();
    }
    assert_eq!(after_two, after_one);
}

/// Uploads are idempotent per domain and account.
#[test]
fn record_of_another_account_is_kept() {
    let mut options = plain();
    options.world.certs[1].domain = "a.example".to_owned();
    let response =
        Server::start_with(options).upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    assert_contains(&response, &json!({ "id": "1001", "created": true }));
}

/// "any failure returns HTTP 400 and nothing is written".
#[test]
fn invalid_uploads_are_refused() {
    let (server, _) = Server::serving(&["a.example"]);
    let before = snapshot(&server);
    let (valid, rsa) = (TestCert::new(&["a.example"]), TestCert::rsa(&["a.example"]));
    let upload = |change: Value| with(valid.upload_body("a.example"), &change);
    let mut rows = Vec::new();
    // "domain, cert_pem and key_pem" are required strings, "name" is an optional one.
    for name in ["domain", "cert_pem", "key_pem"] {
        let mut without = upload(json!({}));
        without.as_object_mut().unwrap().remove(name);
        rows.push((without, name));
        rows.extend(
            [json!(""), json!(1), json!(null), json!([])].map(|wrong| (upload(json!({ name: wrong })), name)),
        );
    }
    rows.push((upload(json!({ "name": 1 })), "name"));
    // Rule 1: "The PEM parses and a validity period can be read".
    let damaged = valid.cert_pem.replacen("MII", "AAA", 1);
    let truncated = valid.cert_pem.split_at(valid.cert_pem.len() / 2).0;
    for cert in ["nonsense", &valid.key_pem, &damaged, truncated, &format!("{}{damaged}", valid.cert_pem)] {
        rows.push((upload(json!({ "cert_pem": cert })), "invalid cert_pem: "));
    }
    for key in ["nonsense", &valid.cert_pem, &valid.key_pem.replacen("MIG", "AAA", 1)] {
        rows.push((upload(json!({ "key_pem": key })), "invalid key_pem: "));
    }
    // "must not be passphrase-encrypted": PKCS#8 and OpenSSL's traditional format.
    let modern = openssl(&["pkcs8", "-topk8", "-passout", "pass:secret"], &rsa.key_pem);
    let legacy = openssl(&["rsa", "-traditional", "-aes128", "-passout", "pass:secret"], &rsa.key_pem);
    assert!(legacy.contains("Proc-Type: 4,ENCRYPTED"), "{legacy}");
    rows.extend([modern, legacy].map(|key| (rsa.with_key(&key).upload_body("a.example"), "encrypted")));
    // Rule 2: "The certificate is not expired".
    let expired = TestCert::valid(&["a.example"], [2019, 2020]);
    rows.push((expired.upload_body("a.example"), "the certificate expired on 2020-01-01T00:00:00Z"));
    // Rule 3: "the declared domain is not trusted, only the SAN in the certificate".
    for names in
        [&["b.example"][..], &["*.a.example"], &["x.a.example", "aa.example"], &["*.example.a.example"]]
    {
        rows.push((TestCert::new(names).upload_body("a.example"), "do not cover a.example"));
    }
    let only_common_name = ["-newkey", "rsa:2048", "-subj", "/CN=a.example"];
    let only_common_name = TestCert::from_openssl("other.example", &only_common_name);
    rows.push((only_common_name.upload_body("a.example"), "do not cover a.example"));
    // Rule 4: "The certificate and the private key are a pair".
    let other_rsa = TestCert::rsa(&["a.example"]);
    for pair in [rsa.with_key(&other_rsa.key_pem), rsa.with_key(&valid.key_pem), valid.with_key(&rsa.key_pem)]
    {
        rows.push((pair.upload_body("a.example"), "not a pair"));
    }
    for (body, reason) in rows {
        let message = server.post("/api/certs/upload", &body).expect_error(400);
        assert!(message.contains(reason), "{reason}: {message}");
        assert_eq!(snapshot(&server), before, "{reason}");
    }
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
    let body = cert.upload_body("o.example");
    server.api_with_key(OTHER_KEY, "POST", "/api/certs/upload", Some(&body)).expect_ok();
}

/// PKCS#1, SEC1 and PKCS#8; RSA, P-256, P-384, P-521 and Ed25519. `key_match`: "ok, or unverified for non-RSA certificates
/// whose pairing cannot be verified (not an error)". The rules do not include notBefore, so the hook must check it.
#[test]
fn common_certificates_are_accepted() {
    let server = Server::start();
    let (rsa, ec) = (TestCert::rsa(&["a.example"]), TestCert::new(&["a.example"]));
    let pkcs1 = rsa.with_key(&openssl(&["rsa", "-traditional"], &rsa.key_pem));
    assert!(pkcs1.key_pem.contains("RSA PRIVATE KEY"));
    let sec1 = ec.with_key(&openssl(&["ec"], &ec.key_pem));
    let parameters = openssl(&["ecparam", "-name", "prime256v1"], "");
    let rows = [
        (rsa, "ok"),
        (pkcs1, "ok"),
        (ec.unpaired(), "unverified"),
        (sec1.with_key(&format!("{parameters}{}", sec1.key_pem)), "unverified"),
        (sec1, "unverified"),
        (ec, "unverified"),
        (TestCert::on_curve("a.example", "P-384"), "unverified"),
        (TestCert::on_curve("a.example", "P-521"), "unverified"),
        (TestCert::from_openssl("a.example", &["-newkey", "ed25519"]), "unverified"),
        (TestCert::valid(&["a.example"], [2098, 2099]), "unverified"),
    ];
    for (cert, key_match) in rows {
        assert_eq!(server.upload("A.Example", &cert).expect_ok()["key_match"], key_match, "{}", cert.key_pem);
    }
    server.upload("www.a.example", &TestCert::new(&["*.a.example"])).expect_ok();
}

/// Encodes an element of less than 128 bytes.
fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
}

/// A P-256 key with a scalar of this many bytes, in SEC1 and in PKCS#8.
fn ec_keys(scalar_bytes: usize) -> [String; 2] {
    const P256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    const EC: [u8; 9] = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
    let number = [&[2, 1, 1][..], &tlv(4, &vec![7; scalar_bytes])].concat();
    let sec1 = tlv(0x30, &[number.as_slice(), &tlv(0xa0, &P256)].concat());
    let algorithm = tlv(0x30, &[&EC[..], &P256].concat());
    let pkcs8 = tlv(0x30, &[&[2, 1, 0][..], &algorithm, &tlv(4, &tlv(0x30, &number))].concat());
    [("EC PRIVATE KEY", sec1), ("PRIVATE KEY", pkcs8)]
        .map(|(label, der)| pem::encode(&pem::Pem::new(label, der)))
}

/// EC scalars must have the length of RFC 5915, as the service requires.
#[test]
fn scalars_of_other_lengths_are_refused() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    for bytes in [1, 31, 32, 33] {
        for key in ec_keys(bytes) {
            let response = server.upload("a.example", &cert.with_key(&key));
            if bytes == 32 {
                response.expect_ok();
            } else {
                let wanted = format!("invalid key_pem: the private value has {bytes} bytes instead of 32");
                assert_eq!(response.expect_error(400), wanted, "{key}");
            }
        }
    }
}

#[test]
fn u_label_matches_its_a_label() {
    let mut options = plain();
    options.world.sites[0].domain = "bücher.example".to_owned();
    let server = Server::start_with(options);
    let cert = TestCert::new(&["xn--bcher-kva.example"]);
    for domain in ["bücher.example", "xn--bcher-kva.example"] {
        assert_eq!(server.upload(domain, &cert).expect_ok()["id"], "1001", "{domain}");
    }
    server.push_now();
    assert_eq!(server.served_leaf("xn--bcher-kva.example"), Some(cert.fingerprint()));
}
