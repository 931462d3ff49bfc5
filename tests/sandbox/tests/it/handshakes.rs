//! Counts of connections and handshakes with the edge.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use serde_json::{Value, json};

use crate::support::{Server, TestCert};

/// A server whose edge serves a.example.
fn serving() -> Server {
    let server = Server::start();
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    server.push_now();
    server
}

fn counts(server: &Server) -> Value {
    server.control("GET", "/edge/handshakes", None).expect_ok()
}

/// The counts of the main address, after as many connections in progress at once there as over all addresses.
fn expected(server: &Server, connections: u64, handshakes: u64, max: u64) -> Value {
    let address = json!({ "connections": connections, "handshakes": handshakes, "max_in_progress": max });
    json!({ "addresses": { server.url("edge"): address }, "max_in_progress": max })
}

/// Sends bytes without TLS and reads until the edge closes the connection.
fn send_plain(server: &Server, bytes: &[u8]) {
    let mut tcp = TcpStream::connect(server.url("edge")).unwrap();
    tcp.write_all(bytes).unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    let _ = tcp.read_to_end(&mut Vec::new());
}

#[test]
fn every_connection_is_counted() {
    let server = serving();
    assert_eq!(counts(&server), expected(&server, 0, 0, 0));
    server.served_leaf("a.example").unwrap();
    assert_eq!(counts(&server), expected(&server, 1, 1, 1));
    assert_eq!(server.served_leaf("x.example"), None);
    assert_eq!(counts(&server), expected(&server, 2, 2, 1), "refused handshakes count");
    send_plain(&server, b"\x16\x03\x01");
    assert_eq!(counts(&server), expected(&server, 3, 3, 1), "broken handshakes count");
    send_plain(&server, b"");
    send_plain(&server, b"GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n");
    assert_eq!(counts(&server), expected(&server, 5, 3, 1), "plain connections are no handshakes");
    server.control("DELETE", "/edge/handshakes", None).expect_ok();
    assert_eq!(counts(&server), expected(&server, 0, 0, 0));
}

#[test]
fn successive_handshakes_never_overlap() {
    let server = serving();
    for _ in 0..200 {
        server.served_leaf("a.example").unwrap();
        assert_eq!(server.served_leaf("x.example"), None);
    }
    assert_eq!(counts(&server), expected(&server, 400, 400, 1));
}

#[test]
fn concurrent_handshakes_show_their_maximum() {
    let server = serving();
    let begun: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut tcp = TcpStream::connect(server.url("edge")).unwrap();
            tcp.write_all(b"\x16").unwrap();
            tcp
        })
        .collect();
    server.served_leaf("a.example").unwrap();
    assert_eq!(counts(&server), expected(&server, 4, 4, 4));
    for tcp in begun {
        tcp.shutdown(Shutdown::Write).unwrap();
        let _ = (&tcp).read_to_end(&mut Vec::new());
    }
    server.control("DELETE", "/edge/handshakes", None).expect_ok();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    server.served_leaf("a.example").unwrap();
                }
            });
        }
    });
    let counts = counts(&server);
    assert!((1..=4).contains(&counts["max_in_progress"].as_u64().unwrap()), "{counts}");
    assert_eq!(counts["addresses"][server.url("edge")]["handshakes"], 200);
}

/// An idle connection does not end its time in progress with a reset.
#[test]
fn reset_keeps_connections_in_progress() {
    let server = serving();
    let _idle = TcpStream::connect(server.url("edge")).unwrap();
    server.served_leaf("a.example").unwrap();
    server.control("DELETE", "/edge/handshakes", None).expect_ok();
    assert_eq!(counts(&server), expected(&server, 0, 0, 1));
}
