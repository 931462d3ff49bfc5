//! Tables of changes after a deployment, and whether the next run uploads, with and without a state file.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{fresh, with_address};
use crate::harness::{
    Authority, EdgeAddress, EdgeMode, Hook, Lineage, Sandbox, at_once, change, deploy, sandbox,
    sandbox_and_lineage, test_ca, upload_count,
};

/// Changes after a deployment of `a.example`, number of uploads of the next run, its exit code and outcome.
type Row = (&'static str, usize, i32, &'static str);

const WITHOUT_STATE: [Row; 17] = [
    ("nothing", 0, 0, "served"),
    ("forced", 1, 0, "served"),
    ("unverified", 1, 0, "synced"),
    ("unbound", 1, 0, "served"),
    ("push pending", 1, 0, "served"),
    ("disabled", 1, 0, "synced"),
    ("other record content", 1, 0, "served"),
    ("no intermediate", 1, 0, "served"),
    ("foreign intermediate", 1, 0, "served"),
    ("edge refuses", 1, 75, "stale"),
    ("second address refuses", 1, 75, "stale"),
    ("second of two nodes", 1, 75, "stale"),
    ("third of three nodes", 1, 75, "stale"),
    ("second address serves another", 1, 75, "stale"),
    ("second address is stale", 1, 75, "stale"),
    ("second address unreachable", 0, 0, "synced"),
    ("second address unreachable, required", 0, 75, "synced"),
];

const WITH_STATE: [Row; 13] = [
    ("unverified", 0, 0, "synced"),
    ("unverified, forced", 1, 0, "synced"),
    ("renewed, unverified", 1, 0, "synced"),
    ("unbound, unverified", 1, 0, "synced"),
    ("push pending, unverified", 1, 0, "uploaded"),
    ("no intermediate", 1, 0, "served"),
    ("foreign intermediate", 1, 0, "served"),
    ("edge refuses", 1, 75, "stale"),
    ("disabled", 0, 0, "synced"),
    ("disabled, required", 0, 75, "synced"),
    ("renewed, disabled", 1, 0, "synced"),
    ("bare upload", 1, 0, "uploaded"),
    ("no wait", 0, 0, "served"),
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
fn check((changes, uploads, code, outcome): Row, service: &Sandbox, lineage: &Lineage, hook: Hook) {
    let hook = changes.split(", ").fold(hook, |hook, change| changed(change, service, lineage, hook));
    let before = upload_count(service);
    let output = hook.run();
    let (sent, json) = (upload_count(service) - before, output.json());
    let found = (sent, output.code, json["sites"][0]["outcome"].as_str(), &json["changed"]);
    let expected = (uploads, code, Some(outcome), &json!(uploads > 0));
    assert_eq!(found, expected, "{changes}: {}{}", output.stdout, output.stderr);
}

/// Makes a change, and returns the next run.
fn changed(what: &str, service: &Sandbox, lineage: &Lineage, hook: Hook) -> Hook {
    let site = |action: &str, body: &Value| {
        change(service, &format!("/api/sites/{}/{action}", service.sites()[0]["id"]), body);
    };
    let open = |address: &EdgeAddress| service.open_edge_address(address);
    let serve = |chain: &str| service.override_edge("a.example", chain, &lineage.read("privkey.pem"));
    let other = test_ca().issue(&["a.example"]).unwrap();
    let serving_other = || EdgeAddress::serving(&other.fullchain(), &other.key);
    match what {
        "nothing" => {}
        "forced" => return hook.args(["--force"]),
        "required" => return hook.args(["--verify", "require"]),
        "unverified" => return hook.args(["--verify", "off"]),
        "bare upload" => return hook.for_domain("a.example").args(["--wait", "0"]),
        "no wait" => return hook.args(["--wait", "0"]),
        "renewed" => lineage.renew(&["a.example"]),
        "unbound" => site("update", &json!({"cert_id": null})),
        "push pending" => {
            service.hold_pushes(true);
            site("update", &json!({"force_https": true}));
        }
        "disabled" => site("disable", &json!({})),
        // Another client stores another certificate in the record.
        "other record content" => {
            let id = service.certs()[0]["id"].as_u64().unwrap();
            service.replace_cert_silently(id, &other.fullchain(), &other.key);
        }
        "no intermediate" => serve(&lineage.read("cert.pem")),
        "foreign intermediate" => {
            let foreign = Authority::new("Other CA").unwrap().issue(&["a.example"]).unwrap();
            serve(&(lineage.read("cert.pem") + &foreign.chain));
        }
        "edge refuses" => return hook.facing(open(&EdgeAddress::new(EdgeMode::Refuse))),
        // One of several nodes behind an address serves another certificate.
        "second of two nodes" => return hook.facing(open(&serving_other().every(2))),
        "third of three nodes" => return hook.facing(open(&serving_other().every(3))),
        "second address refuses" => {
            return with_address(service, hook, &open(&EdgeAddress::new(EdgeMode::Refuse)));
        }
        "second address serves another" => return with_address(service, hook, &open(&serving_other())),
        // It missed the push of a renewal.
        "second address is stale" => {
            let stale = open(&EdgeAddress::new(EdgeMode::Stale));
            lineage.renew(&["a.example"]);
            fresh(service, lineage).succeeds();
            return with_address(service, hook, &stale);
        }
        "second address unreachable" => return with_address(service, hook, "127.0.0.1:1"),
        other => panic!("{other}"),
    }
    hook
}
