//! Edge addresses that serve something else than what was pushed, and overrides of single names.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use edgecert_sandbox::probe;
use serde_json::{Value, json};

use crate::support::{Server, TestCert, plain, served, with};

/// How often to ask for counts that the edge is about to reach.
const MAX_POLLS: u32 = 10_000;

fn open(server: &Server, address: &Value) -> String {
    let opened = server.control_post("/edge/addresses", address).expect_ok();
    opened["address"].as_str().unwrap().to_owned()
}

/// A request for an address with a certificate.
fn serving_address(mode: &str, cert: &TestCert) -> Value {
    json!({ "mode": mode, "serves": cert.body() })
}

/// A request to serve another certificate for a name.
fn override_body(name: &str, cert: &TestCert) -> Value {
    with(cert.body(), &json!({ "name": name }))
}

#[test]
fn same_follows_and_stale_stays() {
    let (server, old) = Server::serving(&["a.example"]);
    let [same, stale] = ["same", "stale"].map(|mode| open(&server, &json!({ "mode": mode })));
    assert_eq!(served(&same, "x.example"), None);
    let assert_served = |expected: &TestCert| {
        assert_eq!(served(&same, "a.example"), Some(expected.fingerprint()));
        assert_eq!(served(&stale, "a.example"), Some(old.fingerprint()));
    };
    assert_served(&old);
    assert_served(&server.push_new(&["a.example"]));
    let other = TestCert::new(&["a.example"]);
    server.control_post("/edge", &override_body("a.example", &other)).expect_ok();
    assert_served(&other);
}

