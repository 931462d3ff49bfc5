//! Faults on demand, and the list of requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{KEY, Made, Program};

fn add(program: &Program, faults: &Value) {
    program.control("POST", "/faults", Some(faults)).ok();
}

/// What a client reads when it asks for the list of certificates on a connection of its own.
fn raw(program: &Program) -> String {
    let host = program.url("api").strip_prefix("http://").unwrap();
    let mut tcp = TcpStream::connect(host).unwrap();
    write!(
        tcp,
        "GET /api/certs HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    let _ = tcp.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// Curl's exit code, status and body for the list of certificates.
fn curl(program: &Program, more: &[&str]) -> (i32, String) {
    let mut command = Command::new("curl");
    if let Some(ca) = program.ready["ca_file"].as_str() {
        command.args(["--cacert", ca]);
    }
    command.args(["-s", "-w", " %{http_code}", "-H"]).arg(format!("Authorization: Bearer {KEY}")).args(more);
    let output = command.arg(format!("{}/api/certs", program.url("api"))).output();
    let output = output.expect("the Debian package curl is needed");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn requests(program: &Program) -> Vec<Value> {
    program.control("GET", "/requests", None).ok().as_array().unwrap().clone()
}

#[test]
fn a_status_is_answered_as_often_as_it_says() {
    let program = Program::start();
    add(
        &program,
        &json!({ "match": "GET /api/certs", "do": "status", "status": 503, "times": 2,
                           "headers": { "Retry-After": "7" }, "body": "busy" }),
    );
    for _ in 0..2 {
        let reply = program.api("GET", "/api/certs", None);
        assert_eq!((reply.status, reply.text.as_str()), (503, "busy"));
        assert_eq!(reply.headers["retry-after"], "7");
        assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
    }
    assert_eq!(program.api("GET", "/api/certs", None).status, 200);
    add(&program, &json!({ "match": "GET /api/certs", "do": "status", "status": 429, "body": { "e": 1 } }));
    assert_eq!(program.api("GET", "/api/certs", None).json(), json!({ "e": 1 }));
}

#[test]
fn faults_strike_in_order_and_only_what_they_match() {
    let program = Program::start();
    add(
        &program,
        &json!([
            { "match": "GET /api/sites/*", "do": "status", "status": 500 },
            { "match": "* /api/*", "do": "status", "status": 502 },
        ]),
    );
    assert_eq!(program.control("GET", "/faults", None).ok().as_array().unwrap().len(), 2);
    assert_eq!(program.api("GET", "/api/certs", None).status, 502);
    assert_eq!(program.api("GET", "/api/sites/10", None).status, 500);
    assert_eq!(program.api("GET", "/api/sites/10", None).status, 200);
    add(&program, &json!({ "match": "GET /api/certs", "do": "close_before", "times": 9 }));
    program.control("DELETE", "/faults", None).ok();
    assert_eq!(program.api("GET", "/api/certs", None).status, 200);
}

#[test]
fn a_fault_that_cannot_be_meant_is_refused() {
    let program = Program::start();
    let wrong = [
        json!({ "match": "GET /api/certs", "do": "explode" }),
        json!({ "match": "GET /api/certs", "do": "status" }),
        json!({ "match": "GET /api/certs", "do": "status", "status": 42 }),
        json!({ "match": "GET /api/certs", "do": "truncate" }),
        json!({ "match": "GET /api/certs", "do": "stall" }),
        json!({ "match": "/api/certs", "do": "close_before" }),
        json!({ "match": "GET /api/certs", "do": "close_before", "tmes": 2 }),
        json!([]).as_array().map(|_| json!("x")).unwrap(),
    ];
    for fault in wrong {
        assert_eq!(program.control("POST", "/faults", Some(&fault)).status, 400, "{fault}");
    }
    assert_eq!(program.control("GET", "/faults", None).ok(), json!([]));
}

/// Nothing is carried out, and nothing is answered.
#[test]
fn close_before_loses_the_request() {
    let program = Program::start();
    add(&program, &json!({ "match": "POST /api/certs/upload", "do": "close_before" }));
    let body = Made::for_names(&["a.example"]).body("a.example");
    let sent = ureq::post(format!("{}/api/certs/upload", program.url("api")))
        .header("authorization", format!("Bearer {KEY}"))
        .send_json(&body);
    assert!(sent.is_err());
    assert_eq!(program.certs().len(), 1);
    let requests = requests(&program);
    assert_eq!((&requests[0]["fault"], &requests[0]["status"]), (&json!("close_before"), &Value::Null));
}

/// The request is committed, the answer is lost: a repetition finds the record.
#[test]
fn close_after_loses_the_answer_only() {
    let program = Program::start();
    add(&program, &json!({ "match": "POST /api/certs/upload", "do": "close_after" }));
    let made = Made::for_names(&["a.example"]);
    let sent = ureq::post(format!("{}/api/certs/upload", program.url("api")))
        .header("authorization", format!("Bearer {KEY}"))
        .send_json(made.body("a.example"));
    assert!(sent.is_err());
    assert_eq!(program.get("/api/certs/1001/download")["cert_pem"], made.cert);
    assert_eq!(program.site(10)["cert_id"], 1001);
    assert_eq!(program.upload("a.example", &made).ok()["created"], false);
}

#[test]
fn truncate_announces_all_and_sends_a_part() {
    let program = Program::start();
    let whole = raw(&program);
    let (_, body) = whole.split_once("\r\n\r\n").unwrap();
    for bytes in [0, 10] {
        add(&program, &json!({ "match": "GET /api/certs", "do": "truncate", "bytes": bytes }));
        let cut = raw(&program);
        assert!(cut.contains(&format!("content-length: {}\r\n", body.len())), "{cut}");
        assert_eq!(cut.split_once("\r\n\r\n").unwrap().1, &body[..bytes]);
    }
}

/// The same faults over HTTP/2 and TLS; 18, 52, 56 and 92 are curl's words for a connection that ends too early.
/// 35 and 55 would be a connection that was reset.
#[test]
fn connections_are_cut_by_every_protocol() {
    let cut = [18, 52, 56, 92];
    for (flags, how) in [
        (&["--tls"][..], "--http2"),
        (&["--tls"], "--http1.1"),
        (&[], "--http2-prior-knowledge"),
        (&[], "--http1.1"),
    ] {
        let program = Program::with(&crate::support::world(), flags);
        for action in ["close_before", "close_after"] {
            add(&program, &json!({ "match": "GET /api/certs", "do": action }));
            let (code, shown) = curl(&program, &[how]);
            assert!(cut.contains(&code) && shown == " 000", "{how} {action}: {code} {shown:?}");
        }
        add(&program, &json!({ "match": "GET /api/certs", "do": "truncate", "bytes": 10 }));
        let (code, shown) = curl(&program, &[how]);
        assert!(cut.contains(&code) && shown == "{\"certs\":[ 200", "{how} truncate: {code} {shown:?}");
        let (code, shown) = curl(&program, &[how]);
        assert!(code == 0 && shown.ends_with("} 200"), "{how}: {code} {shown:?}");
    }
}

/// The answer waits, and other requests do not.
#[test]
fn stall_delays_one_answer() {
    let program = Program::start();
    add(&program, &json!({ "match": "GET /api/certs", "do": "stall", "seconds": 3600 }));
    add(&program, &json!({ "match": "GET /api/me/sites", "do": "stall", "seconds": 0.01 }));
    let host = program.url("api").strip_prefix("http://").unwrap();
    let mut stalled = TcpStream::connect(host).unwrap();
    write!(stalled, "GET /api/certs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n").unwrap();
    while requests(&program).is_empty() {}
    assert_eq!(program.get("/api/me/sites")["total"], 3);
    let requests = requests(&program);
    assert_eq!((&requests[0]["fault"], &requests[0]["status"]), (&json!("stall"), &Value::Null));
    assert_eq!((&requests[1]["fault"], &requests[1]["status"]), (&json!("stall"), &json!(200)));
}

/// Faults come before authentication: a gateway in front of the service would answer so.
#[test]
fn a_fault_does_not_ask_for_a_key() {
    let program = Program::start();
    add(&program, &json!({ "match": "GET /api/certs", "do": "status", "status": 502 }));
    assert_eq!(program.api_as("wrong", "GET", "/api/certs", None).status, 502);
}

/// Key material is in the list as a digest only; the API key not at all.
#[test]
fn the_list_of_requests_keeps_secrets() {
    let program = Program::start();
    let made = Made::for_names(&["a.example"]);
    program.upload("a.example", &made).ok();
    program.post("/api/certs/upload", &json!({ "key": { "pem": made.key }, "key_pem": made.key }));
    let url = format!("{}/api/certs/upload", program.url("api"));
    let text = ureq::post(&url)
        .header("authorization", format!("Bearer {KEY}"))
        .config()
        .http_status_as_error(false)
        .build();
    text.header("content-type", "text/plain").send(&made.key).unwrap();
    let shown = program.control("GET", "/requests", None).text;
    assert!(!shown.contains("PRIVATE KEY") && !shown.contains(KEY), "{shown}");
    let requests = requests(&program);
    let digest = crate::support::openssl(&["dgst", "-sha256", "-r"], &made.key);
    let digest = format!("sha256:{}", digest.split(' ').next().unwrap());
    assert_eq!(
        requests[0]["body"],
        json!({ "domain": "a.example", "cert_pem": made.cert, "key_pem": digest })
    );
    assert_eq!(requests[0]["account"], 1);
    assert_eq!((&requests[0]["method"], &requests[0]["path"]), (&json!("POST"), &json!("/api/certs/upload")));
    assert_eq!((&requests[0]["status"], &requests[0]["http"]), (&json!(200), &json!("1.1")));
    assert_eq!(requests[0]["connection"], requests[1]["connection"], "one connection was used again");
    assert!(requests[2]["connection"] != requests[0]["connection"]);
}
