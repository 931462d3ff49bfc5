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
    let output = output.expect("cannot run here: curl is not installed (Debian package curl)");
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

/// What cannot be understood, can never match or would be ignored is refused as a whole, with the reason.
#[test]
fn useless_faults_are_refused() {
    let server = Server::start();
    let fault = |pattern: &str| json!({ "match": pattern, "do": "close_before" });
    let with = |extra: Value| {
        let mut fault = fault("GET /api/certs");
        fault.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        fault
    };
    let rows = [
        (json!("x"), "invalid type"),
        (json!({ "do": "close_before" }), "missing field `match`"),
        (json!({ "match": "*" }), "missing field `do`"),
        (with(json!({ "tmes": 2 })), "unknown field `tmes`"),
        (
            with(json!({ "do": "explode" })),
            "unknown variant `explode`, expected one of `status`, `close_before`",
        ),
        (with(json!({ "do": "status" })), "status needs a status from 200 to 599"),
        (with(json!({ "do": "status", "status": 42 })), "status needs a status from 200 to 599"),
        (with(json!({ "do": "status", "status": 600 })), "status needs a status from 200 to 599"),
        (with(json!({ "do": "status", "status": 70_000 })), "invalid value"),
        (with(json!({ "do": "status", "status": 200, "headers": { "a b": "c" } })), "invalid name or value"),
        (with(json!({ "do": "truncate" })), "truncate needs bytes"),
        (with(json!({ "do": "stall" })), "stall needs seconds from 0 to 86400"),
        (with(json!({ "do": "stall", "seconds": -1 })), "stall needs seconds from 0 to 86400"),
        (with(json!({ "times": 0 })), "times must be at least 1"),
        (with(json!({ "times": -1 })), "invalid value"),
        (with(json!({ "status": 503 })), "status has no effect on close_before"),
        (with(json!({ "body": "x" })), "body has no effect on close_before"),
        (with(json!({ "do": "stall", "seconds": 1, "bytes": 1 })), "bytes has no effect on stall"),
        (fault("/api/certs"), "match must be"),
        (fault("GET api/certs"), "match must be"),
        (fault(""), "match must be"),
        (fault("FETCH /api/certs"), "unknown method FETCH"),
        (fault("PUT /api/certs"), "unknown method PUT"),
        (fault("POST /api/me/sites"), "no endpoint is POST /api/me/sites"),
        (fault("GET /api/cert"), "no endpoint is GET /api/cert"),
        (fault("GET /api/certs/"), "no endpoint is GET /api/certs/"),
        (fault("GET /api/certs?page=1"), "no endpoint is GET /api/certs?page=1"),
        (fault("GET /api/sites/a.example"), "no endpoint is GET /api/sites/a.example"),
        (fault("POST /api/sites/*/remove"), "no endpoint is POST /api/sites/*/remove"),
        (fault("HEAD /api/certs/upload"), "no endpoint is HEAD /api/certs/upload"),
        (json!([fault("*"), with(json!({ "times": 0 }))]), "fault 2: times must be at least 1"),
    ];
    for (faults, reason) in rows {
        let error = server.control("POST", "/faults", Some(&faults)).expect_error(400);
        assert!(error.contains(reason), "{faults}: {error}");
    }
    assert_eq!(server.control("GET", "/faults", None).expect_ok(), json!([]));
    let useful = [
        "*",
        "* /api/*",
        "get /api/cert*",
        "* /*",
        "POST /api/sites/10/*",
        "DELETE /api/sites/1*",
        "HEAD /api/certs",
        "GET /openapi.json",
        "POST /*/certs/upload",
    ];
    for pattern in useful {
        add_faults(&server, &fault(pattern));
    }
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

/// HEAD gets the headers of GET, also those of an error or a fault, and never a body (RFC 9110, section 9.3.2).
#[test]
fn head_is_answered_as_get() {
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let server = Server::start();
        let length = server.api("GET", "/api/certs", None).text.len();
        let (code, output) = curl_cert_list(&server, &["--head", version]);
        let output = output.to_lowercase();
        assert!(code == 0 && output.ends_with("\r\n\r\n 200"), "{version}: {code} {output}");
        assert!(output.contains(&format!("content-length: {length}\r\n")), "{version}: {output}");
        assert!(output.contains("content-type: application/json\r\n"), "{version}: {output}");
        let log = request_log(&server);
        assert_eq!((&log[1]["method"], &log[1]["account"]), (&json!("HEAD"), &json!(1)));

        for (path, status) in [
            ("/api/sites/10", 200),
            ("/api/sites/99", 404),
            ("/api/certs/upload", 405),
            ("/openapi.json", 200),
        ] {
            assert_eq!(server.api("HEAD", path, None).status, status, "{path}");
        }
        add_faults(
            &server,
            &json!({ "match": "GET /api/certs", "do": "status", "status": 503, "body": "busy" }),
        );
        let (_, output) = curl_cert_list(&server, &["--head", version]);
        assert!(output.contains("ontent-length: 4\r\n") && output.ends_with("\r\n\r\n 503"), "{output}");
        add_faults(&server, &json!({ "match": "GET /api/certs", "do": "truncate", "bytes": 3 }));
        curl_cert_list(&server, &["--head", version]);
        assert_eq!(server.api("GET", "/api/certs", None).status, 200);
        assert_eq!(server.control("HEAD", "/requests", None).status, 200);
    }
}
