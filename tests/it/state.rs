//! State files: the intent before the first request, the result after the last, one run at a time.

mod hostile;
mod memory;
mod paths;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Hook, Host, Lineage, assert_contains, configured, deploy, fresh, sandbox, sandbox_and_lineage,
    state_files, upload_count,
};

/// The contents of the only state file in a directory.
fn only_state(state: &Path) -> Value {
    serde_json::from_slice(&fs::read(state_files(state).remove(0)).unwrap()).unwrap()
}

/// Starts a hook and reads its standard error up to a line that contains `text`.
fn start_until(hook: &mut Hook, text: &str) -> (Child, BufReader<ChildStderr>) {
    let command = hook.command().arg("-v").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended without printing {text:?}");
    }
    (child, stderr)
}

#[test]
fn state_file_records_the_deployment() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let directory = state.path().join("new/edgecert");
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = deploy(&service, &lineage, &directory).args(["--json"]).succeeds();
    let only_state = only_state(&directory);
    let fingerprint = &output.json()["certificate"]["fingerprint"];
    let expected = json!({
        "certificate": {"fingerprint": fingerprint}, "generation": 1, "pending_since": null, "result": {"exit_code": 0},
        "lineage": {"client": "certbot", "key": lineage.file("privkey.pem")}, "sites": [{"outcome": "served"}],
    });
    assert_contains(&only_state, &expected);

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for file in fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()) {
        assert_eq!(mode(&file), if file.is_dir() { 0o700 } else { 0o600 });
    }
    lineage.renew(&["a.example"]);
    deploy(&service, &lineage, &directory).succeeds();
    assert_eq!(self::only_state(&directory)["generation"], 2);
}

#[test]
fn intent_precedes_the_first_request() {
    let host = Host::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut hook = host.hook().env("EDGECERT_BASE_URL", url);
    let mut child = hook.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The connection is the first effect outside of this host.
    let connection = listener.accept().unwrap();
    let intent = host.recorded();
    child.kill().unwrap();
    child.wait().unwrap();
    drop(connection);
    assert_eq!((&intent["result"], &intent["generation"]), (&json!(null), &json!(1)));
    assert!(intent["pending_since"].is_string());
    assert_eq!(intent["certificate"]["names"], json!(["a.example"]));
    assert_eq!(host.recorded(), intent, "and after the run was killed");

    host.hook().succeeds();
    assert_eq!(host.recorded()["result"]["exit_code"], 0, "its lock did not outlive it");
}

#[test]
fn failure_stays_pending_with_reason() {
    let host = Host::new();
    let call = || host.hook().args(["--timeout", "1"]);
    call().env("EDGECERT_BASE_URL", "http://127.0.0.1:1").exits_with(75);
    let first = host.recorded();
    assert_eq!(first["result"]["exit_code"], 75);
    assert!(first["result"]["error"].as_str().unwrap().contains("cannot reach the service at"), "{first}");
    call().env("EDGECERT_API_KEY", "another").exits_with(77);
    let second = host.recorded();
    assert_eq!(second["pending_since"], first["pending_since"]);
    host.hook().succeeds();
    let done = host.recorded();
    assert_eq!((&done["pending_since"], &done["last_success"]), (&json!(null), &done["result"]["at"]));
}

#[test]
fn concurrent_runs_upload_once() {
    let host = Host::new();
    host.service.hold_pushes(true);
    let mut hooks: Vec<Hook> = (0..8).map(|_| host.hook().args(["--json"])).collect();
    let (first, others) = hooks.split_first_mut().unwrap();
    let mut running = vec![start_until(first, "waiting for the edge")];
    running.extend(others.iter_mut().map(|hook| start_until(hook, "waiting for another run")));
    host.service.hold_pushes(false);
    for (child, mut stderr) in running {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut rest).unwrap();
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let outcome = (&report["exit_code"], &report["sites"][0]["outcome"]);
        assert_eq!(outcome, (&json!(0), &json!("served")), "{rest}");
    }
    assert_eq!((upload_count(&host.service), host.service.certs().len()), (1, 1));
}

#[test]
fn waiting_run_deploys_a_newer_leaf() {
    let host = Host::new();
    host.service.hold_pushes(true);
    let [mut first, mut second] = [(), ()].map(|()| host.hook());
    let (one, _stderr) = start_until(&mut first, "waiting for the edge");
    let (other, _other_stderr) = start_until(&mut second, "waiting for another run");
    host.lineage.renew(&["a.example"]);
    host.service.hold_pushes(false);
    for child in [one, other] {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(host.service.certs()[0]["cert_pem"], host.lineage.read("fullchain.pem"));
    assert_eq!(host.recorded()["generation"], 2);
}

#[test]
fn lock_wait_ends_at_the_deadline() {
    let host = Host::new();
    host.service.hold_pushes(true);
    let mut first = host.hook();
    let (mut child, _stderr) = start_until(&mut first, "waiting for the edge");
    host.hook()
        .args(["--timeout", "1"])
        .exits_with(75)
        .says("another run of edgecert is still deploying")
        .says("its options were not recorded");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(upload_count(&host.service), 1);
}

#[test]
fn missing_state_directory_is_a_warning() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let hook = fresh(&service, &lineage);
    let file = hook.write_file("not-a-directory", "");
    let output = hook.with_state(file.join("state")).succeeds();
    output.says("warning: this deployment is not recorded: cannot write ").prints("* served    a.example");
}

#[test]
fn damaged_state_file_is_quarantined() {
    let host = Host::deployed();
    let file = host.state_file();
    fs::write(&file, "{\"version\":1,").unwrap();
    host.hook().succeeds().says("is not a valid state file; renamed to");
    assert_eq!(fs::read_to_string(file.with_extension("damaged")).unwrap(), "{\"version\":1,");
    assert_eq!(host.recorded()["result"]["exit_code"], 0);
}

#[test]
fn damaged_state_of_another_lineage_is_reported() {
    let host = Host::new();
    fs::write(host.state().join("other.json"), "{").unwrap();
    host.hook().succeeds().says("other.json is not a valid state file; renamed to");
}

#[test]
fn plan_takes_no_lock_and_writes_nothing() {
    let host = Host::new();
    let directory = host.state().join("state");
    deploy(&host.service, &host.lineage, &directory).args(["plan"]).succeeds();
    assert!(!directory.exists());

    host.service.hold_pushes(true);
    let mut running = deploy(&host.service, &host.lineage, &directory);
    let (mut child, _stderr) = start_until(&mut running, "waiting for the edge");
    let before = only_state(&directory);
    deploy(&host.service, &host.lineage, &directory).args(["plan"]).succeeds();
    assert_eq!(only_state(&directory), before);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn state_of_later_release_is_untouched() {
    let host = Host::deployed();
    let file = host.state_file();
    let later = "{\"version\":300,\"lineages\":{}}";
    fs::write(&file, later).unwrap();
    host.status(&[]).exits_with(78).says("has version 300; this edgecert reads versions up to 1");
    host.lineage.renew(&["a.example"]);
    host.hook().succeeds().says("its contents cannot be read and are kept");
    let output = configured(host.sync(), &[&host.lineage]).exits_with(78);
    output.says("has version 300").says("hint: run the release of edgecert that wrote it");
    assert!(!output.stderr.contains("space") && !output.stderr.contains("writable"), "{}", output.stderr);
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), upload_count(&host.service)), (later, 2));
}
