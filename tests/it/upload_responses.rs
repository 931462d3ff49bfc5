//! An upload that its response contradicts: only handshakes prove it.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Fault, Hook, Host, Lineage, account, deploy, fresh, record, step, sync, upload_count};

const UPLOAD: &str = "POST /api/certs/upload";

/// What warnings say of a contradicting response.
const CONTRADICTION: &str =
    "the response contradicts the upload: `domain` is other.example and `key_match` is no";

/// A site with a deployed certificate.
struct Deployed {
    host: Host,
    /// The response to a repeated upload.
    response: Value,
}

impl Deployed {
    fn new() -> Self {
        let host = Host::new();
        let json = host.hook().args(["--json"]).succeeds().json();
        let response = json!({
            "ok": true, "id": json["uploads"][0]["id"].to_string(), "created": false, "domain": "a.example",
            "not_after": json["certificate"]["not_after"], "key_match": "unverified", "bound_sites": [],
        });
        Self { host, response }
    }

    /// The service contradicts the next upload and stores nothing.
    fn contradict(&self) {
        let mut response = self.response.clone();
        (response["domain"], response["key_match"]) = (json!("other.example"), json!("no"));
        self.host.service.add_fault(Fault::status(UPLOAD, 200).body(response));
    }

    fn hook(&self) -> Hook {
        self.host.hook().args(["--json", "--force"])
    }

    fn bare(&self) -> Hook {
        self.hook().args(["--domain", "a.example", "--wait", "0"])
    }
}

#[test]
fn odd_responses_are_explained() {
    let deployed = Deployed::new();

    step("contradicted_upload_is_proven_by_handshakes");
    deployed.contradict();
    let output = deployed.hook().succeeds();
    assert_eq!(output.sites(), ["a.example: served"]);
    let warnings = output.json()["warnings"].to_string();
    assert!(warnings.contains(&format!("a.example: {CONTRADICTION}")), "{warnings}");

    step("contradicted_upload_is_no_success");
    let calls: [fn(&Deployed) -> Hook; 4] = [
        |deployed| deployed.hook().args(["--verify", "off"]),
        |deployed| deployed.hook().args(["--wait", "0"]),
        |deployed| deployed.hook().args(["--wait", "1"]).facing("127.0.0.1:1"),
        Deployed::bare,
    ];
    for (number, call) in calls.iter().enumerate() {
        deployed.contradict();
        let output = call(&deployed).exits_with(76);
        assert_eq!(output.sites(), ["a.example: queued"], "call {number}");
        let json = output.json();
        assert_eq!(json["uploads"][0]["ok"], false);
        for text in [&json["warnings"], &json["error"], &json["uploads"][0]["error"]] {
            assert!(text.to_string().contains(CONTRADICTION), "{text}");
        }
    }

    step("many_bound_sites_are_accepted");
    let sites = (0..10_000).map(|id| json!({"id": id, "domain": format!("s{id}.example")})).collect();
    let mut response = deployed.response.clone();
    response["bound_sites"] = Value::Array(sites);
    let before = upload_count(&deployed.host.service);
    deployed.host.service.add_fault(Fault::status(UPLOAD, 200).body(response));
    let output = deployed.bare().succeeds();
    assert_eq!(upload_count(&deployed.host.service), before + 1);
    assert_eq!(output.json()["uploads"][0]["bound_sites"].as_array().unwrap().len(), 10_000);

    // The upload may have been stored, and the private key is not sent once more for the same response.
    step("json_without_an_id_is_final");
    let mut response = deployed.response.clone();
    response["id"] = json!("five");
    deployed.host.service.add_fault(Fault::status(UPLOAD, 200).body(response).times(99));
    let before = upload_count(&deployed.host.service);
    let output = deployed.bare().exits_with(76);
    assert_eq!(upload_count(&deployed.host.service), before + 1, "{}", output.stderr);
    assert_eq!(output.sites(), ["a.example: queued"]);
}

#[test]
fn contradicted_upload_is_stale_at_the_edge() {
    let deployed = Deployed::new();
    deployed.host.lineage.renew(&["a.example"]);
    deployed.contradict();
    let output = deployed.hook().args(["--wait", "1"]).exits_with(75);
    assert_eq!(output.sites(), ["a.example: stale"]);
    assert!(output.json()["warnings"].to_string().contains(CONTRADICTION), "{}", output.stdout);
}

#[test]
fn sync_repeats_a_contradicted_upload() {
    for verify in ["off", "auto"] {
        let deployed = Deployed::new();
        deployed.host.lineage.renew(&["a.example"]);
        for _ in 0..2 {
            deployed.contradict();
        }
        let unreachable = |hook: Hook| hook.facing("127.0.0.1:1").args(["--wait", "1"]);
        unreachable(deployed.hook()).args(["--verify", verify]).exits_with(76);
        let before = upload_count(&deployed.host.service);
        let sync = || deployed.host.sync().args(["--verify", verify]);
        unreachable(sync()).exits_with(76);
        sync().succeeds();
        assert_eq!(upload_count(&deployed.host.service), before + 2);
        sync().succeeds();
        assert_eq!(upload_count(&deployed.host.service), before + 2);
    }
}

/// The service says that it created a record that was there before.
#[test]
fn record_of_another_name_is_never_bound() {
    for verify in ["off", "auto"] {
        let sites = [(10, "a.example", None), (11, "other.example", Some(5))];
        let service = account(&sites, &[record(5, "other.example", "upload")]);
        let response = json!({"ok": true, "id": "5", "created": true, "domain": "a.example"});
        service.add_fault(Fault::status(UPLOAD, 200).body(response));
        let (state, lineage) = (TempDir::new().unwrap(), Lineage::issued_for(&["a.example"]));
        let hook = deploy(&service, &lineage, state.path()).args(["--json", "--verify", verify]);
        let output = hook.exits_with(76);
        assert_eq!(output.sites(), ["a.example: queued"], "{verify}");
        let found = "`created` is true for `id` 5, which was listed before for other.example";
        output.says(found);
        let site = service.sites().into_iter().find(|site| site["id"] == 10).unwrap();
        assert_eq!(site["cert_id"], json!(null), "{verify}");
        sync(&service, state.path()).succeeds();
        assert!(crate::harness::is_bound_to(&service, "a.example", &lineage));
    }
}

#[test]
fn bare_upload_reports_an_unused_record() {
    let service = account(&[(10, "a.example", Some(5))], &[record(5, "b.example", "upload")]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &lineage).args(["--domain", "a.example", "--wait", "0"]).exits_with(69);
    let id = service.certs()[1]["id"].to_string();
    let error = format!(
        "edgecert: error: a.example is misbound: certificate {id} was created, and the site is not bound to it\n\
         edgecert: hint: omit --wait 0 to deploy to the record that the site is bound to, or run `edgecert sites \
         bind a.example {id}`\n"
    );
    assert_eq!(output.stderr, error);
}
