//! Nothing is left to deploy, but the deployed certificate has expired: that is a failure, not `unchanged`.

use serde_json::json;

use super::{LISTING, requests_during};
use crate::harness::{DAY, Hook, Host};

#[test]
fn sync_fails_if_deployed_certificate_has_expired() {
    let host = Host::deployed();
    host.edit(|state| state["certificate"]["not_after"] = json!("2026-01-02T03:04:05Z"));
    for arguments in [&[][..], &["--verify", "off"], &["--verify", "require"]] {
        host.set_back(DAY);
        let (requests, output) =
            requests_during(&host.service, || host.sync().args(arguments).exits_with(65));
        assert_eq!(requests, LISTING);
        let name = host.name();
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
    let skipping = |hook: Hook| hook.env("EDGECERT_SKIP_UNMATCHED", "true");
    skipping(host.hook()).succeeds();
    host.edit(|state| {
        state["certificate"]["not_after"] = json!("2026-01-02T03:04:05Z");
    });
    skipping(host.sync()).succeeds();
}
