//! Edge addresses that serve something else than what was pushed, and overrides of single names.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use edgecert_sandbox::{ProbeResult, probe};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, TestCert, fail_to_start, serve_command, test_world};

/// How often to ask for counts that the edge is about to reach.
const MAX_POLLS: u32 = 10_000;

/// A server whose edge serves the returned certificate for a.example.
fn serving() -> (Server, TestCert) {
    let server = Server::start();
    let cert = push_new(&server, &["a.example"]);
    (server, cert)
}

/// Uploads and pushes a new certificate for a.example.
fn push_new(server: &Server, names: &[&str]) -> TestCert {
    let cert = TestCert::new(names);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    cert
}

fn open(server: &Server, address: &Value) -> String {
    let opened = server.control("POST", "/edge/addresses", Some(address)).expect_ok();
    opened["address"].as_str().unwrap().to_owned()
}

/// A request for an address with a certificate.
fn serving_address(mode: &str, cert: &TestCert) -> Value {
    json!({ "mode": mode, "serves": { "cert_pem": cert.cert_pem, "key_pem": cert.key_pem } })
}

fn served(address: &str, name: &str) -> Option<String> {
    probe(address, name).ok().map(|ProbeResult { fingerprint, .. }| fingerprint)
}

fn override_name(server: &Server, name: &str, cert: &TestCert) {
    let body = json!({ "name": name, "cert_pem": cert.cert_pem, "key_pem": cert.key_pem });
    server.control("POST", "/edge", Some(&body)).expect_ok();
}

#[test]
fn same_follows_and_stale_stays() {
    let (server, old) = serving();
    let [same, stale] = ["same", "stale"].map(|mode| open(&server, &json!({ "mode": mode })));
    for address in [&same, &stale] {
        assert_eq!(served(address, "a.example"), Some(old.fingerprint()));
        assert_eq!(served(address, "x.example"), None);
    }
    let new = push_new(&server, &["a.example"]);
    assert_eq!(served(&same, "a.example"), Some(new.fingerprint()));
    assert_eq!(served(&stale, "a.example"), Some(old.fingerprint()));
    override_name(&server, "a.example", &TestCert::new(&["a.example"]));
    assert_eq!(served(&same, "a.example"), server.served_leaf("a.example"));
    assert_eq!(served(&stale, "a.example"), Some(old.fingerprint()));
}

/// Even for unknown names and without a name, and even if the certificate is expired.
#[test]
fn other_serves_every_name() {
    let (server, cert) = serving();
    let other = TestCert::expired(&["x.example"]);
    let address = open(&server, &serving_address("other", &other));
    for name in ["a.example", "y.example", "127.0.0.1"] {
        assert_eq!(served(&address, name), Some(other.fingerprint()), "{name}");
    }
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

#[test]
fn alternate_serves_some_connections() {
    let (server, cert) = serving();
    let other = TestCert::new(&["a.example"]);
    let second = serving_address("alternate", &other);
    let mut third = second.clone();
    third["every"] = json!(3);
    for (address, expected) in
        [(second, [&cert, &other, &cert, &other]), (third, [&cert, &cert, &other, &cert])]
    {
        let address = open(&server, &address);
        for expected in expected {
            assert_eq!(served(&address, "a.example"), Some(expected.fingerprint()));
        }
    }
}

/// Whatever the order in which the clients speak.
#[test]
fn alternate_counts_accepted_connections() {
    let (server, cert) = serving();
    let other = TestCert::new(&["a.example"]);
    let address = open(&server, &serving_address("alternate", &other));
    let silent = TcpStream::connect(&address).unwrap();
    assert_eq!(served(&address, "a.example"), Some(other.fingerprint()));
    drop(silent);
    assert_eq!(served(&address, "a.example"), Some(cert.fingerprint()));
}

#[test]
fn refuse_sends_an_alert() {
    let (server, _) = serving();
    let address = open(&server, &json!({ "mode": "refuse" }));
    let error = probe(&address, "a.example").unwrap_err().to_string();
    assert!(error.contains("UnrecognisedName"), "{error}");
}

#[test]
fn silent_never_responds() {
    let (server, _) = serving();
    let address = open(&server, &json!({ "mode": "silent" }));
    for first in [&b"\x16"[..], b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"] {
        let mut tcp = TcpStream::connect(&address).unwrap();
        tcp.write_all(first).unwrap();
        tcp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = tcp.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "still open after 100 ms");
    }
}

