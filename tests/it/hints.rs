//! Hints: each fits the cause of the failure.

mod places;

use std::fs;

use tempfile::TempDir;

use crate::harness::{
    Hook, Lineage, P256, TlsServer, configured, deploy, edgecert, sandbox_and_lineage, state_files, sync,
    test_ca,
};

/// The last hint of a failed run.
#[track_caller]
fn hint(hook: Hook, code: i32) -> String {
    let stderr = hook.exits_with(code).stderr;
    let hint = stderr.lines().rev().find_map(|line| line.strip_prefix("edgecert: hint: "));
    hint.unwrap_or_else(|| panic!("no hint: {stderr}")).to_owned()
}

#[test]
fn only_an_unknown_issuer_suggests_a_ca_file() {
    const CLOCK: &str = "check the clock of this host; if it is right, the service needs another certificate";
    let trusted = |names: &[&str], days| test_ca().issue_between(names, days).unwrap();
    let lineage = Lineage::issued_for(&["a.example"]);
    let untrusted = Lineage::from_openssl(&P256);
    for (issued, hinted) in [
        (Some(trusted(&["localhost"], [-20, -10])), CLOCK),
        (Some(trusted(&["localhost"], [10, 20])), CLOCK),
        (
            Some(trusted(&["other.example"], [-1, 10])),
            "check the host in the base URL; the certificate has to name it",
        ),
        (None, "if the service uses a private CA, pass its certificate with --ca-file"),
    ] {
        if let Some(issued) = &issued {
            lineage.save(issued);
        }
        let files = if issued.is_some() { &lineage } else { &untrusted };
        let server = TlsServer::start(files, &["-cert_chain", "chain.pem"]);
        let url = format!("https://localhost:{}", server.address.port());
        let hook = edgecert().env("EDGECERT_BASE_URL", url).env("EDGECERT_API_KEY", "key");
        assert_eq!(hint(hook.args(["sites", "list"]), 78), hinted);
    }
}

#[test]
fn long_files_suggest_no_other_user() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let (home, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let large = home.path().join("large");
    fs::write(&large, "x".repeat(5 << 20)).unwrap();
    let large = large.to_str().unwrap();
    let long = format!("/{}", "x".repeat(300));
    deploy(&service, &lineage, state.path()).succeeds();
    // A state file may be larger than the others; this one takes no space.
    let state_file = fs::OpenOptions::new().write(true).open(&state_files(state.path())[0]).unwrap();
    state_file.set_len(1 << 30).unwrap();
    let call = |arguments: &[&str]| edgecert().against(&service).args(arguments);
    let pem = "check the path; pass the PEM file of one certificate or key";
    let too_large = "check the path; the file is too large";
    let rows = [
        (call(&["check", "--cert", large]), 66, pem),
        (call(&["check", "--cert", &long]), 66, "check the path"),
        (call(&["sites", "list", "--config", large]), 78, too_large),
        (call(&["sites", "list", "--api-key-file", large]), 78, too_large),
        (call(&["sites", "update", "a.example", "--from", large]), 66, too_large),
        (configured(sync(&service, state.path()), &[&lineage]), 78, "examine it and move it away, or "),
    ];
    for (hook, code, expected) in rows {
        let found = hint(hook, code);
        assert!(found.starts_with(expected) && !found.contains(" user"), "{found}");
    }
}

#[test]
fn unusable_state_directory_suggests_another_one() {
    let forget = edgecert().with_state("/dev/null/state").args(["status", "--forget", "x"]);
    assert_eq!(hint(forget, 66), "name another directory with --state-dir");
}
