//! `doctor` on hooks: whether clients run edgecert after a renewal. What counts as a hook is a unit test.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Certbot, assert_only_fault, doctor, faults, findings, private_directory};
use crate::harness::{Sandbox, edgecert, sandbox, test_ca, write_with_mode};

#[test]
fn deployed_lineage_needs_its_hook() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let state = private_directory();
    let call = || doctor(&service, "").with_state(state.path());
    let faults = faults(&call().succeeds());
    let command = "certbot certonly -d a.example --deploy-hook /usr/local/bin/edgecert";
    assert!(faults.iter().any(|fault| fault.contains(command)), "{faults:?}");
    let hook = edgecert().against(&service).with_state(state.path());
    hook.env("RENEWED_LINEAGE", certbot.live("a.example")).succeeds();
    call().succeeds();
    certbot.attach("a.example", "/usr/bin/systemctl reload nginx");
    assert_only_fault(&call().exits_with(78), "fail hook: ", "run `ln -s /usr/local/bin/edgecert ");
}

#[test]
fn hook_run_of_lego_is_proof() {
    let (service, state) = (sandbox(&["a.example"]), private_directory());
    let certificates = TempDir::new().unwrap();
    let issued = test_ca().issue(&["a.example"]).unwrap();
    let [cert, key] = ["crt", "key"].map(|ending| certificates.path().join(format!("a.example.{ending}")));
    fs::write(&cert, issued.fullchain()).unwrap();
    write_with_mode(&key, issued.key, 0o600);
    let deploy = || edgecert().against(&service).with_state(state.path());
    let call = || doctor(&service, "").with_state(state.path()).succeeds();
    deploy().args(["--lineage"]).args([certificates.path()]).succeeds();
    assert_only_fault(&call(), "warn hook: cannot tell whether lego calls edgecert for ", "README");
    deploy().env("LEGO_CERT_PATH", &cert).env("LEGO_CERT_KEY_PATH", &key).succeeds();
    let ran = format!("hook ok: a hook run is recorded for {}", certificates.path().display());
    assert!(findings(&call()).contains(&ran), "{:?}", findings(&call()));
    // A run by hand takes nothing away.
    deploy().args(["--force", "--lineage"]).args([certificates.path()]).succeeds();
    assert!(findings(&call()).contains(&ran), "{:?}", findings(&call()));
}

#[test]
fn shared_fault_is_told_once() {
    let names: [&[&str]; 2] = [&["a.example"], &["b.example"]];
    let (service, certbot) = (sandbox(&["a.example", "b.example"]), Certbot::with_lineages(&names));
    for name in ["a.example", "b.example"] {
        certbot.attach(name, "/bin/true");
    }
    certbot.write("cli.ini", "post-hook = API=hunter2 edgecert\n", 0o644);
    let output = doctor(&service, &certbot.entries(&["a.example", "b.example"], "")).exits_with(78);
    let begins = format!("fail hook: {} runs edgecert as a post hook, ", certbot.path("cli.ini").display());
    assert_only_fault(&output, &begins, "a deploy hook");
    assert!(!output.stdout.contains("hunter2"), "{}", output.stdout);
}

/// Creates acme.sh's directory for a domain, with lines in its configuration.
fn acme_sh(home: &Path, lines: &str) -> PathBuf {
    let directory = home.join("a.example_ecc");
    let issued = test_ca().issue(&["a.example"]).unwrap();
    let files = [
        ("a.example.key", issued.key.clone()),
        ("a.example.cer", issued.cert.clone()),
        ("ca.cer", issued.chain.clone()),
        ("fullchain.cer", issued.fullchain()),
        ("a.example.conf", format!("Le_Domain='a.example'\nLe_API='https://ca.example/dir'\n{lines}")),
    ];
    for (name, text) in files {
        write_with_mode(directory.join(name), text, 0o600);
    }
    directory
}

#[test]
fn unmanaged_lineage_of_a_site_is_a_fault() {
    let (service, home) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    acme_sh(home.path(), "");
    let call = |service: &Sandbox, configuration: &str| {
        doctor(service, configuration).env("LE_CONFIG_HOME", home.path())
    };
    let output = call(&service, "").exits_with(78);
    assert_only_fault(&output, "fail hook: ", "--reloadcmd /usr/local/bin/edgecert");
    output.prints("a.example_ecc covers a.example, but ");
    // A lineage that covers no site.
    call(&sandbox(&[]), "").succeeds();
    // A lineage whose site has another one.
    let certbot = Certbot::with_lineages(&[&["a.example"]]);
    let known = certbot.entries(&["a.example"], "");
    assert_eq!(faults(&call(&service, &known).succeeds()), [""; 0]);
    // With a hook it contests the site.
    acme_sh(home.path(), "Le_DeployHook='edgecert,'\n");
    assert_only_fault(&call(&service, "").succeeds(), "warn hook: ", "edgecert --lineage /");
    call(&service, &known).succeeds().prints("the others are superseded");
}
