//! Nothing is left to deploy, but the deployed certificate has expired: that is a failure, not `unchanged`.

use serde_json::json;

use super::{LISTING, requests_during};
use crate::harness::{DAY, Host, edgecert, edit_state};

#[test]
fn sync_fails_if_deployed_certificate_has_expired() {
    let host = Host::deployed();
    let file = &host.state_file();
    edit_state(file, |state| state["certificate"]["not_after"] = json!("2026-01-02T03:04:05Z"));
    for arguments in [&[][..], &["--verify", "off"], &["--verify", "require"]] {
        host.set_back(DAY);
        let call = || host.sync().args(arguments).exits_with(65);
        let (requests, output) = requests_during(&host.service, call);
        assert_eq!(requests, LISTING);
        let name = file.file_stem().unwrap().to_str().unwrap();
        let cert = host.lineage.file("fullchain.pem");
        let error = format!(
            "edgecert: error: {name}: the deployed certificate expired at 2026-01-02T03:04:05Z, and {} holds no later one\n\
             edgecert: hint: renew it with its ACME client, or run `edgecert status --forget {name}` if it is no longer needed\n",
            cert.display()
        );
        assert_eq!(output.stderr, error);
        assert!(output.shown().ends_with("1 lineage: 1 failed (TIME)\n"), "{}", output.stdout);
    }
    host.lineage.renew(&["a.example"]);
    host.sync().succeeds();
    assert!(host.is_bound("a.example"));
}

#[test]
fn expired_certificate_without_site_is_no_failure() {
    let host = Host::with(&["a.example"], &["c.example"]);
    let skipping = |hook: crate::harness::Hook| hook.env("EDGECERT_SKIP_UNMATCHED", "true");
    skipping(host.hook()).succeeds();
    host.edit(|state| {
        state["certificate"]["not_after"] = json!("2026-01-02T03:04:05Z");
    });
    skipping(host.sync()).succeeds();
}

#[test]
fn expired_pending_certificate_is_critical() {
    let host = Host::new();
    let check = || edgecert().args(["status", "--check"]).env("EDGECERT_STATE_DIR", host.state());
    host.lineage.renew_between(&["a.example"], [-90, -1]);
    host.hook().exits_with(65);
    let output = check().exits_with(2);
    assert!(output.stdout.contains(": the pending certificate expired at "), "{}", output.stdout);
    // A renewal replaces it; its deployment is pending, too.
    host.lineage.renew(&["a.example"]);
    check().succeeds();
    host.sync().succeeds();
    check().succeeds();
}
