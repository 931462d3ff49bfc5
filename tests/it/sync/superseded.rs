//! Two lineages for one site: the one issued later is deployed, the other one is superseded.

mod alarms;

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    DAY, Hook, Host, Lineage, Output, assert_contains, configured, deploy, edgecert, fingerprint,
    is_bound_to, sandbox, set_back, state_files, sync, upload_count,
};

const NAMES: [&str; 1] = ["a.example"];

/// A host with an older and a newer lineage.
struct Pair {
    host: Host,
    newer: Lineage,
}

impl Pair {
    /// The prefixes decide the order of the names.
    fn new([older, newer]: [&str; 2]) -> Self {
        let host = Host { lineage: Lineage::issued_days_ago(20, older, &NAMES), ..Host::new() };
        Self { host, newer: Lineage::issued_days_ago(10, newer, &NAMES) }
    }

    /// Both are deployed, the newer one first.
    fn deployed() -> Self {
        let pair = Self::new(["older", "newer"]);
        pair.deploy(&pair.newer).succeeds();
        pair.deploy(pair.older()).succeeds();
        assert_eq!(pair.upload_count(), 1);
        pair
    }

    /// Both are deployed, the older one first.
    fn deployed_in_order() -> Self {
        let pair = Self::new(["older", "newer"]);
        pair.deploy(pair.older()).succeeds();
        pair.deploy(&pair.newer).succeeds();
        pair
    }

    fn older(&self) -> &Lineage {
        &self.host.lineage
    }

    fn upload_count(&self) -> usize {
        upload_count(&self.host.service)
    }

    fn deploy(&self, lineage: &Lineage) -> Hook {
        deploy(&self.host.service, lineage, self.host.state()).args(["--json"])
    }

    fn sync(&self) -> Hook {
        self.host.sync().args(["--json"])
    }

    fn status(&self, arguments: &[&str]) -> Hook {
        self.host.status(arguments)
    }

    /// The status of a lineage.
    fn lineage(&self, lineage: &Lineage) -> Value {
        let json = self.status(&["--json"]).succeeds().json();
        let cert = json!(lineage.file("fullchain.pem"));
        json["lineages"].as_array().unwrap().iter().find(|entry| entry["cert"] == cert).unwrap().clone()
    }

    /// Expects one lineage to be deployed and the other one to be superseded.
    #[track_caller]
    fn assert_deployed(&self, deployed: &Lineage, superseded: &Lineage) {
        assert!(is_bound_to(&self.host.service, "a.example", deployed));
        assert_eq!(self.lineage(deployed)["state"], "deployed");
        let superseded = self.lineage(superseded);
        assert_contains(&superseded, &json!({"state": "superseded", "sites": [{"outcome": "superseded"}]}));
        let name = self.lineage(deployed)["name"].as_str().unwrap().to_owned();
        let detail = superseded["sites"][0]["detail"].as_str().unwrap();
        assert!(
            detail.contains(&name) && detail.contains(" provides the certificate, issued at "),
            "{detail}"
        );
        let output = self.status(&["--check"]).succeeds();
        assert!(output.stdout.starts_with("EDGECERT OK"), "{}", output.stdout);
    }
}

/// The number of superseded lineages that a `sync` counts.
fn superseded(output: &Output) -> Value {
    output.json()["counts"]["superseded"].clone()
}

