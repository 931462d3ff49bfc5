//! The log of API requests, and faults on demand.

use std::io::{Read, Write};
use std::net::TcpStream;

use edgecert_sandbox::{Fault, Options};
use serde_json::{Value, json};

use crate::support::{KEY, Server, TestCert, assert_contains, openssl, plain, run, with};

fn add_faults(server: &Server, faults: &Value) {
    server.control_post("/faults", faults).expect_ok();
}

fn assert_logged(server: &Server, index: usize, expected: &Value) {
    assert_contains(&server.listed("/requests")[index], expected);
}

/// Requests this path of the API with curl and returns its exit code, and body and status as one text.
fn curl(server: &Server, path: &str, more: &[&str]) -> (i32, String) {
    let (key, url) = (format!("Authorization: Bearer {KEY}"), format!("{}{path}", server.url("api")));
    let ca = server.ready["ca_file"].as_str().map(|file| ["--cacert", file]);
    let args = [&["-s", "-w", " %{http_code}", "-H", &key][..], ca.as_slice().as_flattened(), more, &[&url]];
    let output = run("curl", "curl", &args.concat(), "");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn sha256(text: &str) -> String {
    openssl(&["dgst", "-sha256", "-r"], text).split(' ').next().unwrap().to_owned()
}

/// Private keys are logged as their SHA-256, the API key not at all.
#[test]
fn request_log_contains_no_secrets() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    server.upload("a.example", &cert).expect_ok();
    server.post("/api/certs/upload", &json!({ "key": { "pem": cert.key_pem }, "key_pem": cert.key_pem }));
    let headers = [("authorization", &*format!("Bearer {KEY}")), ("content-type", "text/plain")];
    server.send("api", "POST", "/api/certs/upload", &headers, &cert.key_pem).unwrap();
    let shown = format!("{} {:?}", server.control("GET", "/requests").text, server.sandbox().certs());
    assert!(!shown.contains("PRIVATE KEY") && !shown.contains(KEY), "{shown}");
    let digest = format!("sha256:{}", sha256(&cert.key_pem));
    assert_eq!(server.sandbox().certs()[2]["key_sha256"], digest);
    let body = with(cert.upload_body("a.example"), &json!({ "key_pem": digest }));
    let entry = json!({ "body": body, "account": 1, "method": "POST", "path": "/api/certs/upload", "status": 200, "http": "1.1" });
    assert_logged(&server, 0, &entry);
}

/// Unknown parameters are accepted and reported as notices.
#[test]
fn unknown_parameters_are_reported() {
    let server = Server::start();
    let body = with(TestCert::new(&["a.example"]).upload_body("a.example"), &json!({ "certificate": "x" }));
    server.post("/api/certs/upload", &body).expect_ok();
    assert_logged(&server, 0, &json!({ "notices": ["unknown field certificate"] }));
}

