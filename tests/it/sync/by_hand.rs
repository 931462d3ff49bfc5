//! Options given by hand hold for that run and its retries. Later certificates and drift get those of the last hook or, if
//! none ever ran, those of the last run by hand that succeeded, without permissions.

use serde_json::json;

use super::race::sync_with;
use crate::harness::{
    Authority, DAY, Host, Sandbox, account, assert_contains, bind, edgecert, record, request_lines, sandbox,
    step,
};

pub(super) const SITES: [&str; 2] = ["a.example", "b.example"];

/// A host with a certificate for both sites, each of which has a record of its own.
pub(super) fn host() -> Host {
    Host::of(bound(&[("a.example", 5), ("b.example", 6)], &[(5, "a.example"), (6, "b.example")]), &SITES)
}

impl Host {
    /// The sites whose record holds the certificate on disk.
    pub(super) fn reached(&self) -> Vec<String> {
        let sites = self.service.sites().into_iter();
        let sites = sites.map(|site| site["domain"].as_str().unwrap().to_owned());
        sites.filter(|site| self.is_bound(site)).collect()
    }
}

/// A service whose sites are bound to these records.
fn bound(sites: &[(&str, u64)], records: &[(u64, &str)]) -> Sandbox {
    let sites: Vec<_> = (1..).zip(sites).map(|(id, (domain, cert))| (id, *domain, Some(*cert))).collect();
    let records: Vec<_> = records.iter().map(|(id, domain)| record(*id, domain, "upload")).collect();
    account(&sites, &records)
}

#[test]
fn domain_by_hand_is_for_one_run() {
    for has_hook in [true, false] {
        let host = host();
        if has_hook {
            host.hook().succeeds();
        }
        host.by_hand().for_domain("b.example").succeeds();
        let reached = if has_hook { &SITES[..] } else { &["b.example"] };
        for _ in 0..2 {
            host.set_back(DAY);
            assert_eq!(host.sync().succeeds().shown(), "1 lineage: 1 unchanged (TIME)\n");
            assert_eq!(host.reached(), reached);
        }
        host.lineage.renew(&SITES);
        host.sync().succeeds();
        assert_eq!(host.reached(), reached);
    }
}

#[test]
fn run_by_hand_leaves_other_sites_alone() {
    let host = host();

    step("run_by_hand_keeps_what_other_sites_serve");
    host.hook().succeeds();
    host.by_hand().for_domain("a.example").succeeds();
    let sites = json!({"sites": [{"outcome": "served"}, {"outcome": "served"}]});
    assert_contains(&host.recorded(), &sites);
    let status = host.call().args(["status", "--json"]).run().json();
    assert_contains(&status["lineages"][0], &sites);

    // A site that the run by hand was not for still has an earlier certificate.
    step("renewal_by_hand_leaves_no_site_behind");
    host.hook().succeeds();
    host.lineage.renew(&SITES);
    host.by_hand().for_domain("a.example").succeeds();
    assert_eq!(host.reached(), ["a.example"]);
    host.sync().succeeds();
    assert_eq!(host.reached(), SITES);
    assert_eq!(host.sync().succeeds().shown(), "1 lineage: 1 unchanged (TIME)\n");
}

#[test]
fn run_by_hand_hides_no_drift() {
    for arguments in [&["--domain", "a.example"][..], &["--rebind"]] {
        let service = bound(
            &[("a.example", 5), ("b.example", 6)],
            &[(5, "a.example"), (6, "b.example"), (7, "c.example")],
        );
        let host = Host::of(service, &SITES);
        host.hook().succeeds();
        host.by_hand().args(arguments).succeeds();
        bind(&host.service, "b.example", Some(7));
        for _ in 0..2 {
            let output = host.sync().exits_with(69);
            let message = "b.example is misbound";
            assert!(output.stderr.contains(message), "{arguments:?}: {}", output.stderr);
        }
        assert_eq!(host.service.sites()[1]["cert_id"], 7, "{arguments:?}: `sync` may not rebind it");
    }
}

