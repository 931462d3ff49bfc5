//! The edge: TLS before and after a push, and counts of connections and handshakes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use edgecert_sandbox::{AddressHandshakes, Authority, Handshakes, probe};
use serde_json::{Value, json};

use crate::support::{Server, TestCert, run};

/// Sends bytes without TLS and waits until the edge closes the connection.
fn send_plain(server: &Server, bytes: &[u8]) {
    let mut tcp = TcpStream::connect(server.url("edge")).unwrap();
    tcp.write_all(bytes).unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    let _ = tcp.read_to_end(&mut Vec::new());
}

fn edge_entry(server: &Server, domain: &str) -> Value {
    server.listed("/edge").into_iter().find(|entry| entry["domain"] == domain).unwrap_or_default()
}

/// Observed with OpenSSL as an independent TLS client.
#[test]
fn replaced_record_is_served_after_push() {
    let (server, old) = Server::serving(&["a.example"]);
    let served_to_openssl = || {
        let args = ["s_client", "-connect", server.url("edge"), "-servername", "a.example"];
        let output = String::from_utf8(run("openssl", "openssl", &args, "").stdout).unwrap();
        let pem = &output[output.find("-----BEGIN").unwrap()..];
        TestCert { cert_pem: pem.to_owned(), key_pem: String::new() }.fingerprint()
    };
    let new = TestCert::new(&["a.example"]);
    assert_eq!(served_to_openssl(), old.fingerprint());
    server.upload("a.example", &new).expect_ok();
    assert_eq!(served_to_openssl(), old.fingerprint());
    server.push_now();
    assert_eq!(served_to_openssl(), new.fingerprint());
}

