//! Two lineages for one site: the one issued later is deployed, the other one is superseded.

mod alarms;

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LISTING, configured, deploy, is_bound_to, requests_during, sync};
use crate::harness::{DAY, Fault, Hook, Lineage, Output, Sandbox, edgecert, sandbox, set_back, upload_count};

const NAMES: [&str; 1] = ["a.example"];

/// An older and a newer lineage, to deploy from one host.
struct Host {
    service: Sandbox,
    state: TempDir,
    older: Lineage,
    newer: Lineage,
}

impl Host {
    /// The prefixes decide the order of the names.
    fn new(prefixes: [&str; 2]) -> Self {
        let [older, newer] = prefixes;
        Self {
            service: sandbox(&NAMES),
            state: TempDir::new().unwrap(),
            older: Lineage::issued_days_ago(20, older, &NAMES),
            newer: Lineage::issued_days_ago(10, newer, &NAMES),
        }
    }

    /// A host that deployed both, the newer one first.
    fn deployed() -> Self {
        let host = Self::new(["older", "newer"]);
        host.deploy(&host.newer).succeeds();
        host.deploy(&host.older).succeeds();
        assert_eq!(upload_count(&host.service), 1);
        host
    }

    fn deploy(&self, lineage: &Lineage) -> Hook {
        deploy(&self.service, lineage, self.state.path()).args(["--json"])
    }

    fn sync(&self) -> Hook {
        sync(&self.service, self.state.path()).args(["--json"])
    }

    fn status(&self, arguments: &[&str]) -> Hook {
        edgecert().args(["status"]).args(arguments).env("EDGECERT_STATE_DIR", self.state.path())
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
        assert!(is_bound_to(&self.service, "a.example", deployed));
        assert_eq!(self.lineage(deployed)["state"], "deployed");
        let superseded = self.lineage(superseded);
        assert_eq!(
            (&superseded["state"], &superseded["sites"][0]["outcome"]),
            (&json!("superseded"), &json!("superseded"))
        );
        let name = self.lineage(deployed)["name"].as_str().unwrap().to_owned();
        let detail = superseded["sites"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(&name) && detail.contains(" was issued later, at "), "{detail}");
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
            let host = Host::new(prefixes);
            let mut all = [&host.older, &host.newer];
            if is_newer_first {
                all.reverse();
            }
            // Returns the number of superseded lineages in the first of several runs.
            let sync_often = |uploads: usize| {
                let run = || configured(host.sync(), &all).succeeds();
                let outputs = [run(), run(), run()];
                for output in &outputs {
                    assert_eq!(output.stderr, "", "{prefixes:?} {is_newer_first}: {}", output.stdout);
                }
                assert_eq!(upload_count(&host.service), uploads, "{prefixes:?} {is_newer_first}");
                assert_eq!([1, 2].map(|run: usize| superseded(&outputs[run])), [1, 1]);
                superseded(&outputs[0])
            };
            assert_eq!(sync_often(1), 1);
            host.assert_deployed(&host.newer, &host.older);
            host.newer.renew_between(&NAMES, [-5, 85]);
            assert_eq!(sync_often(2), 1);
            host.assert_deployed(&host.newer, &host.older);
            host.older.renew_between(&NAMES, [-2, 88]);
            assert_eq!(sync_often(3), 0, "the other one was served when the run began");
            host.assert_deployed(&host.older, &host.newer);
            host.newer.renew_between(&NAMES, [-3, 87]);
            assert_eq!(sync_often(3), 1);
            host.assert_deployed(&host.older, &host.newer);
            assert_eq!(host.service.certs().len(), 1);
        }
    }
}