/// The log keeps the last 10,000 requests, and the digest of bodies above 64 KB. Whatever a client sends, an entry stays small.
#[test]
fn request_log_is_bounded() {
    const LIMIT: usize = 64 << 10;
    let server = Server::start();
    let body = |length: usize| json!({ "x": "y".repeat(length - r#"{"x":""}"#.len()) });
    for length in [LIMIT, LIMIT + 1] {
        server.post("/api/certs/upload", &body(length));
    }
    let digest = json!({ "sha256": sha256(&body(LIMIT + 1).to_string()), "bytes": LIMIT + 1 });
    assert_logged(&server, 0, &json!({ "body": body(LIMIT) }));
    assert_logged(&server, 1, &json!({ "body": digest }));

    let text = "x".repeat(60_000);
    let fields: serde_json::Map<String, Value> =
        (0..5_000).map(|number| (format!("field{number}"), Value::Null)).collect();
    let key = format!("Bearer {KEY}");
    let headers = [("user-agent", &*text), ("authorization", &key), ("content-type", "application/json")];
    let path = format!("/api/sites/10/update?{text}");
    server.send("api", "POST", &path, &headers, &Value::Object(fields).to_string()).unwrap().expect_ok();
    let entry = &server.listed("/requests")[2];
    assert!(entry["body"].is_object() && entry["status"] == 200, "{entry}");
    for field in ["query", "user_agent", "notices"] {
        assert!(entry[field].to_string().len() < 16_000, "{field}: {}", entry[field]);
    }

    for _ in 0..9_998 {
        assert_eq!(server.api("GET", "/", None).status, 404);
    }
    server.get("/api/certs");
    let log = server.listed("/requests");
    assert_eq!((log.len(), &log[0]["number"]), (10_000, &json!(3)));
    assert_logged(&server, 9_999, &json!({ "number": 10_002, "path": "/api/certs", "status": 200 }));
}

#[test]
fn status_fault_repeats_as_requested() {
    let server = Server::start();
    let fault = json!({ "match": "GET /api/certs", "do": "status", "status": 503, "times": 2,
                        "headers": { "Retry-After": "7" }, "body": "busy" });
    add_faults(&server, &fault);
    for _ in 0..2 {
        let response = server.api("GET", "/api/certs", None);
        assert_eq!((response.status, response.text.as_str()), (503, "busy"));
        assert_eq!(response.headers["retry-after"], "7");
        assert_eq!(response.headers["content-type"], "text/plain; charset=utf-8");
    }
    assert_logged(&server, 1, &json!({ "status": 503, "fault": "status" }));
    assert_eq!(server.api("GET", "/api/certs", None).status, 200);
    add_faults(
        &server,
        &json!({ "match": "GET /api/certs", "do": "status", "status": 429, "body": { "e": 1 } }),
    );
    assert_eq!(server.api("GET", "/api/certs", None).json(), json!({ "e": 1 }));
}

/// Faults come before authentication: a gateway in front of the service would answer so.
#[test]
fn first_matching_fault_applies() {
    let server = Server::start();
    let faults = json!([
        { "match": "GET /api/sites/*", "do": "status", "status": 500 },
        { "match": "* /api/*", "do": "status", "status": 502 },
    ]);
    add_faults(&server, &faults);
    assert_eq!(server.listed("/faults").len(), 2);
    assert_eq!(server.api_with_key("wrong", "GET", "/api/certs", None).status, 502);
    assert_eq!(server.api("GET", "/api/sites/10", None).status, 500);
    assert_eq!(server.api("GET", "/api/sites/10", None).status, 200);
    add_faults(&server, &json!({ "match": "GET /api/certs", "do": "close_before", "times": 9 }));
    server.control("DELETE", "/faults").expect_ok();
    assert_eq!(server.api("GET", "/api/certs", None).status, 200);
}

/// What cannot be understood, can never match or would be ignored is refused as a whole, with the reason.
#[test]
fn useless_faults_are_refused() {
    let server = Server::start();
    let fault = |pattern: &str| json!({ "match": pattern, "do": "close_before" });
    let changed = |change: Value| with(fault("GET /api/certs"), &change);
    let rows = [
        (json!("x"), "invalid type"),
        (json!({ "do": "close_before" }), "missing field `match`"),
        (changed(json!({ "tmes": 2 })), "unknown field `tmes`"),
        (
            changed(json!({ "do": "explode" })),
            "unknown variant `explode`, expected one of `status`, `close_before`",
        ),
        (changed(json!({ "do": "status" })), "status needs a status from 200 to 599"),
        (changed(json!({ "do": "status", "status": 600 })), "status needs a status from 200 to 599"),
        (changed(json!({ "do": "status", "status": 70_000 })), "invalid value"),
        (
            changed(json!({ "do": "status", "status": 200, "headers": { "a b": "c" } })),
            "invalid name or value",
        ),
        (changed(json!({ "do": "truncate" })), "truncate needs bytes"),
        (changed(json!({ "do": "stall", "seconds": -1 })), "stall needs seconds from 0 to 86400"),
        (changed(json!({ "times": 0 })), "times must be at least 1"),
        (changed(json!({ "body": "x" })), "body has no effect on close_before"),
        (changed(json!({ "do": "stall", "seconds": 1, "bytes": 1 })), "bytes has no effect on stall"),
        (fault("/api/certs"), "match must be"),
        (fault("GET api/certs"), "match must be"),
        (fault("FETCH /api/certs"), "unknown method FETCH"),
        (fault("POST /api/me/sites"), "no endpoint is POST /api/me/sites"),
        (fault("GET /api/certs/"), "no endpoint is GET /api/certs/"),
        (fault("GET /api/certs?page=1"), "no endpoint is GET /api/certs?page=1"),
        (fault("GET /api/sites/a.example"), "no endpoint is GET /api/sites/a.example"),
        (json!([fault("*"), changed(json!({ "times": 0 }))]), "fault 2: times must be at least 1"),
    ];
    for (faults, reason) in rows {
        let error = server.control_post("/faults", &faults).expect_error(400);
        assert!(error.contains(reason), "{faults}: {error}");
    }
    assert_eq!(server.listed("/faults"), [] as [Value; 0]);
    let useful = [
        "*",
        "* /api/*",
        "get /api/cert*",
        "* /*",
        "POST /api/sites/10/*",
        "DELETE /api/sites/1*",
        "GET /openapi.json",
        "POST /*/certs/upload",
    ];
    for pattern in useful {
        add_faults(&server, &fault(pattern));
    }
}

/// curl exits with 18, 52, 56 or 92 if a connection is closed early; 35 and 55 would mean a reset. `close_after` commits the
/// request, `close_before` does not execute it, and `truncate` announces the full length.
#[test]
fn connection_faults_work_on_every_protocol() {
    let closed_early = [18, 52, 56, 92];
    let protocols =
        [(true, "--http2"), (true, "--http1.1"), (false, "--http2-prior-knowledge"), (false, "--http1.1")];
    for (tls, version) in protocols {
        let server = Server::start_with(Options { tls, ..plain() });
        for (action, sites) in [("close_before", 3), ("close_after", 4)] {
            add_faults(&server, &json!({ "match": "POST /api/sites", "do": action }));
            let (code, output) =
                curl(&server, "/api/sites", &[version, "--json", r#"{"domain":"new.example"}"#]);
            let is_cut = closed_early.contains(&code) && output == " 000";
            assert!(is_cut, "{version} {action}: {code} {output:?}");
            assert_eq!(server.get("/api/me/sites")["total"], sites, "{version} {action}");
        }
        assert_logged(&server, 0, &json!({ "fault": "close_before", "status": null }));
        let complete = server.api("GET", "/api/certs", None).text;
        for bytes in [0, 10] {
            add_faults(&server, &json!({ "match": "GET /api/certs", "do": "truncate", "bytes": bytes }));
            let (code, output) = curl(&server, "/api/certs", &["-i", version]);
            let (head, body) = output.split_once("\r\n\r\n").unwrap();
            let is_cut = closed_early.contains(&code) && body == format!("{} 200", &complete[..bytes]);
            assert!(is_cut, "{version} truncate: {code} {output:?}");
            assert!(head.contains(&format!("content-length: {}", complete.len())), "{version}: {head}");
        }
        assert_eq!(curl(&server, "/api/certs", &[version]), (0, format!("{complete} 200")), "{version}");
    }
}

/// Connections are numbered. A stalled one delays no other, and is closed when the sandbox stops.
#[test]
fn stall_delays_one_response() {
    // No other test takes a port of this address after the sandbox has stopped.
    let listen = "127.0.0.3:0".parse().unwrap();
    let server = Server::start_with(Options { listen, edge_listen: listen, ..plain() });
    server.sandbox().add_fault(Fault::stall("GET /api/certs", 3600.0));
    server.sandbox().add_fault(Fault::stall("GET /api/me/sites", 0.01));
    let host = server.url("api").strip_prefix("http://").unwrap().to_owned();
    let mut stalled = TcpStream::connect(&host).unwrap();
    let request = format!("GET /api/certs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n");
    stalled.write_all(request.as_bytes()).unwrap();
    while server.listed("/requests").is_empty() {}
    assert_eq!(server.get("/api/me/sites")["total"], 3);
    assert_logged(&server, 0, &json!({ "fault": "stall", "status": null, "connection": 1 }));
    assert_logged(&server, 1, &json!({ "fault": "stall", "status": 200 }));
    let url = format!("{}/api/sites/10", server.url("api"));
    curl(&server, "/api/certs", &["--url", &url]);
    assert_logged(&server, 2, &json!({ "connection": 2 }));
    assert_logged(&server, 3, &json!({ "connection": 2 }));
    let edge = server.url("edge").to_owned();
    drop(server);
    let mut response = Vec::new();
    let _ = stalled.read_to_end(&mut response);
    assert!(response.is_empty());
    for address in [host, edge] {
        // A process that another test starts may hold the port for a moment.
        let is_free = || std::net::TcpListener::bind(&address).is_ok();
        assert!(
            (0..1_000).any(|_| is_free() || {
                std::thread::sleep(std::time::Duration::from_millis(10));
                false
            }),
            "{address}"
        );
    }
}
