//! Settings from flag, environment, configuration file and default, and their precedence.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;
use tempfile::TempDir;

use crate::harness::{Hook, Lineage, edgecert, fresh, request_lines, sandbox_and_lineage, step, tls_sandbox};

/// Sets up a hook with this configuration file.
fn configured(text: &str) -> Hook {
    let hook = edgecert();
    hook.write_file(".config/edgecert/config.toml", text);
    hook
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn base_url_and_its_file_are_found() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);

    step("base_url_from_flag_variable_file");
    let api = service.endpoints().api.clone();
    let unreachable = "http://127.0.0.1:1";
    let file = |url: &str| format!("base_url = {url:?}\n");
    let hook = |text: &str| {
        let hook = configured(text).called_by_certbot(&lineage).env("EDGECERT_VERIFY", "off");
        hook.env("EDGECERT_API_KEY", "sandbox-key")
    };

    hook(&file(&api)).succeeds();
    hook(&file(unreachable)).env("EDGECERT_BASE_URL", &api).succeeds();
    hook(&file(unreachable)).env("EDGECERT_BASE_URL", unreachable).args(["--base-url", &api]).succeeds();
    let missing = hook("").exits_with(78);
    expect![[r#"
        ---
        edgecert: error: no base URL is set
        edgecert: hint: set EDGECERT_BASE_URL, or base_url in /etc/edgecert/config.toml
    "#]]
    .assert_eq(&missing.snapshot());

    step("configuration_file_is_found");
    let text = format!("base_url = {:?}\n", service.endpoints().api);
    let hook = edgecert().called_by_certbot(&lineage).env("EDGECERT_VERIFY", "off");
    let file = hook.write_file("xdg/edgecert/config.toml", &text);
    let hook = hook.env("XDG_CONFIG_HOME", file.parent().unwrap().parent().unwrap());
    hook.env("EDGECERT_API_KEY", "sandbox-key").succeeds();
}

#[test]
fn api_key_from_variable_file_credential() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let base = format!("base_url = {:?}\n", service.endpoints().api);
    let configure = |text: &str| {
        let hook =
            configured(&(base.clone() + text)).called_by_certbot(&lineage).env("EDGECERT_VERIFY", "off");
        let (good, bad) = (hook.write_file("good", "sandbox-key\n"), hook.write_file("bad", "wrong\n"));
        set_mode(&good, 0o600);
        set_mode(&bad, 0o600);
        hook.write_file("credentials/edgecert-api-key", "sandbox-key");
        (hook, good, bad)
    };

    let (hook, good, _) = configure("");
    hook.args(["--api-key-file".as_ref(), good.as_os_str()]).env("EDGECERT_API_KEY", "wrong").succeeds();
    let (hook, _, bad) = configure("");
    hook.env("EDGECERT_API_KEY", "sandbox-key").env("EDGECERT_API_KEY_FILE", bad).succeeds();
    let (hook, good, _) = configure("api_key_file = \"../../bad\"\n");
    hook.env("EDGECERT_API_KEY_FILE", good).succeeds();
    configure("api_key_file = \"../../good\"\n").0.succeeds();
    configure("api_key_file = \"../../bad\"\n").0.exits_with(77);
    let (hook, good, _) = configure("");
    hook.env("CREDENTIALS_DIRECTORY", good.with_file_name("credentials")).succeeds();
    configure("").0.exits_with(78).says("no API key is set").says("api_key_file");
}

#[test]
fn readable_api_key_file_is_refused() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let hook = || fresh(&service, &lineage).without_env("EDGECERT_API_KEY");
    for mode in [0o644, 0o604, 0o606] {
        let hook = hook();
        let file = hook.write_file("key", "sandbox-key");
        set_mode(&file, mode);
        let output = hook.env("EDGECERT_API_KEY_FILE", &file).exits_with(78);
        output.says(format!("edgecert: error: others can read the API key file {}\n", file.display()));
        output.says(format!("edgecert: hint: run `chmod o= {}`\n", file.display()));
    }
    for mode in [0o600, 0o400, 0o640] {
        let hook = hook();
        let file = hook.write_file("key", "sandbox-key");
        set_mode(&file, mode);
        hook.env("EDGECERT_API_KEY_FILE", file).succeeds();
    }
}

#[test]
fn malformed_api_key_is_not_printed() {
    let lineage = Lineage::issued_for(&["a.example"]);
    for key in ["two words", "two\nlines", "\u{fc}ber-secret", "  "] {
        let hook = edgecert().called_by_certbot(&lineage).env("EDGECERT_BASE_URL", "http://127.0.0.1:1");
        let output = hook.env("EDGECERT_API_KEY", key).exits_with(78);
        output.says("EDGECERT_API_KEY: ");
        assert!(key.trim().is_empty() || !output.stderr.contains(key.trim()), "{}", output.stderr);
    }
}

