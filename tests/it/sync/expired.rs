//! Nothing is left to deploy, but the deployed certificate has expired: that is a failure, not `unchanged`.

use serde_json::json;
use tempfile::TempDir;

use super::{LISTING, deploy, is_bound_to, requests_during, sync};
use crate::harness::{DAY, Lineage, edgecert, edit_state, sandbox, set_back, state_files};

#[test]
fn sync_fails_if_deployed_certificate_has_expired() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    deploy(&service, &lineage, state.path()).succeeds();
    let file = &state_files(state.path())[0];
    edit_state(file, |state| state["certificate"]["not_after"] = json!("2026-01-02T03:04:05Z"));
    for arguments in [&[][..], &["--verify", "off"], &["--verify", "require"]] {
        set_back(state.path(), DAY);
        let call = || sync(&service, state.path()).args(arguments).exits_with(65);
        let (requests, output) = requests_during(&service, call);
        assert_eq!(requests, LISTING);
        let name = file.file_stem().unwrap().to_str().unwrap();
        let cert = lineage.file("fullchain.pem");
        let error = format!(
            "edgecert: error: {name}: the deployed certificate expired at 2026-01-02T03:04:05Z, and {} holds no later one\n\
             edgecert: hint: renew it with its ACME client, or run `edgecert status --forget {name}` if it is no longer needed\n",
            cert.display()
        );
        assert_eq!(output.stderr, error);
        assert!(output.shown().ends_with("1 lineage: 1 failed (TIME)\n"), "{}", output.stdout);
    }
    lineage.renew(&["a.example"]);
    sync(&service, state.path()).succeeds();
    assert!(is_bound_to(&service, "a.example", &lineage));
}

#[test]
fn expired_certificate_without_site_is_no_failure() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["c.example"]);
    let skipping = |hook: crate::harness::Hook| hook.env("EDGECERT_SKIP_UNMATCHED", "true");
    skipping(deploy(&service, &lineage, state.path())).succeeds();
    edit_state(&state_files(state.path())[0], |state| {
        state["certificate"]["not_after"] = json!("2026-01-02T03:04:05Z");
    });
    skipping(sync(&service, state.path())).succeeds();
}

#[test]
fn expired_pending_certificate_is_critical() {
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let lineage = Lineage::issued_for(&["a.example"]);
    let check = || edgecert().args(["status", "--check"]).env("EDGECERT_STATE_DIR", state.path());
    lineage.renew_between(&["a.example"], [-90, -1]);
    deploy(&service, &lineage, state.path()).exits_with(65);
    let output = check().exits_with(2);
    assert!(output.stdout.contains(": the pending certificate expired at "), "{}", output.stdout);
    // A renewal replaces it; its deployment is pending, too.
    lineage.renew(&["a.example"]);
    check().succeeds();
    sync(&service, state.path()).succeeds();
    check().succeeds();
}
