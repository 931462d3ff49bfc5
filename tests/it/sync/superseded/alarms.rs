//! A superseded lineage raises no alert, even if it is expired or gone.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Host, NAMES};
use crate::harness::{Lineage, configured, edgecert, edit_state, record_sync, state_files, upload_count};

/// The number of series that say that a site is superseded; the site has two series.
fn superseded_series(host: &Host) -> usize {
    let file = host.state.path().join("metrics");
    host.status(&["--metrics", file.to_str().unwrap()]).succeeds();
    let text = fs::read_to_string(&file).unwrap();
    let series: Vec<&str> = text.lines().filter(|line| line.starts_with("edgecert_superseded{")).collect();
    assert_eq!(series.len(), 2, "{text}");
    series.iter().filter(|line| line.ends_with(" 1")).count()
}

/// Makes the state say that the leaf on disk was deployed, as if it had expired since.
fn record_leaf_on_disk(lineage: &Lineage, host: &Host) {
    let check = edgecert().args(["check", "--json", "--lineage"]).args([lineage.path()]);
    let leaf = check.exits_with(65).json()["certificate"].clone();
    let cert = json!(lineage.file("fullchain.pem"));
    let mut files = state_files(host.state.path()).into_iter();
    let is_of_lineage = |file: &PathBuf| {
        let state: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        state["lineage"]["cert"] == cert
    };
    edit_state(&files.find(is_of_lineage).unwrap(), |state| {
        for field in ["fingerprint", "not_before", "not_after"] {
            state["certificate"][field] = leaf[field].clone();
        }
        for site in state["sites"].as_array_mut().unwrap() {
            site["leaf"] = leaf["fingerprint"].clone();
        }
    });
}

#[test]
fn superseded_lineage_raises_no_alert() {
    let host = Host::deployed();
    let expect_silence = |what: &str| {
        for _ in 0..2 {
            let output = host.sync().succeeds();
            assert_eq!(output.stderr, "", "{what}");
            let output = host.status(&["--check"]).run();
            assert!(
                output.code == 0 && output.stdout.starts_with("EDGECERT OK"),
                "{what}: {}",
                output.stdout
            );
        }
        assert_eq!(superseded_series(&host), 1, "{what}");
    };
    expect_silence("both are there");
    let text = host.status(&[]).succeeds().stdout;
    assert!(text.contains("superseded"), "{text}");

    host.older.renew_between(&NAMES, [-100, -10]);
    record_leaf_on_disk(&host.older, &host);
    expect_silence("expired");
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        fs::remove_file(host.older.file(name)).unwrap();
    }
    expect_silence("deleted");
    assert_eq!(upload_count(&host.service), 1);
}

#[test]
fn deleted_lineage_is_superseded_without_alert() {
    let host = Host::new(["older", "newer"]);
    host.deploy(&host.older).succeeds();
    host.deploy(&host.newer).succeeds();
    fs::remove_dir_all(host.older.path()).unwrap();
    for run in 0..3 {
        assert_eq!(host.sync().succeeds().stderr, "", "{run}");
        host.assert_deployed(&host.newer, &host.older);
    }
}

#[test]
fn doctor_only_warns() {
    let host = Host::deployed();
    let faults = |lineages: &[&Lineage]| {
        let hook = edgecert().against(&host.service).env("EDGECERT_STATE_DIR", host.state.path());
        let json = configured(hook.args(["doctor", "--json"]).on_host(), lineages).succeeds().json();
        let findings = json["findings"].as_array().unwrap().clone();
        let is_fault = |finding: &Value| finding["subject"] != "hook" && finding["status"] != "ok";
        findings.into_iter().filter(is_fault).collect::<Vec<_>>()
    };
    let expect_warning = |what: &str, lineages: &[&Lineage]| {
        let faults = faults(lineages);
        assert_eq!((faults.len(), &faults[0]["status"]), (1, &json!("warn")), "{what}: {faults:#?}");
        let detail = faults[0]["detail"].as_str().unwrap();
        let lineage = host.older.path().to_str().unwrap();
        assert!(detail.starts_with(&format!("{lineage} is superseded: ")), "{what}: {detail}");
    };
    let both = [&host.older, &host.newer];
    record_sync(host.state.path());
    expect_warning("configured", &both);
    expect_warning("deployed", &[]);
    host.older.renew_between(&NAMES, [-100, -10]);
    record_leaf_on_disk(&host.older, &host);
    expect_warning("expired", &both);
}
