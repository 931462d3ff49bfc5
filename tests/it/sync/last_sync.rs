//! The record of the last `sync`: each run that ends replaces it, and `status` shows it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Hook, Host, Lineage, Output, configured, deploy, edgecert, requests_during, sandbox, scrub_times,
    set_back_file, state_files, sync,
};

/// `status` of a state directory.
fn status(state: &Path, arguments: &[&str]) -> Output {
    edgecert().with_state(state).args(["status"]).args(arguments).succeeds()
}

/// The field `last_sync` of `status --json`.
fn last_sync(state: &Path) -> Value {
    status(state, &["--json"]).json()["last_sync"].clone()
}

/// The last line of `status`.
fn last_line(state: &Path) -> String {
    let stdout = status(state, &[]).stdout;
    scrub_times(stdout.lines().find(|line| line.contains("last sync: ")).unwrap())
}

/// The lines of `status --metrics` about the last `sync`, without their comments.
fn metrics(state: &Path) -> Vec<String> {
    let file = state.join("metrics");
    status(state, &["--metrics", file.to_str().unwrap()]);
    let text = fs::read_to_string(file).unwrap();
    text.lines().filter(|line| line.starts_with("edgecert_last_sync")).map(str::to_owned).collect()
}

/// A `sync` of one lineage to a service that cannot be reached.
fn failing_sync(state: &Path, lineage: &Lineage) -> Hook {
    let hook = edgecert().with_state(state).env("EDGECERT_API_KEY", "a-key-of-this-test");
    let hook = hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").args(["sync", "--timeout", "1"]);
    configured(hook, &[lineage])
}

#[test]
fn each_sync_is_recorded() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let (state, lineage) = (state.path(), Lineage::issued_for(&["a.example"]));
    deploy(&service, &lineage, state).succeeds();
    assert_eq!((last_line(state), metrics(state)), ("~ last sync: never".into(), Vec::new()));
    assert_eq!(last_sync(state), Value::Null);

    sync(&service, state).succeeds();
    assert_eq!(last_line(state), "last sync: TIME ago, exit code 0");
    let json = last_sync(state);
    let fields = json!({"at": json["at"], "exit_code": 0, "message": null, "failing_since": null});
    assert_eq!(json, fields);
    let at = json["at"].as_str().unwrap();
    let at = time::OffsetDateTime::parse(at, &time::format_description::well_known::Rfc3339).unwrap();
    let time = format!("edgecert_last_sync_timestamp_seconds {}", at.unix_timestamp());
    assert_eq!(metrics(state), [&*time, "edgecert_last_sync_exit_code 0"]);

    set_back_file(&state.join("last-sync"), 30 * 3_600);
    status(state, &[]).prints("\nx last sync: 30 hours ago, exit code 0\n    sync last ran 30 hours ago; ");
    lineage.renew(&["a.example"]);
    failing_sync(state, &lineage).exits_with(75);
    assert_eq!(last_line(state), "~ last sync: TIME ago, exit code 75");
    assert_eq!(metrics(state)[1], "edgecert_last_sync_exit_code 75");
    assert_eq!(last_sync(state)["failing_since"], last_sync(state)["at"]);
}

#[test]
fn configuration_error_is_recorded() {
    let state = TempDir::new().unwrap();
    let hook = edgecert().without_env("EDGECERT_STATE_DIR").args(["sync"]);
    let text = format!("state_dir = '{}'\nbasurl = 1\n", state.path().display());
    hook.with_config(&text).exits_with(78);
    let json = last_sync(state.path());
    assert_eq!(json["exit_code"], 78);
    let message = json["message"].as_str().unwrap();
    assert!(message.ends_with("config.toml:2: unknown key `basurl`"), "{message}");
}

#[test]
fn hooks_and_usage_errors_are_not_recorded() {
    let host = Host::deployed();
    let call = || host.call();
    call().called_by_dehydrated("unchanged_cert", &host.lineage).succeeds();
    call().args(["sync", "--no-such-flag"]).exits_with(2);
    call().args(["plan", "--lineage", host.lineage.path().to_str().unwrap()]).succeeds();
    assert_eq!(last_sync(host.state()), Value::Null);
}

#[test]
fn oldest_shard_counts() {
    let state = TempDir::new().unwrap();
    let state = state.path();
    let shard = |shard: &str| edgecert().with_state(state).args(["sync", "--shard", shard]);
    shard("0/2").succeeds();
    set_back_file(&state.join("last-sync-0-of-2"), 7 * 3_600);
    shard("1/2").succeeds();
    status(state, &[]).prints("last sync: 7 hours ago, exit code 0\n");
}

#[test]
fn killed_sync_is_not_recorded() {
    let (service, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let (state, trace) = (home.path().join("state"), home.path().join("trace"));
    let lineage = Lineage::issued_for(&["a.example"]);
    deploy(&service, &lineage, &state).succeeds();
    failing_sync(&state, &lineage).exits_with(75);
    let record = || fs::read_to_string(state.join("last-sync")).unwrap();
    let before = record();
    let run = |options: &[&str]| {
        let strace = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap()];
        sync(&service, &state).under(&[&strace, options].concat()).command().output().unwrap().status
    };
    // Killed while it works: nothing of the run is recorded.
    lineage.renew(&["a.example"]);
    let (requests, status) = requests_during(&service, || run(&["-e", "inject=connect:signal=KILL:when=1"]));
    assert!(!status.success() && requests.is_empty(), "{requests:?}");
    assert_eq!(record(), before);
    // Killed at each write: the record is the old one, or that of the whole run.
    let mut killed = 0;
    for name in ["fsync", "rename"] {
        for count in 1.. {
            let old = record();
            let status = run(&["-e", &format!("inject={name}:signal=KILL:when={count}")]);
            let new = record();
            if status.success() {
                break;
            }
            killed += 1;
            let last: Value = serde_json::from_str(&new).unwrap();
            assert!(new == old || last["exit_code"] == 0, "{name} {count}: {new}");
        }
    }
    assert!(killed >= 4, "{killed}");
    assert!(state.join("last-sync.new").symlink_metadata().is_err(), "the next run removes what is left");
    assert_eq!(state_files(&state).len(), 1);
}

#[test]
fn unusable_record_is_a_warning() {
    let state = TempDir::new().unwrap();
    let state = state.path();
    let record = state.join("last-sync");
    let sync = || edgecert().with_state(state).args(["sync"]);
    fs::write(&record, "garbage").unwrap();
    status(state, &[]).says("is not a valid record of a sync: it is damaged; the next sync replaces it");
    sync().succeeds();
    assert_eq!(last_line(state), "last sync: TIME ago, exit code 0");
    let later = r#"{"version":2,"when":"today"}"#;
    fs::write(&record, later).unwrap();
    let output = status(state, &[]);
    output.says("has version 2; this edgecert reads versions up to 1").prints("~ last sync: unknown\n");
    assert!(metrics(state).is_empty());
    sync().exits_with(78).says("last-sync: its contents cannot be read and are kept");
    assert_eq!(fs::read_to_string(&record).unwrap(), later);
}
