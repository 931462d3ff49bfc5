//! `doctor` on hooks and timers: whether clients run edgecert and a timer runs `sync`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use super::{Certbot, TIMER, assert_only_fault, doctor, on_good_host, private_directory};
use crate::harness::{Sandbox, edgecert, sandbox, test_ca};

#[test]
fn deployed_lineage_needs_its_hook() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let state = private_directory();
    let call = || doctor(&service, "").env("EDGECERT_STATE_DIR", state.path());
    let output = call().exits_with(69);
    assert_only_fault(&output, "fail site: a.example is covered by no lineage", "");
    let hook = edgecert().against(&service).env("EDGECERT_STATE_DIR", state.path());
    hook.env("RENEWED_LINEAGE", certbot.live("a.example")).succeeds();
    call().succeeds();
    certbot.attach("a.example", "/usr/bin/systemctl reload nginx");
    assert_only_fault(
        &call().exits_with(78),
        "fail hook: ",
        "certbot reconfigure --cert-name a.example --deploy-hook edgecert",
    );
}

#[test]
fn certbot_hook_is_found_everywhere() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let call = || on_good_host(&service, &certbot);
    let program = certbot.path("bin/edgecert");

    certbot.attach("a.example", format!("API=hunter2 {} --json", program.display()));
    assert!(!call().succeeds().stdout.contains("hunter2"));
    certbot.attach("a.example", "/nonexistent/edgecert");
    assert_only_fault(&call().exits_with(78), "fail hook: the hook for ", "install edgecert there");
    certbot.attach("a.example", "edgecert-of-this-test");
    assert_only_fault(&call().succeeds(), "warn hook: ", "/usr/local/bin");
    certbot.write("script", &format!("#!/bin/sh\n{} --json\n", program.display()), 0o755);
    certbot.attach("a.example", certbot.path("script"));
    call().succeeds();

    certbot.attach("a.example", "/bin/true");
    assert_only_fault(&call().exits_with(78), "fail hook: ", "certbot reconfigure");
    certbot.write("cli.ini", &format!("deploy-hook = {}\n", program.display()), 0o644);
    call().succeeds();
    fs::remove_file(certbot.path("cli.ini")).unwrap();
    fs::create_dir_all(certbot.path("renewal-hooks/deploy")).unwrap();
    std::os::unix::fs::symlink(&program, certbot.path("renewal-hooks/deploy/to-the-edge")).unwrap();
    call().succeeds();
    fs::rename(
        certbot.path("renewal-hooks/deploy/to-the-edge"),
        certbot.path("renewal-hooks/deploy/to-the-edge~"),
    )
    .unwrap();
    call().exits_with(78);
    certbot.write("renewal-hooks/deploy/edgecert.sh", "exec edgecert\n", 0o644);
    assert_only_fault(&call().exits_with(78), "fail hook: the hook for ", "install edgecert there");
}

/// Creates acme.sh's directory for a domain, with lines in its configuration.
fn acme_sh(home: &Path, lines: &str) -> PathBuf {
    let directory = home.join("a.example_ecc");
    fs::create_dir_all(&directory).unwrap();
    let issued = test_ca().issue(&["a.example"]).unwrap();
    let files = [
        ("a.example.key", issued.key.clone()),
        ("a.example.cer", issued.cert.clone()),
        ("ca.cer", issued.chain.clone()),
        ("fullchain.cer", issued.fullchain()),
        ("a.example.conf", format!("Le_Domain='a.example'\nLe_API='https://ca.example/dir'\n{lines}")),
    ];
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
        fs::set_permissions(directory.join(name), Permissions::from_mode(0o600)).unwrap();
    }
    directory
}

#[test]
fn acme_sh_hook_is_found() {
    let (service, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let program = home.path().join("edgecert");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let call = |lines: &str| {
        let directory = acme_sh(home.path(), lines);
        doctor(&service, &format!("[[lineage]]\npath = '{}'\n", directory.display()))
    };
    let reload = |command: &str| {
        format!("Le_ReloadCmd='__ACME_BASE64__START_{}__ACME_BASE64__END_'\n", STANDARD.encode(command))
    };
    call(&reload(program.to_str().unwrap())).succeeds();
    call("Le_DeployHook='edgecert,'\n").succeeds();
    for lines in [String::new(), reload("service nginx reload"), "Le_DeployHook='haproxy,'\n".into()] {
        assert_only_fault(
            &call(&lines).exits_with(78),
            "fail hook: ",
            "acme.sh --install-cert -d a.example --ecc --reloadcmd edgecert",
        );
    }
}

#[test]
fn unmanaged_lineage_of_a_site_is_a_fault() {
    let (service, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    acme_sh(home.path(), "");
    let call = |service: &Sandbox, configuration: &str| {
        doctor(service, configuration).env("LE_CONFIG_HOME", home.path())
    };
    let output = call(&service, "").exits_with(78);
    assert_only_fault(&output, "fail hook: ", "--reloadcmd edgecert");
    assert!(output.stdout.contains("a.example_ecc covers a.example, but has no hook"), "{}", output.stdout);
    // A lineage that covers no site.
    call(&sandbox(&[]), "").succeeds();
    // A lineage whose site has another one.
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    let known = certbot.entries(&["a.example"], "");
    assert_only_fault(
        &call(&service, &known).succeeds(),
        "warn hook: ",
        "delete the lineage that is not needed",
    );
    // With a hook it contests the site.
    acme_sh(home.path(), "Le_DeployHook='edgecert,'\n");
    assert_only_fault(&call(&service, "").succeeds(), "warn hook: ", "edgecert --lineage /");
    let output = call(&service, &known).succeeds();
    assert!(output.stdout.contains("the others are superseded"), "{}", output.stdout);
}

#[test]
fn missing_timer_has_a_remedy() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let hook = on_good_host(&service, &certbot);
    let timer = hook.write_file(TIMER, "");
    fs::remove_file(&timer).unwrap();
    std::os::unix::fs::symlink("/nonexistent/edgecert-sync.timer", &timer).unwrap();
    let output = hook.exits_with(78);
    assert_only_fault(
        &output,
        "fail timer: no timer runs edgecert sync",
        "systemctl enable --now edgecert-sync.timer",
    );
}
