//! Faults of the network and of the service, one by one: what passes is tried again, what does not is told at once.

use serde_json::json;

use crate::harness::{Fault, Lineage, asked, edgecert, sandbox, uploads};

const UPLOAD: &str = "POST /api/certs/upload";

/// A bare upload of a good certificate under this fault.
fn under(fault: Fault, timeout: &str) -> (crate::harness::Sandbox, crate::harness::Hook) {
    let edge = sandbox(&["a.example"]);
    edge.add_fault(fault);
    let renewed = Lineage::issued_for(&["a.example"]);
    let material = ["cert", "key"]
        .map(|kind| renewed.read(if kind == "cert" { "fullchain.pem" } else { "privkey.pem" }));
    let hook = edgecert().against(&edge);
    let [cert, key] = [hook.file("cert.pem", &material[0]), hook.file("key.pem", &material[1])];
    let hook = hook.args(["--json", "--wait", "0", "--domain", "a.example", "--timeout", timeout]);
    (edge, hook.args(["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()]))
}

#[test]
fn what_passes_by_itself_is_tried_again() {
    let mut faults: Vec<Fault> =
        [408, 425, 429, 500, 502, 503, 504, 599].map(|status| Fault::status(UPLOAD, status)).into();
    faults.extend([
        Fault::close_before(UPLOAD),
        Fault::close_after(UPLOAD),
        Fault::truncate(UPLOAD, 10),
        Fault::truncate(UPLOAD, 0),
    ]);
    faults.push(Fault::status(UPLOAD, 200).body("<html>not the service</html>"));
    faults.push(Fault::status(UPLOAD, 200).body(""));
    for fault in faults {
        let name = format!("{fault:?}");
        let (edge, hook) = under(fault, "60");
        let outcome = hook.run();
        assert_eq!(outcome.code, 0, "{name}\n{}", outcome.stderr);
        assert_eq!(outcome.json()["uploads"][0]["attempts"], 2, "{name}");
        assert_eq!((uploads(&edge), edge.certs().len()), (2, 1), "{name}: a repetition creates nothing");
    }
}

#[test]
fn a_refusal_is_told_at_once_with_the_services_own_words() {
    let rows = [
        (400, json!({"ok": false, "error": "SAN does not cover"}), 69, "(400): SAN does not cover"),
        (403, json!({"error": {"message": "not yours"}}), 69, "(403): not yours"),
        (404, json!("no such thing"), 69, "(404): no such thing"),
        (409, json!({"errors": [{"detail": "busy"}]}), 69, "(409): busy"),
        (413, json!(""), 69, "413"),
        (401, json!({"message": "bad key"}), 77, "(401): bad key"),
        (200, json!({"ok": false, "msg": "quota"}), 69, "ok:false: quota"),
    ];
    for (status, body, code, said) in rows {
        let (edge, hook) = under(Fault::status(UPLOAD, status).body(body).times(9), "60");
        let outcome = hook.fails_with(code);
        assert!(outcome.json()["error"].as_str().unwrap().contains(said), "{status}: {}", outcome.stdout);
        assert_eq!((uploads(&edge), edge.certs().len()), (1, 0), "{status}");
        assert_eq!(outcome.sites(), ["a.example: refused"]);
    }
}

#[test]
fn a_redirect_is_never_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = sandbox(&["a.example"]);
        let location = format!("{}/api/certs/upload", elsewhere.endpoints().api);
        let (edge, hook) = under(Fault::status(UPLOAD, status).header("Location", &location).times(9), "60");
        let outcome = hook.fails_with(76);
        assert!(outcome.stderr.contains(&format!("redirects to {location}")), "{}", outcome.stderr);
        assert_eq!((uploads(&edge), asked(&elsewhere).len()), (1, 0), "{status}");
    }
}

#[test]
fn an_answer_that_stays_unreadable_is_given_up_soon() {
    let page = "<html>\u{1b}[2J<b>Welcome</b>\r\nedgecert: error: forged</html>";
    let (edge, hook) = under(Fault::status(UPLOAD, 200).body(page).times(99), "60");
    let outcome = hook.fails_with(76);
    assert_eq!(uploads(&edge), 4);
    assert!(
        outcome.stderr.contains("<html> [2J<b>Welcome</b> edgecert: error: forged</html>"),
        "{}",
        outcome.stderr
    );
    assert!(!outcome.stderr.contains('\u{1b}'));
}

#[test]
fn the_deadline_ends_everything() {
    for fault in [
        Fault::status(UPLOAD, 503).times(999),
        Fault::stall(UPLOAD, 60.0).times(9),
        Fault::close_before(UPLOAD).times(999),
    ] {
        let name = format!("{fault:?}");
        let (_edge, hook) = under(fault, "1");
        let outcome = hook.run();
        assert_eq!(outcome.code, 75, "{name}: {}", outcome.stderr);
        assert_eq!(outcome.sites(), ["a.example: queued"], "{name}");
    }
}

#[test]
fn retry_after_beyond_the_deadline_ends_the_run() {
    for value in ["3600", "Fri, 01 Jan 2100 00:00:00 GMT"] {
        let (edge, hook) = under(Fault::status(UPLOAD, 429).header("Retry-After", value).times(99), "60");
        hook.fails_with(75);
        assert_eq!(uploads(&edge), 1, "Retry-After: {value}");
    }
}

#[test]
fn retry_after_in_the_past_or_unreadable_does_not_stop_the_run() {
    for value in ["0", "Thu, 01 Jan 1970 00:00:00 GMT", "soon"] {
        let (_edge, hook) = under(Fault::status(UPLOAD, 503).header("Retry-After", value), "60");
        assert_eq!(hook.succeeds().json()["uploads"][0]["attempts"], 2, "Retry-After: {value}");
    }
}

#[test]
fn a_service_that_is_not_there_is_temporary() {
    let edge = sandbox(&["a.example"]);
    let renewed = Lineage::issued_for(&["a.example"]);
    let hook = edgecert().called_by_certbot(&renewed).against(&edge).args(["--timeout", "1"]);
    // A port that was free a moment ago may be another test's by now.
    let outcome = hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").fails_with(75);
    assert!(
        outcome.stderr.contains("cannot reach the service at 127.0.0.1:1: Connection refused"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("edgecert: hint: `edgecert sync` will finish it"), "{}", outcome.stderr);
}

#[test]
fn a_fault_of_a_listing_is_tried_again_too() {
    let edge = sandbox(&["a.example"]);
    edge.add_fault(Fault::status("GET /api/certs", 503));
    edge.add_fault(Fault::truncate("GET /api/me/sites", 5));
    let renewed = Lineage::issued_for(&["a.example"]);
    let outcome = edgecert().called_by_certbot(&renewed).against(&edge).args(["--json"]).succeeds();
    assert_eq!(outcome.sites(), ["a.example: served"]);
    assert!(outcome.stderr.contains("retrying in"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("succeeded at attempt 2"), "{}", outcome.stderr);
}

#[test]
fn one_sites_failure_does_not_stop_the_others() {
    let edge = sandbox(&["a.example", "b.example"]);
    let both = Lineage::issued_for(&["a.example", "b.example"]);
    for domain in ["a.example", "b.example"] {
        let one = Lineage::issued_for(&[domain]);
        edgecert().called_by_certbot(&one).against(&edge).succeeds();
    }
    edge.add_fault(Fault::status(UPLOAD, 400));
    let outcome = edgecert().called_by_certbot(&both).against(&edge).args(["--json"]).fails_with(69);
    let mut outcomes: Vec<String> =
        outcome.sites().iter().map(|site| site.split_once(": ").unwrap().1.to_owned()).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["refused", "served"]);
}

#[test]
fn a_key_that_is_not_accepted_ends_the_run_at_once() {
    let edge = sandbox(&["a.example", "b.example"]);
    let both = Lineage::issued_for(&["a.example", "b.example"]);
    edge.add_fault(Fault::status("GET /api/certs", 503).times(999));
    let hook = edgecert().called_by_certbot(&both).against(&edge).env("EDGECERT_API_KEY", "another");
    hook.fails_with(77);
    let hook = edgecert()
        .called_by_certbot(&both)
        .against(&edge)
        .env("EDGECERT_API_KEY", "another")
        .args(["--wait", "0"]);
    hook.for_domain("a.example").for_domain("b.example").fails_with(77);
    assert_eq!(uploads(&edge), 1, "the private key is not sent again");
}

#[test]
fn a_service_that_speaks_no_tls_is_told_at_once() {
    let edge = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let https = edge.endpoints().api.replace("http://", "https://");
    let outcome =
        edgecert().called_by_certbot(&lineage).against(&edge).env("EDGECERT_BASE_URL", https).fails_with(78);
    assert!(outcome.stderr.contains("it does not speak TLS"), "{}", outcome.stderr);
}

#[test]
fn an_incomplete_listing_is_told() {
    let edge = sandbox(&["a.example"]);
    let sites = json!({"sites": [{"id": 10, "domain": "a.example", "cert_id": null, "config_synced": true}, {"id": 11}], "total": 250});
    edge.add_fault(Fault::status("GET /api/me/sites", 200).body(sites).times(1));
    let lineage = Lineage::issued_for(&["a.example"]);
    let outcome = edgecert().called_by_certbot(&lineage).against(&edge).args(["--json"]).run();
    let warnings = outcome.json()["warnings"].to_string();
    assert!(warnings.contains("the service lists only 2 of 250 sites"), "{warnings}");
    assert!(warnings.contains("cannot read 1 of the 2 sites that the service lists"), "{warnings}");
}
