//! Drift: changes that others made at the service are found in the listing and repaired.

use tempfile::TempDir;

use crate::harness::{Host, Lineage, Output, Sandbox, bind, deploy, is_bound_to};

/// Deploys a lineage, changes something, and runs `sync`.
fn after(change: impl FnOnce(&Sandbox), code: i32) -> (Sandbox, Lineage, Output) {
    let host = Host::with(&["a.example", "b.example"], &["a.example", "*.c.example"]);
    host.hook().succeeds();
    host.sync().only_lists(&host.service);
    change(&host.service);
    let output = host.sync().args(["--json"]).exits_with(code);
    (host.service, host.lineage, output)
}

fn reason(output: &Output) -> String {
    output.json()["lineages"][0]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn unbound_site_is_bound_again() {
    let (service, lineage, output) = after(|service| bind(service, "a.example", None), 0);
    let reason = reason(&output);
    assert!(reason.contains("a.example is bound to no certificate, no longer to"), "{reason}");
    assert!(is_bound_to(&service, "a.example", &lineage) && service.certs().len() == 1);
}

#[test]
fn rebound_site_is_repaired_or_reported() {
    let rebind = |service: &Sandbox| {
        // A certificate of another lineage that also covers the site.
        let other = Lineage::issued_for(&["b.example", "a.example"]);
        let state = TempDir::new().unwrap();
        deploy(service, &other, state.path()).for_domain("b.example").succeeds();
        let site = service.sites().into_iter().find(|site| site["domain"] == "b.example").unwrap();
        bind(service, "a.example", site["cert_id"].as_u64());
    };
    let (service, _, output) = after(rebind, 69);
    assert!(reason(&output).contains("a.example is bound to certificate "), "{}", reason(&output));
    assert_eq!(output.json()["lineages"][0]["sites"][0]["outcome"], "misbound");
    assert_eq!(service.certs().len(), 2);
}

#[test]
fn new_site_gets_the_certificate() {
    let (service, lineage, output) = after(|service| assert!(service.add_site("d.c.example") > 0), 0);
    assert_eq!(reason(&output), "d.c.example is a new site");
    assert!(is_bound_to(&service, "d.c.example", &lineage));
}

#[test]
fn unconfirmed_push_is_checked_again() {
    for waits in [true, false] {
        let host = Host::new();
        host.service.hold_pushes(true);
        let output = host.hook().env("EDGECERT_WAIT", "0").args(["--json"]).succeeds();
        assert_eq!(output.sites(), ["a.example: uploaded"]);
        host.service.hold_pushes(false);
        if !waits {
            host.service.push_now();
        }
        for _ in 0..2 {
            let sync = if waits { host.sync() } else { host.sync().env("EDGECERT_WAIT", "0") };
            assert_eq!(sync.only_lists(&host.service).shown(), "1 lineage: 1 unchanged (TIME)\n");
            assert_eq!(host.recorded()["sites"][0]["outcome"], "served");
        }
    }
}
