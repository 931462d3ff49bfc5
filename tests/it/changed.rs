//! `changed` in the reports of `deploy`, `plan` and `sync`: whether the run sent anything that changes the service.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Fault, Hook, Lineage, Sandbox, account, configured, deploy, edgecert, fresh, record, sandbox,
    sandbox_and_lineage, sync, upload_count,
};

const UPLOAD: &str = "POST /api/certs/upload";

/// Prepares the service and the run.
type Change = fn(&Sandbox, Hook) -> Hook;

/// Name, change, exit code, and `changed` of `deploy` and of `plan`.
type Row = (&'static str, Change, i32, bool, bool);

const ROWS: [Row; 9] = [
    ("first upload", |_, hook| hook, 0, true, true),
    ("bare upload", |_, hook| hook.args(["--domain", "a.example", "--wait", "0"]), 0, true, true),
    ("response lost once", |service, hook| faulty(service, hook, Fault::close_after(UPLOAD)), 0, true, true),
    (
        "no response",
        |service, hook| faulty(service, hook, Fault::close_after(UPLOAD).times(99)),
        75,
        true,
        true,
    ),
    (
        "cut short",
        |service, hook| faulty(service, hook, Fault::truncate(UPLOAD, 5).times(99)),
        75,
        true,
        true,
    ),
    ("rejected", |service, hook| faulty(service, hook, Fault::status(UPLOAD, 400)), 69, false, true),
    ("key rejected", |_, hook| hook.env("EDGECERT_API_KEY", "wrong"), 77, false, false),
    ("no such site", |_, hook| hook.args(["--domain", "b.example"]), 69, false, false),
    ("check failed", |_, hook| hook.args(["--domain", "c.example"]), 65, false, false),
];

fn faulty(service: &Sandbox, hook: Hook, fault: Fault) -> Hook {
    service.add_fault(fault);
    hook.args(["--timeout", "2", "--wait", "1"])
}

/// A call without state.
fn call(service: &Sandbox, lineage: &Lineage, command: &str) -> Hook {
    fresh(service, lineage).args([command, "--json"])
}

#[test]
fn deployment_says_whether_it_changed_anything() {
    for (name, change, code, changed, planned) in ROWS {
        let lineage = Lineage::issued_for(&["a.example", "b.example"]);
        for (command, expected) in [("deploy", changed), ("plan", planned)] {
            let service = sandbox(&["a.example"]);
            let output = change(&service, call(&service, &lineage, command)).run();
            assert_eq!(output.json()["changed"], expected, "{name}: {command}: {}", output.stderr);
            if command == "deploy" {
                assert_eq!(output.code, code, "{name}: {}", output.stderr);
            }
        }
    }
}

#[test]
fn repeated_deployment_changes_nothing() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    call(&service, &lineage, "deploy").succeeds();
    for command in ["deploy", "plan"] {
        assert_eq!(call(&service, &lineage, command).succeeds().json()["changed"], false, "{command}");
        let forced = call(&service, &lineage, command).args(["--force"]).succeeds();
        assert_eq!(forced.json()["changed"], true, "{command} --force");
    }
}

#[test]
fn guarded_deployment_changes_nothing() {
    let service = account(&[(10, "a.example", Some(5))], &[record(5, "a.example", "lets")]);
    let lineage = Lineage::issued_for(&["a.example"]);
    for command in ["deploy", "plan"] {
        assert_eq!(call(&service, &lineage, command).exits_with(65).json()["changed"], false, "{command}");
    }
    let sync = configured(edgecert().against(&service).args(["sync", "--json"]), &[&lineage]);
    let json = sync.exits_with(65).json();
    assert_eq!((&json["changed"], &json["lineages"][0]["changed"]), (&json!(false), &json!(false)));
}

#[test]
fn sync_says_which_lineages_it_changed() {
    let (service, state) = (sandbox(&["a.example", "b.example", "c.example"]), TempDir::new().unwrap());
    let lineages = ["a.example", "b.example", "c.example"].map(|domain| Lineage::issued_for(&[domain]));
    // Another host has the same lineage.
    deploy(&service, &lineages[0], TempDir::new().unwrap().path()).succeeds();
    service.add_fault(Fault::status(UPLOAD, 400));
    let all: Vec<&Lineage> = lineages.iter().collect();
    let run = || configured(sync(&service, state.path()), &all).args(["--json"]);
    let json = run().exits_with(69).json();
    assert_eq!(json["changed"], true);
    let mut changes: Vec<(usize, bool)> =
        json["lineages"].as_array().unwrap().iter().map(change_of).collect();
    changes.sort_unstable();
    assert_eq!(changes, [(0, false), (1, false), (1, true)], "served before, rejected, uploaded");
    assert_eq!(run().succeeds().json()["changed"], true, "what was rejected is sent again");
    assert_eq!(run().succeeds().json()["changed"], false);
    assert_eq!(upload_count(&service), 4);
}

/// The number of uploads of a lineage, and what it says about changes.
fn change_of(lineage: &Value) -> (usize, bool) {
    (lineage["uploads"].as_array().unwrap().len(), lineage["changed"].as_bool().unwrap())
}
