//! The system log: what failures and deployments write to journald and syslog.

mod journald;

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use crate::harness::{
    Hook, JOURNAL, Lineage, LogSocket, Output, SYSLOG, configured, edgecert, fresh, require,
    run_with_sockets, run_with_syslog, sandbox, sandbox_and_lineage, with_rejected_key,
};

/// Message IDs, on which filters of users depend.
const DEPLOYMENT_FAILED: &str = "e6653b9c1df44d4ebd9beeaa99bbc683";
const DEPLOYMENT_SUCCEEDED: &str = "d71c5ee529494199959a913ba18ea538";
const SYNC_FAILED: &str = "66902d5ca8aa4438b09432730e44f534";
const WARNING: &str = "04b00b43516e40028d217a646c6e45e7";

/// The fields of an entry.
type Fields = BTreeMap<String, String>;

/// The name of the only lineage in a state directory.
fn only_name(state: &TempDir) -> String {
    let names = fs::read_dir(state.path()).unwrap().map(|file| file.unwrap().file_name());
    let names: Vec<String> =
        names.filter_map(|name| name.to_str()?.strip_suffix(".json").map(Into::into)).collect();
    let [name] = names.as_slice() else { panic!("expected one state file: {names:?}") };
    name.clone()
}

/// Runs a hook and returns the fields of the entries that it sends to journald's socket.
fn run_with_journal(hook: Hook) -> (Output, Vec<Fields>) {
    let (journal, syslog) = (LogSocket::replacing(JOURNAL), LogSocket::replacing(SYSLOG));
    let output = run_with_sockets(&[&journal, &syslog], hook, &[]);
    assert_eq!(syslog.received(), Vec::<String>::new(), "journald passes entries on to syslog itself");
    let field = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    let entries = journal.received();
    assert!(entries.iter().all(|entry| !entry.contains("another-key-than-its")), "{entries:?}");
    (output, entries.iter().map(|entry| entry.lines().map(field).collect()).collect())
}

/// Expects an entry with these values.
#[track_caller]
fn assert_has(entry: &Fields, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = entry.get(*name).map(String::as_str);
        assert_eq!(found, Some(*value).filter(|value| !value.is_empty()), "{name}: {entry:?}");
    }
}

#[test]
fn only_changes_and_failures_are_logged() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let state = TempDir::new().unwrap();
    let call = |hook: Hook| run_with_journal(hook.with_state(state.path()));
    let (output, entries) = call(fresh(&service, &lineage));
    assert_eq!((output.code, entries.len()), (0, 1), "{entries:?}");
    let status = edgecert().with_state(state.path()).args(["status", "--json"]).succeeds();
    let name = status.json()["lineages"][0]["name"].as_str().unwrap().to_owned();
    assert_has(&entries[0], &[("EDGECERT_LINEAGE", &name)]);
    for (code, hook) in [
        (0, fresh(&service, &lineage)),
        (0, edgecert().against(&service).args(["sync"])),
        (77, with_rejected_key(&service, &lineage).args(["plan"])),
    ] {
        let (output, entries) = call(hook);
        assert_eq!((output.code, entries), (code, Vec::new()));
    }
}

#[test]
fn sync_logs_changed_and_failed_lineages() {
    let service = sandbox(&["a.example", "b.example"]);
    let lineages = ["a.example", "b.example", "c.example"].map(|name| Lineage::issued_for(&[name]));
    let hook = configured(edgecert().against(&service).args(["sync", "--json"]), &lineages.each_ref());
    let (output, logged) = run_with_journal(hook);
    let ids: Vec<&str> = logged.iter().map(|entry| entry["MESSAGE_ID"].as_str()).collect();
    assert_eq!(ids, [SYNC_FAILED, DEPLOYMENT_FAILED, DEPLOYMENT_SUCCEEDED, DEPLOYMENT_SUCCEEDED]);
    assert_has(&logged[0], &[("PRIORITY", "3"), ("EDGECERT_EXIT_CODE", "69"), ("EDGECERT_LINEAGE", "")]);
    let reported = output.json();
    let reported =
        reported["lineages"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap());
    let mut logged: Vec<&str> = logged[1..].iter().map(|entry| entry["EDGECERT_LINEAGE"].as_str()).collect();
    logged.sort_unstable();
    assert_eq!((output.code, logged), (69, reported.collect::<Vec<_>>()));
}

#[test]
fn full_journal_does_not_block() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let journal = LogSocket::replacing(JOURNAL).full();
    let hook = fresh(&service, &lineage);
    require("timeout", "coreutils");
    let output = run_with_sockets(&[&journal], hook, &["timeout", "120"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(journal.received().iter().all(|message| !message.contains("EDGECERT")));
}

#[test]
fn syslog_replaces_dead_journal() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let (output, lines) = run_with_syslog(fresh(&service, &lineage), &[]);
    assert_eq!((output.code, lines.len()), (0, 1), "{lines:?}");
    assert!(lines[0].starts_with("<30>edgecert["), "{lines:?}");
    assert!(lines[0].contains("]: deploy: ") && lines[0].ends_with(" served"), "{lines:?}");

    let (output, lines) = run_with_syslog(with_rejected_key(&service, &lineage), &[]);
    assert_eq!(output.code, 77);
    let [line] = lines.as_slice() else { panic!("expected one line: {lines:?}") };
    assert!(line.starts_with("<27>edgecert["), "{line}");
    assert!(
        line.contains("]: deploy of ") && line.contains(" failed with exit code 77; the service rejected")
    );
    assert!(!line.contains('\n') && !line.contains("another-key-than-its"), "{line}");
}

#[test]
fn lost_output_is_logged() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let wrapper = ["sh", "-c", "exec \"$0\" \"$@\" > /dev/full"];
    let hook = fresh(&service, &lineage);
    let (output, lines) = run_with_syslog(hook, &wrapper);
    assert_eq!((output.code, lines.len()), (0, 2), "{lines:?}");
    assert!(lines[0].starts_with("<28>edgecert["), "{lines:?}");
    assert!(lines[0].ends_with("]: cannot write standard output: No space left on device"), "{lines:?}");
}

#[test]
fn terminal_run_skips_system_log() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    require("script", "bsdutils");
    let wrapper = ["sh", "-c", "exec script -qec \"$0\" /dev/null"];
    let (output, lines) = run_with_syslog(with_rejected_key(&service, &lineage), &wrapper);
    assert_eq!((output.code, lines), (77, Vec::new()), "{}", output.stdout);
    output.prints(": the service rejected the API key");
}
