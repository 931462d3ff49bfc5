//! Which lineages `sync` looks after: those that were deployed and those of the configuration, whole or in shares.

use std::collections::BTreeSet;

use serde_json::Value;
use tempfile::TempDir;

use super::{LISTING, asked_during, deploy, is_fed_by, sync};
use crate::harness::{Hook, Lineage, asked, sandbox, uploads};

/// A configuration with these lineages.
fn configured(hook: Hook, lineages: &[&Lineage]) -> Hook {
    let entry = |lineage: &&Lineage| format!("[[lineage]]\npath = '{}'\n", lineage.path().display());
    let config = hook.file("config.toml", &lineages.iter().map(entry).collect::<String>());
    hook.args(["--config".as_ref(), config.as_os_str()])
}

#[test]
fn lineages_of_the_configuration_need_no_hook() {
    let (edge, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let (hooked, named) = (Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["b.example"]));
    deploy(&edge, &hooked, state.path()).succeeds();
    let call = || configured(sync(&edge, state.path()), &[&named, &hooked]).args(["--json"]);
    let outcome = call().succeeds();
    assert_eq!(outcome.json()["counts"]["total"], 2, "each lineage counts once");
    assert_eq!(outcome.json()["lineages"][0]["reason"], "never deployed before");
    assert!(is_fed_by(&edge, "b.example", &named));
    let (asked, _) = asked_during(&edge, || call().succeeds());
    assert_eq!(asked, LISTING);
}

#[test]
fn an_entry_that_leads_nowhere_is_a_failure_and_stops_nothing() {
    let (edge, state) = (sandbox(&["b.example"]), TempDir::new().unwrap());
    let (empty, named) = (Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["b.example"]));
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        std::fs::remove_file(empty.file(name)).unwrap();
    }
    let outcome = configured(sync(&edge, state.path()), &[&empty, &named]).fails_with(66);
    assert!(outcome.stderr.contains("is not a lineage"), "{}", outcome.stderr);
    assert!(is_fed_by(&edge, "b.example", &named));
}

#[test]
fn shares_are_stable_and_together_they_are_everything() {
    let domains: Vec<String> = (0..8).map(|n| format!("s{n}.example")).collect();
    let names: Vec<&str> = domains.iter().map(String::as_str).collect();
    let edge = sandbox(&names);
    let lineages: Vec<Lineage> = names.iter().map(|name| Lineage::issued_for(&[name])).collect();
    let mut seen = BTreeSet::new();
    for index in 0..3 {
        let deployed = [(), ()].map(|()| {
            let state = TempDir::new().unwrap();
            let shard = format!("{index}/3");
            let hook = sync(&edge, state.path()).args(["--shard", &shard, "--json"]);
            let outcome = configured(hook, &lineages.iter().collect::<Vec<_>>()).succeeds();
            let json = outcome.json();
            let names = json["lineages"].as_array().unwrap().iter().map(|entry| entry["name"].clone());
            names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        });
        assert_eq!(deployed[0], deployed[1]);
        for name in &deployed[0] {
            assert!(seen.insert(name.clone()), "{name} is in two shares");
        }
    }
    assert_eq!(seen.len(), 8);
    for wrong in ["3/3", "1", "0/0", "-1/2"] {
        let outcome = sync(&edge, edge_state().path()).args([format!("--shard={wrong}")]).fails_with(2);
        assert!(outcome.stderr.contains("expected I/N, with I from 0 to N-1"), "{}", outcome.stderr);
    }
}

fn edge_state() -> TempDir {
    TempDir::new().unwrap()
}

#[test]
fn lineages_of_one_site_are_deployed_one_after_the_other() {
    let (edge, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineages = [
        Lineage::issued_for(&["a.example", "b.example"]),
        Lineage::issued_for(&["b.example", "a.example"]),
        Lineage::issued_for(&["*.example"]),
    ];
    let hook = configured(sync(&edge, state.path()), &lineages.iter().collect::<Vec<_>>());
    let outcome = hook.args(["--json", "--allow-untrusted"]).run();
    let json = outcome.json();
    let codes: Vec<&Value> =
        json["lineages"].as_array().unwrap().iter().map(|entry| &entry["exit_code"]).collect();
    assert_eq!(edge.certs().len(), 1, "no record is made that nothing uses: {codes:?}");
    assert_eq!(uploads(&edge), 3);
    let listings = asked(&edge).iter().filter(|request| *request == "GET /api/certs").count();
    assert_eq!(listings, 3, "those that come after another one look again");
}

#[test]
fn an_entry_holds_for_its_lineage_by_whatever_path_the_client_calls_it() {
    let (edge, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    let links = TempDir::new().unwrap();
    let link = links.path().join("live");
    std::os::unix::fs::symlink(lineage.path(), &link).unwrap();
    let entry = format!("[[lineage]]\npath = '{}'\ndomains = ['a.example']\n", lineage.path().display());
    let configured = |hook: Hook| {
        let config = hook.file("config.toml", &entry);
        hook.args(["--config".as_ref(), config.as_os_str()])
    };
    let hook = deploy(&edge, &lineage, state.path()).env("RENEWED_LINEAGE", &link);
    configured(hook).succeeds();
    let (asked, outcome) =
        asked_during(&edge, || configured(sync(&edge, state.path())).args(["--json"]).succeeds());
    assert_eq!(asked, LISTING);
    assert_eq!(outcome.json()["counts"]["total"], 1, "each lineage counts once");
}