/// A wildcard site matches exactly one label; unknown names and a missing SNI are refused.
#[test]
fn sni_selects_the_site() {
    let (server, cert) = Server::serving(&["a.example", "*.a.example"]);
    server.post("/api/sites", &json!({ "domain": "*.b.example" })).expect_ok();
    let wildcard = server.push_new(&["*.b.example"]);
    let rows = [
        ("a.example", Some(&cert)),
        ("A.EXAMPLE", Some(&cert)),
        ("www.a.example", Some(&cert)),
        ("x.b.example", Some(&wildcard)),
        ("y.x.b.example", None),
        ("b.example", None),
        ("x.a.example", None),
        ("example", None),
        ("127.0.0.1", None),
    ];
    for (name, expected) in rows {
        match (probe(server.url("edge"), name), expected) {
            (Ok(leaf), Some(expected)) => assert_eq!(leaf.fingerprint, expected.fingerprint(), "{name}"),
            (Err(error), None) => assert!(error.to_string().contains("UnrecognisedName"), "{name}: {error}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

/// The edge serves the whole chain, with every key type that rustls can sign with, and reports why it serves no others.
#[test]
fn unusable_keys_are_reported() {
    let server = Server::start();
    let issued = Authority::new("test").unwrap().issue(&["a.example"]).unwrap();
    let rows = [
        (TestCert { cert_pem: issued.fullchain(), key_pem: issued.key }, Ok(2)),
        (TestCert::rsa(&["a.example"]), Ok(1)),
        (TestCert::on_curve("a.example", "P-384"), Ok(1)),
        (TestCert::from_openssl("a.example", &["-newkey", "ed25519"]), Ok(1)),
        (TestCert::on_curve("a.example", "P-521"), Err("does not support")),
        (TestCert::new(&["a.example"]).unpaired(), Err("not a pair")),
    ];
    for (cert, expected) in rows {
        server.upload("a.example", &cert).expect_ok();
        server.push_now();
        let (found, entry) = (probe(server.url("edge"), "a.example"), edge_entry(&server, "a.example"));
        assert_eq!(entry["fingerprint"], cert.fingerprint());
        match expected {
            Ok(length) => assert_eq!(found.unwrap().chain_length, length),
            Err(problem) => {
                found.unwrap_err();
                assert!(entry["problem"].as_str().unwrap().contains(problem), "{entry}");
            }
        }
    }
}

/// Section 2.3: `https_enabled` "Listen on HTTPS".
#[test]
fn disabled_https_serves_nothing() {
    let (server, cert) = Server::serving(&["a.example"]);
    for (is_enabled, served) in [(false, None), (true, Some(cert.fingerprint()))] {
        server.update(&json!({ "https_enabled": is_enabled })).expect_ok();
        server.push_now();
        assert_eq!(server.served_leaf("a.example"), served);
    }
}

/// RFC 2606 reserves `.invalid`, so no CNAME target can resolve.
#[test]
fn control_port_lists_edge_and_dns() {
    let (server, cert) = Server::serving(&["a.example"]);
    let expected = json!({
        "domain": "a.example", "site_id": 10, "cert_id": 1001, "fingerprint": cert.fingerprint(),
        "not_after": "2099-01-01T00:00:00Z", "https": true,
        "problem": null,
    });
    assert_eq!(edge_entry(&server, "a.example"), expected);
    assert_eq!(edge_entry(&server, "b.example")["problem"], "no certificate is bound");
    let dns = server.listed("/dns");
    assert_eq!(dns[0], json!({ "cname": "a-example-10.edge.invalid", "domain": "a.example", "site_id": 10 }));
    assert_eq!(dns.len(), 4);
    assert!(dns.iter().all(|record| record["cname"].as_str().unwrap().ends_with(".edge.invalid")), "{dns:?}");
}

#[test]
fn edge_survives_malformed_connections() {
    let (server, cert) = Server::serving(&["a.example"]);
    let not_a_hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    for bytes in [&b""[..], b"\x16", b"\x16\x03\x01\xff\xff\x01", not_a_hello, b"\0\0\0", b"GET"] {
        send_plain(&server, bytes);
    }
    assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()));
}

fn counts(server: &Server) -> Handshakes {
    server.sandbox().handshakes()
}

/// The counts of the main address, after as many connections in progress at once there as over all addresses.
fn expected(server: &Server, connections: u64, handshakes: u64, max_in_progress: u64) -> Handshakes {
    let address = AddressHandshakes { connections, handshakes, max_in_progress };
    Handshakes { addresses: [(server.url("edge").to_owned(), address)].into(), max_in_progress }
}

#[test]
fn every_connection_is_counted() {
    let (server, _) = Server::serving(&["a.example"]);
    assert_eq!(counts(&server), expected(&server, 0, 0, 0));
    server.served_leaf("a.example").unwrap();
    assert_eq!(counts(&server), expected(&server, 1, 1, 1));
    assert_eq!(server.served_leaf("x.example"), None);
    assert_eq!(counts(&server), expected(&server, 2, 2, 1), "refused handshakes count");
    send_plain(&server, b"\x16\x03\x01");
    assert_eq!(counts(&server), expected(&server, 3, 3, 1), "broken handshakes count");
    send_plain(&server, b"");
    send_plain(&server, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(counts(&server), expected(&server, 5, 3, 1), "plain connections are no handshakes");
    server.sandbox().reset_handshakes();
    assert_eq!(counts(&server), expected(&server, 0, 0, 0));
    for _ in 0..200 {
        server.served_leaf("a.example").unwrap();
        assert_eq!(server.served_leaf("x.example"), None);
    }
    assert_eq!(counts(&server), expected(&server, 400, 400, 1), "successive handshakes never overlap");
}

#[test]
fn concurrent_handshakes_show_their_maximum() {
    let (server, _) = Server::serving(&["a.example"]);
    let begin = |_| {
        let mut tcp = TcpStream::connect(server.url("edge")).unwrap();
        tcp.write_all(b"\x16").unwrap();
        tcp
    };
    let waiting: Vec<TcpStream> = (0..3).map(begin).collect();
    server.served_leaf("a.example").unwrap();
    assert_eq!(counts(&server), expected(&server, 4, 4, 4));
    server.sandbox().reset_handshakes();
    assert_eq!(counts(&server), expected(&server, 0, 0, 3), "a reset keeps connections in progress");
    for tcp in waiting {
        tcp.shutdown(Shutdown::Write).unwrap();
        let _ = (&tcp).read_to_end(&mut Vec::new());
    }
    server.sandbox().reset_handshakes();
    let probe_often = || (0..50).for_each(|_| drop(server.served_leaf("a.example").unwrap()));
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(probe_often))));
    let counts = counts(&server);
    assert!((1..=4).contains(&counts.max_in_progress), "{counts:?}");
    assert_eq!(counts.total(), 200);
}
