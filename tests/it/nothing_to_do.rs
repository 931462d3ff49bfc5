//! Nothing is sent for sites that are bound, pushed and served, whether or not there is any state.

mod table;

use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    EdgeAddress, EdgeMode, Fault, Hook, LISTING, Lineage, Sandbox, account, assert_contains, configured,
    deploy, edgecert, is_bound_to, record, request_lines, requests_during, sandbox_and_lineage, sync,
    test_ca, upload_count,
};

const RUNS: usize = 20;

/// A `deploy` with an empty state directory.
fn fresh(service: &Sandbox, lineage: &Lineage) -> Hook {
    edgecert().called_by_certbot(lineage).against(service).args(["--json", "--wait", "1", "--timeout", "10"])
}

/// A `sync` with an empty state directory and one lineage in its configuration.
fn fresh_sync(service: &Sandbox, lineage: &Lineage) -> Hook {
    configured(edgecert().against(service).args(["sync", "--json"]), &[lineage])
}

/// Connections to each edge address since the last call.
fn connections(service: &Sandbox) -> BTreeMap<String, u64> {
    let counts = service.handshakes().addresses;
    service.reset_handshakes();
    counts.into_iter().map(|(address, counts)| (address, counts.connections)).collect()
}

/// The main edge address and another one, as a setting.
fn with_address(service: &Sandbox, hook: Hook, other: &str) -> Hook {
    hook.facing(format!("{},{other}", service.endpoints().edge))
}

#[test]
fn repeated_runs_send_nothing() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    fresh(&service, &lineage).succeeds();
    connections(&service);
    for run in 0..RUNS {
        let (hook, path) = match run % 2 {
            0 => (fresh(&service, &lineage), ""),
            _ => (fresh_sync(&service, &lineage), "/lineages/0"),
        };
        let (requests, output) = requests_during(&service, || hook.succeeds());
        assert_eq!(requests, LISTING, "run {run}");
        let json = output.json();
        let report = json.pointer(path).unwrap();
        let found = (&json["changed"], &report["changed"], &report["sites"][0]["outcome"]);
        assert_eq!(found, (&json!(false), &json!(false), &json!("served")), "run {run}");
        let connections = connections(&service)[&service.endpoints().edge];
        assert!(connections <= 4, "run {run}: {connections} connections");
    }
}

#[test]
fn each_address_is_asked_once() {
    let domains = ["a.example", "b.example", "c.example"];
    let (service, lineage) = sandbox_and_lineage(&domains);
    let hooks = [fresh(&service, &lineage), fresh(&service, &lineage), fresh_sync(&service, &lineage)];
    let other = service.open_edge_address(&EdgeAddress::new(EdgeMode::Same));
    let [first, again, later] = hooks.map(|hook| with_address(&service, hook, &other));
    first.succeeds();
    for hook in [again, later] {
        connections(&service);
        hook.succeeds();
        let expected = [&service.endpoints().edge, &other].map(|address| (address.clone(), (3 + 1) * 3));
        let looks = "three as a client that accepts the leaf and one as another, for each of 3 sites";
        assert_eq!(connections(&service), BTreeMap::from(expected), "{looks}");
    }
    assert_eq!(upload_count(&service), 1);
}

/// A service with a record of its own for each of two sites.
fn two_records() -> Sandbox {
    let sites = [(10, "a.example", Some(5)), (11, "b.example", Some(6))];
    account(&sites, &[record(5, "a.example", "upload"), record(6, "b.example", "upload")])
}

/// Serves an earlier leaf for `b.example`, without a change that the service lists.
fn replace_second(service: &Sandbox) {
    let other = test_ca().issue(&["b.example"]).unwrap();
    service.replace_cert_silently(6, &other.fullchain(), &other.key);
}

/// The domains of the uploads that a report lists.
fn uploads(report: &Value) -> Vec<&str> {
    let uploads = report["uploads"].as_array().unwrap().iter();
    uploads.map(|upload| upload["domain"].as_str().unwrap()).collect()
}

#[test]
fn partly_served_sends_the_rest() {
    let (service, lineage) = (two_records(), Lineage::issued_for(&["a.example", "b.example"]));
    fresh(&service, &lineage).succeeds();
    assert_eq!(upload_count(&service), 2);
    for (hook, path) in [(fresh(&service, &lineage), ""), (fresh_sync(&service, &lineage), "/lineages/0")] {
        replace_second(&service);
        let before = upload_count(&service);
        let json = hook.succeeds().json();
        let report = json.pointer(path).unwrap();
        assert_eq!((uploads(report), upload_count(&service) - before), (vec!["b.example"], 1));
        assert_contains(&report["sites"], &json!([{"outcome": "served"}, {"outcome": "served"}]));
        assert!(is_bound_to(&service, "b.example", &lineage));
    }
}

