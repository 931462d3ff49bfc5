//! Content drift: the service lists the same ids as before, and the edge serves another leaf.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tempfile::TempDir;

use super::by_hand::SITES;
use crate::harness::{
    DAY, Host, LISTING, Lineage, RSA, account, bind, change, deploy, is_bound_to, record, requests_during,
    sandbox, set_back, step, sync, test_ca, upload_count,
};

/// A host with a deployed lineage, before any other handshake.
fn deployed() -> Host {
    let host = Host::deployed();
    host.service.reset_handshakes();
    host
}

impl Host {
    /// Another client stores a certificate, issued this many days ago, in the record.
    fn replace(&self, days: i64) {
        let other = test_ca().issue_between(&["a.example"], [-days, 90]).unwrap();
        self.service.upload_as_other_client("a.example", &other.fullchain(), &other.key);
    }
}

#[test]
fn replaced_record_is_repaired_at_any_time() {
    let host = deployed();

    step("replaced_record_is_repaired");
    host.replace(30);
    assert!(!host.is_bound("a.example"));
    host.set_back(DAY);
    let json = host.sync().args(["--json"]).succeeds().json();
    let lineage = &json["lineages"][0];
    let reason = lineage["reason"].as_str().unwrap();
    let edge = &host.service.endpoints().edge;
    let expected =
        format!("a.example: {edge} serves the certificate of edgecert test intermediate that expires at ");
    assert!(reason.starts_with(&expected), "{reason}");
    assert_eq!((&lineage["changed"], &lineage["sites"][0]["outcome"]), (&true.into(), &"served".into()));
    assert!(host.is_bound("a.example"));
    assert_eq!(host.service.certs().len(), 1);

    step("clock_set_back_causes_a_check");
    host.replace(30);
    host.set_back(-DAY);
    host.sync().args(["--json"]).succeeds();
    assert!(host.is_bound("a.example"));
}

#[test]
fn period_decides_when_to_check() {
    // The period as an argument, the age of the last check, and whether the edge is checked.
    let rows = [
        ("", 0, false),
        ("", DAY, true),
        ("", 3 * DAY, true),
        // In a century, a lineage has its time on a random day.
        ("--verify-every=3155760000", DAY, false),
        ("--verify-every=604800", 7 * DAY, true),
        ("--verify-every=1", 2, true),
        ("--verify-every=0", 0, false),
        ("--verify-every=0", 300 * DAY, false),
        ("--verify=off", 300 * DAY, false),
    ];
    for (argument, age, is_checked) in rows {
        let host = deployed();
        host.replace(30);
        host.set_back(age);
        let hook = host.sync().args(["--json"]).args(Some(argument).filter(|argument| !argument.is_empty()));
        let (requests, output) = requests_during(&host.service, || hook.succeeds());
        let row = format!("{argument} after {age} s: {}", output.stdout);
        assert_eq!(output.json()["changed"], is_checked, "{row}");
        assert_eq!(host.is_bound("a.example"), is_checked, "{row}");
        if !is_checked {
            assert_eq!(requests, LISTING, "{row}");
            assert_eq!(host.service.handshakes().total(), 0, "{row}");
        }
    }
}

#[test]
fn pending_push_hides_no_drift() {
    let host = deployed();
    let other = test_ca().issue(&["a.example"]).unwrap();
    host.service.override_edge("a.example", &other.fullchain(), &other.key);
    host.service.hold_pushes(true);
    let site = host.service.sites()[0]["id"].clone();
    change(&host.service, &format!("/api/sites/{site}/update"), &json!({"remark": "x"}));
    host.set_back(DAY);
    let output = host.sync().args(["--json"]).args(["--wait", "1"]).exits_with(75);
    assert_eq!(output.json()["lineages"][0]["sites"][0]["outcome"], "stale");
}

#[test]
fn bare_upload_is_checked_once() {
    let host = Host::new();
    host.hook().args(["--domain", "A.Example.", "--wait", "0"]).succeeds();
    host.sync().args(["--wait", "30"]).succeeds();
    assert_eq!(host.recorded()["sites"][0]["outcome"], "served");
}

#[test]
fn check_is_recorded() {
    let host = deployed();
    host.set_back(DAY);
    let before = host.recorded();
    for handshakes in [4, 0] {
        host.sync().only_lists(&host.service);
        assert_eq!(host.service.handshakes().total(), handshakes);
        host.service.reset_handshakes();
    }
    let mut after = host.recorded();
    assert!(after.as_object_mut().unwrap().remove("edge_checked_at").is_some());
    assert_eq!(after, before, "nothing else changes");
}

