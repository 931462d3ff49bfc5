//! Content drift: the service lists the same ids as before, and the edge serves another leaf.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tempfile::TempDir;

use super::{LISTING, change, deploy, is_bound_to, only_state, requests_during, sync};
use crate::harness::{DAY, Hook, Lineage, Sandbox, sandbox, set_back, test_ca, upload_count};

/// A deployed lineage.
struct Deployed {
    service: Sandbox,
    state: TempDir,
    lineage: Lineage,
}

impl Deployed {
    fn new() -> Self {
        let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
        let lineage = Lineage::issued_for(&["a.example"]);
        deploy(&service, &lineage, state.path()).succeeds();
        service.reset_handshakes();
        Self { service, state, lineage }
    }

    fn sync(&self) -> Hook {
        sync(&self.service, self.state.path()).args(["--json"])
    }

    /// Another client stores a certificate, issued this many days ago, in the record.
    fn replace(&self, days: i64) {
        let other = test_ca().issue_between(&["a.example"], [-days, 90]).unwrap();
        self.service.upload_as_other_client("a.example", &other.fullchain(), &other.key);
    }

    /// Sets the times in the state back.
    fn age(&self, seconds: i64) {
        set_back(self.state.path(), seconds);
    }
}

#[test]
fn replaced_record_is_repaired() {
    let deployed = Deployed::new();
    deployed.replace(30);
    assert!(!is_bound_to(&deployed.service, "a.example", &deployed.lineage));
    deployed.age(DAY);
    let json = deployed.sync().succeeds().json();
    let lineage = &json["lineages"][0];
    let reason = lineage["reason"].as_str().unwrap();
    let edge = &deployed.service.endpoints().edge;
    let expected =
        format!("a.example: {edge} serves the certificate of edgecert test intermediate that expires at ");
    assert!(reason.starts_with(&expected), "{reason}");
    assert_eq!((&lineage["changed"], &lineage["sites"][0]["outcome"]), (&true.into(), &"served".into()));
    assert!(is_bound_to(&deployed.service, "a.example", &deployed.lineage));
    assert_eq!(deployed.service.certs().len(), 1);
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
        let deployed = Deployed::new();
        deployed.replace(30);
        deployed.age(age);
        let hook = deployed.sync().args(Some(argument).filter(|argument| !argument.is_empty()));
        let (requests, output) = requests_during(&deployed.service, || hook.succeeds());
        let row = format!("{argument} after {age} s: {}", output.stdout);
        assert_eq!(output.json()["changed"], is_checked, "{row}");
        assert_eq!(is_bound_to(&deployed.service, "a.example", &deployed.lineage), is_checked, "{row}");
        if !is_checked {
            assert_eq!(
                (requests, deployed.service.handshakes().total()),
                (LISTING.map(str::to_owned).to_vec(), 0),
                "{row}"
            );
        }
    }
}

#[test]
fn pending_push_hides_no_drift() {
    let deployed = Deployed::new();
    let other = test_ca().issue(&["a.example"]).unwrap();
    deployed.service.override_edge("a.example", &other.fullchain(), &other.key);
    deployed.service.hold_pushes(true);
    change(
        &deployed.service,
        &format!("/api/sites/{}/update", deployed.service.sites()[0]["id"]),
        &json!({"remark": "x"}),
    );
    deployed.age(DAY);
    let output = deployed.sync().args(["--wait", "1"]).exits_with(75);
    assert_eq!(output.json()["lineages"][0]["sites"][0]["outcome"], "stale");
}

#[test]
fn bare_upload_is_checked_once() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    deploy(&service, &lineage, state.path()).args(["--domain", "A.Example.", "--wait", "0"]).succeeds();
    sync(&service, state.path()).args(["--wait", "30"]).succeeds();
    assert_eq!(only_state(state.path())["sites"][0]["outcome"], "served");
}

#[test]
fn check_is_recorded() {
    let deployed = Deployed::new();
    deployed.age(DAY);
    let before = only_state(deployed.state.path());
    for handshakes in [4, 0] {
        let (requests, _) = requests_during(&deployed.service, || deployed.sync().succeeds());
        assert_eq!(
            (requests, deployed.service.handshakes().total()),
            (LISTING.map(str::to_owned).to_vec(), handshakes)
        );
        deployed.service.reset_handshakes();
    }
    let mut after = only_state(deployed.state.path());
    assert!(after.as_object_mut().unwrap().remove("edge_checked_at").is_some());
    assert_eq!(after, before, "nothing else changes");
}

#[test]
fn clock_set_back_causes_a_check() {
    let deployed = Deployed::new();
    deployed.replace(30);
    deployed.age(-DAY);
    deployed.sync().succeeds();
    assert!(is_bound_to(&deployed.service, "a.example", &deployed.lineage));
}

#[test]
fn unserved_site_is_checked_in_every_run() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    let proxy = ClosingProxy::start();
    let hook = deploy(&service, &lineage, state.path()).env("EDGECERT_EDGE_ADDRESS", &proxy.address);
    hook.args(["--wait", "1"]).succeeds();
    for _ in 0..3 {
        proxy.connections.store(0, Ordering::Relaxed);
        let hook = sync(&service, state.path()).env("EDGECERT_EDGE_ADDRESS", &proxy.address);
        let (requests, output) = requests_during(&service, || hook.succeeds());
        assert_eq!((requests, output.stderr.as_str()), (LISTING.map(str::to_owned).to_vec(), ""));
        assert_eq!(proxy.connections.load(Ordering::Relaxed), 4);
        assert_eq!(only_state(state.path())["sites"][0]["outcome"], "synced");
    }
    // The edge serves it after all.
    for connections in [4, 0] {
        service.reset_handshakes();
        sync(&service, state.path()).succeeds();
        assert_eq!(service.handshakes().total(), connections);
        assert_eq!(only_state(state.path())["sites"][0]["outcome"], "served");
    }
    assert_eq!(upload_count(&service), 1);
}

#[test]
fn required_edge_has_to_be_reached() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    let require = |hook: Hook| hook.args(["--verify", "require", "--verify-every", "1"]);
    let hook = deploy(&service, &lineage, state.path()).args(["--verify", "require"]);
    hook.succeeds();
    let unreachable = |hook: Hook| hook.env("EDGECERT_EDGE_ADDRESS", "127.0.0.1:1");
    set_back(state.path(), DAY);
    for _ in 0..2 {
        let output = unreachable(require(sync(&service, state.path()))).exits_with(75);
        assert!(output.stderr.contains("127.0.0.1:1 refuses connections"), "{}", output.stderr);
    }
    require(sync(&service, state.path())).succeeds();
    assert_eq!(upload_count(&service), 1);
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
