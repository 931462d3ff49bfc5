//! Tables of changes after a deployment, and whether the next run uploads, with and without a state file.

use edgecert_sandbox::Authority;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{fresh, with_address};
use crate::harness::{
    EdgeAddress, EdgeMode, Hook, Lineage, Sandbox, at_once, change, deploy, sandbox, sandbox_and_lineage,
    test_ca, upload_count,
};

/// A change after a deployment of `a.example`; returns the next run.
type Change = fn(&Sandbox, &Lineage, Hook) -> Hook;

/// Name, changes in this order, number of uploads of the next run, its exit code and outcome.
type Row = (&'static str, &'static [Change], usize, i32, &'static str);

const WITHOUT_STATE: [Row; 17] = [
    ("no change", &[], 0, 0, "served"),
    ("forced", &[forced], 1, 0, "served"),
    ("verification off", &[unverified], 1, 0, "synced"),
    ("unbound", &[unbound], 1, 0, "served"),
    ("push pending", &[unpushed], 1, 0, "served"),
    ("disabled", &[disabled], 1, 0, "synced"),
    ("other record content", &[replaced], 1, 0, "served"),
    ("no intermediate", &[without_intermediate], 1, 0, "served"),
    ("foreign intermediate", &[with_foreign_intermediate], 1, 0, "served"),
    ("edge refuses", &[refusing], 1, 75, "stale"),
    ("second address refuses", &[second_refusing], 1, 75, "stale"),
    ("second of two nodes", &[|service, _, hook| one_node_of(2, service, hook)], 1, 75, "stale"),
    ("third of three nodes", &[|service, _, hook| one_node_of(3, service, hook)], 1, 75, "stale"),
    ("second address serves another", &[second_other], 1, 75, "stale"),
    ("second address is stale", &[second_stale], 1, 75, "stale"),
    ("second address unreachable", &[second_unreachable], 0, 0, "synced"),
    ("second address required", &[second_unreachable, required], 0, 75, "synced"),
];

const WITH_STATE: [Row; 13] = [
    ("off", &[unverified], 0, 0, "synced"),
    ("off, forced", &[unverified, forced], 1, 0, "synced"),
    ("off, renewed", &[renewed, unverified], 1, 0, "synced"),
    ("off, unbound", &[unbound, unverified], 1, 0, "synced"),
    ("off, push pending", &[unpushed, unverified], 1, 0, "uploaded"),
    ("no intermediate", &[without_intermediate], 1, 0, "served"),
    ("foreign intermediate", &[with_foreign_intermediate], 1, 0, "served"),
    ("edge refuses", &[refusing], 1, 75, "stale"),
    ("disabled", &[disabled], 0, 0, "synced"),
    ("disabled, required", &[disabled, required], 0, 75, "synced"),
    ("disabled, renewed", &[renewed, disabled], 1, 0, "synced"),
    ("bare upload", &[|_, _, hook| hook.for_domain("a.example").args(["--wait", "0"])], 1, 0, "uploaded"),
    ("no wait", &[|_, _, hook| hook.args(["--wait", "0"])], 0, 0, "served"),
];

#[test]
fn only_what_is_missing_is_sent() {
    at_once(WITHOUT_STATE, |row| {
        let (service, lineage) = sandbox_and_lineage(&["a.example"]);
        fresh(&service, &lineage).succeeds();
        check(row, &service, &lineage, fresh(&service, &lineage));
    });
}

#[test]
fn state_stands_in_for_handshakes() {
    at_once(WITH_STATE, |row| {
        let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
        let lineage = Lineage::issued_for(&["a.example"]);
        deploy(&service, &lineage, state.path()).succeeds();
        let hook = deploy(&service, &lineage, state.path()).args(["--json", "--timeout", "10"]);
        check(row, &service, &lineage, hook.env("EDGECERT_WAIT", "1"));
    });
}

#[test]
fn record_of_another_lineage_is_replaced() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let [first, second] = [(), ()].map(|()| Lineage::issued_for(&["a.example"]));
    let unverified = ["--verify", "off", "--allow-older"];
    for (number, lineage) in [&first, &second, &first].into_iter().enumerate() {
        deploy(&service, lineage, state.path()).args(unverified).succeeds();
        assert_eq!(upload_count(&service), number + 1);
    }
}

