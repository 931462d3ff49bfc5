//! `doctor` on hooks: whether clients run edgecert after a renewal.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use super::{Certbot, assert_only_fault, doctor, faults, on_good_host, private_directory};
use crate::harness::{Sandbox, edgecert, sandbox, test_ca};
use crate::tidy::read;

#[test]
fn deployed_lineage_needs_its_hook() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let state = private_directory();
    let call = || doctor(&service, "").env("EDGECERT_STATE_DIR", state.path());
    let faults = faults(&call().succeeds());
    assert!(
        faults.iter().any(|fault| fault.contains("certbot certonly -d a.example --deploy-hook edgecert")),
        "{faults:?}"
    );
    let hook = edgecert().against(&service).env("EDGECERT_STATE_DIR", state.path());
    hook.env("RENEWED_LINEAGE", certbot.live("a.example")).succeeds();
    call().succeeds();
    certbot.attach("a.example", "/usr/bin/systemctl reload nginx");
    assert_only_fault(
        &call().exits_with(78),
        "fail hook: ",
        "certbot reconfigure --cert-name a.example --deploy-hook 'HOOK; edgecert'",
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
    fs::remove_file(certbot.path("renewal-hooks/deploy/edgecert.sh")).unwrap();
    certbot.write("renewal-hooks/deploy/edgecert", &read("hooks/certbot/edgecert"), 0o755);
    call().succeeds();
}

/// Creates acme.sh's directory for a domain, with lines in its configuration.
pub(super) fn acme_sh(home: &Path, lines: &str) -> PathBuf {
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
    for (lines, hook) in [
        (String::new(), "edgecert`"),
        (reload("service nginx reload"), "'HOOK; edgecert'`, with the current hook in place of HOOK"),
        (reload("edgecert check"), "'HOOK; edgecert'`"),
        ("Le_DeployHook='haproxy,'\n".into(), "edgecert`"),
    ] {
        let remedy = format!("acme.sh --install-cert -d a.example --ecc --reloadcmd {hook}");
        assert_only_fault(&call(&lines).exits_with(78), "fail hook: ", &remedy);
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
fn hook_has_to_deploy() {
    let (service, certbot) =
        (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"], &["b.example"]]));
    let call = || on_good_host(&service, &certbot);
    let program = certbot.path("bin/edgecert").display().to_string();
    let (own, other) = (certbot.live("a.example"), certbot.live("b.example"));
    let rows = [
        ("PROGRAM", true),
        ("PROGRAM deploy --json", true),
        ("PROGRAM sync", true),
        ("PROGRAM --domain a.example --verify off", true),
        ("PROGRAM --lineage OWN", true),
        ("PROGRAM --lineage \"$RENEWED_LINEAGE\"", true),
        ("sh -c 'PROGRAM --json'", true),
        ("EDGECERT_WAIT=5 PROGRAM", true),
        ("/usr/bin/env A=1 nice -n 5 PROGRAM", true),
        ("flock /tmp/lock PROGRAM", true),
        ("systemctl reload nginx; PROGRAM", true),
        ("test -x PROGRAM && PROGRAM", true),
        ("if [ -n \"$RENEWED_LINEAGE\" ]; then PROGRAM; fi", true),
        ("PROGRAM check", false),
        ("PROGRAM plan", false),
        ("PROGRAM status", false),
        ("PROGRAM doctor", false),
        ("PROGRAM --dry-run", false),
        ("PROGRAM deploy --dry-run", false),
        ("PROGRAM --help", false),
        ("PROGRAM --no-such-flag", false),
        ("PROGRAM --lineage OTHER", false),
        ("echo PROGRAM", false),
        ("true # PROGRAM", false),
        ("true || PROGRAM", false),
        ("test -x PROGRAM", false),
        ("logger -t acme PROGRAM failed", false),
        ("/usr/bin/edgecert-sandbox", false),
    ];
    for (row, works) in rows {
        let command = row.replace("PROGRAM", &program).replace("OWN", own.to_str().unwrap());
        let command = command.replace("OTHER", other.to_str().unwrap());
        certbot.attach("a.example", &command);
        if works {
            call().succeeds();
        } else {
            let remedy =
                "certbot reconfigure --cert-name a.example --deploy-hook 'HOOK; edgecert'`, with the current";
            assert_only_fault(&call().exits_with(78), "fail hook: ", remedy);
        }
    }
}

#[test]
fn script_of_a_hook_is_read() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    certbot.attach("a.example", "/bin/true");
    let program = certbot.path("bin/edgecert").display().to_string();
    for (script, works) in [
        ("#!/bin/sh\nset -e\nexec PROGRAM \"$@\"\n", true),
        ("#!/bin/bash\nfor d in $RENEWED_DOMAINS; do PROGRAM --domain \"$d\"; done\n", true),
        ("#!/bin/sh\ncase $1 in deploy) PROGRAM ;; esac\n", true),
        ("#!/bin/sh\n# PROGRAM\n", false),
        ("#!/bin/sh\nexit 0\nPROGRAM\n", false),
        ("#!/bin/sh\nPROGRAM check --lineage \"$RENEWED_LINEAGE\"\n", false),
        ("#!/bin/sh\necho \"call PROGRAM by hand\"\n", false),
    ] {
        // Whatever its name is.
        certbot.write("renewal-hooks/deploy/edgecert", &script.replace("PROGRAM", &program), 0o755);
        let output = on_good_host(&service, &certbot).run();
        assert_eq!(output.code, if works { 0 } else { 78 }, "{script}: {}", output.stdout);
    }
}
