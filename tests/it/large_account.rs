//! A plain renewal in a large account reads the sites of its lineage instead of the listing. Whatever is not as the last
//! deployment left it calls for the listing.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    EdgeAddress, EdgeMode, Fault, Hook, Lineage, Options, Output, Sandbox, World, change, deploy,
    is_bound_to, record, requests_during, sandbox_with, sync, test_ca, upload_count, world,
};

const SITES: &str = "GET /api/me/sites";
const NAMES: [&str; 3] = ["a.example", "b.example", "new.example"];
/// The smallest account that is large.
const LARGE: u64 = 1_001;

/// An account with a lineage that was deployed to the sites of its first two names; the third has no site.
struct Deployed {
    service: Sandbox,
    state: TempDir,
    lineage: Lineage,
}

impl Deployed {
    fn in_account_of(sites: u64) -> Self {
        Self::in_world(world(json!({"sites": listed(sites), "certs": [record(900, "s3.example", "upload")]})))
    }

    fn in_world(world: World) -> Self {
        let service = sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[]);
        let deployed = Self { service, state: TempDir::new().unwrap(), lineage: Lineage::issued_for(&NAMES) };
        let (requests, _) = requests_during(&deployed.service, || deployed.hook().succeeds());
        assert!(requests.iter().any(|line| line == SITES), "the first deployment: {requests:?}");
        deployed
    }

    fn hook(&self) -> Hook {
        deploy(&self.service, &self.lineage, self.state.path()).args(["--json"])
    }

    /// Renews and deploys. Returns whether the account was listed.
    fn is_listed_by(&self, hook: Hook) -> (bool, Output) {
        self.lineage.renew(&NAMES);
        self.is_listed_for_leaf(hook)
    }

    fn is_listed_for_leaf(&self, hook: Hook) -> (bool, Output) {
        let (requests, output) = requests_during(&self.service, || hook.run());
        (requests.iter().any(|line| line == SITES), output)
    }

    fn has_leaf(&self, domain: &str) -> bool {
        is_bound_to(&self.service, domain, &self.lineage)
    }
}

/// Sites of the first account: two of the lineage, and others.
fn listed(sites: u64) -> Vec<Value> {
    let site = |id: u64| {
        let domain = match id {
            1 => NAMES[0].to_owned(),
            2 => NAMES[1].to_owned(),
            other => format!("s{other}.example"),
        };
        let cert_id = (id == 3).then_some(900);
        json!({"id": id, "account": 1, "domain": domain, "cert_id": cert_id})
    };
    (1..=sites).map(site).collect()
}

#[test]
fn large_account_is_not_listed() {
    let deployed = Deployed::in_account_of(LARGE);
    for round in 0..2 {
        deployed.lineage.renew(&NAMES);
        let (requests, output) = requests_during(&deployed.service, || deployed.hook().succeeds());
        let before: Vec<&String> =
            requests.iter().filter(|line| !line.starts_with("GET /api/sites/")).collect();
        assert_eq!(before, ["GET /api/certs", "POST /api/certs/upload"], "round {round}");
        assert!(deployed.has_leaf("a.example") && deployed.has_leaf("b.example"));
        let note = "the sites of this account (1001 at the last listing) were not listed; \
                    new sites are left to the next `edgecert sync`";
        let json = output.json();
        assert!(output.stderr.contains(note) && json["warnings"] == json!([note]), "{json}");
        assert_eq!(output.sites(), ["a.example: served", "b.example: served"]);
    }
    deployed.service.add_site("new.example");
    assert!(!deployed.is_listed_by(deployed.hook()).0);
    assert!(!deployed.has_leaf("new.example"));
    sync(&deployed.service, deployed.state.path()).succeeds();
    assert!(deployed.has_leaf("new.example"));
}

#[test]
fn small_account_is_listed() {
    let deployed = Deployed::in_account_of(LARGE - 1);
    let (is_listed, output) = deployed.is_listed_by(deployed.hook());
    assert!(is_listed && output.json()["warnings"] == json!([]), "{}", output.stderr);
}

#[test]
fn other_options_list_the_account() {
    let deployed = Deployed::in_account_of(LARGE);
    for options in [&["--force"][..], &["--rebind"], &["--allow-older"], &["--domain", "a.example"]] {
        let (is_listed, output) = deployed.is_listed_by(deployed.hook().args(options));
        assert!(is_listed, "{options:?}: {}", output.stderr);
    }
    // The last one was for one site.
    assert!(deployed.is_listed_by(deployed.hook()).0);
    assert!(!deployed.is_listed_by(deployed.hook()).0);
    let plan = deployed.hook().args(["--dry-run"]);
    assert!(deployed.is_listed_by(plan).0);
    // The leaf is on disk, and no hook ran.
    assert!(deployed.is_listed_for_leaf(sync(&deployed.service, deployed.state.path())).0);
}

#[test]
fn dropped_name_lists_the_account() {
    let deployed = Deployed::in_account_of(LARGE);
    deployed.lineage.renew(&NAMES[..1]);
    let (is_listed, output) = deployed.is_listed_for_leaf(deployed.hook());
    assert!(is_listed && output.stderr.contains("is also bound to b.example"), "{}", output.stderr);
    // The record still holds the wider one.
    assert_eq!(upload_count(&deployed.service), 1);
}