#[test]
fn configuration_error_names_line_and_key() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let hook =
        configured("base_url = \"https://api.example.net\"\n\ntimout = 5\n").called_by_certbot(&lineage);
    expect![[r#"
        ---
        edgecert: error: HOME/.config/edgecert/config.toml:3: unknown key `timout`
        edgecert: hint: known keys: base_url, api_key_file, ca_file, proxy, timeout, state_dir, edge_address, wait, verify, verify_every, trust_anchors, name, rebind, allow_untrusted, skip_unmatched, on_failure, heartbeat_url, lineage
    "#]].assert_eq(&hook.exits_with(78).snapshot());
    let hook = configured("api_key = \"hunter2\"\n").called_by_certbot(&lineage);
    expect![[r#"
        ---
        edgecert: error: HOME/.config/edgecert/config.toml:1: unknown key `api_key`
        edgecert: hint: write the key to a file of its own and set `api_key_file`
    "#]]
    .assert_eq(&hook.exits_with(78).snapshot());
    let hook = edgecert().called_by_certbot(&lineage).args(["--config", "/nonexistent.toml"]);
    expect![[r#"
        ---
        edgecert: error: cannot read /nonexistent.toml: no such file
        edgecert: hint: check the path
    "#]]
    .assert_eq(&hook.exits_with(78).snapshot());
}

#[test]
fn wait_and_verify_take_effect() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let is_upload_only = |hook: Hook| {
        let before = request_lines(&service).len();
        hook.called_by_certbot(&lineage).against(&service).for_domain("a.example").succeeds();
        request_lines(&service).len() - before == 1
    };
    assert!(!is_upload_only(edgecert()));
    assert!(is_upload_only(configured("wait = 0\n")));

    // Nothing listens on port 1, so an attempted handshake causes a warning.
    let without_edge = |hook: Hook| {
        let hook = hook.called_by_certbot(&lineage).against(&service);
        hook.facing("127.0.0.1:1").args(["--wait", "1"])
    };
    let has_warning =
        |hook: Hook| without_edge(hook).succeeds().stderr.contains("127.0.0.1:1 refuses connections");
    assert!(has_warning(edgecert()));
    assert!(!has_warning(edgecert().args(["--verify", "off"])));
    without_edge(edgecert().args(["--verify", "require"])).exits_with(75);
}

#[test]
fn edge_addresses_replace_the_cname() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let deploy = || {
        let hook = fresh(&service, &lineage);
        hook.without_env("EDGECERT_EDGE_ADDRESS").args(["--json"])
    };
    let is_served = |hook: Hook| hook.succeeds().sites() == ["a.example: served"];
    let address = &service.endpoints().edge;
    assert!(!is_served(deploy().args(["--wait", "1"])), "the sandbox's cname does not resolve");
    assert!(is_served(deploy().args(["--edge-address", address])));
    assert!(is_served(deploy().args(["--edge-address", &format!("{address}, {address}")])));
}

#[test]
fn ca_file_or_system_is_trusted() {
    let service = tls_sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let ca = service.endpoints().ca_file.clone().unwrap();
    let deploy =
        |hook: Hook| hook.called_by_certbot(&lineage).against(&service).without_env("EDGECERT_CA_FILE");
    deploy(configured(&format!("ca_file = {ca:?}\n"))).succeeds();
    deploy(edgecert()).env("SSL_CERT_FILE", &ca).succeeds();
    deploy(edgecert())
        .args(["--ca-file", "/nonexistent.pem"])
        .exits_with(78)
        .says("cannot use the CA file /nonexistent.pem: no such file");
}

#[test]
fn invalid_file_still_names_state_directory() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    for fault in ["unknown = 1\n", "wait = \n", "wait = 'soon'\n", "base_url = 'x'\n"] {
        let home = TempDir::new().unwrap();
        let config = home.path().join("config.toml");
        let run = |text: &str| {
            fs::write(&config, format!("state_dir = 'kept'\n{text}")).unwrap();
            let hook = edgecert().against(&service).without_env("EDGECERT_STATE_DIR");
            hook.env("EDGECERT_CONFIG", &config)
        };
        run(fault).called_by_certbot(&lineage).exits_with(78);
        let output = run("").args(["sync"]).succeeds();
        assert!(output.stdout.contains("(pending since "), "{fault}{}", output.stdout);
    }
}

#[test]
fn record_gets_the_name_of_its_entry() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let entry = format!("[[lineage]]\npath = '{}'\nname = 'of \"entry\"'\n", lineage.path().display());
    configured(&entry).called_by_certbot(&lineage).against(&service).succeeds();
    assert_eq!(service.certs()[0]["name"], "of \"entry\"");
}
