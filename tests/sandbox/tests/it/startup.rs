//! Start-up and shutdown: loopback addresses only, reserved names, greeting, start-up errors.

use std::io::Read;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Server, fail_to_start, serve_command, test_world};

/// Starts with an invalid world and returns the exit code and standard error.
#[track_caller]
fn fail_with_world(world: &str) -> (Option<i32>, String) {
    let dir = TempDir::new().unwrap();
    let result = fail_to_start(&mut serve_command(&dir, world));
    assert!(!dir.path().join("ready.json").exists());
    result
}

/// `edgecert-sandbox serve` with these arguments only.
fn serve(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgecert-sandbox"));
    command.arg("serve").args(args).env_clear();
    command
}

#[test]
fn only_loopback_addresses_are_accepted() {
    for port in ["--listen", "--edge-listen", "--control-listen"] {
        for addr in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8790"] {
            let (code, stderr) = fail_to_start(&mut serve(&[port, addr]));
            assert_eq!(code, Some(2), "{stderr}");
            assert!(stderr.contains(&format!("{addr} is not a loopback address")), "{stderr}");
            assert!(stderr.contains("edgecert-sandbox: hint: use 127.0.0.1 or [::1]"), "{stderr}");
        }
    }
}

#[test]
fn greeting_names_the_purpose() {
    let dir = TempDir::new().unwrap();
    let mut child = serve_command(&dir, &test_world().to_string()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut output = String::new();
    while !output.contains("control ") {
        let mut buffer = [0; 512];
        let length = stdout.read(&mut buffer).unwrap();
        output.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(output.starts_with("edgecert-sandbox for rehearsal only"), "{output}");
    assert!(!output.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn ready_file_lists_endpoints_and_key() {
    let server = Server::start();
    let port = |name: &str| server.url(name).rsplit_once(':').unwrap().1.parse::<u16>().unwrap();
    let expected = json!({
        "api": format!("http://127.0.0.1:{}", port("api")),
        "edge": format!("127.0.0.1:{}", port("edge")),
        "control": format!("http://127.0.0.1:{}", port("control")),
        "api_key": "sandbox-key",
        "ca_file": null,
    });
    assert_eq!(server.ready, expected);
}

#[test]
fn ready_file_has_first_key_of_world() {
    let mut world = test_world();
    let account = &mut world["accounts"][0];
    account["api_keys"] = json!(["sandbox-key", "a-key-of-another-host"]);
    let server = Server::start_with(&world, &[]);
    assert_eq!(server.ready["api_key"], "sandbox-key");
}

#[test]
fn signals_stop_it_cleanly() {
    for signal in ["TERM", "INT", "HUP"] {
        let server = Server::start_with(&test_world(), &["--tls"]);
        let ca = server.ready["ca_file"].as_str().unwrap().to_owned();
        let api = server.url("api").strip_prefix("https://").unwrap().to_owned();
        assert!(std::path::Path::new(&ca).exists());
        let kill = Command::new("sh").args(["-c", &format!("kill -{signal} {}", server.pid())]).status();
        assert!(kill.unwrap().success());
        assert_eq!(server.wait(), Some(0));
        assert!(!std::path::Path::new(&ca).exists(), "the CA file is removed");
        assert!(std::net::TcpListener::bind(api).is_ok(), "the port is free");
    }
}

/// RFC 2606 reserves `.invalid`, so no CNAME target can resolve.
#[test]
fn cnames_are_under_invalid() {
    let server = Server::start();
    let dns = server.control("GET", "/dns", None).expect_ok();
    for record in dns.as_array().unwrap() {
        assert!(record["cname"].as_str().unwrap().ends_with(".edge.invalid"), "{record}");
    }
}

#[test]
fn invalid_worlds_are_refused() {
    let account = json!([{ "id": 1, "api_keys": ["k"] }]);
    let rows = [
        ("{", "EOF"),
        ("{}", "accounts"),
        (r#"{"accounts":[]}"#, "no account with an API key"),
        (r#"{"accounts":[{"id":1,"api_keys":["k"]}],"site":[]}"#, "unknown field `site`"),
        (&json!({ "accounts": account, "sites": [{ "id": 1, "account": 2, "domain": "a.example" }] }).to_string(), "site 1 belongs to account 2"),
        (&json!({ "accounts": account, "sites": [{ "id": 1, "account": 1, "domain": "a b" }] }).to_string(), "is not a domain"),
        (&json!({ "accounts": account, "sites": [{ "id": 1, "account": 1, "domain": "a.example", "htp2": true }] }).to_string(), "unknown field htp2"),
        (&json!({ "accounts": account, "sites": [{ "id": 1, "account": 1, "domain": "a.example", "http2": 1 }] }).to_string(), "http2 must be a boolean"),
        (&json!({ "accounts": account, "sites": [{ "id": 1, "account": 1, "domain": "a.example", "cert_id": 9 }] }).to_string(), "FOREIGN KEY"),
        (&json!({ "accounts": account, "sites": [{ "id": 1, "account": 1, "domain": "a.example" }, { "id": 2, "account": 1, "domain": "A.example" }] }).to_string(), "UNIQUE"),
    ];
    for (world, expected) in rows {
        let (code, stderr) = fail_with_world(world);
        assert_eq!(code, Some(65), "{stderr}");
        assert!(
            stderr.starts_with("edgecert-sandbox: error: invalid world: ") && stderr.contains(expected),
            "{world}: {stderr}"
        );
    }
}

#[test]
fn port_in_use_is_named() {
    let server = Server::start();
    let taken = server.url("edge");
    let free = "127.0.0.1:0";
    let (code, stderr) =
        fail_to_start(&mut serve(&["--listen", free, "--control-listen", free, "--edge-listen", taken]));
    assert_eq!(code, Some(69), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen on {taken}")), "{stderr}");
}