#[test]
fn later_lineage_wins_in_any_order() {
    for prefixes in [["a-", "b-"], ["b-", "a-"]] {
        for is_newer_first in [true, false] {
            let pair = Pair::new(prefixes);
            let mut all = [pair.older(), &pair.newer];
            if is_newer_first {
                all.reverse();
            }
            // Returns the number of superseded lineages in the first of several runs.
            let sync_often = |uploads: usize| {
                let run = || configured(pair.sync(), &all).succeeds();
                let outputs = [run(), run(), run()];
                for output in &outputs {
                    assert_eq!(output.stderr, "", "{prefixes:?} {is_newer_first}: {}", output.stdout);
                }
                assert_eq!(pair.upload_count(), uploads, "{prefixes:?} {is_newer_first}");
                assert_eq!([1, 2].map(|run: usize| superseded(&outputs[run])), [1, 1]);
                superseded(&outputs[0])
            };
            assert_eq!(sync_often(1), 1);
            pair.assert_deployed(&pair.newer, pair.older());
            pair.newer.renew_between(&NAMES, [-5, 85]);
            assert_eq!(sync_often(2), 1);
            pair.assert_deployed(&pair.newer, pair.older());
            pair.older().renew_between(&NAMES, [-2, 88]);
            assert_eq!(sync_often(3), 0, "the other one was served when the run began");
            pair.assert_deployed(pair.older(), &pair.newer);
            pair.newer.renew_between(&NAMES, [-3, 87]);
            assert_eq!(sync_often(3), 1);
            pair.assert_deployed(pair.older(), &pair.newer);
            assert_eq!(pair.host.service.certs().len(), 1);
        }
    }
}

#[test]
fn hook_of_older_lineage_sends_nothing() {
    let pair = Pair::deployed_in_order();
    assert_eq!(pair.upload_count(), 2);
    pair.assert_deployed(&pair.newer, pair.older());
    for _ in 0..2 {
        let output = pair.deploy(pair.older()).only_lists(&pair.host.service);
        assert_eq!((output.sites(), &*output.stderr), (vec!["a.example: superseded".to_owned()], ""));
        assert_eq!(output.json()["changed"], false);
        assert_eq!(superseded(&pair.sync().only_lists(&pair.host.service)), 1);
        pair.assert_deployed(&pair.newer, pair.older());
    }
    // A renewal that is still the older one of the two.
    pair.older().renew_between(&NAMES, [-15, 75]);
    assert_eq!(pair.deploy(pair.older()).succeeds().sites(), ["a.example: superseded"]);
    let forced = pair.deploy(pair.older()).args(["--force"]).succeeds();
    assert_eq!(forced.sites(), ["a.example: superseded"], "--force overrides no other lineage");
    assert_eq!(pair.upload_count(), 2);
}

#[test]
fn deleted_lineage_hides_no_unbound_site() {
    let pair = Pair::deployed();
    fs::remove_dir_all(pair.newer.path()).unwrap();
    pair.sync().exits_with(66);
    // The site still has the certificate of the deleted lineage.
    pair.sync().succeeds();
    edgecert().against(&pair.host.service).args(["sites", "delete", "a.example", "--yes"]).succeeds();
    pair.host.service.add_site("a.example");
    // The record holds a later certificate, so the older one is guarded, but not silently left out.
    pair.sync().exits_with(65).says("a.example is guarded");
}

#[test]
fn forgetting_the_later_lineage_needs_a_renewal() {
    let pair = Pair::deployed();
    let name = pair.lineage(&pair.newer)["name"].as_str().unwrap().to_owned();
    pair.status(&["--forget", &name]).succeeds();
    // The edge serves a later certificate, which this host no longer knows.
    let output = pair.sync().exits_with(65);
    let lineage = json!({"reason": "a.example is no longer superseded", "sites": [{"outcome": "guarded"}]});
    assert_contains(&output.json()["lineages"][0], &lineage);
    assert_eq!(pair.upload_count(), 1);
    pair.older().renew_between(&NAMES, [-2, 88]);
    pair.sync().succeeds();
    assert!(is_bound_to(&pair.host.service, "a.example", pair.older()));
    assert_eq!((pair.upload_count(), pair.lineage(pair.older())["state"].clone()), (2, json!("deployed")));
}

