//! HTTP/2, where the service offers it: one connection for many requests, and nothing is lost or done twice when it breaks.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Fault, Fleet, Hook, Lineage, Nginx, RecordedRequest, Sandbox, deploy, fresh, request_lines, sandbox,
    test_ca, tls_sandbox, upload_count,
};

const UPLOAD: &str = "POST /api/certs/upload";

/// The versions of HTTP that a sandbox was addressed in, each once.
fn versions(service: &Sandbox) -> Vec<String> {
    distinct(service, |request| request.http)
}

fn connections(service: &Sandbox) -> Vec<u64> {
    distinct(service, |request| request.connection)
}

fn distinct<T: Ord>(service: &Sandbox, field: impl Fn(RecordedRequest) -> T) -> Vec<T> {
    let mut fields: Vec<T> = service.requests().into_iter().map(field).collect();
    fields.sort();
    fields.dedup();
    fields
}

#[test]
fn http2_is_used_where_it_is_offered() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for (service, version) in [(tls_sandbox(&["a.example"]), "2"), (sandbox(&["a.example"]), "1.1")] {
        fresh(&service, &lineage).succeeds();
        assert_eq!(versions(&service), [version]);
    }
    let service = tls_sandbox(&["a.example"]);
    let bare = fresh(&service, &lineage).for_domain("a.example");
    bare.args(["--wait", "0"]).run();
    assert_eq!((versions(&service), upload_count(&service)), (vec!["1.1".to_owned()], 1));
}

#[test]
fn fleet_shares_connection_and_listing() {
    const LINEAGES: usize = 50;
    let fleet = Fleet::new(LINEAGES);
    let service = tls_sandbox(&fleet.names());
    fleet.sync(&service).succeeds();
    fleet.assert_deployed(&service);
    assert_eq!((versions(&service), connections(&service).len()), (vec!["2".to_owned()], 1));
    let requests = request_lines(&service);
    assert_eq!(upload_count(&service), LINEAGES);
    // Without shared listings, each lineage would read its site.
    assert!(requests.len() < 2 + LINEAGES + LINEAGES * 3 / 4, "{}", requests.len());
}

#[test]
fn fleet_converges_when_connections_break() {
    let fleet = Fleet::new(40);
    let service = tls_sandbox(&fleet.names());
    service.set_random_faults(
        20_261_122,
        [
            Fault::status("*", 503).header("Retry-After", "0"),
            Fault::status("*", 429),
            Fault::close_before("*"),
            Fault::close_after("*"),
            Fault::truncate("*", 10),
            Fault::stall("*", 0.1),
        ],
    );
    let is_done = || {
        let output = fleet.sync(&service).args(["--json", "--timeout", "5", "--wait", "2"]).run();
        output.code == 0 && output.json()["counts"]["unchanged"] == fleet.lineages.len()
    };
    assert!((0..30).any(|_| is_done()), "it does not converge");
    service.clear_faults();
    fleet.assert_deployed(&service);
    assert_eq!(versions(&service), ["2"]);
}

#[test]
fn stalled_connection_is_replaced() {
    let fleet = Fleet::new(2);
    let service = tls_sandbox(&fleet.names());
    // Both lists, longer than one attempt may take.
    service.add_fault(Fault::stall("GET /api/*", 60.0).times(2));
    fleet.sync(&service).args(["--timeout", "60"]).succeeds();
    fleet.assert_deployed(&service);
    assert_eq!((versions(&service), connections(&service).len()), (vec!["2".to_owned()], 2));
}

#[test]
fn closed_connection_is_reported_and_replaced() {
    let (service, state) = (tls_sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    service.add_fault(Fault::close_after(UPLOAD));
    let output = deploy(&service, &lineage, state.path()).args(["-v"]).succeeds();
    let reason = "was closed before the response was complete: ";
    let line = output.stderr.lines().find(|line| line.contains(reason)).expect("it is reported");
    assert!(!line.contains("hyper") && !line.contains("h2::"), "{line}");
    assert_eq!((upload_count(&service), service.certs().len()), (2, 1));
    assert_eq!(connections(&service).len(), 2);
}

#[test]
fn rejected_uploads_slow_down() {
    let fleet = Fleet::new(40);
    let service = tls_sandbox(&fleet.names());
    service.add_fault(Fault::status(UPLOAD, 429).header("Retry-After", "1").times(10));
    fleet.sync(&service).succeeds();
    fleet.assert_deployed(&service);
    assert_eq!(upload_count(&service), 40 + 10);
}

#[test]
fn uploads_widen_to_a_hundred() {
    let domains: Vec<String> = (0..200).map(|n| format!("s{n}.example")).collect();
    let names: Vec<&str> = domains.iter().map(String::as_str).collect();
    let (service, lineage) = (tls_sandbox(&names), Lineage::issued_for(&["*.example"]));
    service.add_fault(Fault::stall(UPLOAD, 0.2).times(1_000));
    let hook = fresh(&service, &lineage).args(["--wait", "0"]);
    let mut hook = domains.iter().fold(hook, |hook, domain| hook.for_domain(domain));
    let mut child = hook.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most = Vec::new();
    while child.try_wait().unwrap().is_none() {
        let requests = service.requests();
        most.push(requests.iter().filter(|request| request.status.is_none()).count());
        sleep(Duration::from_millis(20));
    }
    assert_eq!(upload_count(&service), domains.len());
    assert_eq!(most.iter().find(|in_flight| **in_flight > 0), Some(&1), "the first goes alone");
    let most = most.into_iter().max().unwrap();
    assert!((33..=100).contains(&most), "{most} at once");
}

fn nginx_before(service: &Sandbox, protocol: &str, options: &str) -> Nginx {
    let issued = test_ca().issue(&["127.0.0.1"]).unwrap();
    Nginx::before(&service.endpoints().api, &issued, protocol, options)
}

/// Directs a run to this server.
fn in_front(nginx: &Nginx, hook: Hook) -> Hook {
    let root = hook.system_roots().to_owned();
    let hook = hook.env("EDGECERT_BASE_URL", format!("https://127.0.0.1:{}", nginx.port));
    hook.env("EDGECERT_CA_FILE", root)
}

#[test]
fn fleet_survives_connections_that_end() {
    let fleet = Fleet::new(60);
    let service = sandbox(&fleet.names());
    // GOAWAY after every seventh request, and far fewer streams than the limit of the client.
    let nginx = nginx_before(&service, "http2", "keepalive_requests 7; http2_max_concurrent_streams 5;");
    let output = in_front(&nginx, fleet.sync(&service)).args(["--json"]).succeeds();
    assert_eq!(output.json()["counts"]["deployed"], Value::from(60));
    fleet.assert_deployed(&service);
    let protocols = nginx.protocols();
    assert!(protocols.iter().all(|protocol| protocol == "HTTP/2.0"), "{protocols:?}");
}

#[test]
fn http1_is_used_otherwise() {
    let fleet = Fleet::new(40);
    let service = sandbox(&fleet.names());
    let nginx = nginx_before(&service, "", "");
    in_front(&nginx, fleet.sync(&service)).succeeds();
    fleet.assert_deployed(&service);
    let protocols = nginx.protocols();
    assert!(protocols.iter().all(|protocol| protocol == "HTTP/1.1"), "{protocols:?}");
}