#[test]
fn state_lists_wanted_and_bound_sites_only() {
    let host = host();
    host.lineage.renew(&["*.example"]);
    host.hook().for_domain("a.example").succeeds();
    assert_contains(&host.recorded(), &json!({"sites": [{"domain": "a.example"}]}));
}

#[test]
fn run_by_hand_leaves_other_sites_pending() {
    // The run by hand, and whether it ends the pending deployment of both sites.
    let rows: [(&[&str], bool); 4] = [
        (&["--domain", "a.example"], false),
        (&["--domain", "a.example", "--wait", "0"], false),
        (&["--domain", "a.example", "--domain", "b.example"], false),
        (&[], true),
    ];
    for (arguments, ends) in rows {
        let host = host();
        host.hook().fails_temporarily_at(&host.service, "POST /api/certs/upload");
        host.by_hand().args(arguments).succeeds();
        let is_pending = !host.recorded()["pending_since"].is_null();
        assert_eq!(is_pending, !ends, "{arguments:?}");
        for _ in 0..2 {
            host.sync().succeeds();
            assert_eq!(host.reached(), SITES, "{arguments:?}");
        }
        assert!(host.recorded()["pending_since"].is_null(), "{arguments:?}");
    }
}

#[test]
fn retry_keeps_options_given_by_hand() {
    let host = host();
    host.hook().succeeds();
    for fault in ["POST /api/certs/upload", "GET /api/me/sites"] {
        host.lineage.renew(&SITES);
        host.by_hand().for_domain("b.example").fails_temporarily_at(&host.service, fault);
        host.sync().succeeds();
        assert_eq!(host.reached(), ["b.example"], "{fault}");
    }
    // A mistake leaves only the renewal, which is for all sites.
    host.lineage.renew(&SITES);
    host.by_hand().for_domain("b.example").without_env("EDGECERT_API_KEY").exits_with(78);
    host.sync().succeeds();
    assert_eq!(host.reached(), SITES);
}

#[test]
fn permission_by_hand_ends_with_its_certificate() {
    let host = host();
    let renew = || host.lineage.save(&Authority::new("(STAGING) Pear").unwrap().issue(&SITES).unwrap());
    renew();
    host.by_hand().exits_with(65);
    host.by_hand().args(["--allow-untrusted"]).succeeds();
    host.sync().succeeds();
    renew();
    for _ in 0..2 {
        host.sync().exits_with(65);
        assert_eq!(host.reached(), [""; 0]);
    }
    // The next hook has the options that it is given, whatever was given by hand.
    host.hook().args(["--allow-untrusted"]).succeeds();
}

#[test]
fn service_named_by_hand_is_still_reached() {
    let host = host();
    let service = host.service.endpoints();
    host.lineage.write("api-key", &service.api_key);
    let edge = ["--edge-address", &service.edge];
    let bare = || edgecert().with_state(host.state());
    let by_hand = bare().args(["--lineage".as_ref(), host.lineage.path()]).args(["--verify", "off"]);
    let named = by_hand.args(["--base-url", &service.api, "--api-key-file"]);
    named.args([host.lineage.file("api-key")]).succeeds();
    host.lineage.renew(&SITES);
    bare().args(["sync"]).args(edge).succeeds();
    assert_eq!(host.reached(), SITES);

    // The configuration names another one, which the key is not for.
    let other = sandbox(&SITES);
    host.lineage.renew(&SITES);
    let config = format!("base_url = '{}'\n", other.endpoints().api);
    bare().args(["sync"]).args(edge).with_config(&config).succeeds();
    assert_eq!((request_lines(&other).len(), host.reached()), (0, SITES.map(str::to_owned).to_vec()));
}

#[test]
fn renewal_during_sync_gets_no_options_by_hand() {
    let host = host();
    host.by_hand().for_domain("b.example").fails_temporarily_at(&host.service, "GET /api/me/sites");
    let code = sync_with(host.sync(), host.state(), || host.lineage.renew(&SITES));
    assert_eq!((code, host.reached()), (0, SITES.map(str::to_owned).to_vec()));
}
