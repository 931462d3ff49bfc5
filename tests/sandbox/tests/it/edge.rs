//! The edge: TLS and plain HTTP before and after a push.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use edgecert_sandbox::{probe, probe_with_alpn};
use serde_json::{Value, json};

use crate::support::{Server, TestCert};

/// A server whose edge serves the returned certificate for a.example.
fn serving() -> (Server, TestCert) {
    let server = Server::start();
    let cert = TestCert::new(&["a.example", "*.a.example"]);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    (server, cert)
}

/// Updates site 10 and pushes the change.
fn update_site(server: &Server, change: &Value) {
    server.post("/api/sites/10/update", change).expect_ok();
    server.push_now();
}

/// The raw response of the edge over plain HTTP.
fn plain_http(server: &Server, host: &str) -> String {
    let mut tcp = TcpStream::connect(server.url("edge")).unwrap();
    write!(tcp, "GET /path?q=1 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    tcp.read_to_string(&mut response).unwrap();
    response
}

fn edge_entry(server: &Server, domain: &str) -> Value {
    let list = server.control("GET", "/edge", None).expect_ok();
    list.as_array().unwrap().iter().find(|entry| entry["domain"] == domain).cloned().unwrap_or(Value::Null)
}

/// Observed with OpenSSL as an independent TLS client.
#[test]
fn replaced_record_is_served_after_push() {
    let (server, old) = serving();
    let served_to_openssl = || {
        let child = Command::new("openssl")
            .args(["s_client", "-connect", server.url("edge"), "-servername", "a.example"])
            .stdin(Stdio::null())
            .output();
        let output = String::from_utf8(
            child.expect("cannot run here: openssl is not installed (Debian package openssl)").stdout,
        )
        .unwrap();
        let pem = &output[output.find("-----BEGIN").unwrap()..];
        TestCert { cert_pem: pem.to_owned(), key_pem: String::new() }.fingerprint()
    };
    let new = TestCert::new(&["a.example"]);
    assert_eq!(served_to_openssl(), old.fingerprint());
    server.upload("a.example", &new).expect_ok();
    assert_eq!(served_to_openssl(), old.fingerprint());
    assert_eq!(server.site(10)["config_synced"], false);
    server.push_now();
    assert_eq!(served_to_openssl(), new.fingerprint());
}

/// A wildcard site matches exactly one label; unknown names and a missing SNI are refused.
#[test]
fn sni_selects_the_site() {
    let (server, cert) = serving();
    server.post("/api/sites", &json!({ "domain": "*.b.example" })).expect_ok();
    let wildcard = TestCert::new(&["*.b.example"]);
    server.upload("*.b.example", &wildcard).expect_ok();
    server.push_now();
    let rows = [
        ("a.example", Some(&cert)),
        ("A.EXAMPLE", Some(&cert)),
        ("www.a.example", Some(&cert)),
        ("x.b.example", Some(&wildcard)),
        ("y.x.b.example", None),
        ("b.example", None),
        ("x.a.example", None),
        ("example", None),
    ];
    for (name, expected) in rows {
        assert_eq!(server.served_leaf(name), expected.map(TestCert::fingerprint), "{name}");
    }
    for name in ["x.a.example", "b.example"] {
        let error = probe(server.url("edge"), name).unwrap_err().to_string();
        assert!(error.contains("UnrecognisedName"), "{error}");
    }
    let without_sni = probe(server.url("edge"), "127.0.0.1").unwrap_err().to_string();
    assert!(without_sni.contains("UnrecognisedName"), "{without_sni}");
}

#[test]
fn whole_chain_is_served() {
    let server = Server::start();
    let authority = edgecert_sandbox::Authority::new("test").unwrap();
    let issued = authority.issue(&["a.example"]).unwrap();
    server
        .upload("a.example", &TestCert { cert_pem: issued.fullchain(), key_pem: issued.key.clone() })
        .expect_ok();
    server.push_now();
    assert_eq!(probe(server.url("edge"), "a.example").unwrap().chain_length, 2);
}

/// The edge serves every key type that rustls can sign with, and reports why it serves no others.
#[test]
fn unusable_keys_are_reported() {
    let server = Server::start();
    let p384 = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"];
    for cert in [
        TestCert::rsa(&["a.example"]),
        TestCert::from_openssl("a.example", &p384),
        TestCert::from_openssl("a.example", &["-newkey", "ed25519"]),
    ] {
        server.upload("a.example", &cert).expect_ok();
        server.push_now();
        assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
    }
    let p521 = TestCert::from_openssl("a.example", &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"]);
    let unpaired = TestCert::new(&["a.example"]).with_key(&TestCert::new(&["x.example"]).key_pem);
    for (cert, problem) in [(p521, "does not support"), (unpaired, "not a pair")] {
        server.upload("a.example", &cert).expect_ok();
        server.push_now();
        assert_eq!(server.served_leaf("a.example"), None);
        let entry = edge_entry(&server, "a.example");
        assert!(entry["problem"].as_str().unwrap().contains(problem), "{entry}");
        assert_eq!(entry["fingerprint"], cert.fingerprint());
    }
}

#[test]
fn alpn_follows_the_http2_field() {
    let (server, _) = serving();
    let negotiated = |offer: &[&str]| probe_with_alpn(server.url("edge"), "a.example", offer).unwrap().alpn;
    assert_eq!(negotiated(&["h2", "http/1.1"]).as_deref(), Some("h2"));
    assert_eq!(negotiated(&["http/1.1"]).as_deref(), Some("http/1.1"));
    assert_eq!(negotiated(&[]), None);
    update_site(&server, &json!({ "http2": false }));
    assert_eq!(negotiated(&["h2", "http/1.1"]).as_deref(), Some("http/1.1"));
}

/// Section 2.3: `http_enabled` "Listen on HTTP", `https_enabled` "Listen on HTTPS", `force_https` "Redirect
/// to HTTPS".
#[test]
fn plain_http_follows_site_fields() {
    let (server, _) = serving();
    assert!(plain_http(&server, "a.example").starts_with("HTTP/1.1 200"));
    assert!(plain_http(&server, "a.example:80").contains("rehearsal edge: a.example"));
    assert!(plain_http(&server, "nobody.example").starts_with("HTTP/1.1 421"));
    update_site(&server, &json!({ "force_https": true }));
    let redirect = plain_http(&server, "a.example");
    assert!(redirect.starts_with("HTTP/1.1 301"), "{redirect}");
    assert!(redirect.contains("location: https://a.example/path?q=1\r\n"), "{redirect}");
    update_site(&server, &json!({ "http_enabled": false }));
    assert_eq!(plain_http(&server, "a.example"), "");
    assert!(server.served_leaf("a.example").is_some());
    update_site(&server, &json!({ "https_enabled": false, "http_enabled": true, "force_https": false }));
    assert_eq!(server.served_leaf("a.example"), None);
    assert!(plain_http(&server, "a.example").starts_with("HTTP/1.1 200"));
}

#[test]
fn curl_gets_pages_over_both_versions() {
    let (server, _) = serving();
    let (_, port) = server.url("edge").rsplit_once(':').unwrap();
    for (version, expected) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let output = Command::new("curl")
            .args(["-sSk", version, "-w", " %{http_version}", "--resolve"])
            .arg(format!("a.example:{port}:127.0.0.1"))
            .arg(format!("https://a.example:{port}/"))
            .output();
        let output = output.expect("cannot run here: curl is not installed (Debian package curl)");
        let output = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output, format!("rehearsal edge: a.example from []\n {expected}"));
    }
}

