//! `--data`: what was answered is there after any end.

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Made, Program, command, fails, world};

fn on(data: &TempDir) -> Program {
    Program::with(&world(), &["--data", data.path().to_str().unwrap(), "--push-seconds", "3600"])
}

#[test]
fn everything_is_there_after_sigkill_and_a_pending_push_goes_on() {
    let data = TempDir::new().unwrap();
    let (old, new) = (Made::for_names(&["a.example"]), Made::for_names(&["a.example"]));
    let program = on(&data);
    program.upload("a.example", &old).ok();
    program.push();
    program.upload("a.example", &new).ok();
    program.post("/api/sites", &json!({ "domain": "new.example", "remark": "kept" })).ok();
    program.api("DELETE", "/api/sites/12", None).ok();
    program.api("POST", "/api/sites/11/disable", None).ok();
    program.control("POST", "/packages/1", Some(&json!({ "traffic_used": 5 }))).ok();
    let sites = program.get("/api/me/sites");
    let edge = program.control("GET", "/edge", None).ok();
    program.strike();
    drop(program);

    let program = on(&data);
    assert_eq!(program.get("/api/me/sites"), sites);
    assert_eq!(program.control("GET", "/edge", None).ok(), edge);
    assert_eq!(program.served("a.example"), Some(old.fingerprint()), "not pushed yet");
    assert_eq!(program.site(10)["config_synced"], false);
    program.push();
    assert_eq!(program.served("a.example"), Some(new.fingerprint()));
    assert_eq!(program.get("/api/certs/1001/download")["key_pem"], new.key);
}

#[test]
fn a_second_process_on_the_same_directory_says_so_and_exits() {
    let data = TempDir::new().unwrap();
    let program = on(&data);
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("world.json"), world().to_string()).unwrap();
    let (code, said) = fails(command(&dir).arg("--data").arg(data.path()));
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains(&format!("another sandbox is using {}", data.path().display())), "{said}");
    program.upload("a.example", &Made::for_names(&["a.example"])).ok();
}

/// Who rehearses with a certificate of their own leaves its key there.
#[test]
fn the_directory_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let parent = TempDir::new().unwrap();
    let data = parent.path().join("new/data");
    let _program = Program::with(&world(), &["--data", data.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn without_data_nothing_is_kept() {
    let program = Program::start();
    program.upload("a.example", &Made::for_names(&["a.example"])).ok();
    drop(program);
    assert_eq!(Program::start().certs().len(), 1);
}

#[test]
fn the_database_is_one_file_with_a_schema_version() {
    let data = TempDir::new().unwrap();
    let program = on(&data);
    let kill = Command::new("kill").args(["-TERM", &program.pid().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(program.ended(), Some(0));
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
    std::fs::write(dir.path().join("world.json"), world().to_string()).unwrap();
    let (code, said) = fails(command(&dir).arg("--data").arg(data.path()));
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("has schema version 2, this sandbox knows versions up to 1"), "{said}");
}
