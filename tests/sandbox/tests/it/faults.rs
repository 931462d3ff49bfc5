//! Faults on demand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::request_log::request_log;
use crate::support::{KEY, Server, TestCert, test_world};

fn add_faults(server: &Server, faults: &Value) {
    server.control("POST", "/faults", Some(faults)).expect_ok();
}

/// The raw response to `GET /api/certs` on a new connection, as far as it arrives.
fn raw_cert_list(server: &Server) -> String {
    let host = server.url("api").strip_prefix("http://").unwrap();
    let mut tcp = TcpStream::connect(host).unwrap();
    write!(
        tcp,
        "GET /api/certs HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut response = Vec::new();
    let _ = tcp.read_to_end(&mut response);
    String::from_utf8(response).unwrap()
}

/// Requests `GET /api/certs` with curl and returns its exit code, and body and status as one text.
fn curl_cert_list(server: &Server, more: &[&str]) -> (i32, String) {
    let mut command = Command::new("curl");
    if let Some(ca) = server.ready["ca_file"].as_str() {
        command.args(["--cacert", ca]);
    }
    command.args(["-s", "-w", " %{http_code}", "-H"]).arg(format!("Authorization: Bearer {KEY}")).args(more);
    let output = command.arg(format!("{}/api/certs", server.url("api"))).output();
    let output = output.expect("curl must be installed (Debian package curl)");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn status_fault_repeats_as_requested() {
    let server = Server::start();
    add_faults(
        &server,
        &json!({ "match": "GET /api/certs", "do": "status", "status": 503, "times": 2,
                           "headers": { "Retry-After": "7" }, "body": "busy" }),
    );
    for _ in 0..2 {
        let response = server.api("GET", "/api/certs", None);
        assert_eq!((response.status, response.text.as_str()), (503, "busy"));
        assert_eq!(response.headers["retry-after"], "7");
        assert_eq!(response.headers["content-type"], "text/plain; charset=utf-8");
    }
    assert_eq!(server.api("GET", "/api/certs", None).status, 200);
    add_faults(
        &server,
        &json!({ "match": "GET /api/certs", "do": "status", "status": 429, "body": { "e": 1 } }),
    );
    assert_eq!(server.api("GET", "/api/certs", None).json(), json!({ "e": 1 }));
}

#[test]
fn first_matching_fault_applies() {
    let server = Server::start();
    add_faults(
        &server,
        &json!([
            { "match": "GET /api/sites/*", "do": "status", "status": 500 },
            { "match": "* /api/*", "do": "status", "status": 502 },
        ]),
    );
    assert_eq!(server.control("GET", "/faults", None).expect_ok().as_array().unwrap().len(), 2);
    assert_eq!(server.api("GET", "/api/certs", None).status, 502);
    assert_eq!(server.api("GET", "/api/sites/10", None).status, 500);
    assert_eq!(server.api("GET", "/api/sites/10", None).status, 200);
    add_faults(&server, &json!({ "match": "GET /api/certs", "do": "close_before", "times": 9 }));
    server.control("DELETE", "/faults", None).expect_ok();
    assert_eq!(server.api("GET", "/api/certs", None).status, 200);
}

#[test]
fn invalid_faults_are_refused() {
    let server = Server::start();
    let invalid = [
        json!({ "match": "GET /api/certs", "do": "explode" }),
        json!({ "match": "GET /api/certs", "do": "status" }),
        json!({ "match": "GET /api/certs", "do": "status", "status": 42 }),
        json!({ "match": "GET /api/certs", "do": "truncate" }),
        json!({ "match": "GET /api/certs", "do": "stall" }),
        json!({ "match": "/api/certs", "do": "close_before" }),
        json!({ "match": "GET /api/certs", "do": "close_before", "tmes": 2 }),
        json!("x"),
    ];
    for fault in invalid {
        assert_eq!(server.control("POST", "/faults", Some(&fault)).status, 400, "{fault}");
    }
    assert_eq!(server.control("GET", "/faults", None).expect_ok(), json!([]));
}

#[test]
fn close_before_drops_the_request() {
    let server = Server::start();
    add_faults(&server, &json!({ "match": "POST /api/certs/upload", "do": "close_before" }));
    let body = TestCert::new(&["a.example"]).upload_body("a.example");
    let sent = ureq::post(format!("{}/api/certs/upload", server.url("api")))
        .header("authorization", format!("Bearer {KEY}"))
        .send_json(&body);
    assert!(sent.is_err());
    assert_eq!(server.certs().len(), 1);
    let log = request_log(&server);
    assert_eq!((&log[0]["fault"], &log[0]["status"]), (&json!("close_before"), &Value::Null));
}

/// The write is committed: repeating the upload replaces the record.
#[test]
fn close_after_drops_only_the_response() {
    let server = Server::start();
    add_faults(&server, &json!({ "match": "POST /api/certs/upload", "do": "close_after" }));
    let cert = TestCert::new(&["a.example"]);
    let sent = ureq::post(format!("{}/api/certs/upload", server.url("api")))
        .header("authorization", format!("Bearer {KEY}"))
        .send_json(cert.upload_body("a.example"));
    assert!(sent.is_err());
    assert_eq!(server.get("/api/certs/1001/download")["cert_pem"], cert.cert_pem);
    assert_eq!(server.site(10)["cert_id"], 1001);
    assert_eq!(server.upload("a.example", &cert).expect_ok()["created"], false);
}

#[test]
fn truncate_keeps_the_full_content_length() {
    let server = Server::start();
    let complete = raw_cert_list(&server);
    let (_, body) = complete.split_once("\r\n\r\n").unwrap();
    for bytes in [0, 10] {
        add_faults(&server, &json!({ "match": "GET /api/certs", "do": "truncate", "bytes": bytes }));
        let cut = raw_cert_list(&server);
        assert!(cut.contains(&format!("content-length: {}\r\n", body.len())), "{cut}");
        assert_eq!(cut.split_once("\r\n\r\n").unwrap().1, &body[..bytes]);
    }
}

/// curl exits with 18, 52, 56 or 92 if a connection is closed early; 35 and 55 would mean a reset.
#[test]
fn connection_faults_work_on_every_protocol() {
    let closed_early = [18, 52, 56, 92];
    for (flags, version) in [
        (&["--tls"][..], "--http2"),
        (&["--tls"], "--http1.1"),
        (&[], "--http2-prior-knowledge"),
        (&[], "--http1.1"),
    ] {
        let server = Server::start_with(&test_world(), flags);
        for action in ["close_before", "close_after"] {
            add_faults(&server, &json!({ "match": "GET /api/certs", "do": action }));
            let (code, output) = curl_cert_list(&server, &[version]);
            assert!(
                closed_early.contains(&code) && output == " 000",
                "{version} {action}: {code} {output:?}"
            );
        }
        add_faults(&server, &json!({ "match": "GET /api/certs", "do": "truncate", "bytes": 10 }));
        let (code, output) = curl_cert_list(&server, &[version]);
        assert!(
            closed_early.contains(&code) && output == "{\"certs\":[ 200",
            "{version} truncate: {code} {output:?}"
        );
        let (code, output) = curl_cert_list(&server, &[version]);
        assert!(code == 0 && output.ends_with("} 200"), "{version}: {code} {output:?}");
    }
}

#[test]
fn stall_delays_one_response() {
    let server = Server::start();
    add_faults(&server, &json!({ "match": "GET /api/certs", "do": "stall", "seconds": 3600 }));
    add_faults(&server, &json!({ "match": "GET /api/me/sites", "do": "stall", "seconds": 0.01 }));
    let host = server.url("api").strip_prefix("http://").unwrap();
    let mut stalled = TcpStream::connect(host).unwrap();
    write!(stalled, "GET /api/certs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n").unwrap();
    while request_log(&server).is_empty() {}
    assert_eq!(server.get("/api/me/sites")["total"], 3);
    let log = request_log(&server);
    assert_eq!((&log[0]["fault"], &log[0]["status"]), (&json!("stall"), &Value::Null));
    assert_eq!((&log[1]["fault"], &log[1]["status"]), (&json!("stall"), &json!(200)));
}

/// Faults come before authentication: a gateway in front of the service would answer so.
#[test]
fn faults_apply_before_authentication() {
    let server = Server::start();
    add_faults(&server, &json!({ "match": "GET /api/certs", "do": "status", "status": 502 }));
    assert_eq!(server.api_with_key("wrong", "GET", "/api/certs", None).status, 502);
}
