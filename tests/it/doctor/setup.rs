//! `doctor` on settings, permissions, connection and clock.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;
use serde_json::{Value, json};

use super::{Certbot, assert_only_fault, doctor, faults, findings, lines, on_good_host, private_directory};
use crate::harness::{Fault, Hook, Sandbox, edgecert, require_trusted_root, sandbox, step, tls_sandbox};

#[test]
fn good_setup_has_no_fault() {
    let (service, certbot) =
        (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example", "b.example"]]));
    let hook = on_good_host(&service, &certbot);
    let (host, home) = (hook.host_path("").display().to_string(), hook.home().display().to_string());
    let output = hook.succeeds();
    let json = output.json();
    let report = (&json["ok"], &json["command"], &json["error"], &json["next"]);
    assert_eq!(report, (&json!(true), &json!("doctor"), &json!(null), &json!(null)));
    assert_eq!(service.requests().len(), 2, "one listing of certificates, one of sites");
    let shown = findings(&output).join("\n").replace(certbot.home.path().to_str().unwrap(), "CERTBOT");
    let shown = shown.replace(&host, "/").replace(&home, "HOME").replace(&service.endpoints().api, "API");
    expect![[r#"
        settings ok: HOME/.config/edgecert/config.toml
        base-url ok: API
        state ok: HOME/state
        service ok: reachable; 1 site and 0 certificates
        api-key ok: accepted by the service
        clock ok: within a minute of the service's
        lineage ok: CERTBOT/live/a.example: a.example and b.example
        hook ok: CERTBOT/renewal/a.example.conf names edgecert for CERTBOT/live/a.example; no hook run is recorded yet
        site ok: 1 site, each covered by one lineage
        timer ok: the last `edgecert sync` without a terminal ended 12 minutes ago with exit code 0, so a timer seems to run it"#]]
    .assert_eq(&shown);
}

#[test]
fn faulty_settings_are_named() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));

    step("bad_base_url_is_a_fault");
    let call = || on_good_host(&service, &certbot).without_env("EDGECERT_BASE_URL");
    assert_only_fault(&call().exits_with(78), "fail base-url: no base URL is set; ", "base_url in");
    let output = call().env("EDGECERT_BASE_URL", "http://api.example.net").run();
    assert_eq!(output.code, 78);
    output.prints("plain http is for loopback addresses only");
    assert_eq!(service.requests().len(), 0);

    step("missing_api_key_stops_no_check");
    let output = on_good_host(&service, &certbot).without_env("EDGECERT_API_KEY").exits_with(78);
    assert_only_fault(&output, "fail api-key: no API key is set; ", "set EDGECERT_API_KEY");
    let subjects = lines(&output, |[_, subject, ..]| Some(subject.to_owned()));
    let before = ["settings", "base-url", "api-key", "state", "service", "clock"];
    assert_eq!(subjects, [&before[..], &["lineage", "hook", "timer"]].concat());

    step("unusable_api_key_file_is_named");
    let call = |file: &str| {
        let hook = on_good_host(&service, &certbot).without_env("EDGECERT_API_KEY");
        let path = hook.write_file("key", "sandbox-key\n").with_file_name(file);
        fs::set_permissions(path.with_file_name("key"), Permissions::from_mode(0o604)).unwrap();
        hook.env("EDGECERT_API_KEY_FILE", path).exits_with(78)
    };
    assert_only_fault(&call("key"), "fail api-key: others can read the API key file ", "chmod o= /");
    assert_only_fault(&call("other"), "fail api-key: cannot read ", "check the path");

    step("readable_heartbeat_url_is_a_warning");
    let url = "heartbeat_url = 'https://hc.example/hunter2'\n";
    let call = |mode| with_settings(&service, &certbot, url, mode).succeeds();
    assert_eq!(faults(&call(0o640)), [""; 0]);
    let output = call(0o644);
    let begins = "warn settings: others can read heartbeat_url, which is a secret, ";
    assert_only_fault(&output, begins, "`chmod o= /");
    assert!(!output.stdout.contains("hunter2"), "{}", output.stdout);

    step("bad_state_directory_is_a_fault");
    let call = || on_good_host(&service, &certbot);
    let hook = call();
    let file = hook.write_file("file", "");
    let output = hook.with_state(file.join("state")).exits_with(78);
    let faults = faults(&output);
    let begins = "fail state: cannot write to the state directory ";
    assert!(faults[0].starts_with(begins) && faults[0].contains("--state-dir"), "{faults:?}");

    let directory = private_directory();
    for (mode, code) in [(0o700, 0), (0o750, 0), (0o705, 78), (0o770, 78)] {
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let output = call().with_state(directory.path()).exits_with(code);
        if code != 0 {
            assert_only_fault(&output, "fail state: others can access the state directory ", "chmod 700 /");
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");

    step("invalid_file_still_names_the_state_directory");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o705)).unwrap();
    let text = format!("state_dir = '{}'\nunknown = 1\n", directory.path().display());
    let output = call().without_env("EDGECERT_STATE_DIR").with_config(&text).exits_with(78);
    let begins = "fail state: others can access the state directory ";
    assert!(super::faults(&output).iter().any(|fault| fault.starts_with(begins)), "{}", output.stdout);
}