#[test]
fn hook_of_older_lineage_sends_nothing() {
    let host = Host::new(["older", "newer"]);
    host.deploy(&host.older).succeeds();
    host.deploy(&host.newer).succeeds();
    assert_eq!(upload_count(&host.service), 2);
    host.assert_deployed(&host.newer, &host.older);
    for _ in 0..2 {
        let (requests, output) = requests_during(&host.service, || host.deploy(&host.older).succeeds());
        assert_eq!(requests, LISTING);
        assert_eq!(
            (output.sites(), &output.json()["changed"]),
            (vec!["a.example: superseded".to_owned()], &json!(false))
        );
        assert_eq!(output.stderr, "");
        let (requests, output) = requests_during(&host.service, || host.sync().succeeds());
        assert_eq!((requests, superseded(&output)), (LISTING.map(str::to_owned).to_vec(), json!(1)));
        host.assert_deployed(&host.newer, &host.older);
    }
    // A renewal that is still the older one of the two.
    host.older.renew_between(&NAMES, [-15, 75]);
    assert_eq!(host.deploy(&host.older).succeeds().sites(), ["a.example: superseded"]);
    let forced = host.deploy(&host.older).args(["--force"]).succeeds();
    assert_eq!(forced.sites(), ["a.example: superseded"], "--force overrides no other lineage");
    assert_eq!(upload_count(&host.service), 2);
}

#[test]
fn failed_renewal_keeps_the_older_one_superseded() {
    let host = Host::deployed();
    host.newer.renew_between(&NAMES, [-2, 88]);
    for (status, code) in [(400, 69), (503, 75)] {
        let fault = Fault::status("POST /api/certs/upload", status).header("Retry-After", "3600");
        host.service.add_fault(fault.times(2));
        for _ in 0..2 {
            assert_eq!(superseded(&host.sync().exits_with(code)), 1);
        }
    }
    host.sync().succeeds();
    host.assert_deployed(&host.newer, &host.older);
}

#[test]
fn deleted_lineage_hides_no_unbound_site() {
    let host = Host::deployed();
    fs::remove_dir_all(host.newer.path()).unwrap();
    host.sync().exits_with(66);
    // The site still has the certificate of the deleted lineage.
    host.sync().succeeds();
    edgecert().against(&host.service).args(["sites", "delete", "a.example", "--yes"]).succeeds();
    host.service.add_site("a.example");
    // The record holds a later certificate, so the older one is guarded, but not silently left out.
    let output = host.sync().exits_with(65);
    assert!(output.stderr.contains("a.example is guarded"), "{}", output.stderr);
}

#[test]
fn equal_dates_cause_no_alternation() {
    for _ in 0..4 {
        let host = Host::new(["older", "newer"]);
        host.older.renew_between(&NAMES, [-10, 80]);
        for lineage in [&host.older, &host.newer, &host.older, &host.newer] {
            host.deploy(lineage).succeeds();
            configured(host.sync(), &[&host.older, &host.newer]).succeeds();
        }
        let uploads = upload_count(&host.service);
        assert!(uploads <= 2, "{uploads} uploads");
        for _ in 0..3 {
            set_back(host.state.path(), DAY);
            assert_eq!(superseded(&host.sync().succeeds()), 1);
        }
        assert_eq!(upload_count(&host.service), uploads);
    }
}

#[test]
fn equal_leaves_are_both_deployed() {
    let host = Host::new(["older", "newer"]);
    let same = host.newer.duplicate();
    for lineage in [&host.newer, &same, &host.newer, &same] {
        assert_eq!(host.deploy(lineage).succeeds().sites(), ["a.example: served"]);
        assert_eq!(superseded(&host.sync().succeeds()), 0);
    }
    assert_eq!(upload_count(&host.service), 1);
    assert_eq!(
        [&host.newer, &same].map(|lineage| host.lineage(lineage)["state"].clone()),
        ["deployed", "deployed"]
    );
}