#[test]
fn control_port_lists_edge_and_dns() {
    let (server, cert) = serving();
    let expected = json!({
        "domain": "a.example", "site_id": 10, "cert_id": 1001, "fingerprint": cert.fingerprint(),
        "not_after": "2099-01-01T00:00:00Z", "http": true, "https": true, "force_https": false,
        "alpn": ["h2", "http/1.1"], "problem": null,
    });
    assert_eq!(edge_entry(&server, "a.example"), expected);
    assert_eq!(edge_entry(&server, "b.example")["problem"], "no certificate is bound");
    let dns = server.control("GET", "/dns", None).expect_ok();
    assert_eq!(dns[0], json!({ "cname": "a-example-10.edge.invalid", "domain": "a.example", "site_id": 10 }));
    assert_eq!(dns.as_array().unwrap().len(), 4);
}

#[test]
fn edge_survives_malformed_connections() {
    let (server, cert) = serving();
    for bytes in [
        &b""[..],
        b"\x16",
        b"\x16\x03\x01\xff\xff\x01",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        b"\0\0\0",
        b"GET",
    ] {
        let mut tcp = TcpStream::connect(server.url("edge")).unwrap();
        tcp.write_all(bytes).unwrap();
        tcp.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = tcp.read_to_end(&mut Vec::new());
    }
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}
