//! `edgecert-sandbox serve` as a process: start-up, shutdown, and what `--data` keeps.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use edgecert_sandbox::{Error, Options, Sandbox, probe};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Server, TestCert, plain, program, serve_command, test_world, with};

/// Runs a `serve` command that must fail, and returns its exit code and standard error.
#[track_caller]
fn fail_to_start(command: &mut Command) -> (Option<i32>, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if child.stdout.take().unwrap().read(&mut [0]).unwrap() > 0 {
        child.kill().unwrap();
        panic!("the sandbox started, expected it to fail: {:?}", child.wait());
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// `edgecert-sandbox serve` with these arguments only.
fn serve(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("serve").args(args).env_clear();
    command
}

#[test]
fn only_own_addresses_are_accepted() {
    for port in ["--listen", "--edge-listen", "--control-listen"] {
        for addr in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8790"] {
            let (code, stderr) = fail_to_start(&mut serve(&[port, addr]));
            let expected = format!(
                "edgecert-sandbox: error: {addr} is not a loopback address; the sandbox serves this machine only\nedgecert-sandbox: hint: use 127.0.0.1 or [::1]\n"
            );
            assert_eq!((code, stderr), (Some(2), expected));
        }
    }
    let server = Server::start();
    let (taken, free) = (server.url("edge"), "127.0.0.1:0");
    let (code, stderr) =
        fail_to_start(&mut serve(&["--listen", free, "--control-listen", free, "--edge-listen", taken]));
    assert!(code == Some(69) && stderr.contains(&format!("cannot listen on {taken}")), "{code:?} {stderr}");
    let ipv6 = Options { listen: "[::1]:0".parse().unwrap(), ..plain() };
    assert!(Server::start_with(ipv6).url("api").starts_with("http://[::1]:"));
}

/// The key is the first one of the world's first account.
#[test]
fn ready_file_and_greeting_are_complete() {
    let server = Server::start_process(&[]);
    let port = |name: &str| server.url(name).rsplit_once(':').unwrap().1.parse::<u16>().unwrap();
    let expected = json!({
        "api": format!("http://127.0.0.1:{}", port("api")),
        "edge": format!("127.0.0.1:{}", port("edge")),
        "control": format!("http://127.0.0.1:{}", port("control")),
        "api_key": "sandbox-key",
        "ca_file": null,
    });
    assert_eq!(server.ready, expected);
    assert!(server.greeting.starts_with("edgecert-sandbox for rehearsal only"), "{}", server.greeting);
    assert!(!server.greeting.contains('\x1b'), "no colour without a terminal");
}

#[test]
fn signals_stop_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let server = Server::start_process(&["--tls"]);
        let ca = server.ready["ca_file"].as_str().unwrap().to_owned();
        let api = server.url("api").strip_prefix("https://").unwrap();
        assert!(std::fs::read_to_string(&ca).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert_eq!(probe(api, "localhost").unwrap().chain_length, 2);
        assert_eq!(server.stop(signal).0, Some(0));
        assert!(!Path::new(&ca).exists(), "the CA file is removed");
    }
}

#[test]
fn notices_go_to_standard_error() {
    let server = Server::start_process(&[]);
    server.update(&json!({ "htp2": true })).expect_ok();
    let expected =
        "edgecert-sandbox: notice: POST /api/sites/10/update: htp2 is not a writable field and was ignored\n";
    assert_eq!(server.stop(Signal::TERM), (Some(0), expected.to_owned()));
}

