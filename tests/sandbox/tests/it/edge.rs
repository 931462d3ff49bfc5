//! The edge: what visitors get, before and after a push.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use edgecert_sandbox::{probe, probe_with_alpn};
use serde_json::{Value, json};

use crate::support::{Made, Program};

fn serving() -> (Program, Made) {
    let program = Program::start();
    let made = Made::for_names(&["a.example", "*.a.example"]);
    program.upload("a.example", &made).ok();
    program.push();
    (program, made)
}

fn update(program: &Program, id: u64, change: &Value) {
    program.post(&format!("/api/sites/{id}/update"), change).ok();
    program.push();
}

/// An answer over plain HTTP, as it came.
fn plain(program: &Program, host: &str) -> String {
    let mut tcp = TcpStream::connect(program.url("edge")).unwrap();
    write!(tcp, "GET /path?q=1 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    answer
}

fn edge_entry(program: &Program, domain: &str) -> Value {
    let list = program.control("GET", "/edge", None).ok();
    list.as_array().unwrap().iter().find(|entry| entry["domain"] == domain).cloned().unwrap_or(Value::Null)
}

/// Issue: "a record replaced in place is served after the push, not before", seen by OpenSSL.
#[test]
fn openssl_sees_the_old_leaf_before_the_push_and_the_new_one_after() {
    let (program, old) = serving();
    let fingerprint = || {
        let child = Command::new("openssl")
            .args(["s_client", "-connect", program.url("edge"), "-servername", "a.example"])
            .stdin(Stdio::null())
            .output();
        let shown = String::from_utf8(child.expect("the Debian package openssl is needed").stdout).unwrap();
        let pem = &shown[shown.find("-----BEGIN").unwrap()..];
        Made { cert: pem.to_owned(), key: String::new() }.fingerprint()
    };
    let new = Made::for_names(&["a.example"]);
    assert_eq!(fingerprint(), old.fingerprint());
    program.upload("a.example", &new).ok();
    assert_eq!(fingerprint(), old.fingerprint());
    assert_eq!(program.site(10)["config_synced"], false);
    program.push();
    assert_eq!(fingerprint(), new.fingerprint());
}

/// By SNI, one label for a wildcard site, nothing for anybody else.
#[test]
fn the_server_name_picks_the_site() {
    let (program, made) = serving();
    program.post("/api/sites", &json!({ "domain": "*.b.example" })).ok();
    let wildcard = Made::for_names(&["*.b.example"]);
    program.upload("*.b.example", &wildcard).ok();
    program.push();
    let rows = [
        ("a.example", Some(&made)),
        ("A.EXAMPLE", Some(&made)),
        ("www.a.example", Some(&made)),
        ("x.b.example", Some(&wildcard)),
        ("y.x.b.example", None),
        ("b.example", None),
        ("x.a.example", None),
        ("example", None),
    ];
    for (name, expected) in rows {
        assert_eq!(program.served(name), expected.map(Made::fingerprint), "{name}");
    }
    for name in ["x.a.example", "b.example"] {
        let refused = probe(program.url("edge"), name).unwrap_err().to_string();
        assert!(refused.contains("UnrecognisedName"), "{refused}");
    }
    let no_name = probe(program.url("edge"), "127.0.0.1").unwrap_err().to_string();
    assert!(no_name.contains("UnrecognisedName"), "{no_name}");
}

/// The chain is served as it was uploaded.
#[test]
fn the_whole_chain_is_served() {
    let program = Program::start();
    let authority = edgecert_sandbox::Authority::new("test").unwrap();
    let issued = authority.issue(&["a.example"]).unwrap();
    program.upload("a.example", &Made { cert: issued.fullchain(), key: issued.key.clone() }).ok();
    program.push();
    assert_eq!(probe(program.url("edge"), "a.example").unwrap().chain_length, 2);
}

/// Key types: whatever this edge can sign with, and a clear word about what it cannot.
#[test]
fn keys_that_the_edge_cannot_use_are_explained() {
    let program = Program::start();
    let p384 = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"];
    for made in [
        Made::rsa(&["a.example"]),
        Made::by_openssl("a.example", &p384),
        Made::by_openssl("a.example", &["-newkey", "ed25519"]),
    ] {
        program.upload("a.example", &made).ok();
        program.push();
        assert_eq!(program.served("a.example"), Some(made.fingerprint()));
    }
    let p521 = Made::by_openssl("a.example", &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"]);
    let unpaired = Made { key: Made::for_names(&["x.example"]).key, ..Made::for_names(&["a.example"]) };
    for (made, problem) in [(p521, "cannot sign"), (unpaired, "no pair")] {
        program.upload("a.example", &made).ok();
        program.push();
        assert_eq!(program.served("a.example"), None);
        let entry = edge_entry(&program, "a.example");
        assert!(entry["problem"].as_str().unwrap().contains(problem), "{entry}");
        assert_eq!(entry["fingerprint"], made.fingerprint());
    }
}

/// ALPN as `http2` says.
#[test]
fn http2_is_offered_where_the_site_has_it() {
    let (program, _) = serving();
    let chosen = |offer: &[&str]| probe_with_alpn(program.url("edge"), "a.example", offer).unwrap().alpn;
    assert_eq!(chosen(&["h2", "http/1.1"]).as_deref(), Some("h2"));
    assert_eq!(chosen(&["http/1.1"]).as_deref(), Some("http/1.1"));
    assert_eq!(chosen(&[]), None);
    update(&program, 10, &json!({ "http2": false }));
    assert_eq!(chosen(&["h2", "http/1.1"]).as_deref(), Some("http/1.1"));
}

/// 2.3: `http_enabled` "Listen on HTTP", `https_enabled` "Listen on HTTPS", `force_https` "Redirect to HTTPS".
#[test]
fn section_2_3_plain_http_is_as_the_site_says() {
    let (program, _) = serving();
    assert!(plain(&program, "a.example").starts_with("HTTP/1.1 200"));
    assert!(plain(&program, "a.example:80").contains("rehearsal edge: a.example"));
    assert!(plain(&program, "nobody.example").starts_with("HTTP/1.1 421"));
    update(&program, 10, &json!({ "force_https": true }));
    let redirect = plain(&program, "a.example");
    assert!(redirect.starts_with("HTTP/1.1 301"), "{redirect}");
    assert!(redirect.contains("location: https://a.example/path?q=1\r\n"), "{redirect}");
    update(&program, 10, &json!({ "http_enabled": false }));
    assert_eq!(plain(&program, "a.example"), "");
    assert!(program.served("a.example").is_some());
    update(&program, 10, &json!({ "https_enabled": false, "http_enabled": true, "force_https": false }));
    assert_eq!(program.served("a.example"), None);
    assert!(plain(&program, "a.example").starts_with("HTTP/1.1 200"));
}

/// The page over TLS, by both protocols.
#[test]
fn curl_gets_a_page_by_both_protocols() {
    let (program, _) = serving();
    let (_, port) = program.url("edge").rsplit_once(':').unwrap();
    for (version, expected) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let output = Command::new("curl")
            .args(["-sSk", version, "-w", " %{http_version}", "--resolve"])
            .arg(format!("a.example:{port}:127.0.0.1"))
            .arg(format!("https://a.example:{port}/"))
            .output();
        let output = output.expect("the Debian package curl is needed");
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shown, format!("rehearsal edge: a.example from []\n {expected}"));
    }
}

