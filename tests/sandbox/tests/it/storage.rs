//! Persistence with `--data`.

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Server, TestCert, fail_to_start, serve_command, test_world};

/// A server with this data directory, whose pushes happen on demand only.
fn start_in(data: &TempDir) -> Server {
    Server::start_with(&test_world(), &["--data", data.path().to_str().unwrap(), "--push-seconds", "3600"])
}

#[test]
fn data_and_pending_push_survive_sigkill() {
    let data = TempDir::new().unwrap();
    let (old, new) = (TestCert::new(&["a.example"]), TestCert::new(&["a.example"]));
    let server = start_in(&data);
    server.upload("a.example", &old).expect_ok();
    server.push_now();
    server.upload("a.example", &new).expect_ok();
    server.post("/api/sites", &json!({ "domain": "new.example", "remark": "kept" })).expect_ok();
    server.api("DELETE", "/api/sites/12", None).expect_ok();
    server.api("POST", "/api/sites/11/disable", None).expect_ok();
    server.control("POST", "/packages/1", Some(&json!({ "traffic_used": 5 }))).expect_ok();
    let sites = server.get("/api/me/sites");
    let edge = server.control("GET", "/edge", None).expect_ok();
    server.kill();
    drop(server);

    let server = start_in(&data);
    assert_eq!(server.get("/api/me/sites"), sites);
    assert_eq!(server.control("GET", "/edge", None).expect_ok(), edge);
    assert_eq!(server.served_leaf("a.example"), Some(old.fingerprint()), "not pushed yet");
    assert_eq!(server.site(10)["config_synced"], false);
    server.push_now();
    assert_eq!(server.served_leaf("a.example"), Some(new.fingerprint()));
    assert_eq!(server.get("/api/certs/1001/download")["key_pem"], new.key_pem);
}

#[test]
fn directory_in_use_is_refused() {
    let data = TempDir::new().unwrap();
    let server = start_in(&data);
    let dir = TempDir::new().unwrap();
    let mut command = serve_command(&dir, &test_world().to_string());
    let (code, stderr) = fail_to_start(command.arg("--data").arg(data.path()));
    assert_eq!(code, Some(75), "{stderr}");
    assert!(stderr.contains(&format!("{} is in use by another sandbox", data.path().display())), "{stderr}");
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
}

/// A rehearsal with a real certificate stores its key there.
#[test]
fn data_directory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let parent = TempDir::new().unwrap();
    let data = parent.path().join("new/data");
    let _server = Server::start_with(&test_world(), &["--data", data.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn nothing_is_kept_without_data() {
    let server = Server::start();
    server.upload("a.example", &TestCert::new(&["a.example"])).expect_ok();
    drop(server);
    assert_eq!(Server::start().certs().len(), 1);
}

#[test]
fn database_is_one_versioned_file() {
    let data = TempDir::new().unwrap();
    let server = start_in(&data);
    let kill = Command::new("sh").args(["-c", &format!("kill -TERM {}", server.pid())]).status();
    assert!(kill.unwrap().success());
    assert_eq!(server.wait(), Some(0));
    let files: Vec<_> =
        std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["sandbox.sqlite3"]);
    let database = rusqlite::Connection::open(data.path().join("sandbox.sqlite3")).unwrap();
    let version = |database: &rusqlite::Connection| -> i64 {
        database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(&database), 1);
    database.pragma_update(None, "user_version", 2).unwrap();
    drop(database);

    let dir = TempDir::new().unwrap();
    let mut command = serve_command(&dir, &test_world().to_string());
    let (code, stderr) = fail_to_start(command.arg("--data").arg(data.path()));
    assert_eq!(code, Some(78), "{stderr}");
    assert!(stderr.contains("has schema version 2; this version reads up to 1"), "{stderr}");
}