/// Connections to a silent address are in progress until the client gives up.
#[test]
fn silent_connections_stay_in_progress() {
    let (server, _) = serving();
    let address = open(&server, &json!({ "mode": "silent" }));
    let counts =
        || server.control("GET", "/edge/handshakes", None).expect_ok()["addresses"][&address].clone();
    let reset = || server.control("DELETE", "/edge/handshakes", None).expect_ok();
    let expected =
        |connections, max| json!({ "connections": connections, "handshakes": 0, "max_in_progress": max });
    let waiting: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for mut tcp in &waiting {
        tcp.write_all(b"G").unwrap();
    }
    assert!((0..MAX_POLLS).any(|_| counts() == expected(8, 8)), "{}", counts());
    reset();
    assert_eq!(counts(), expected(0, 8));
    drop(waiting);
    let is_idle = || {
        reset();
        counts() == expected(0, 0)
    };
    assert!((0..MAX_POLLS).any(|_| is_idle()), "{}", counts());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures a real delay")]
fn delayed_address_responds_later() {
    let (server, cert) = serving();
    let address = open(&server, &json!({ "mode": "same", "delay_ms": 200 }));
    let start = Instant::now();
    assert_eq!(served(&address, "a.example"), Some(cert.fingerprint()));
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[test]
fn closed_address_refuses_connections() {
    let (server, cert) = serving();
    let addresses = || server.control("GET", "/edge/addresses", None).expect_ok();
    assert_eq!(addresses(), json!([]));
    for by_port in [true, false] {
        let address = open(&server, &json!({ "mode": "refuse" }));
        assert_eq!(addresses(), json!([{ "address": address, "mode": "refuse" }]));
        let name = if by_port { address.rsplit_once(':').unwrap().1 } else { &address };
        let path = format!("/edge/addresses/{name}");
        server.control("DELETE", &path, None).expect_ok();
        server.control("DELETE", &path, None).expect_error(404);
        assert_eq!(TcpStream::connect(&address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let reopened = open(&server, &json!({ "mode": "same", "listen": address }));
        assert_eq!((&reopened, served(&reopened, "a.example")), (&address, Some(cert.fingerprint())));
        server.control("DELETE", &path, None).expect_ok();
    }
}

#[test]
fn invalid_addresses_are_rejected() {
    let (server, cert) = serving();
    let p521 = TestCert::from_openssl("a.example", &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521"]);
    let unpaired = cert.with_key(&TestCert::new(&["a.example"]).key_pem);
    let empty = TestCert { cert_pem: String::new(), key_pem: String::new() };
    let rows = [
        (json!({}), "missing field `mode`"),
        (json!({ "mode": "loud" }), "unknown variant `loud`"),
        (json!({ "mode": "same", "port": 1 }), "unknown field `port`"),
        (json!({ "mode": "same", "delay_ms": -1 }), "invalid value"),
        (json!({ "mode": "other" }), "`serves` is missing"),
        (json!({ "mode": "alternate" }), "`serves` is missing"),
        (json!({ "mode": "same", "every": 2 }), "`every` is for the mode alternate"),
        (json!({ "mode": "alternate", "every": 0 }), "nonzero"),
        (serving_address("same", &cert), "`serves` is for the modes"),
        (serving_address("silent", &cert), "`serves` is for the modes"),
        (serving_address("other", &p521), "does not support"),
        (serving_address("other", &unpaired), "not a pair"),
        (serving_address("other", &empty), "no CERTIFICATE block"),
        (json!({ "mode": "same", "listen": "0.0.0.0:0" }), "not a loopback address"),
        (json!({ "mode": "same", "listen": "127.0.0.1" }), "invalid socket address"),
        (json!({ "mode": "same", "listen": server.url("edge") }), "cannot listen"),
    ];
    for (address, reason) in rows {
        let error = server.control("POST", "/edge/addresses", Some(&address)).expect_error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.control("GET", "/edge/addresses", None).expect_ok(), json!([]));
}

#[test]
fn override_hides_the_pushed_certificate() {
    let (server, cert) = serving();
    let edge_entry = || server.control("GET", "/edge", None).expect_ok()[0].clone();
    let before = edge_entry();
    let other = TestCert::expired(&["x.example"]);
    override_name(&server, "A.example", &other);
    assert_eq!(server.served_leaf("a.example"), Some(other.fingerprint()));
    let mut expected = before.clone();
    expected["fingerprint"] = json!(other.fingerprint());
    expected["not_after"] = json!("2020-01-01T00:00:00Z");
    expected["overridden"] = json!(true);
    assert_eq!(edge_entry(), expected);
    assert_eq!(server.site(10)["config_synced"], true);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(other.fingerprint()), "whatever is pushed");
    server.control("DELETE", "/edge/a.example", None).expect_ok();
    server.control("DELETE", "/edge/a.example", None).expect_error(404);
    assert_eq!(edge_entry(), before);
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

/// Other names of a wildcard site keep its certificate; a name needs no site.
#[test]
fn override_applies_to_one_name() {
    let server = Server::start();
    server.post("/api/sites", &json!({ "domain": "*.b.example" })).expect_ok();
    let wildcard = TestCert::new(&["*.b.example"]);
    server.upload("*.b.example", &wildcard).expect_ok();
    server.push_now();
    let other = TestCert::new(&["other.example"]);
    override_name(&server, "x.b.example", &other);
    override_name(&server, "none.example", &other);
    let rows = [
        ("x.b.example", Some(&other)),
        ("y.b.example", Some(&wildcard)),
        ("none.example", Some(&other)),
        ("www.none.example", None),
    ];
    for (name, expected) in rows {
        assert_eq!(server.served_leaf(name), expected.map(TestCert::fingerprint), "{name}");
    }
    let edge = server.control("GET", "/edge", None).expect_ok();
    let none = edge.as_array().unwrap().iter().find(|entry| entry["domain"] == "none.example").unwrap();
    assert_eq!((&none["site_id"], &none["fingerprint"]), (&Value::Null, &json!(other.fingerprint())));
}

#[test]
fn invalid_overrides_are_rejected() {
    let (server, cert) = serving();
    let body = |name: &str, cert: &TestCert| json!({ "name": name, "cert_pem": cert.cert_pem, "key_pem": cert.key_pem });
    let unpaired = cert.with_key(&TestCert::new(&["a.example"]).key_pem);
    let rows = [
        (body("a.example", &unpaired), "not a pair"),
        (body("not a name", &cert), "is not a domain"),
        (body("", &cert), "is not a domain"),
        (json!({ "name": "a.example" }), "missing field"),
        (json!([]), "invalid length"),
    ];
    for (body, reason) in rows {
        let error = server.control("POST", "/edge", Some(&body)).expect_error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

#[test]
fn world_opens_edge_addresses() {
    let other = TestCert::new(&["x.example"]);
    let mut world = test_world();
    world["edge_addresses"] = json!([serving_address("other", &other), { "mode": "refuse" }]);
    let server = Server::start_with(&world, &[]);
    let addresses: Vec<&str> = server.ready["edge_addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|address| address.as_str().unwrap())
        .collect();
    assert_eq!(served(addresses[0], "a.example"), Some(other.fingerprint()));
    assert_eq!(served(addresses[1], "a.example"), None);
    let listed = server.control("GET", "/edge/addresses", None).expect_ok();
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[test]
fn invalid_edge_addresses_fail_the_start() {
    let rows = [
        (json!([{ "mode": "refuse" }, { "mode": "other" }]), 65, "edge address 2: `serves` is missing"),
        (json!([{ "mode": "same", "listen": "192.0.2.1:0" }]), 2, "not a loopback address"),
    ];
    for (addresses, code, reason) in rows {
        let mut world = test_world();
        world["edge_addresses"] = addresses;
        let dir = TempDir::new().unwrap();
        let (exit_code, stderr) = fail_to_start(&mut serve_command(&dir, &world.to_string()));
        assert!(exit_code == Some(code) && stderr.contains(reason), "{exit_code:?} {stderr}");
    }
}