#[track_caller]
fn check((name, changes, uploads, code, outcome): Row, service: &Sandbox, lineage: &Lineage, hook: Hook) {
    let hook = changes.iter().fold(hook, |hook, change| change(service, lineage, hook));
    let before = upload_count(service);
    let output = hook.run();
    let (sent, json) = (upload_count(service) - before, output.json());
    let found = (sent, output.code, json["sites"][0]["outcome"].as_str(), &json["changed"]);
    let expected = (uploads, code, Some(outcome), &json!(uploads > 0));
    assert_eq!(found, expected, "{name}: {}{}", output.stdout, output.stderr);
}

fn forced(_: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    hook.args(["--force"])
}

fn required(_: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    hook.args(["--verify", "require"])
}

fn unverified(_: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    hook.args(["--verify", "off"])
}

fn renewed(_: &Sandbox, lineage: &Lineage, hook: Hook) -> Hook {
    lineage.renew(&["a.example"]);
    hook
}

fn unbound(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    change_site(service, "update", &json!({"cert_id": null}));
    hook
}

fn unpushed(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    service.hold_pushes(true);
    change_site(service, "update", &json!({"force_https": true}));
    hook
}

fn disabled(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    change_site(service, "disable", &json!({}));
    hook
}

/// Another client stores another certificate in the record.
fn replaced(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    let other = test_ca().issue(&["a.example"]).unwrap();
    let id = service.certs()[0]["id"].as_u64().unwrap();
    service.replace_cert_silently(id, &other.fullchain(), &other.key);
    hook
}

fn without_intermediate(service: &Sandbox, lineage: &Lineage, hook: Hook) -> Hook {
    service.override_edge("a.example", &lineage.read("cert.pem"), &lineage.read("privkey.pem"));
    hook
}

fn with_foreign_intermediate(service: &Sandbox, lineage: &Lineage, hook: Hook) -> Hook {
    let other = Authority::new("Other CA").unwrap().issue(&["a.example"]).unwrap();
    let chain = lineage.read("cert.pem") + intermediate(&other.fullchain());
    service.override_edge("a.example", &chain, &lineage.read("privkey.pem"));
    hook
}

fn intermediate(fullchain: &str) -> &str {
    fullchain.get(fullchain.rfind("-----BEGIN").unwrap()..).unwrap()
}

fn refusing(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    hook.env("EDGECERT_EDGE_ADDRESS", service.open_edge_address(&EdgeAddress::new(EdgeMode::Refuse)))
}

fn second_refusing(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    with_address(service, hook, &service.open_edge_address(&EdgeAddress::new(EdgeMode::Refuse)))
}

/// A second address serves another certificate.
fn second_other(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    let other = test_ca().issue(&["a.example"]).unwrap();
    let other = EdgeAddress::serving(&other.fullchain(), &other.key);
    with_address(service, hook, &service.open_edge_address(&other))
}

/// One of some nodes behind an address serves another certificate.
fn one_node_of(nodes: u64, service: &Sandbox, hook: Hook) -> Hook {
    let other = test_ca().issue(&["a.example"]).unwrap();
    let other = EdgeAddress::serving(&other.fullchain(), &other.key);
    hook.env("EDGECERT_EDGE_ADDRESS", service.open_edge_address(&other.every(nodes)))
}

/// A second address missed the push of a renewal.
fn second_stale(service: &Sandbox, lineage: &Lineage, hook: Hook) -> Hook {
    let stale = service.open_edge_address(&EdgeAddress::new(EdgeMode::Stale));
    lineage.renew(&["a.example"]);
    fresh(service, lineage).succeeds();
    with_address(service, hook, &stale)
}

fn second_unreachable(service: &Sandbox, _: &Lineage, hook: Hook) -> Hook {
    with_address(service, hook, "127.0.0.1:1")
}

fn change_site(service: &Sandbox, action: &str, body: &Value) {
    change(service, &format!("/api/sites/{}/{action}", service.sites()[0]["id"]), body);
}
