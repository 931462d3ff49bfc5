//! Section 4.2: the idempotent upload, and its lines of section 7.

use serde_json::{Value, json};

use crate::support::{Made, OTHER_KEY, Program, openssl};

/// Everything that an upload could change.
fn everything(program: &Program) -> Value {
    let downloads: Vec<Value> = program
        .certs()
        .iter()
        .map(|cert| program.get(&format!("/api/certs/{}/download", cert["id"])))
        .collect();
    json!([program.get("/api/me/sites"), program.certs(), downloads])
}

/// "any failure returns HTTP 400 and nothing is written", with and without a record that could be replaced.
#[track_caller]
fn refused(program: &Program, body: &Value) -> String {
    let before = everything(program);
    let reason = program.post("/api/certs/upload", body).refused(400);
    assert_eq!(everything(program), before);
    reason
}

/// A program with a record for a.example.
fn with_record() -> Program {
    let program = Program::start();
    program.upload("a.example", &Made::for_names(&["a.example"])).ok();
    program
}

/// "if a certificate already exists for the domain, its content is replaced in place and its ID is unchanged".
#[test]
fn section_4_2_a_second_upload_replaces_in_place() {
    let program = with_record();
    let made = Made::for_names(&["a.example"]);
    let reply = program.upload("a.example", &made).ok();
    assert_eq!((&reply["id"], &reply["created"]), (&json!("1001"), &json!(false)));
    assert_eq!(program.certs().len(), 2);
    let record = program.get("/api/certs/1001/download");
    assert_eq!((&record["cert_pem"], &record["key_pem"]), (&json!(made.cert), &json!(made.key)));
}

/// "so sites already bound to it use the new certificate at once", by the next push, whatever their domain.
#[test]
fn section_4_2_sites_bound_to_the_record_use_the_new_certificate() {
    let program = with_record();
    program.post("/api/sites/11/update", &json!({ "cert_id": 1001 })).ok();
    program.push();
    let made = Made::for_names(&["a.example", "b.example"]);
    program.upload("a.example", &made).ok();
    for site in [10, 11] {
        assert_eq!(program.site(site)["cert_id"], 1001);
        assert_eq!(program.site(site)["config_synced"], false, "site {site}");
    }
    assert_eq!(program.site(12)["config_synced"], true, "not bound, not touched");
    program.push();
    for name in ["a.example", "b.example"] {
        assert_eq!(program.served(name), Some(made.fingerprint()));
    }
}

/// "Repeating the same call has the same result as one call".
#[test]
fn section_4_2_repeating_a_call_changes_nothing_more() {
    let program = Program::start();
    let made = Made::for_names(&["a.example"]);
    let mut first = program.upload("a.example", &made).ok();
    let after_one = everything(&program);
    let second = program.upload("a.example", &made).ok();
    first["created"] = json!(false);
    first["bound_sites"] = json!([]);
    assert_eq!(second, first);
    let mut after_two = everything(&program);
    for (one, two) in
        after_one[0]["sites"].as_array().unwrap().iter().zip(after_two[0]["sites"].as_array_mut().unwrap())
    {
        two["updated_at"] = one["updated_at"].clone();
    }
    assert_eq!(after_two, after_one);
}

/// Parameters: "domain yes", "cert_pem yes", "key_pem yes", all strings; "name no string".
#[test]
fn section_4_2_three_parameters_are_required() {
    let program = with_record();
    let whole = Made::for_names(&["a.example"]).body("a.example");
    for name in ["domain", "cert_pem", "key_pem"] {
        let mut body = whole.clone();
        body.as_object_mut().unwrap().remove(name);
        assert!(refused(&program, &body).contains(name));
        for wrong in [json!(""), json!(1), json!(null), json!([])] {
            body[name] = wrong;
            assert!(refused(&program, &body).contains(name));
        }
    }
    let mut body = whole;
    body["name"] = json!(1);
    assert!(refused(&program, &body).contains("name"));
}

/// "Must be the domain of a site owned by the caller"; 7: the status is not shown, here 403.
#[test]
fn section_4_2_the_domain_must_be_a_site_of_the_caller() {
    let program = Program::start();
    let made = Made::for_names(&["o.example", "nobody.example"]);
    let before = everything(&program);
    for domain in ["o.example", "nobody.example", "not a domain"] {
        program.upload(domain, &made).refused(403);
    }
    assert_eq!(everything(&program), before);
    program.api_as(OTHER_KEY, "POST", "/api/certs/upload", Some(&made.body("o.example"))).ok();
}

/// "Certificate name; defaults to the domain".
#[test]
fn section_4_2_the_name_defaults_to_the_domain() {
    let program = Program::start();
    let made = Made::for_names(&["a.example", "b.example"]);
    program.upload("a.example", &made).ok();
    let mut body = made.body("b.example");
    body["name"] = json!("shop");
    program.post("/api/certs/upload", &body).ok();
    let names: Vec<Value> = program.certs().iter().map(|cert| cert["name"].clone()).collect();
    assert_eq!(names, ["old.example", "a.example", "shop"]);
}

