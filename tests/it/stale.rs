//! A stale edge counts, whatever else fails: an address that still serves the old certificate, in any connection, or that
//! refuses the name of a site.

use serde_json::json;

use crate::harness::{
    DAY, EdgeAddress, EdgeMode, Fault, Hook, Host, Lineage, Sandbox, at_once, fresh, sandbox_and_lineage,
    test_ca, upload_count,
};

/// A call of certbot with a new state directory.
fn call(service: &Sandbox, lineage: &Lineage) -> Hook {
    fresh(service, lineage).args(["--json"])
}

/// An address behind which one of so many nodes serves another certificate.
fn nodes(service: &Sandbox, nodes: u64) -> String {
    let other = test_ca().issue(&["a.example"]).unwrap();
    let address = EdgeAddress::serving(&other.fullchain(), &other.key);
    service.open_edge_address(&address.every(nodes))
}

fn refusing(service: &Sandbox) -> String {
    service.open_edge_address(&EdgeAddress::new(EdgeMode::Refuse))
}

/// Both addresses, as a setting.
fn with_main(service: &Sandbox, other: &str) -> String {
    format!("{},{other}", service.endpoints().edge)
}

/// From the second reading of the sites on, all fail.
fn fail_rereading(service: &Sandbox, fault: Fault) {
    service.add_fault(Fault::stall("GET /api/me/sites", 0.0).times(1));
    service.add_fault(fault.times(999));
}

fn reading_failures() -> [(&'static str, Fault); 3] {
    const READING: &str = "GET /api/me/sites";
    [
        ("403", Fault::status(READING, 403)),
        ("503", Fault::status(READING, 503)),
        ("stall", Fault::stall(READING, 600.0)),
    ]
}

#[test]
fn stale_edge_counts_without_rereading() {
    let rows = reading_failures().into_iter().flat_map(|row| ["1", "3"].map(|wait| (row.clone(), wait)));
    at_once(rows, |((name, fault), wait)| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        call(&service, &lineage).succeeds();
        let stale = service.open_edge_address(&EdgeAddress::new(EdgeMode::Stale));
        lineage.renew(&["a.example"]);
        fail_rereading(&service, fault.clone());
        let hook = call(&service, &lineage).facing(with_main(&service, &stale));
        let output = hook.args(["--wait", wait]).exits_with(75);
        assert_eq!(output.sites(), ["a.example: stale"], "{name}, --wait {wait}");
        let site = output.json()["sites"][0].clone();
        assert_eq!(site["edge"], json!({"served": 1, "addresses": 2}), "{name}, --wait {wait}");
        let detail = site["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("{stale} still serves the certificate of ")), "{detail}");
    });
}

#[test]
fn served_edge_counts_without_rereading() {
    let rows = reading_failures().into_iter().flat_map(|row| [(row.clone(), "auto"), (row, "require")]);
    at_once(rows, |((name, fault), verify)| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        fail_rereading(&service, fault.clone());
        let hook = call(&service, &lineage).args(["--wait", "2", "--verify", verify]);
        assert_eq!(hook.succeeds().sites(), ["a.example: served"], "{name}");
    });
}

#[test]
fn unread_site_is_not_verified() {
    let verify = [("auto", 0), ("require", 75)];
    let rows = reading_failures().into_iter().flat_map(|row| verify.map(|verify| (row.clone(), verify)));
    at_once(rows, |((name, fault), (verify, code))| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        call(&service, &lineage).succeeds();
        fail_rereading(&service, fault.clone());
        let hook = call(&service, &lineage).facing("127.0.0.1:1");
        let output = hook.args(["--force", "--wait", "1", "--verify", verify]).exits_with(code);
        assert_eq!(output.sites(), ["a.example: uploaded"], "{name}");
        assert!(output.stdout.contains("could not be read after the upload"), "{name}");
    });
}

#[test]
fn site_is_read_once_more_after_the_wait() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    call(&service, &lineage).succeeds();
    // Longer than a reading during the wait may take, and shorter than the last one.
    fail_rereading(&service, Fault::stall("GET /api/me/sites", 1.2));
    let hook = call(&service, &lineage).facing("127.0.0.1:1").args(["--force", "--wait", "1"]);
    assert_eq!(hook.succeeds().sites(), ["a.example: synced"]);
}

