//! Guard rails: loopback only, said at the start, reserved names, a clear word about what cannot be.

use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Program, command, fails, world};

/// Exit code and standard error of a start with a world that cannot be.
#[track_caller]
fn fails_with(world: &str) -> (Option<i32>, String) {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("world.json"), world).unwrap();
    let failed = fails(&mut command(&dir));
    assert!(!dir.path().join("ready.json").exists());
    failed
}

/// `serve` with these arguments alone.
fn serve(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgecert-sandbox"));
    command.arg("serve").args(args).env_clear();
    command
}

#[test]
fn addresses_beyond_loopback_are_refused() {
    for port in ["--listen", "--edge-listen", "--control-listen"] {
        for addr in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8790"] {
            let (code, said) = fails(&mut serve(&[port, addr]));
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(&format!("{addr} is not a loopback address")), "{said}");
            assert!(said.contains("edgecert-sandbox: hint: use 127.0.0.1 or [::1]"), "{said}");
        }
    }
}

#[test]
fn it_says_what_it_is_for_and_where_it_is() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("world.json"), world().to_string()).unwrap();
    let mut child = command(&dir).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut said = String::new();
    while !said.contains("control ") {
        let mut some = [0; 512];
        let length = stdout.read(&mut some).unwrap();
        said.push_str(std::str::from_utf8(&some[..length]).unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.starts_with("edgecert-sandbox for rehearsal only"), "{said}");
    assert!(!said.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn the_ready_file_is_as_documented() {
    let program = Program::start();
    let port = |name: &str| program.url(name).rsplit_once(':').unwrap().1.parse::<u16>().unwrap();
    let expected = json!({
        "api": format!("http://127.0.0.1:{}", port("api")),
        "edge": format!("127.0.0.1:{}", port("edge")),
        "control": format!("http://127.0.0.1:{}", port("control")),
        "api_key": "sandbox-key",
        "ca_file": null,
    });
    assert_eq!(program.ready, expected);
}

#[test]
fn signals_end_it_cleanly() {
    for signal in ["TERM", "INT"] {
        let program = Program::with(&world(), &["--tls"]);
        let ca = program.ready["ca_file"].as_str().unwrap().to_owned();
        let api = program.url("api").strip_prefix("https://").unwrap().to_owned();
        assert!(std::path::Path::new(&ca).exists());
        let kill = Command::new("kill").args([&format!("-{signal}"), &program.pid().to_string()]).status();
        assert!(kill.unwrap().success());
        assert_eq!(program.ended(), Some(0));
        assert!(!std::path::Path::new(&ca).exists(), "the run's CA is gone");
        assert!(std::net::TcpListener::bind(api).is_ok(), "the port is free");
    }
}

#[test]
fn host_names_end_in_a_reserved_domain() {
    let program = Program::start();
    let dns = program.control("GET", "/dns", None).ok();
    for record in dns.as_array().unwrap() {
        assert!(record["cname"].as_str().unwrap().ends_with(".edge.invalid"), "{record}");
    }
}

#[test]
fn a_world_that_cannot_be_is_refused() {
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
        let (code, said) = fails_with(world);
        assert_eq!(code, Some(65), "{said}");
        assert!(
            said.starts_with("edgecert-sandbox: error: the world cannot be used: ")
                && said.contains(expected),
            "{world}: {said}"
        );
    }
}

#[test]
fn the_documents_own_world_is_understood() {
    let world = json!({
        "accounts": [{ "id": 1, "api_keys": ["sandbox-key"], "packages": [
            { "id": 1, "expires_at": "2030-01-01T00:00:00Z", "traffic_limit": 1000, "traffic_used": 0 }] }],
        "sites": [{ "id": 10, "account": 1, "domain": "a.example", "cert_id": 5 }],
        "certs": [{ "id": 5, "account": 1, "domain": "a.example", "name": "a.example", "type": "lets", "cert_pem": "…", "key_pem": "…" }],
    });
    let program = Program::with(&world, &[]);
    assert_eq!(program.site(10)["cert_id"], 5);
    assert_eq!(program.certs()[0]["type"], "lets");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let program = Program::start();
    let taken = program.url("edge");
    let free = "127.0.0.1:0";
    let (code, said) =
        fails(&mut serve(&["--listen", free, "--control-listen", free, "--edge-listen", taken]));
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains(&format!("cannot listen on {taken}")), "{said}");
}