#[test]
fn pending_lineage_sends_the_rest() {
    let (service, state) = (two_records(), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    service.add_fault(Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600"));
    let json = deploy(&service, &lineage, state.path()).args(["--json"]).exits_with(75).json();
    let stored: Vec<&Value> =
        json["uploads"].as_array().unwrap().iter().filter(|upload| upload["ok"] == false).collect();
    let before = upload_count(&service);
    let output = sync(&service, state.path()).args(["--json"]).succeeds();
    let report = &output.json()["lineages"][0];
    assert!(report["reason"].as_str().unwrap().starts_with("pending since "), "{report}");
    assert_eq!(uploads(report), [stored[0]["domain"].as_str().unwrap()], "only what failed");
    assert_eq!(upload_count(&service) - before, 1);
    assert!(is_bound_to(&service, "a.example", &lineage) && is_bound_to(&service, "b.example", &lineage));
}

#[test]
fn unconfirmed_push_needs_no_second_upload() {
    let (service, state) = (two_records(), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    let unverified = |hook: Hook| hook.args(["--verify", "off", "--wait", "1"]);
    service.add_fault(Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600"));
    service.hold_pushes(true);
    unverified(deploy(&service, &lineage, state.path())).exits_with(75);
    service.hold_pushes(false);
    let before = upload_count(&service);
    unverified(sync(&service, state.path())).succeeds();
    assert_eq!(upload_count(&service) - before, 1, "only what failed");
    assert!(is_bound_to(&service, "a.example", &lineage) && is_bound_to(&service, "b.example", &lineage));
}

#[test]
fn survey_costs_no_round_trip() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    for run in ["first", "renewal"] {
        let before = request_lines(&service).len();
        fresh(&service, &lineage).succeeds();
        let mut requests = request_lines(&service).split_off(before);
        requests[..2].sort();
        let [certs, sites] = LISTING;
        assert_eq!(requests, [certs, sites, "POST /api/certs/upload", sites], "{run}");
        lineage.renew(&["a.example"]);
    }
}

#[test]
fn plan_shows_what_is_served() {
    let (service, lineage) = (two_records(), Lineage::issued_for(&["a.example", "b.example"]));
    let plan = || edgecert().called_by_certbot(&lineage).against(&service).args(["plan"]);
    fresh(&service, &lineage).succeeds();
    let text = plan().succeeds().snapshot();
    expect![[r#"
        a.example, b.example   P-256, expires DATE (TIME)
          = unchanged  a.example (5 is this certificate)
          = unchanged  b.example (6 is this certificate)
        nothing to do: every site has this certificate
        ---
    "#]]
    .assert_eq(&text);
    let json = plan().args(["--json"]).succeeds().json();
    assert_eq!((&json["changed"], &json["plan"]), (&json!(false), &json!([])));
    let current =
        |id: u64, domain: &str| json!({"id": id, "domain": domain, "leaf": "current", "detail": null});
    assert_eq!(json["serving"], json!([current(10, "a.example"), current(11, "b.example")]));

    replace_second(&service);
    expect![[r#"
        a.example, b.example   P-256, expires DATE (TIME)
          = unchanged  a.example (5 is this certificate)
          ~ replace    b.example (certificate 6)
                       now: EDGE serves the certificate of edgecert test intermediate that expires at DATE
        1 to replace, 1 unchanged; nothing was changed
        ---
    "#]]
    .assert_eq(&plan().succeeds().snapshot());
    let json = plan().args(["--json"]).succeeds().json();
    let plan = json!([{"step": "replace", "sites": ["b.example"]}]);
    assert_contains(&json, &json!({"changed": true, "plan": plan, "serving": [{}, {"leaf": "other"}]}));
    assert_eq!(json["serving"][0], current(10, "a.example"));
    let detail = json["serving"][1]["detail"].as_str().unwrap();
    let expected = " serves the certificate of edgecert test intermediate that expires at ";
    assert!(detail.contains(expected), "{detail}");
    assert_eq!(upload_count(&service), 2, "plans send nothing");
}