#[test]
fn invalid_worlds_are_refused() {
    let site = json!({ "id": 1, "account": 1, "domain": "a.example" });
    let world =
        |name: &str, value: Value| json!({ "accounts": [{ "id": 1, "api_keys": ["k"] }], name: value });
    let with_site = |change: Value| world("sites", json!([with(site.clone(), &change)])).to_string();
    let twice = json!([site, { "id": 2, "account": 1, "domain": "A.example" }]);
    let rows = [
        ("{".to_owned(), "EOF"),
        ("{}".to_owned(), "accounts"),
        (r#"{"accounts":[]}"#.to_owned(), "no account with an API key"),
        (world("site", json!([])).to_string(), "unknown field `site`"),
        (with_site(json!({ "account": 2 })), "site 1 belongs to account 2"),
        (with_site(json!({ "domain": "a b" })), "is not a domain"),
        (with_site(json!({ "htp2": true })), "unknown field htp2"),
        (with_site(json!({ "http2": 1 })), "http2 must be a boolean"),
        (with_site(json!({ "cert_id": 9 })), "FOREIGN KEY"),
        (world("sites", twice).to_string(), "UNIQUE"),
    ];
    for (world, reason) in rows {
        let dir = TempDir::new().unwrap();
        let (code, stderr) = fail_to_start(&mut serve_command(&dir, &world));
        let is_invalid = stderr.starts_with("edgecert-sandbox: error: invalid world: ");
        assert!(code == Some(65) && is_invalid && stderr.contains(reason), "{world}: {code:?} {stderr}");
        assert!(!dir.path().join("ready.json").exists());
    }
}

#[test]
fn data_and_pending_push_survive_sigkill() {
    let data = TempDir::new().unwrap();
    let start =
        || Server::start_process(&["--data", data.path().to_str().unwrap(), "--push-seconds", "3600"]);
    let server = start();
    let (old, new) = (server.push_new(&["a.example"]), TestCert::new(&["a.example"]));
    server.upload("a.example", &new).expect_ok();
    server.post("/api/sites", &json!({ "domain": "new.example", "remark": "kept" })).expect_ok();
    server.api("DELETE", "/api/sites/12", None).expect_ok();
    server.api("POST", "/api/sites/11/disable", None).expect_ok();
    server.control_post("/packages/1", &json!({ "traffic_used": 5 })).expect_ok();
    let (sites, edge) = (server.get("/api/me/sites"), server.listed("/edge"));
    drop(server);

    let server = start();
    assert_eq!((server.get("/api/me/sites"), server.listed("/edge")), (sites, edge));
    assert_eq!(server.served_leaf("a.example"), Some(old.fingerprint()), "not pushed yet");
    assert_eq!(server.site(10)["config_synced"], false);
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    assert_eq!(server.download(1001)["key_pem"], new.key_pem);
}

/// It is private, because a rehearsal with a real certificate stores its key there, and locked, also within one process.
#[test]
fn data_directory_is_private_and_locked() {
    let parent = TempDir::new().unwrap();
    let data = parent.path().join("new/data");
    let options = || Options { data: Some(data.clone()), push_delay: Duration::from_secs(3600), ..plain() };
    let server = Server::start_with(options());
    assert!(!server.sandbox().is_resumed());
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    let dir = TempDir::new().unwrap();
    let mut command = serve_command(&dir, &test_world().to_string());
    let (code, stderr) = fail_to_start(command.arg("--data").arg(&data));
    assert_eq!(code, Some(75), "{stderr}");
    assert!(stderr.contains(&format!("{} is in use by another sandbox", data.display())), "{stderr}");
    assert!(matches!(Sandbox::start(options()), Err(Error::DataInUse(_))));
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    drop(server);
    let server = Server::start_with(options());
    assert!(server.sandbox().is_resumed());
    assert_eq!(server.certs().len(), 2);
    assert_eq!(Server::start().certs().len(), 1, "nothing is kept without a directory");
}

#[test]
fn database_is_one_versioned_file() {
    let data = TempDir::new().unwrap();
    let server = Server::start_process(&["--data", data.path().to_str().unwrap()]);
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
    let files: Vec<_> =
        std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["sandbox.sqlite3"]);
    let database = rusqlite::Connection::open(data.path().join("sandbox.sqlite3")).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
    database.pragma_update(None, "user_version", 2).unwrap();
    drop(database);

    let dir = TempDir::new().unwrap();
    let mut command = serve_command(&dir, &test_world().to_string());
    let (code, stderr) = fail_to_start(command.arg("--data").arg(data.path()));
    assert_eq!(code, Some(78), "{stderr}");
    assert!(stderr.contains("has schema version 2; this version reads up to 1"), "{stderr}");
}