#[test]
fn unserved_site_is_checked_in_every_run() {
    let host = Host::new();
    let proxy = ClosingProxy::start();
    host.hook().facing(&proxy.address).args(["--wait", "1"]).succeeds();
    for _ in 0..3 {
        proxy.connections.store(0, Ordering::Relaxed);
        let hook = host.sync().facing(&proxy.address);
        assert_eq!(hook.only_lists(&host.service).stderr, "");
        assert_eq!(proxy.connections.load(Ordering::Relaxed), 4);
        assert_eq!(host.recorded()["sites"][0]["outcome"], "synced");
    }
    // The edge serves it after all.
    for connections in [4, 0] {
        host.service.reset_handshakes();
        host.sync().succeeds();
        assert_eq!(host.service.handshakes().total(), connections);
        assert_eq!(host.recorded()["sites"][0]["outcome"], "served");
    }
    assert_eq!(upload_count(&host.service), 1);
}

/// Two sites share a record. A run by hand stores the next certificate elsewhere, and leaves one of them as it was.
#[test]
fn site_left_with_an_earlier_leaf_is_watched() {
    let sites = [(1, "a.example", Some(5)), (2, "b.example", Some(5))];
    let records = [record(5, "b.example", "upload"), record(6, "a.example", "upload")];
    let host = Host::of(account(&sites, &records), &SITES);
    let deploy_to = |domain| host.by_hand().for_domain(domain).succeeds();
    let recheck = |outcome: &str| {
        host.set_back(DAY);
        host.sync().succeeds();
        assert_eq!(host.recorded()["sites"][1]["outcome"], outcome);
    };
    deploy_to("a.example");
    bind(&host.service, "a.example", Some(6));
    // With a key of another type.
    let next = Lineage::from_openssl(&RSA);
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        host.lineage.write(name, &next.read(name));
    }
    deploy_to("a.example");
    recheck("served");
    for arguments in [&["--check"][..], &["--check", "--verify"]] {
        host.status(arguments).facing(&host.service.endpoints().edge).succeeds();
    }
    let other = test_ca().issue(&["b.example"]).unwrap();
    host.service.replace_cert(5, &other.fullchain(), &other.key);
    recheck("stale");
    let problem = host.status(&["--check"]).exits_with(1).stdout;
    assert!(problem.contains("deploy the lineage with `--domain` for this site and its own"), "{problem}");
    host.lineage.save(&test_ca().issue_now(&SITES).unwrap());
    host.by_hand().for_domain("a.example").for_domain("b.example").succeeds();
    recheck("served");
    host.status(&["--check"]).succeeds();
}

#[test]
fn required_edge_has_to_be_reached() {
    let host = Host::new();
    let sync = || host.sync().args(["--verify", "require", "--verify-every", "1"]);
    host.hook().args(["--verify", "require"]).succeeds();
    host.set_back(DAY);
    for _ in 0..2 {
        let unreachable = sync().facing("127.0.0.1:1");
        unreachable.exits_with(75).says("127.0.0.1:1 refuses connections");
    }
    sync().succeeds();
    assert_eq!(upload_count(&host.service), 1);
}

/// Accepts connections, reads the first message and closes them.
struct ClosingProxy {
    address: String,
    connections: Arc<AtomicU64>,
}

impl ClosingProxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::<AtomicU64>::default();
        let count = Arc::clone(&connections);
        std::thread::spawn(move || {
            while let Ok((mut peer, _)) = listener.accept() {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = peer.read(&mut [0; 4096]);
            }
        });
        Self { address, connections }
    }
}

#[test]
fn superseded_site_hides_no_drift() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let one = Lineage::issued_days_ago(40, "one", &["a.example"]);
    let both = Lineage::issued_days_ago(30, "both", &["a.example", "b.example"]);
    deploy(&service, &one, state.path()).succeeds();
    deploy(&service, &both, state.path()).succeeds();
    one.renew(&["a.example"]);
    deploy(&service, &one, state.path()).succeeds();
    let other = test_ca().issue_between(&["b.example"], [-50, 90]).unwrap();
    service.upload_as_other_client("b.example", &other.fullchain(), &other.key);
    set_back(state.path(), DAY);
    // In this run the second lineage learns that it is superseded on its first site.
    sync(&service, state.path()).succeeds();
    assert!(is_bound_to(&service, "a.example", &one) && is_bound_to(&service, "b.example", &both));
}