/// `GET /edge` and `GET /dns`.
#[test]
fn the_control_port_shows_edge_and_dns() {
    let (program, made) = serving();
    let expected = json!({
        "domain": "a.example", "site_id": 10, "cert_id": 1001, "fingerprint": made.fingerprint(),
        "not_after": "2099-01-01T00:00:00Z", "http": true, "https": true, "force_https": false,
        "alpn": ["h2", "http/1.1"], "problem": null,
    });
    assert_eq!(edge_entry(&program, "a.example"), expected);
    assert_eq!(edge_entry(&program, "b.example")["problem"], "no certificate is bound");
    let dns = program.control("GET", "/dns", None).ok();
    assert_eq!(dns[0], json!({ "cname": "a-example-10.edge.invalid", "domain": "a.example", "site_id": 10 }));
    assert_eq!(dns.as_array().unwrap().len(), 4);
}

/// Noise on the port ends that connection and nothing else.
#[test]
fn noise_does_not_stop_the_edge() {
    let (program, made) = serving();
    for noise in [
        &b""[..],
        b"\x16",
        b"\x16\x03\x01\xff\xff\x01",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        b"\0\0\0",
        b"GET",
    ] {
        let mut tcp = TcpStream::connect(program.url("edge")).unwrap();
        tcp.write_all(noise).unwrap();
        tcp.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = tcp.read_to_end(&mut Vec::new());
    }
    assert_eq!(program.served("a.example"), Some(made.fingerprint()));
}
