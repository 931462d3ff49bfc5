//! Faults of the network and the service: temporary ones are retried until the deadline, others are reported at once.

use serde_json::json;

use crate::harness::{
    Fault, Lineage, at_once, edgecert, fresh, request_lines, sandbox, sandbox_and_lineage, step, upload_count,
};

const UPLOAD: &str = "POST /api/certs/upload";

/// Sets up an upload-only run against a sandbox with this fault.
fn upload_with_fault(fault: Fault, timeout: &str) -> (crate::harness::Sandbox, crate::harness::Hook) {
    let service = sandbox(&["a.example"]);
    service.add_fault(fault);
    let lineage = Lineage::issued_for(&["a.example"]);
    let hook = edgecert().against(&service);
    let [cert, key] = ["fullchain.pem", "privkey.pem"].map(|name| hook.write_file(name, &lineage.read(name)));
    let hook = hook.args(["--json", "--wait", "0", "--domain", "a.example", "--timeout", timeout]);
    (service, hook.args(["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()]))
}

#[test]
fn temporary_faults_are_retried() {
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
    at_once(faults, |fault| {
        let name = format!("{fault:?}");
        let (service, hook) = upload_with_fault(fault, "60");
        let output = hook.run();
        assert_eq!(output.code, 0, "{name}\n{}", output.stderr);
        assert_eq!(output.json()["uploads"][0]["attempts"], 2, "{name}");
        let counts = (upload_count(&service), service.certs().len());
        assert_eq!(counts, (2, 1), "{name}: a retry creates no second record");
    });
}

#[test]
fn refusal_reports_reason_without_retry() {
    let rows = [
        (400, json!({"ok": false, "error": "SAN does not cover"}), 69, "(400): SAN does not cover"),
        (413, json!(""), 69, "413"),
        (401, json!({"message": "bad key"}), 77, "(401): bad key"),
        (200, json!({"ok": false, "msg": "quota"}), 69, "ok:false: quota"),
    ];
    for (status, body, code, message) in rows {
        let (service, hook) = upload_with_fault(Fault::status(UPLOAD, status).body(body).times(9), "60");
        let output = hook.exits_with(code);
        assert!(output.json()["error"].as_str().unwrap().contains(message), "{status}: {}", output.stdout);
        assert_eq!((upload_count(&service), service.certs().len()), (1, 0), "{status}");
        assert_eq!(output.sites(), ["a.example: refused"]);
    }
}

#[test]
fn redirects_are_never_followed() {
    for status in [302, 308] {
        let other_service = sandbox(&["a.example"]);
        let location = format!("{}/api/certs/upload", other_service.endpoints().api);
        let (service, hook) =
            upload_with_fault(Fault::status(UPLOAD, status).header("Location", &location).times(9), "60");
        hook.exits_with(76).says(format!("redirects to {location}"));
        assert_eq!((upload_count(&service), request_lines(&other_service).len()), (1, 0), "{status}");
    }
}

#[test]
fn unreadable_response_ends_after_four_attempts() {
    let page = "<html>\u{1b}[2J<b>Welcome</b>\r\nedgecert: error: forged</html>";
    let (service, hook) = upload_with_fault(Fault::status(UPLOAD, 200).body(page).times(99), "60");
    let output = hook.exits_with(76);
    assert_eq!(upload_count(&service), 4);
    output.says("<html> [2J<b>Welcome</b> edgecert: error: forged</html>");
    assert!(!output.stderr.contains('\u{1b}'));
}

#[test]
fn deadline_ends_the_run() {
    for fault in [
        Fault::status(UPLOAD, 503).times(999),
        Fault::stall(UPLOAD, 60.0).times(9),
        Fault::close_before(UPLOAD).times(999),
    ] {
        let name = format!("{fault:?}");
        let (_service, hook) = upload_with_fault(fault, "1");
        let output = hook.run();
        assert_eq!(output.code, 75, "{name}: {}", output.stderr);
        assert_eq!(output.sites(), ["a.example: queued"], "{name}");
    }
}

#[test]
fn retry_after_is_kept_to() {
    let with = |value: &str, times| {
        let fault = Fault::status(UPLOAD, 429).header("Retry-After", value).times(times);
        upload_with_fault(fault, "60")
    };
    // Beyond the deadline.
    let (service, hook) = with("3600", 99);
    hook.exits_with(75);
    assert_eq!(upload_count(&service), 1);
    let (_service, hook) = with("soon", 1);
    assert_eq!(hook.succeeds().json()["uploads"][0]["attempts"], 2, "an unusable one is ignored");
}

#[test]
fn unreachable_service_is_explained() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);

    step("unreachable_service_is_temporary");
    let hook = fresh(&service, &lineage).args(["--timeout", "1"]);
    // Port 1, because a port that was free a moment ago may belong to another test by now.
    let output = hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").exits_with(75);
    output.says("cannot reach the service at 127.0.0.1:1: Connection refused");
    output.says("edgecert: hint: run `edgecert sync` to retry");

    step("plain_http_service_is_detected");
    let https = service.endpoints().api.replace("http://", "https://");
    fresh(&service, &lineage).env("EDGECERT_BASE_URL", https).exits_with(78).says("it does not speak TLS");
}

#[test]
fn failed_listing_is_retried() {
    let service = sandbox(&["a.example"]);
    service.add_fault(Fault::status("GET /api/certs", 503));
    service.add_fault(Fault::truncate("GET /api/me/sites", 5));
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &lineage).args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: served"]);
    output.says("retrying in");
    output.says("succeeded on attempt 2");
}

#[test]
fn failed_site_does_not_stop_others() {
    let (service, both) = sandbox_and_lineage(&["a.example", "b.example"]);
    for domain in ["a.example", "b.example"] {
        let one = Lineage::issued_for(&[domain]);
        fresh(&service, &one).succeeds();
    }
    service.add_fault(Fault::status(UPLOAD, 400));
    let output = fresh(&service, &both).args(["--json"]).exits_with(69);
    let mut outcomes: Vec<String> =
        output.sites().iter().map(|site| site.split_once(": ").unwrap().1.to_owned()).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["refused", "served"]);
}

#[test]
fn rejected_api_key_ends_run() {
    let (service, both) = sandbox_and_lineage(&["a.example", "b.example"]);
    service.add_fault(Fault::status("GET /api/certs", 503).times(999));
    fresh(&service, &both).env("EDGECERT_API_KEY", "another").exits_with(77);
    let hook = fresh(&service, &both).env("EDGECERT_API_KEY", "another").args(["--wait", "0"]);
    hook.for_domain("a.example").for_domain("b.example").exits_with(77);
    assert_eq!(upload_count(&service), 1, "the private key must not be sent again");
}
