//! `edgecert sync` finishes what a failed or missing hook left pending; an unchanged inventory costs one listing.

mod by_hand;
mod content_drift;
mod crowd;
mod damaged;
mod drift;
mod expired;
mod fleet;
mod last_sync;
mod misuse;
mod race;
mod rest;
mod superseded;
mod trickle;
mod waits;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{
    Host, LISTING, Lineage, assert_contains, deploy, edgecert, request_lines, requests_during, sandbox, sync,
    upload_count,
};

/// The only file in a state directory with an extension.
fn file(state: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(state).unwrap().map(|file| file.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|other| other == ending)).unwrap()
}

#[test]
fn pending_deployment_is_finished_once() {
    let host = Host::new();
    host.hook().fails_temporarily(&host.service).says("hint: run `edgecert sync` to retry");

    // The environment of both calls names the service.
    let output = host.sync().succeeds();
    output.prints("(pending since ");
    let shown = output.shown();
    assert!(shown.ends_with("a.example served\n1 lineage: 1 deployed (TIME)\n"), "{shown}");
    assert!(host.is_bound("a.example"));

    let output = host.sync().args(["--json"]).only_lists(&host.service);
    let counts = json!({"total": 1, "unchanged": 1, "deployed": 0, "failed": 0, "gone": 0, "superseded": 0});
    assert_eq!((&output.json()["counts"], &output.json()["lineages"]), (&counts, &json!([])));
}

#[test]
fn sync_that_cannot_start_reports_no_counts() {
    let json = edgecert().args(["sync", "--json", "--config", "/nonexistent"]).exits_with(78).json();
    let fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["command", "error", "exit_code", "ok", "version", "warnings"]);
}

#[test]
fn renewal_without_hook_is_found() {
    let host = Host::deployed();
    host.lineage.renew(&["a.example"]);
    let output = host.sync().args(["--json"]).succeeds();
    let entry = json!({"state": "deployed", "reason": "renewed", "sites": [{"outcome": "served"}]});
    assert_contains(&output.json()["lineages"][0], &entry);
    assert!(host.is_bound("a.example"));
    assert_eq!(host.service.certs().len(), 1);
}

#[test]
fn failure_before_requests_is_retried() {
    let host = Host::new();
    host.hook().without_env("EDGECERT_API_KEY").exits_with(78);
    assert_eq!(request_lines(&host.service).len(), 0);
    host.sync().succeeds();
    assert!(host.is_bound("a.example"));
}

#[test]
fn hook_options_are_reused() {
    let host = Host::with(&["a.example", "b.example"], &["a.example", "b.example"]);
    let service = host.service.endpoints();
    host.lineage.write("key", &service.api_key);
    let hook = host.hook().without_env("EDGECERT_BASE_URL").without_env("EDGECERT_API_KEY");
    let hook =
        hook.args(["--base-url", &service.api, "--domain", "b.example", "--wait", "0", "--api-key-file"]);
    hook.args([host.lineage.file("key")]).fails_temporarily_at(&host.service, "POST /api/certs/upload");
    // Neither the service, nor the key file, nor the domain is given again.
    // The key in this environment belongs to another service and must not be sent to this one.
    let again = host.sync().without_env("EDGECERT_BASE_URL").env("EDGECERT_API_KEY", "another-key");
    again.succeeds().prints("b.example served");
    assert!(host.is_bound("b.example") && host.service.certs().len() == 1);
}

#[test]
fn unavailable_service_is_reported_once() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineages = [Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["b.example"])];
    for lineage in &lineages {
        deploy(&service, lineage, state.path()).succeeds();
    }
    let output = sync(&service, state.path()).fails_temporarily(&service);
    let errors = output.stderr.lines().filter(|line| line.contains("error: ")).collect::<Vec<_>>();
    assert_eq!(errors.len(), 1, "{}", output.stderr);
    assert!(errors[0].ends_with("; 2 lineages were not checked"), "{}", output.stderr);
    sync(&service, state.path()).only_lists(&service);
}

#[test]
fn missing_files_are_reported_once() {
    let host = Host::deployed();
    host.lineage.rename("fullchain.pem", "away.pem");
    let output = host.sync().exits_with(66);
    output.says("the files of the lineage are missing");
    output.says("`edgecert status --forget ");
    // Leaving them alone needs neither the service nor a key.
    let again = || host.sync().without_env("EDGECERT_API_KEY").succeeds();
    let (requests, output) = requests_during(&host.service, again);
    assert_eq!((requests.len(), output.shown().as_str()), (0, "1 lineage: 1 gone (TIME)\n"));
    // The files are back, renewed.
    host.lineage.renew(&["a.example"]);
    host.sync().succeeds();
    assert!(host.is_bound("a.example"));
    assert_eq!(upload_count(&host.service), 2);
}

#[test]
fn unwritable_state_directory_stops_sync() {
    let service = sandbox(&["a.example"]);
    let output = sync(&service, Path::new("/dev/null/state")).exits_with(78);
    output.says("cannot write ").says("hint: name another directory with --state-dir");
    assert_eq!(output.stderr.matches("edgecert: error: ").count(), 1, "{}", output.stderr);
    assert_eq!(request_lines(&service).len(), 0);
}

#[test]
fn empty_inventory_is_no_failure() {
    edgecert().args(["sync"]).succeeds().says("no lineage was ever deployed");
}

#[test]
fn unchanged_cert_finishes_pending_work() {
    let host = Host::new();
    let call = |operation: &str| host.call().called_by_dehydrated(operation, &host.lineage);
    call("unchanged_cert").succeeds();
    assert_eq!(upload_count(&host.service), 1, "a lineage without state is deployed");
    assert_eq!(call("unchanged_cert").only_lists(&host.service).stdout, "");
    host.lineage.renew(&["a.example"]);
    call("deploy_cert").fails_temporarily(&host.service);
    call("unchanged_cert").succeeds().prints("* served    a.example");
    assert!(host.is_bound("a.example"));
}

#[test]
fn unreadable_state_file_stops_no_other() {
    let host = Host::deployed();
    fs::write(host.state().join("later.json"), r#"{"version":99}"#).unwrap();
    fs::create_dir(host.state().join("other.json")).unwrap();
    host.lineage.renew(&["a.example"]);
    host.sync().exits_with(78).says("other.json: it is a directory; its lineage was not checked");
    assert!(host.is_bound("a.example"));
}

#[test]
fn key_is_never_sent_to_another_service() {
    let host = Host::new();
    // The hook named another service than the configuration, with a key of its own.
    host.hook().fails_temporarily(&host.service);
    let later = host.sync().without_env("EDGECERT_BASE_URL").env("EDGECERT_API_KEY", "for-the-other");
    let later = later.with_config("base_url = \"https://127.0.0.1:1\"\n");
    let (requests, output) = requests_during(&host.service, || later.exits_with(78));
    assert_eq!(requests, Vec::<String>::new());
    let url = &host.service.endpoints().api;
    output.says(format!("the configured API key is for https://127.0.0.1:1, not for {url}\n"));
    output.says(format!("hint: pass --base-url {url} and --api-key-file FILE"));
}