/// Rule 1: "The PEM parses and a validity period can be read".
#[test]
fn section_4_2_rule_1_the_pem_must_parse() {
    let program = with_record();
    let made = Made::for_names(&["a.example"]);
    let damaged = made.cert.replacen("MII", "AAA", 1);
    let cut = made.cert.split_at(made.cert.len() / 2).0.to_owned();
    for cert in [
        "nonsense".to_owned(),
        made.key.clone(),
        damaged,
        cut,
        format!("{}{}", made.cert, made.cert.replacen("MII", "AAA", 1)),
    ] {
        let reason = refused(&program, &Made { cert, key: made.key.clone() }.body("a.example"));
        assert!(reason.starts_with("cert_pem cannot be read"), "{reason}");
    }
    for key in ["nonsense", &made.cert, &made.key.replacen("MIG", "AAA", 1)] {
        let reason =
            refused(&program, &Made { cert: made.cert.clone(), key: key.to_owned() }.body("a.example"));
        assert!(reason.starts_with("key_pem cannot be read"), "{reason}");
    }
}

/// "must not be passphrase-encrypted", in both forms that OpenSSL writes.
#[test]
fn section_4_2_an_encrypted_key_is_refused() {
    let program = with_record();
    let rsa = Made::rsa(&["a.example"]);
    let modern = openssl(&["pkcs8", "-topk8", "-passout", "pass:secret"], &rsa.key);
    let legacy = openssl(&["rsa", "-traditional", "-aes128", "-passout", "pass:secret"], &rsa.key);
    assert!(legacy.contains("Proc-Type: 4,ENCRYPTED"), "{legacy}");
    for key in [modern, legacy] {
        let reason = refused(&program, &Made { cert: rsa.cert.clone(), key }.body("a.example"));
        assert!(reason.contains("encrypted"), "{reason}");
    }
}

/// Rule 2: "The certificate is not expired".
#[test]
fn section_4_2_rule_2_an_expired_certificate_is_refused() {
    let program = with_record();
    let reason = refused(&program, &Made::expired(&["a.example"]).body("a.example"));
    assert_eq!(reason, "the certificate expired on 2020-01-01T00:00:00Z");
}

/// Rule 3: "the declared domain is not trusted, only the SAN in the certificate".
#[test]
fn section_4_2_rule_3_the_san_must_cover_the_domain() {
    let program = with_record();
    for names in
        [&["b.example"][..], &["*.a.example"], &["x.a.example", "aa.example"], &["*.example.a.example"]]
    {
        let reason = refused(&program, &Made::for_names(names).body("a.example"));
        assert!(reason.contains("do not cover a.example"), "{reason}");
    }
    let common_name_only =
        Made::by_openssl("other.example", &["-newkey", "rsa:2048", "-subj", "/CN=a.example"]);
    refused(&program, &common_name_only.body("a.example"));
    program.upload("www.a.example", &Made::for_names(&["*.a.example"])).ok();
    program.upload("A.Example", &Made::for_names(&["a.example"])).ok();
}

/// Rule 4: "The certificate and the private key are a pair"; `key_match`: "ok, or unverified for non-RSA
/// certificates whose pairing cannot be verified (not an error)".
#[test]
fn section_4_2_rule_4_an_rsa_pair_is_compared_and_others_are_not() {
    let program = with_record();
    let (rsa, other_rsa) = (Made::rsa(&["a.example"]), Made::rsa(&["a.example"]));
    let (ec, other_ec) = (Made::for_names(&["a.example"]), Made::for_names(&["a.example"]));
    let mixed = |cert: &Made, key: &Made| Made { cert: cert.cert.clone(), key: key.key.clone() };
    for pair in [mixed(&rsa, &other_rsa), mixed(&rsa, &ec), mixed(&ec, &rsa)] {
        assert!(refused(&program, &pair.body("a.example")).contains("not a pair"));
    }
    assert_eq!(program.upload("a.example", &rsa).ok()["key_match"], "ok");
    assert_eq!(program.upload("a.example", &ec).ok()["key_match"], "unverified");
    assert_eq!(program.upload("a.example", &mixed(&ec, &other_ec)).ok()["key_match"], "unverified");
}

/// The same pair in every usual form.
#[test]
fn section_4_2_every_usual_key_format_is_read() {
    let program = Program::start();
    let rsa = Made::rsa(&["a.example"]);
    let pkcs1 = openssl(&["rsa", "-traditional"], &rsa.key);
    assert!(pkcs1.contains("RSA PRIVATE KEY"));
    assert_eq!(program.upload("a.example", &Made { key: pkcs1, ..rsa }).ok()["key_match"], "ok");
    let ec = Made::for_names(&["a.example"]);
    let sec1 = openssl(&["ec"], &ec.key);
    let with_parameters = format!("{}{sec1}", openssl(&["ecparam", "-name", "prime256v1"], ""));
    for key in [sec1, with_parameters] {
        program.upload("a.example", &Made { key, ..ec.clone() }).ok();
    }
    let curve = |name: &str| -> [String; 4] {
        ["-newkey".into(), "ec".into(), "-pkeyopt".into(), format!("ec_paramgen_curve:{name}")]
    };
    for name in ["P-384", "P-521"] {
        let args = curve(name);
        let made = Made::by_openssl("a.example", &args.each_ref().map(String::as_str));
        assert_eq!(program.upload("a.example", &made).ok()["key_match"], "unverified", "{name}");
    }
    program.upload("a.example", &Made::by_openssl("a.example", &["-newkey", "ed25519"])).ok();
}