#[test]
fn invalid_file_may_hold_missing_settings() {
    let (service, certbot, state) =
        (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]), private_directory());
    let url = format!("base_url = '{}'\n", service.endpoints().api);
    let on_host = |hook: Hook, text: &str| {
        hook.without_env("EDGECERT_BASE_URL").with_state(state.path()).with_config(text)
    };
    let hook = edgecert().against(&service).env("RENEWED_LINEAGE", certbot.live("a.example"));
    on_host(hook, &url).succeeds();
    let call = on_host(doctor(&service, ""), &format!("{url}unknown = 1\n"));
    assert_only_fault(&call.exits_with(78), "fail settings: ", "known keys");
}

#[test]
fn failing_service_is_named() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));

    step("rejected_api_key_is_exit_77");
    let output =
        on_good_host(&service, &certbot).env("EDGECERT_API_KEY", "another-key-of-mine").exits_with(77);
    assert_only_fault(&output, "fail api-key: the service rejected the API key (401)", "set a valid key");
    assert!(!output.stdout.contains("another-key-of-mine"), "{}", output.stdout);

    step("unreachable_service_is_temporary");
    let call = || on_good_host(&service, &certbot);
    let output = call().env("EDGECERT_BASE_URL", "http://127.0.0.1:1").exits_with(75);
    let begins = "fail service: cannot reach the service at 127.0.0.1:1: ";
    assert_only_fault(&output, begins, "check the base URL");
    service.add_fault(Fault::status("GET /api/certs", 503).times(2));
    let output = call().exits_with(75);
    assert_only_fault(&output, "fail service: the service is unavailable (503)", "again later");
    service.add_fault(Fault::status("GET /api/certs", 503).times(1));
    call().succeeds();

    step("wrong_clock_is_a_fault");
    let dated = |pattern: &str, body: Value| {
        Fault::status(pattern, 200).header("Date", "Tue, 01 Jan 2030 00:00:00 GMT").body(body)
    };
    let sites = json!({"sites": [{"id": 1, "domain": "a.example"}], "total": 1});
    service.add_fault(dated("GET /api/certs", json!([])));
    service.add_fault(dated("GET /api/me/sites", sites));
    let output = on_good_host(&service, &certbot).exits_with(78);
    assert_only_fault(&output, "fail clock: this host's clock is ", "timedatectl");
}

#[test]
fn untrusted_tls_differs_from_unreachable() {
    let service = tls_sandbox(&["a.example"]);
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    let call = || on_good_host(&service, &certbot);
    call().succeeds();
    let output = call().without_env("EDGECERT_CA_FILE").exits_with(78);
    assert_only_fault(&output, "fail tls: the TLS certificate of 127.0.0.1", "--ca-file");
    let hook = call();
    let empty = hook.write_file("empty.pem", "");
    let output = hook.env("EDGECERT_CA_FILE", empty).exits_with(78);
    assert_only_fault(&output, "fail tls: cannot use the CA file ", "CA certificates in PEM");
}

/// A call on a good host with these settings in a configuration file with this mode.
fn with_settings(service: &Sandbox, certbot: &Certbot, settings: &str, mode: u32) -> Hook {
    let text = format!("{settings}{}", certbot.entries(&["a.example"], ""));
    let hook = doctor(service, &text);
    let file = hook.write_file(".config/edgecert/config.toml", &text);
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    hook
}

#[test]
fn distrusted_on_failure_is_a_fault() {
    require_trusted_root();
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let call = |mode| with_settings(&service, &certbot, "on_failure = [\"mail\"]\n", mode);
    call(0o644).succeeds();
    let begins = "fail settings: mail, named by on_failure, would not be run: group or others can write /";
    assert_only_fault(&call(0o664).exits_with(78), begins, "chmod go-w /");
}

#[test]
fn most_severe_fault_decides_the_exit_code() {
    let service = sandbox(&["a.example"]);
    let call =
        |text: &str| doctor(&service, text).without_env("EDGECERT_BASE_URL").without_env("EDGECERT_API_KEY");
    let output = call("basurl = \"x\"\n").env("EDGECERT_WAIT", "soon").exits_with(78);
    let faults = faults(&output);
    assert_eq!(faults.len(), 2, "what may stand in the file is not missing: {faults:?}");
    assert!(faults[0].contains("config.toml:1: unknown key `basurl`"), "{faults:?}");
    output.prints("EDGECERT_WAIT: expected a whole number of seconds");

    let unusable = format!("base_url = \"{}\"\nproxy = 1\n", service.endpoints().api);
    doctor(&service, &unusable).without_env("EDGECERT_BASE_URL").exits_with(78);
    assert!(service.requests().is_empty(), "the proxy that the file should name is not bypassed");

    // The service is 75, and less severe than the lineage's 65.
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    certbot.write("live/a.example/privkey.pem", "", 0o600);
    on_good_host(&service, &certbot).env("EDGECERT_BASE_URL", "http://127.0.0.1:1").exits_with(65);
    // The site is 69, and less severe than the key's 77.
    on_good_host(&service, &certbot).env("EDGECERT_API_KEY", "wrong").exits_with(77);
}
