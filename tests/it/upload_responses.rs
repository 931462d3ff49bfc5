//! The response to an upload is compared with what was uploaded; only handshakes prove an upload that it contradicts.

use serde_json::{Value, json};
use tempfile::TempDir;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::harness::{
    Fault, Hook, Lineage, Options, Sandbox, deploy, edgecert, record, sandbox, sandbox_with, sync,
    upload_count, world,
};

const UPLOAD: &str = "POST /api/certs/upload";

/// Fields of a response and their values; `None` removes a field.
type Edits = &'static [(&'static str, Option<&'static str>)];

/// What the warning says, and the edits that cause it.
const CONTRADICTIONS: [(&str, Edits); 12] = [
    ("`ok` is not true", &[("ok", None)]),
    ("`ok` is not true", &[("ok", Some("null"))]),
    ("`ok` is not true", &[("ok", Some("\"no\""))]),
    ("`domain` is other.example", &[("domain", Some("\"other.example\""))]),
    ("`domain` is b.example and c.example", &[("domain", Some("\"b.example, c.example\""))]),
    ("`domain` is *.example", &[("domain", Some("[\"*.example\"]"))]),
    ("`not_after` is 2020-01-01T00:00:00Z, not ", &[("not_after", Some("\"2020-01-01T00:00:00Z\""))]),
    ("`not_after` is 2020-01-01T00:00:00Z, not ", &[("not_after", Some("\"2020-01-01\""))]),
    ("`not_after` is soon, not ", &[("not_after", Some("\"soon\""))]),
    ("`key_match` is mismatch", &[("key_match", Some("\"mismatch\""))]),
    ("`key_match` is false", &[("key_match", Some("false"))]),
    (
        "`domain` is other.example and `key_match` is no",
        &[("domain", Some("\"other.example\"")), ("key_match", Some("\"no\""))],
    ),
];

/// A site with a deployed certificate.
struct Deployed {
    service: Sandbox,
    state: TempDir,
    lineage: Lineage,
    /// The response to a repeated upload.
    response: Value,
}

impl Deployed {
    fn new() -> Self {
        let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
        let lineage = Lineage::issued_for(&["a.example"]);
        let json = deploy(&service, &lineage, state.path()).args(["--json"]).succeeds().json();
        let response = json!({
            "ok": true, "id": json["uploads"][0]["id"].to_string(), "created": false, "domain": "a.example",
            "not_after": json["certificate"]["not_after"], "key_match": "unverified", "bound_sites": [],
        });
        Self { service, state, lineage, response }
    }

    fn edited(&self, edits: Edits) -> Value {
        let mut response = self.response.clone();
        for (field, value) in edits {
            match value {
                Some(value) => response[field] = serde_json::from_str(value).unwrap(),
                None => drop(response.as_object_mut().unwrap().remove(*field)),
            }
        }
        response
    }

    /// The service responds like this and stores nothing.
    fn respond(&self, response: Value) {
        self.service.add_fault(Fault::status(UPLOAD, 200).body(response));
    }

    fn hook(&self) -> Hook {
        deploy(&self.service, &self.lineage, self.state.path()).args(["--json", "--force"])
    }

    fn bare(&self) -> Hook {
        self.hook().args(["--domain", "a.example", "--wait", "0"])
    }
}

#[test]
fn contradicted_upload_is_no_success() {
    let deployed = Deployed::new();
    let calls: [fn(&Deployed) -> Hook; 4] = [
        |deployed| deployed.hook().args(["--verify", "off"]),
        |deployed| deployed.hook().args(["--wait", "0"]),
        |deployed| deployed.hook().args(["--wait", "1"]).env("EDGECERT_EDGE_ADDRESS", "127.0.0.1:1"),
        Deployed::bare,
    ];
    for (expected, edits) in CONTRADICTIONS {
        for (number, call) in calls.iter().enumerate() {
            deployed.respond(deployed.edited(edits));
            let output = call(&deployed).exits_with(76);
            assert_eq!(output.sites(), ["a.example: queued"], "{expected}: call {number}");
            let json = output.json();
            assert_eq!(json["uploads"][0]["ok"], false);
            for text in [&json["warnings"], &json["error"], &json["uploads"][0]["error"]] {
                let text = text.to_string();
                assert!(text.contains("the response contradicts the upload: "), "{text}");
                assert!(text.contains(expected), "{expected}: {text}");
            }
        }
    }
}

#[test]
fn contradicted_upload_is_proven_by_handshakes() {
    let deployed = Deployed::new();
    for (expected, edits) in CONTRADICTIONS {
        deployed.respond(deployed.edited(edits));
        let output = deployed.hook().succeeds();
        assert_eq!(output.sites(), ["a.example: served"], "{expected}");
        let warnings = output.json()["warnings"].to_string();
        assert!(warnings.contains("a.example: the response contradicts the upload: "), "{warnings}");
        assert!(warnings.contains(expected), "{warnings}");
    }
}

#[test]
fn contradicted_upload_is_stale_at_the_edge() {
    let deployed = Deployed::new();
    deployed.lineage.renew(&["a.example"]);
    for (expected, edits) in CONTRADICTIONS {
        deployed.respond(deployed.edited(edits));
        let output = deployed.hook().args(["--wait", "1"]).exits_with(75);
        assert_eq!(output.sites(), ["a.example: stale"], "{expected}");
        assert!(output.json()["warnings"].to_string().contains(expected), "{expected}");
    }
}

