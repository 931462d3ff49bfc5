//! The inventory of `sync`: lineages deployed before and lineages configured, all or one shard.

use std::collections::BTreeSet;
use std::path::Path;

use tempfile::TempDir;

use crate::harness::{
    Fleet, Host, Lineage, configured, deploy, is_bound_to, request_lines, sandbox, sync, upload_count,
};

#[test]
fn configured_lineages_need_no_hook() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let (hooked, named) = (Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["b.example"]));
    deploy(&service, &hooked, state.path()).succeeds();
    let call = || configured(sync(&service, state.path()), &[&named, &hooked]).args(["--json"]);
    let json = call().succeeds().json();
    assert_eq!(json["counts"]["total"], 2, "each lineage counts once");
    assert_eq!(json["lineages"][0]["reason"], "never deployed before");
    assert!(is_bound_to(&service, "b.example", &named));
    call().only_lists(&service);
}

#[test]
fn broken_entry_stops_no_other() {
    let (service, state) = (sandbox(&["b.example"]), TempDir::new().unwrap());
    let (empty, named) = (Lineage::issued_for(&["a.example"]), Lineage::issued_for(&["b.example"]));
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        std::fs::remove_file(empty.file(name)).unwrap();
    }
    configured(sync(&service, state.path()), &[&empty, &named]).exits_with(66).says("is not a lineage");
    assert!(is_bound_to(&service, "b.example", &named));
}

#[test]
fn shards_are_stable_and_complete() {
    let fleet = Fleet::new(8);
    let service = sandbox(&fleet.names());
    let mut seen = BTreeSet::new();
    for index in 0..3 {
        let deployed = [(), ()].map(|()| {
            let state = TempDir::new().unwrap();
            let shard = format!("{index}/3");
            let hook = fleet.sync(&service).with_state(state.path());
            let json = hook.args(["--shard", &shard, "--json"]).succeeds().json();
            let names = json["lineages"].as_array().unwrap().iter().map(|entry| entry["name"].clone());
            names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        });
        assert_eq!(deployed[0], deployed[1]);
        for name in &deployed[0] {
            assert!(seen.insert(name.clone()), "{name} is in two shards");
        }
    }
    assert_eq!(seen.len(), 8);
    sync(&service, Path::new("state"))
        .args(["--shard", "3/3"])
        .exits_with(2)
        .says("expected I/N, with I from 0");
}

#[test]
fn lineages_of_one_site_run_in_turn() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineages = [
        Lineage::issued_for(&["a.example", "b.example"]),
        Lineage::issued_for(&["b.example", "a.example"]),
        Lineage::issued_for(&["*.example"]),
    ];
    configured(sync(&service, state.path()), &lineages.iter().collect::<Vec<_>>()).succeeds();
    assert_eq!(service.certs().len(), 1, "no record is made that nothing uses");
    assert_eq!(upload_count(&service), 1, "the others are superseded");
    let listings = request_lines(&service).iter().filter(|request| *request == "GET /api/certs").count();
    assert_eq!(listings, 3, "those that come after another one look again");
}

#[test]
fn entry_matches_any_path_of_its_lineage() {
    let host = Host::with(&["a.example", "b.example"], &["a.example", "b.example"]);
    let links = TempDir::new().unwrap();
    let link = links.path().join("live");
    std::os::unix::fs::symlink(host.lineage.path(), &link).unwrap();
    let entry = format!("[[lineage]]\npath = '{}'\ndomains = ['a.example']\n", host.lineage.path().display());
    host.hook().env("RENEWED_LINEAGE", &link).with_config(&entry).succeeds();
    let output = host.sync().with_config(&entry).args(["--json"]).only_lists(&host.service);
    assert_eq!(output.json()["counts"]["total"], 1, "each lineage counts once");
}