#[test]
fn rebound_site_lists_the_account() {
    let deployed = Deployed::in_account_of(LARGE);
    change(&deployed.service, "/api/sites/1/update", &json!({"cert_id": 900}));
    let (is_listed, output) = deployed.is_listed_by(deployed.hook());
    assert!(is_listed && output.stderr.contains("bound to certificate 900"), "{}", output.stderr);
    assert!(!deployed.has_leaf("a.example"));
}

#[test]
fn site_bound_meanwhile_keeps_coverage() {
    let deployed = Deployed::in_account_of(LARGE);
    let id = deployed.service.sites()[0]["cert_id"].clone();
    change(&deployed.service, "/api/sites/4/update", &json!({"cert_id": id}));
    // The new leaf covers whatever the earlier one covers, which is not that site.
    assert!(!deployed.is_listed_by(deployed.hook()).0);
    assert!(deployed.has_leaf("a.example"));
}

#[test]
fn deleted_record_lists_the_account() {
    let deployed = Deployed::in_account_of(LARGE);
    // The records are listed once more, because another run might just have made the one that the site is bound to.
    deployed.service.add_fault(Fault::status("GET /api/certs", 200).body(json!([])).times(3));
    let (is_listed, output) = deployed.is_listed_by(deployed.hook());
    assert!(is_listed && output.stderr.contains("not among the account's certificates"), "{}", output.stderr);
    assert_eq!(upload_count(&deployed.service), 1);
}

#[test]
fn second_record_lists_the_account() {
    let deployed = Deployed::in_account_of(LARGE);
    let records: Vec<Value> = deployed.service.certs();
    let twin = json!({"id": 901, "name": "a.example", "domain": "a.example", "type": "upload"});
    let records: Vec<Value> = records.into_iter().chain([twin]).collect();
    deployed.service.add_fault(Fault::status("GET /api/certs", 200).body(json!(records)).times(2));
    assert!(deployed.is_listed_by(deployed.hook()).0);
}

#[test]
fn newer_certificate_of_others_is_kept() {
    let deployed = Deployed::in_account_of(LARGE);
    let newer = test_ca().issue_between(&NAMES, [0, 80]).unwrap();
    let upload = json!({"domain": "a.example", "cert_pem": newer.fullchain(), "key_pem": newer.key});
    change(&deployed.service, "/api/certs/upload", &upload);
    deployed.service.push_now();
    let uploads = upload_count(&deployed.service);
    let (is_listed, output) = deployed.is_listed_by(deployed.hook());
    assert!(is_listed && output.stderr.contains("later than the new one"), "{}", output.stderr);
    assert_eq!(upload_count(&deployed.service), uploads);
}

#[test]
fn key_of_another_account_lists_it() {
    let package = |id: u64| json!({"id": id, "expires_at": "2100-01-01T00:00:00Z", "traffic_limit": 1000, "traffic_used": 0});
    let account = |id: u64, key: &str| json!({"id": id, "api_keys": [key], "packages": [package(id)]});
    let world = json!({
        "accounts": [account(1, "sandbox-key"), account(2, "other-key")],
        "sites": listed(LARGE),
        "certs": [record(900, "s3.example", "upload")],
    });
    let deployed = Deployed::in_world(serde_json::from_value(world).unwrap());
    let hook = deployed.hook().env("EDGECERT_API_KEY", "other-key");
    let (is_listed, output) = deployed.is_listed_by(hook);
    assert!(is_listed && output.stderr.contains("the account no longer has a.example"), "{}", output.stderr);
    assert_eq!(upload_count(&deployed.service), 1);
}

#[test]
fn every_configured_address_is_verified() {
    let deployed = Deployed::in_account_of(LARGE);
    let other = deployed.service.open_edge_address(&EdgeAddress::new(EdgeMode::Same));
    deployed.service.reset_handshakes();
    let hook = deployed.hook().env("EDGECERT_EDGE_ADDRESS", &other);
    let (is_listed, output) = deployed.is_listed_by(hook);
    assert!(!is_listed, "{}", output.stderr);
    assert_eq!(output.sites(), ["a.example: served", "b.example: served"]);
    let asked = deployed.service.handshakes().addresses;
    let asked = [&other, &deployed.service.endpoints().edge].map(|address| asked[address].connections > 0);
    assert_eq!(asked, [true, false]);
}

#[test]
fn unresponsive_edge_lists_the_account() {
    let deployed = Deployed::in_account_of(LARGE);
    let hook = deployed.hook().args(["--wait", "1"]).env("EDGECERT_EDGE_ADDRESS", "127.0.0.1:1");
    assert!(deployed.is_listed_by(hook).0);
}

#[test]
fn wider_certificate_of_others_is_kept() {
    for verify in ["auto", "off"] {
        let deployed = Deployed::in_account_of(LARGE);
        let wider = test_ca().issue_between(&["a.example", "b.example", "s4.example"], [-9, 80]).unwrap();
        let upload = json!({"domain": "a.example", "cert_pem": wider.fullchain(), "key_pem": wider.key});
        change(&deployed.service, "/api/certs/upload", &upload);
        let id = deployed.service.sites()[0]["cert_id"].clone();
        change(&deployed.service, "/api/sites/4/update", &json!({"cert_id": id}));
        deployed.service.push_now();
        let (is_listed, output) = deployed.is_listed_by(deployed.hook().args(["--verify", verify]));
        assert!(is_listed && output.stderr.contains("is also bound to s4.example"), "{}", output.stderr);
    }
}