#[test]
fn sync_repeats_a_contradicted_upload() {
    for verify in ["off", "auto"] {
        let deployed = Deployed::new();
        deployed.lineage.renew(&["a.example"]);
        for _ in 0..2 {
            deployed.respond(deployed.edited(&[("domain", Some("\"other.example\""))]));
        }
        let unreachable = |hook: Hook| hook.env("EDGECERT_EDGE_ADDRESS", "127.0.0.1:1").args(["--wait", "1"]);
        unreachable(deployed.hook()).args(["--verify", verify]).exits_with(76);
        let before = upload_count(&deployed.service);
        let sync = || sync(&deployed.service, deployed.state.path()).args(["--verify", verify]);
        unreachable(sync()).exits_with(76);
        sync().succeeds();
        assert_eq!(upload_count(&deployed.service), before + 2);
        sync().succeeds();
        assert_eq!(upload_count(&deployed.service), before + 2);
    }
}

#[test]
fn sensible_responses_confirm_the_upload() {
    let deployed = Deployed::new();
    let expiry = deployed.response["not_after"].as_str().unwrap().trim_end_matches('Z').to_owned();
    let date = expiry.split_once('T').unwrap().0;
    let in_singapore = OffsetDateTime::parse(&format!("{expiry}Z"), &Rfc3339).unwrap();
    let in_singapore =
        in_singapore.to_offset(UtcOffset::from_hms(8, 0, 0).unwrap()).format(&Rfc3339).unwrap();
    let rows = [
        json!({"domain": "A.Example."}),
        json!({"domain": "b.example,a.example"}),
        json!({"domain": ["b.example", "a.example"]}),
        json!({"domain": null, "not_after": null, "key_match": null, "created": null}),
        json!({"domain": "", "not_after": "", "key_match": ""}),
        json!({"key_match": "OK"}),
        json!({"not_after": format!("{expiry}.000Z")}),
        json!({"not_after": format!("{expiry}.5+00:00")}),
        json!({"not_after": in_singapore}),
        json!({"not_after": in_singapore.replace("+08:00", ".000+0800")}),
        json!({"not_after": format!("{date}T08:00:00")}),
        json!({"not_after": format!("{date} 00:00:00")}),
        json!({"not_after": date}),
    ];
    for edits in rows {
        let mut response = deployed.response.clone();
        for (field, value) in edits.as_object().unwrap() {
            response[field] = value.clone();
        }
        deployed.respond(response);
        let output = deployed.bare().succeeds();
        assert_eq!(output.sites(), ["a.example: uploaded"], "{edits}");
        assert_eq!(output.json()["warnings"], json!([]), "{edits}");
    }
}

#[test]
fn other_spelling_of_a_domain_is_the_same() {
    let service = sandbox(&["b\u{fc}cher.example"]);
    let lineage = Lineage::issued_for(&["xn--bcher-kva.example"]);
    let response = json!({"ok": true, "id": "5", "domain": "xn--bcher-kva.example"});
    service.add_fault(Fault::status(UPLOAD, 200).body(response));
    let hook = edgecert().called_by_certbot(&lineage).against(&service);
    hook.args(["--domain", "B\u{fc}cher.Example", "--wait", "0"]).succeeds();
}

#[test]
fn record_that_no_site_uses_is_refused() {
    let rows = [
        (json!([]), 69),
        (json!(null), 69),
        (json!(0), 69),
        (json!([{"id": 11, "domain": "b.example"}]), 69),
        (json!(["b.example"]), 69),
        (json!([10]), 0),
        (json!(["10"]), 0),
        (json!([{"site_id": 10}]), 0),
        (json!(["A.Example."]), 0),
        (json!([{"id": 11, "domain": "b.example"}, {"id": 10, "domain": "a.example"}]), 0),
    ];
    let deployed = Deployed::new();
    for (bound_sites, code) in rows {
        let mut response = deployed.response.clone();
        response["created"] = json!(true);
        response["bound_sites"] = bound_sites.clone();
        deployed.respond(response);
        let output = deployed.bare().exits_with(code);
        let outcome = if code == 0 { "a.example: uploaded" } else { "a.example: misbound" };
        assert_eq!(output.sites(), [outcome], "{bound_sites}");
    }
}

#[test]
fn bare_upload_reports_an_unused_record() {
    let world = world(json!({
        "sites": [{"id": 10, "account": 1, "domain": "a.example", "cert_id": 5}],
        "certs": [record(5, "b.example", "upload")],
    }));
    let service = sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let hook = edgecert().called_by_certbot(&lineage).against(&service);
    let output = hook.args(["--domain", "a.example", "--wait", "0"]).exits_with(69);
    let id = service.certs()[1]["id"].to_string();
    let error = format!(
        "edgecert: error: a.example is misbound: certificate {id} was created, and the site is not bound to it\n\
         edgecert: hint: omit --wait 0 to deploy to the record that the site is bound to, or run `edgecert sites \
         bind a.example {id}`\n"
    );
    assert_eq!(output.stderr, error);
}