/// Even for unknown names and without a name, and even if the certificate is expired.
#[test]
fn other_serves_every_name() {
    let (server, cert) = Server::serving(&["a.example"]);
    let other = TestCert::valid(&["x.example"], [2019, 2020]);
    let address = open(&server, &serving_address("other", &other));
    for name in ["a.example", "y.example", "127.0.0.1"] {
        assert_eq!(served(&address, name), Some(other.fingerprint()), "{name}");
    }
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

/// In the order of acceptance, whatever the order in which the clients speak.
#[test]
fn alternate_serves_some_connections() {
    let (server, cert) = Server::serving(&["a.example"]);
    let other = TestCert::new(&["a.example"]);
    let second = serving_address("alternate", &other);
    let third = with(second.clone(), &json!({ "every": 3 }));
    let rows = [(&second, [&cert, &other, &cert, &other]), (&third, [&cert, &cert, &other, &cert])];
    for (address, expected) in rows {
        let address = open(&server, address);
        for expected in expected {
            assert_eq!(served(&address, "a.example"), Some(expected.fingerprint()));
        }
    }
    let address = open(&server, &second);
    let _silent = TcpStream::connect(&address).unwrap();
    assert_eq!(served(&address, "a.example"), Some(other.fingerprint()));
    assert_eq!(served(&address, "a.example"), Some(cert.fingerprint()));
}

/// Connections to a silent address are in progress until the client gives up.
#[test]
fn silent_never_responds() {
    let (server, _) = Server::serving(&["a.example"]);
    let address = open(&server, &json!({ "mode": "silent" }));
    let counts = || server.control("GET", "/edge/handshakes").expect_ok()["addresses"][&address].clone();
    let reset = || server.control("DELETE", "/edge/handshakes").expect_ok();
    let expected = |connections, handshakes, max| json!({ "connections": connections, "handshakes": handshakes, "max_in_progress": max });
    let begin = |first: &[u8]| {
        let mut tcp = TcpStream::connect(&address).unwrap();
        tcp.write_all(first).unwrap();
        tcp
    };
    let waiting = [&b"\x16"[..], b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"].map(begin);
    for mut tcp in &waiting {
        tcp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = tcp.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "still open after 100 ms");
    }
    assert!((0..MAX_POLLS).any(|_| counts() == expected(2, 1, 2)), "{}", counts());
    reset();
    assert_eq!(counts(), expected(0, 0, 2));
    drop(waiting);
    let is_idle = || {
        reset();
        counts() == expected(0, 0, 0)
    };
    assert!((0..MAX_POLLS).any(|_| is_idle()), "{}", counts());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures a real delay")]
fn delayed_address_responds_later() {
    let (server, cert) = Server::serving(&["a.example"]);
    let address = open(&server, &json!({ "mode": "same", "delay_ms": 200 }));
    let start = Instant::now();
    assert_eq!(served(&address, "a.example"), Some(cert.fingerprint()));
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[test]
fn closed_address_refuses_connections() {
    let (server, cert) = Server::serving(&["a.example"]);
    assert_eq!(server.listed("/edge/addresses"), [] as [Value; 0]);
    for by_port in [true, false] {
        // No other test takes a port of this address while it is closed.
        let address = open(&server, &json!({ "mode": "refuse", "listen": "127.0.0.2:0" }));
        let error = probe(&address, "a.example").unwrap_err().to_string();
        assert!(error.contains("UnrecognisedName"), "{error}");
        assert_eq!(server.listed("/edge/addresses"), [json!({ "address": address, "mode": "refuse" })]);
        let name = if by_port { address.rsplit_once(':').unwrap().1 } else { &address };
        let path = format!("/edge/addresses/{name}");
        server.control("DELETE", &path).expect_ok();
        server.control("DELETE", &path).expect_error(404);
        // A process that another test starts has the socket until it executes its program.
        let refuses =
            || TcpStream::connect(&address).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
        assert!((0..MAX_POLLS).any(|_| refuses()), "{address}");
        let reopened = open(&server, &json!({ "mode": "same", "listen": address }));
        assert_eq!((&reopened, served(&reopened, "a.example")), (&address, Some(cert.fingerprint())));
        server.control("DELETE", &path).expect_ok();
    }
}

#[test]
fn invalid_addresses_are_rejected() {
    let (server, cert) = Server::serving(&["a.example"]);
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
        (serving_address("other", &TestCert::on_curve("a.example", "P-521")), "does not support"),
        (serving_address("other", &cert.unpaired()), "not a pair"),
        (serving_address("other", &empty), "no CERTIFICATE block"),
        (json!({ "mode": "same", "listen": "0.0.0.0:0" }), "not a loopback address"),
        (json!({ "mode": "same", "listen": "127.0.0.1" }), "invalid socket address"),
        (json!({ "mode": "same", "listen": server.url("edge") }), "cannot listen"),
    ];
    for (address, reason) in rows {
        let error = server.control_post("/edge/addresses", &address).expect_error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.listed("/edge/addresses"), [] as [Value; 0]);
    let overrides = [
        (override_body("a.example", &cert.unpaired()), "not a pair"),
        (override_body("not a name", &cert), "is not a domain"),
        (override_body("", &cert), "is not a domain"),
        (json!({ "name": "a.example" }), "missing field"),
        (json!([]), "invalid length"),
    ];
    for (body, reason) in overrides {
        let error = server.control_post("/edge", &body).expect_error(400);
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

#[test]
fn override_hides_the_pushed_certificate() {
    let (server, cert) = Server::serving(&["a.example"]);
    let before = server.listed("/edge")[0].clone();
    let other = TestCert::valid(&["x.example"], [2019, 2020]);
    server.control_post("/edge", &override_body("A.example", &other)).expect_ok();
    assert_eq!(server.served_leaf("a.example"), Some(other.fingerprint()));
    let shown = json!({ "fingerprint": other.fingerprint(), "not_after": "2020-01-01T00:00:00Z", "overridden": true });
    assert_eq!(server.listed("/edge")[0], with(before.clone(), &shown));
    assert_eq!(server.site(10)["config_synced"], true);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(other.fingerprint()), "whatever is pushed");
    server.control("DELETE", "/edge/a.example").expect_ok();
    server.control("DELETE", "/edge/a.example").expect_error(404);
    assert_eq!(server.listed("/edge")[0], before);
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

/// Other names of a wildcard site keep its certificate; a name needs no site.
#[test]
fn override_applies_to_one_name() {
    let server = Server::start();
    server.post("/api/sites", &json!({ "domain": "*.b.example" })).expect_ok();
    let wildcard = server.push_new(&["*.b.example"]);
    let other = TestCert::new(&["other.example"]);
    for name in ["x.b.example", "none.example"] {
        server.control_post("/edge", &override_body(name, &other)).expect_ok();
    }
    let rows = [
        ("x.b.example", Some(&other)),
        ("y.b.example", Some(&wildcard)),
        ("none.example", Some(&other)),
        ("www.none.example", None),
    ];
    for (name, expected) in rows {
        assert_eq!(server.served_leaf(name), expected.map(TestCert::fingerprint), "{name}");
    }
    let none = server.listed("/edge").into_iter().find(|entry| entry["domain"] == "none.example").unwrap();
    assert_eq!((&none["site_id"], &none["fingerprint"]), (&Value::Null, &json!(other.fingerprint())));
}

#[test]
fn world_opens_edge_addresses() {
    let other = TestCert::new(&["x.example"]);
    let mut options = plain();
    let addresses = json!([serving_address("other", &other), { "mode": "refuse" }]);
    options.world.edge_addresses = serde_json::from_value(addresses).unwrap();
    let server = Server::start_with(options);
    let leaf = |index: usize| served(server.ready["edge_addresses"][index].as_str().unwrap(), "a.example");
    assert_eq!((leaf(0), leaf(1)), (Some(other.fingerprint()), None));
    assert_eq!(server.listed("/edge/addresses").len(), 2);
}