#[test]
fn forgetting_the_later_lineage_needs_a_renewal() {
    let host = Host::deployed();
    let name = host.lineage(&host.newer)["name"].as_str().unwrap().to_owned();
    host.status(&["--forget", &name]).succeeds();
    // The edge serves a later certificate, which this host no longer knows.
    let output = host.sync().exits_with(65);
    let lineage = &output.json()["lineages"][0];
    assert_eq!(
        (&lineage["reason"], &lineage["sites"][0]["outcome"]),
        (&json!("a.example is no longer superseded"), &json!("guarded"))
    );
    assert_eq!(upload_count(&host.service), 1);
    host.older.renew_between(&NAMES, [-2, 88]);
    host.sync().succeeds();
    assert!(is_bound_to(&host.service, "a.example", &host.older));
    assert_eq!(
        (upload_count(&host.service), host.lineage(&host.older)["state"].clone()),
        (2, json!("deployed"))
    );
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
    for _ in 0..3 {
        run();
        assert!(
            is_bound_to(&service, "a.example", &specific) && is_bound_to(&service, "b.example", &wildcard)
        );
        assert_eq!(upload_count(&service), 2);
    }
    assert_eq!(outcomes(&wildcard), ["a.example: superseded", "b.example: served"]);
    assert_eq!(outcomes(&specific), ["a.example: served"]);
    // The certificate of the wildcard lineage matters: its expiry and its missing files are reported.
    let check = || edgecert().args(["status", "--check"]).env("EDGECERT_STATE_DIR", state.path());
    check().succeeds();
    wildcard.rename("fullchain.pem", "away.pem");
    configured(sync(&service, state.path()), &[&wildcard, &specific]).exits_with(66);
    wildcard.rename("away.pem", "fullchain.pem");

    wildcard.renew_between(&["*.example"], [-5, 85]);
    for _ in 0..3 {
        run();
        assert!(
            is_bound_to(&service, "a.example", &wildcard) && is_bound_to(&service, "b.example", &wildcard)
        );
        assert_eq!(upload_count(&service), 4, "one for each record");
    }
    assert_eq!(outcomes(&specific), ["a.example: superseded"]);
}

#[test]
fn later_leaf_of_another_host_is_left_alone() {
    let host = Host::deployed();
    let other = Lineage::issued_days_ago(2, "other", &NAMES);
    host.service.upload_as_other_client(
        "a.example",
        &other.read("fullchain.pem"),
        &other.read("privkey.pem"),
    );
    let check = edgecert().args(["check", "--json", "--lineage"]).args([other.path()]).succeeds();
    let fingerprint = check.json()["certificate"]["fingerprint"].as_str().unwrap()[..16].to_owned();
    set_back(host.state.path(), DAY);
    for run in 0..3 {
        let output = host.sync().exits_with(65);
        let expected = format!("(issuer edgecert test intermediate, SHA-256 {fingerprint}) was issued at ");
        assert!(output.stderr.contains(&expected), "{run}: {}", output.stderr);
        assert_eq!(output.json()["lineages"][0]["sites"][0]["outcome"], "guarded", "{run}");
        assert_eq!((superseded(&output), &output.json()["changed"]), (json!(1), &json!(false)), "{run}");
    }
    assert_eq!(host.deploy(&host.newer).exits_with(65).sites(), ["a.example: guarded"]);
    assert_eq!(upload_count(&host.service), 1);
    assert!(is_bound_to(&host.service, "a.example", &other));
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
    let states = crate::harness::state_files(state.path());
    let mut states =
        states.iter().map(|path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap());
    let wide = states.find(|state| state["lineage"]["cert"].to_string().contains("wide")).unwrap();
    let outcomes: Vec<&Value> =
        wide["sites"].as_array().unwrap().iter().map(|site| &site["outcome"]).collect();
    assert_eq!(outcomes, ["superseded", "served"]);
}

#[test]
fn busy_lineage_counts_as_superseded() {
    let host = Host::new(["older", "newer"]);
    host.deploy(&host.older).succeeds();
    let lock = fs::File::open(super::file(host.state.path(), "lock")).unwrap();
    host.deploy(&host.newer).succeeds();
    lock.lock().unwrap();
    let output = host.sync().succeeds();
    assert_eq!((superseded(&output), output.stderr.as_str()), (json!(1), ""));
}
