//! Edge addresses that serve something else than what was pushed, and overrides of single names.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use edgecert_sandbox::{AddressHandshakes, EdgeAddress, EdgeMode, Options, probe};
use serde_json::{Value, json};

use crate::support::{Server, TestCert, plain, served, with};

/// How often to ask for counts that the edge is about to reach.
const MAX_POLLS: u32 = 10_000;

fn open(server: &Server, mode: EdgeMode) -> String {
    server.sandbox().open_edge_address(&EdgeAddress::new(mode))
}

/// An address that serves this certificate.
fn serving(cert: &TestCert) -> EdgeAddress {
    EdgeAddress::serving(&cert.cert_pem, &cert.key_pem)
}

fn override_edge(server: &Server, name: &str, cert: &TestCert) {
    server.sandbox().override_edge(name, &cert.cert_pem, &cert.key_pem);
}

#[test]
fn same_follows_and_stale_stays() {
    let (server, old) = Server::serving(&["a.example"]);
    let [same, stale] = [EdgeMode::Same, EdgeMode::Stale].map(|mode| open(&server, mode));
    assert_eq!(served(&same, "x.example"), None);
    let assert_served = |expected: &TestCert| {
        assert_eq!(served(&same, "a.example"), Some(expected.fingerprint()));
        assert_eq!(served(&stale, "a.example"), Some(old.fingerprint()));
    };
    assert_served(&old);
    assert_served(&server.push_new(&["a.example"]));
    let other = TestCert::new(&["a.example"]);
    override_edge(&server, "a.example", &other);
    assert_served(&other);
}

/// Even for unknown names and without a name, and even if the certificate is expired.
#[test]
fn other_serves_every_name() {
    let (server, cert) = Server::serving(&["a.example"]);
    let other = TestCert::valid(&["x.example"], [2019, 2020]);
    let address = server.sandbox().open_edge_address(&serving(&other));
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
    let open = |every| server.sandbox().open_edge_address(&serving(&other).every(every));
    let rows = [(2, [&cert, &other, &cert, &other]), (3, [&cert, &cert, &other, &cert])];
    for (every, expected) in rows {
        let address = open(every);
        for expected in expected {
            assert_eq!(served(&address, "a.example"), Some(expected.fingerprint()));
        }
    }
    let address = open(2);
    let _silent = TcpStream::connect(&address).unwrap();
    assert_eq!(served(&address, "a.example"), Some(other.fingerprint()));
    assert_eq!(served(&address, "a.example"), Some(cert.fingerprint()));
}

/// Connections to a silent address are in progress until the client gives up.
#[test]
fn silent_never_responds() {
    let (server, _) = Server::serving(&["a.example"]);
    let address = open(&server, EdgeMode::Silent);
    let counts = || server.sandbox().handshakes().addresses[&address];
    let expected = |connections, max_in_progress| AddressHandshakes {
        connections,
        handshakes: connections,
        max_in_progress,
    };
    let begin = |first: &[u8]| {
        let mut tcp = TcpStream::connect(&address).unwrap();
        tcp.write_all(first).unwrap();
        tcp
    };
    let waiting = [&b"\x16"[..], b"\x16\x03\x01"].map(begin);
    for mut tcp in &waiting {
        tcp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let error = tcp.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "still open after 100 ms");
    }
    assert!((0..MAX_POLLS).any(|_| counts() == expected(2, 2)), "{:?}", counts());
    server.sandbox().reset_handshakes();
    assert_eq!(counts(), expected(0, 2));
    drop(waiting);
    let is_idle = || {
        server.sandbox().reset_handshakes();
        std::thread::yield_now();
        counts() == expected(0, 0)
    };
    assert!((0..MAX_POLLS).any(|_| is_idle()), "{:?}", counts());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures a real delay")]
fn delayed_address_responds_later() {
    let (server, cert) = Server::serving(&["a.example"]);
    let address = server.sandbox().open_edge_address(&EdgeAddress::new(EdgeMode::Same).delay_ms(200));
    let start = Instant::now();
    assert_eq!(served(&address, "a.example"), Some(cert.fingerprint()));
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[test]
fn closed_address_refuses_connections() {
    // No other test takes a port of this host after the address is closed.
    let server = Server::start_with(Options { edge_listen: "127.0.0.2:0".parse().unwrap(), ..plain() });
    server.push_new(&["a.example"]);
    let address = open(&server, EdgeMode::Refuse);
    let error = probe(&address, "a.example").unwrap_err().to_string();
    assert!(error.contains("UnrecognisedName"), "{error}");
    server.sandbox().close_edge_address(&address);
    // A process that another test starts has the socket until it executes its program.
    let refuses = || TcpStream::connect(&address).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    assert!((0..MAX_POLLS).any(|_| refuses()), "{address}");
}

#[test]
fn override_hides_the_pushed_certificate() {
    let (server, cert) = Server::serving(&["a.example"]);
    let before = server.listed("/edge")[0].clone();
    let other = TestCert::valid(&["x.example"], [2019, 2020]);
    override_edge(&server, "A.example", &other);
    assert_eq!(server.served_leaf("a.example"), Some(other.fingerprint()));
    let shown = json!({ "fingerprint": other.fingerprint(), "not_after": "2020-01-01T00:00:00Z", "overridden": true });
    assert_eq!(server.listed("/edge")[0], with(before, &shown));
    assert_eq!(server.site(10)["config_synced"], true);
    server.upload("a.example", &cert).expect_ok();
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(other.fingerprint()), "whatever is pushed");
}

/// Other names of a wildcard site keep its certificate; a name needs no site.
#[test]
fn override_applies_to_one_name() {
    let server = Server::start();
    server.post("/api/sites", &json!({ "domain": "*.b.example" })).expect_ok();
    let wildcard = server.push_new(&["*.b.example"]);
    let other = TestCert::new(&["other.example"]);
    for name in ["x.b.example", "none.example"] {
        override_edge(&server, name, &other);
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
