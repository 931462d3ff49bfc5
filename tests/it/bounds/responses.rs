//! Hostile and odd JSON from the service.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::MIB;
use crate::harness::{
    Fault, Hook, Lineage, Sandbox, edgecert_with_heap, fresh, request_lines, sandbox, sync,
};

const MAX_HEAP: u64 = 400_000_000;
const BODY_BYTES: usize = 30 * MIB;
const SITES: &str = "GET /api/me/sites";
const RECORDS: &str = "GET /api/certs";

/// An array of 30 MiB.
fn array_of(element: &str) -> String {
    format!("[{}{element}]", format!("{element},").repeat(BODY_BYTES / (element.len() + 1)))
}

/// The limits are tested in `api::listing`.
#[test]
fn tiny_objects_stay_within_400_mb() {
    let service = sandbox(&["a.example"]);
    let body = array_of(r#"{"id":1,"domain":"a.example"}"#);
    service.add_fault(Fault::status(SITES, 200).body(body));
    let hook = edgecert_with_heap(MAX_HEAP).against(&service).args(["sites", "list", "--timeout", "300"]);
    let output = hook.exits_with(76);
    output.says("the service sent a list that is too large");
}

/// Nothing is downloaded again, whether by another attempt, for the other list or for another lineage.
#[test]
fn too_large_list_is_read_once() {
    let state = TempDir::new().unwrap();
    let lineages = ["a.example", "b.example"].map(|name| Lineage::issued_for(&[name]));
    let service = sandbox(&["a.example", "b.example"]);
    let body = json!({"sites": [], "note": "x".repeat(3 * MIB)}).to_string();
    service.add_fault(Fault::status(SITES, 200).body(body).times(99));
    let message = "the service sent a list that is too large";
    for lineage in &lineages {
        let before = request_lines(&service).len();
        let output = deploy(&service, lineage).with_state(state.path()).exits_with(76);
        assert!(output.stderr.contains(message) && !output.stderr.contains("base URL"), "{}", output.stderr);
        assert_listed_once(&service, before);
    }
    let before = request_lines(&service).len();
    let output = sync(&service, state.path()).exits_with(76);
    assert!(output.stderr.contains(message) && !output.stderr.contains("base URL"), "{}", output.stderr);
    assert_listed_once(&service, before);
    assert!(service.certs().is_empty());
}

/// Since there were this many requests, each list was requested at most once, and nothing else.
fn assert_listed_once(service: &Sandbox, before: usize) {
    let mut requests = request_lines(service).split_off(before);
    requests.retain(|request| request != RECORDS);
    assert_eq!(requests, [SITES]);
}

/// What a large account may have is read, and takes less memory than its text.
#[test]
fn large_listing_is_deployed() {
    let site = |number: usize| {
        json!({
            "id": number, "domain": format!("s{number}.example"), "cname": format!("s{number}.edge.invalid"),
            "enabled": true, "cert_id": null, "origins": [{"addr": "192.0.2.1", "weight": 1, "status": true}],
            "origin_protocol": "https", "http_enabled": true, "https_enabled": true, "force_https": true,
            "cache_rules": [], "security": {}, "config_synced": true, "created_at": "2026-01-01T00:00:00Z",
        })
    };
    let lineage = Lineage::issued_for(&["a.example"]);
    let service = sandbox(&["a.example"]);
    let own = service.sites()[0]["id"].clone();
    let mut sites: Vec<Value> = (10_000..110_000).map(site).collect();
    sites.push(json!({"id": own, "domain": "a.example", "cert_id": null, "enabled": true}));
    let total = sites.len();
    let listing = json!({"sites": sites, "total": total}).to_string();
    drop(sites);
    service.add_fault(Fault::status("GET /api/me/sites", 200).body(listing));
    let hook = edgecert_with_heap(64_000_000).called_by_certbot(&lineage).against(&service);
    assert_eq!(hook.args(["--json"]).succeeds().sites(), ["a.example: served"]);
}

fn deploy(service: &Sandbox, lineage: &Lineage) -> Hook {
    fresh(service, lineage).args(["--wait", "2"])
}

#[test]
fn deep_nesting_is_invalid() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let service = sandbox(&["a.example"]);
    let body = format!("{}1{}", r#"{"x":[{"x":"#.repeat(50_000), "}]}".repeat(50_000));
    service.add_fault(Fault::status(SITES, 200).body(body).times(99));
    deploy(&service, &lineage).exits_with(76).says("cannot be understood");
}
