//! The log of API requests: what it shows, and its limits.

use serde_json::{Value, json};

use crate::support::{KEY, Server, TestCert, openssl};

/// The log, oldest request first.
pub(crate) fn request_log(server: &Server) -> Vec<Value> {
    server.control("GET", "/requests", None).expect_ok().as_array().unwrap().clone()
}

/// Private keys are logged as their SHA-256, the API key not at all.
#[test]
fn request_log_contains_no_secrets() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    server.upload("a.example", &cert).expect_ok();
    server.post("/api/certs/upload", &json!({ "key": { "pem": cert.key_pem }, "key_pem": cert.key_pem }));
    let url = format!("{}/api/certs/upload", server.url("api"));
    let as_text = ureq::post(&url)
        .header("authorization", format!("Bearer {KEY}"))
        .config()
        .http_status_as_error(false)
        .build();
    as_text.header("content-type", "text/plain").send(&cert.key_pem).unwrap();
    let output = server.control("GET", "/requests", None).text;
    assert!(!output.contains("PRIVATE KEY") && !output.contains(KEY), "{output}");
    let log = request_log(&server);
    let digest = openssl(&["dgst", "-sha256", "-r"], &cert.key_pem);
    let digest = format!("sha256:{}", digest.split(' ').next().unwrap());
    assert_eq!(
        log[0]["body"],
        json!({ "domain": "a.example", "cert_pem": cert.cert_pem, "key_pem": digest })
    );
    assert_eq!(log[0]["account"], 1);
    assert_eq!((&log[0]["method"], &log[0]["path"]), (&json!("POST"), &json!("/api/certs/upload")));
    assert_eq!((&log[0]["status"], &log[0]["http"]), (&json!(200), &json!("1.1")));
    assert_eq!(log[0]["connection"], log[1]["connection"], "the connection is reused");
    assert!(log[2]["connection"] != log[0]["connection"]);
}

/// The log keeps the last 10,000 requests, and the digest of bodies above 64 KB.
#[test]
fn request_log_is_bounded() {
    const LIMIT: usize = 64 << 10;
    let server = Server::start();
    let body = |length: usize| json!({ "x": "y".repeat(length - r#"{"x":""}"#.len()) });
    for length in [LIMIT, LIMIT + 1] {
        server.post("/api/certs/upload", &body(length));
    }
    let text = body(LIMIT + 1).to_string();
    let digest = openssl(&["dgst", "-sha256", "-r"], &text);
    let digest = json!({ "sha256": digest.split(' ').next().unwrap(), "bytes": LIMIT + 1 });
    let log = request_log(&server);
    assert!(log[0]["body"] == body(LIMIT), "a body of 64 KB is logged");
    assert!(log[1]["body"] == digest, "a larger body is logged as its digest");

    for _ in 0..9_998 {
        assert_eq!(server.api("GET", "/", None).status, 404);
    }
    assert_eq!(request_log(&server).len(), 10_000);
    server.api("GET", "/api/certs", None);
    server.get("/api/certs");
    let log = request_log(&server);
    let newest = log.last().unwrap();
    assert_eq!((log.len(), &log[0]["number"], &newest["number"]), (10_000, &json!(3), &json!(10_002)));
    assert_eq!((&newest["path"], &newest["status"]), (&json!("/api/certs"), &json!(200)));
}

/// Whatever a client sends, an entry of the log stays small.
#[test]
fn entries_of_request_log_are_bounded() {
    let server = Server::start();
    let long = "x".repeat(60_000);
    let fields: serde_json::Map<String, Value> =
        (0..5_000).map(|number| (format!("field{number}"), Value::Null)).collect();
    let url = format!("{}/api/sites/10/update?{long}", server.url("api"));
    let agent = [("user-agent", long.as_str()), ("authorization", &format!("Bearer {KEY}"))];
    server.send("POST", &url, &agent, Some(&Value::Object(fields))).expect_ok();
    let entry = &request_log(&server)[0];
    assert!(entry["body"].is_object() && entry["status"] == 200, "{entry}");
    for field in ["query", "user_agent", "notices"] {
        assert!(entry[field].to_string().len() < 16_000, "{field}: {}", entry[field]);
    }
}