#[test]
fn wildcard_lineage_keeps_its_other_sites() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let wildcard = Lineage::issued_days_ago(20, "wildcard", &["*.example"]);
    let specific = Lineage::issued_days_ago(10, "specific", &["a.example"]);
    let run =
        || configured(sync(&service, state.path()), &[&wildcard, &specific]).args(["--json"]).succeeds();
    let outcomes =
        |lineage: &Lineage| deploy(&service, lineage, state.path()).args(["--json"]).succeeds().sites();
    let is_bound = |domain: &str, lineage: &Lineage| is_bound_to(&service, domain, lineage);
    for _ in 0..3 {
        run();
        assert!(is_bound("a.example", &specific) && is_bound("b.example", &wildcard));
        assert_eq!(upload_count(&service), 2);
    }
    assert_eq!(outcomes(&wildcard), ["a.example: superseded", "b.example: served"]);
    assert_eq!(outcomes(&specific), ["a.example: served"]);
    // The certificate of the wildcard lineage matters: its expiry and its missing files are reported.
    let check = || edgecert().args(["status", "--check"]).with_state(state.path());
    check().succeeds();
    wildcard.rename("fullchain.pem", "away.pem");
    configured(sync(&service, state.path()), &[&wildcard, &specific]).exits_with(66);
    wildcard.rename("away.pem", "fullchain.pem");

    wildcard.renew_between(&["*.example"], [-5, 85]);
    for _ in 0..3 {
        run();
        assert!(is_bound("a.example", &wildcard) && is_bound("b.example", &wildcard));
        assert_eq!(upload_count(&service), 4, "one for each record");
    }
    assert_eq!(outcomes(&specific), ["a.example: superseded"]);
}

#[test]
fn later_leaf_of_another_host_is_left_alone() {
    let pair = Pair::deployed();
    let other = Lineage::issued_days_ago(2, "other", &NAMES);
    let [cert, key] = ["fullchain.pem", "privkey.pem"].map(|name| other.read(name));
    pair.host.service.upload_as_other_client("a.example", &cert, &key);
    let fingerprint = fingerprint(&other.read("cert.pem"))[..16].to_owned();
    set_back(pair.host.state(), DAY);
    for run in 0..3 {
        let output = pair.sync().exits_with(65);
        let expected = format!("(issuer edgecert test intermediate, SHA-256 {fingerprint}) was issued at ");
        assert!(output.stderr.contains(&expected), "{run}: {}", output.stderr);
        assert_eq!(output.json()["lineages"][0]["sites"][0]["outcome"], "guarded", "{run}");
        assert_eq!((superseded(&output), &output.json()["changed"]), (json!(1), &json!(false)), "{run}");
    }
    assert_eq!(pair.deploy(&pair.newer).exits_with(65).sites(), ["a.example: guarded"]);
    assert_eq!(pair.upload_count(), 1);
    assert!(is_bound_to(&pair.host.service, "a.example", &other));
}

#[test]
fn supersession_is_recorded_despite_drift() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let wide = Lineage::issued_days_ago(20, "wide", &["a.example", "b.example"]);
    let narrow = Lineage::issued_days_ago(10, "narrow", &NAMES);
    deploy(&service, &wide, state.path()).succeeds();
    // They share the record, so the edge serves b.example a certificate that does not cover it.
    deploy(&service, &narrow, state.path()).args(["--domain", "a.example", "--allow-shrink"]).succeeds();
    set_back(state.path(), DAY);
    fs::write(wide.file("privkey.pem"), "").unwrap();
    let output = sync(&service, state.path()).args(["--json"]).exits_with(65).json();
    assert_eq!(output["counts"]["failed"], 1, "{output}");
    let states = state_files(state.path()).into_iter();
    let mut states = states.map(|path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap());
    let wide = states.find(|state| state["lineage"]["cert"].to_string().contains("wide")).unwrap();
    assert_contains(&wide["sites"], &json!([{"outcome": "superseded"}, {"outcome": "served"}]));
}

#[test]
fn busy_lineage_counts_as_superseded() {
    let pair = Pair::new(["older", "newer"]);
    pair.deploy(pair.older()).succeeds();
    let lock = fs::File::open(super::file(pair.host.state(), "lock")).unwrap();
    pair.deploy(&pair.newer).succeeds();
    lock.lock().unwrap();
    let output = pair.sync().succeeds();
    assert_eq!((superseded(&output), output.stderr.as_str()), (json!(1), ""));
}
