//! A superseded lineage raises no alert, even if it is expired or gone.

use std::fs;

use serde_json::{Value, json};

use super::{NAMES, Pair};
use crate::harness::{Lineage, configured, edgecert, edit_state, record_sync, state_files};

/// The number of series that say that a site is superseded; the site has two series.
fn superseded_series(pair: &Pair) -> usize {
    let file = pair.host.state().join("metrics");
    pair.status(&["--metrics", file.to_str().unwrap()]).succeeds();
    let text = fs::read_to_string(&file).unwrap();
    let series: Vec<&str> = text.lines().filter(|line| line.starts_with("edgecert_superseded{")).collect();
    assert_eq!(series.len(), 2, "{text}");
    series.iter().filter(|line| line.ends_with(" 1")).count()
}

/// Makes the state say that the leaf on disk was deployed, as if it had expired since.
fn record_leaf_on_disk(lineage: &Lineage, pair: &Pair) {
    let check = edgecert().args(["check", "--json", "--lineage"]).args([lineage.path()]);
    let leaf = check.exits_with(65).json()["certificate"].clone();
    let cert = json!(lineage.file("fullchain.pem"));
    for file in state_files(pair.host.state()) {
        edit_state(&file, |state| {
            if state["lineage"]["cert"] == cert {
                for field in ["fingerprint", "not_before", "not_after"] {
                    state["certificate"][field] = leaf[field].clone();
                }
                for site in state["sites"].as_array_mut().unwrap() {
                    site["leaf"] = leaf["fingerprint"].clone();
                }
            }
        });
    }
}

#[test]
fn superseded_lineage_raises_no_alert() {
    let pair = Pair::deployed();
    let expect_silence = |what: &str| {
        for _ in 0..2 {
            let output = pair.sync().succeeds();
            assert_eq!(output.stderr, "", "{what}");
            let output = pair.status(&["--check"]).run();
            let is_ok = output.code == 0 && output.stdout.starts_with("EDGECERT OK");
            assert!(is_ok, "{what}: {}", output.stdout);
        }
        assert_eq!(superseded_series(&pair), 1, "{what}");
    };
    expect_silence("both are there");
    pair.status(&[]).succeeds().prints("superseded");

    pair.older().renew_between(&NAMES, [-100, -10]);
    record_leaf_on_disk(pair.older(), &pair);
    expect_silence("expired");
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        fs::remove_file(pair.older().file(name)).unwrap();
    }
    expect_silence("deleted");
    assert_eq!(pair.upload_count(), 1);
}

#[test]
fn deleted_lineage_is_superseded_without_alert() {
    let pair = Pair::deployed_in_order();
    fs::remove_dir_all(pair.older().path()).unwrap();
    for run in 0..3 {
        assert_eq!(pair.sync().succeeds().stderr, "", "{run}");
        pair.assert_deployed(&pair.newer, pair.older());
    }
}

#[test]
fn doctor_only_warns() {
    let pair = Pair::deployed();
    let faults = |lineages: &[&Lineage]| {
        let hook = edgecert().against(&pair.host.service).with_state(pair.host.state());
        let json = configured(hook.args(["doctor", "--json"]).on_host(), lineages).succeeds().json();
        let findings = json["findings"].as_array().unwrap().clone();
        let is_fault = |finding: &Value| finding["subject"] != "hook" && finding["status"] != "ok";
        findings.into_iter().filter(is_fault).collect::<Vec<_>>()
    };
    let expect_warning = |what: &str, lineages: &[&Lineage]| {
        let faults = faults(lineages);
        assert_eq!((faults.len(), &faults[0]["status"]), (1, &json!("warn")), "{what}: {faults:#?}");
        let detail = faults[0]["detail"].as_str().unwrap();
        let lineage = pair.older().path().to_str().unwrap();
        assert!(detail.starts_with(&format!("{lineage} is superseded: ")), "{what}: {detail}");
    };
    let both = [pair.older(), &pair.newer];
    record_sync(pair.host.state());
    expect_warning("configured", &both);
    expect_warning("deployed", &[]);
    pair.older().renew_between(&NAMES, [-100, -10]);
    record_leaf_on_disk(pair.older(), &pair);
    expect_warning("expired", &both);
}