/// The response table: ok, id, created, domain, not_after, key_match, bound_sites and nothing else at seed 0.
#[test]
fn section_4_2_the_answer_has_the_documented_fields() {
    let program = Program::start();
    let reply = program.upload("a.example", &Made::for_names(&["a.example", "b.example"])).ok();
    let expected = json!({
        "ok": true, "id": "1001", "created": true, "domain": "a.example", "not_after": "2099-01-01T00:00:00Z",
        "key_match": "unverified",
        "bound_sites": [{ "id": 10, "domain": "a.example" }, { "id": 11, "domain": "b.example" }],
    });
    assert_eq!(reply, expected);
}

/// "On creation, sites that have no certificate yet and whose domain is covered are bound automatically and
/// listed here".
#[test]
fn section_4_2_creation_binds_covered_sites_without_a_certificate() {
    let program = Program::start();
    program.post("/api/sites/11/update", &json!({ "cert_id": 5 })).ok();
    program.push();
    let reply = program
        .upload("a.example", &Made::for_names(&["a.example", "b.example", "*.a.example", "o.example"]))
        .ok();
    let bound: Vec<&Value> =
        reply["bound_sites"].as_array().unwrap().iter().map(|site| &site["id"]).collect();
    assert_eq!(bound, [10, 12], "not 11, which has a certificate, not 20, which is another account's");
    assert_eq!([10, 11, 12].map(|site| program.site(site)["cert_id"].clone()), [1001, 5, 1001]);
    assert_eq!([10, 11, 12].map(|site| program.site(site)["config_synced"].clone()), [false, true, false]);
    let theirs = program.api_as(OTHER_KEY, "GET", "/api/sites/20", None).ok();
    assert_eq!(theirs["cert_id"], Value::Null);
}

/// "on replacement the binding is unchanged", also for a site that has no certificate and is covered now.
#[test]
fn section_4_2_replacement_binds_nothing() {
    let program = with_record();
    let reply = program.upload("a.example", &Made::for_names(&["a.example", "b.example"])).ok();
    assert_eq!(reply["bound_sites"], json!([]));
    assert_eq!(program.site(11)["cert_id"], Value::Null);
}

/// Idempotent "per domain and account": a foreign record for the same domain is not replaced.
#[test]
fn section_4_2_another_accounts_record_is_not_replaced() {
    let mut world = crate::support::world();
    world["certs"][1]["domain"] = json!("a.example");
    let program = Program::with(&world, &[]);
    let reply = program.upload("a.example", &Made::for_names(&["a.example"])).ok();
    assert_eq!((&reply["id"], &reply["created"]), (&json!("1001"), &json!(true)));
}

/// Not-yet-valid is none of the service's rules; the hook has to look itself.
#[test]
fn section_4_2_a_certificate_of_tomorrow_is_accepted() {
    let program = Program::start();
    let later = openssl_not_yet_valid();
    program.upload("a.example", &later).ok();
}

fn openssl_not_yet_valid() -> Made {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2098, 1, 1);
    params.not_after = rcgen::date_time_ymd(2099, 1, 1);
    Made { cert: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// A U-label and its A-label are one name.
#[test]
fn section_4_2_an_internationalised_domain_is_compared_as_its_a_label() {
    let mut world = crate::support::world();
    world["sites"][0]["domain"] = json!("bücher.example");
    let program = Program::with(&world, &[]);
    let made = Made::for_names(&["xn--bcher-kva.example"]);
    for domain in ["bücher.example", "xn--bcher-kva.example"] {
        assert_eq!(program.upload(domain, &made).ok()["id"], "1001", "{domain}");
    }
    program.push();
    assert_eq!(program.served("xn--bcher-kva.example"), Some(made.fingerprint()));
}

/// 4.2: what the document does not name is noticed, not dropped in silence.
#[test]
fn section_4_2_unknown_parameters_are_noticed() {
    use std::io::BufRead;
    let program = Program::start();
    let mut body = Made::for_names(&["a.example"]).body("a.example");
    body["certificate"] = json!("x");
    program.post("/api/certs/upload", &body).ok();
    let requests = program.control("GET", "/requests", None).ok();
    assert_eq!(requests[0]["notices"], json!(["unknown field certificate"]));
    let said = std::io::BufReader::new(program.stderr()).lines().next().unwrap().unwrap();
    assert_eq!(said, "edgecert-sandbox: notice: POST /api/certs/upload: unknown field certificate");
}