#[test]
fn edge_is_checked_once_more_after_slow_readings() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    call(&service, &lineage).succeeds();
    lineage.renew(&["a.example"]);
    service.hold_pushes(true);
    // The first reading, which shows no push yet, and the second, which is given up, take most of the wait.
    fail_rereading(&service, Fault::stall("GET /api/me/sites", 0.8));
    let output = call(&service, &lineage).args(["--wait", "2"]).exits_with(75);
    assert_eq!(output.sites(), ["a.example: stale"]);
}

#[test]
fn refused_name_is_stale() {
    // All addresses refuse the name, and one of two does.
    at_once([0, 1], |served| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        let refusing = refusing(&service);
        let addresses = if served == 0 { refusing.clone() } else { with_main(&service, &refusing) };
        let output = call(&service, &lineage).facing(addresses).args(["--wait", "1"]).exits_with(75);
        assert_eq!(output.sites(), ["a.example: stale"]);
        let json = output.json();
        assert_eq!(json["sites"][0]["edge"], json!({"served": served, "addresses": served + 1}));
        let alert = format!("{refusing} rejects the handshake for this name (TLS alert unrecognized_name)");
        assert_eq!(json["sites"][0]["detail"], *alert);
        assert_eq!(json["error"], format!("a.example is stale: {alert}"));
    });
}

#[test]
fn refusal_counts_without_rereading() {
    at_once(reading_failures(), |(name, fault)| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        fail_rereading(&service, fault);
        let hook = call(&service, &lineage).facing(refusing(&service));
        assert_eq!(hook.args(["--wait", "2"]).exits_with(75).sites(), ["a.example: stale"], "{name}");
    });
}

#[test]
fn sync_finds_refusal_and_alternating_nodes() {
    let addresses: [fn(&Sandbox) -> String; 3] =
        [refusing, |service| nodes(service, 2), |service| nodes(service, 3)];
    at_once(addresses, |address| {
        let host = Host::deployed();
        host.set_back(DAY);
        let address = address(&host.service);
        let recorded = || host.recorded()["sites"][0]["outcome"].clone();
        let hook = || host.sync().facing(&address).args(["--wait", "1"]);
        for reason in [format!("a.example: {address} "), "pending since ".into()] {
            let json = hook().args(["--json"]).exits_with(75).json();
            let found = json["lineages"][0]["reason"].as_str().unwrap();
            assert!(found.starts_with(&reason), "{found}");
            assert_eq!(json["lineages"][0]["sites"][0]["outcome"], "stale", "{reason}");
            assert_eq!(recorded(), "stale");
        }
        host.sync().succeeds();
        assert_eq!(recorded(), "served");
    });
}

#[test]
fn alternating_nodes_are_stale() {
    at_once([2, 3], |count| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        let nodes = nodes(&service, count);
        let hook = || call(&service, &lineage).facing(&nodes).args(["--wait", "1"]);
        for run in 1..=3 {
            let output = hook().exits_with(75);
            assert_eq!(output.sites(), ["a.example: stale"], "{count} nodes, run {run}");
            let detail = output.json()["sites"][0]["detail"].clone();
            let expected = format!("{nodes} still serves some connections the certificate of ");
            assert!(detail.as_str().unwrap().starts_with(&expected), "{detail}");
            assert_eq!(upload_count(&service), run, "one look is no proof");
        }
        let json = fresh(&service, &lineage).args(["plan", "--json"]).facing(&nodes).succeeds().json();
        assert_eq!((&json["changed"], &json["serving"][0]["leaf"]), (&json!(true), &json!("other")));
    });
}

#[test]
fn served_takes_three_connections() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    call(&service, &lineage).succeeds();
    service.reset_handshakes();
    call(&service, &lineage).succeeds();
    let counts = service.handshakes().addresses[&service.endpoints().edge];
    // One more as a client that accepts other key types, to find a second certificate.
    assert_eq!((counts.connections, counts.handshakes), (3 + 1, 3 + 1));
}
