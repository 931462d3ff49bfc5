//! Options given by hand hold for that run and its retries. Later certificates and drift get those of the last hook or, if
//! none ever ran, those of the last run by hand that succeeded, without permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use edgecert_sandbox::Authority;
use serde_json::json;

use super::race::sync_with;
use super::{change, requests_during};
use crate::harness::{
    DAY, Fault, Hook, Host, IssuedCert, Sandbox, account, edgecert, record, sandbox, test_ca,
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

    /// Writes a key file with the key of the service.
    fn key_file(&self) -> PathBuf {
        let path = self.lineage.file("api-key");
        fs::write(&path, self.service.endpoints().api_key.as_bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
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
            let output = host.sync().succeeds();
            assert_eq!(output.shown(), "1 lineage: 1 unchanged (TIME)\n");
            assert_eq!(host.reached(), reached);
        }
        host.lineage.renew(&SITES);
        host.sync().succeeds();
        assert_eq!(host.reached(), reached);
    }
}

/// A site that the run by hand was not for still has an earlier certificate.
#[test]
fn renewal_by_hand_leaves_no_site_behind() {
    let host = host();
    host.hook().succeeds();
    host.lineage.renew(&SITES);
    host.by_hand().for_domain("a.example").succeeds();
    assert_eq!(host.reached(), ["a.example"]);
    let output = host.sync().succeeds();
    assert_eq!(host.reached(), SITES, "{}", output.stderr);
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
        change(&host.service, "/api/sites/2/update", &json!({"cert_id": 7}));
        for _ in 0..2 {
            let output = host.sync().exits_with(69);
            let message = "b.example is misbound";
            assert!(output.stderr.contains(message), "{arguments:?}: {}", output.stderr);
        }
        assert_eq!(host.service.sites()[1]["cert_id"], 7, "{arguments:?}: `sync` may not rebind it");
    }
}

#[test]
fn run_by_hand_keeps_what_other_sites_serve() {
    let host = host();
    host.hook().succeeds();
    host.by_hand().for_domain("a.example").succeeds();
    let state = host.recorded();
    let outcomes: Vec<_> = state["sites"].as_array().unwrap().iter().map(|site| &site["outcome"]).collect();
    assert_eq!(outcomes, ["served", "served"]);
    let status = host.call().args(["status", "--json"]).run().json();
    assert_eq!(status["lineages"][0]["sites"][1]["outcome"], "served");
}

#[test]
fn state_lists_wanted_and_bound_sites_only() {
    let host = host();
    host.lineage.renew(&["*.example"]);
    host.hook().for_domain("a.example").succeeds();
    let state = host.recorded();
    let domains: Vec<_> = state["sites"].as_array().unwrap().iter().map(|site| &site["domain"]).collect();
    assert_eq!(domains, ["a.example"], "{state}");
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
        host.service
            .add_fault(Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600").times(99));
        host.hook().exits_with(75);
        host.service.clear_faults();
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
fn choice_by_hand_replaces_an_earlier_one() {
    let host = host();
    host.by_hand().for_domain("typo.example").exits_with(65);
    host.by_hand().for_domain("a.example").succeeds();
    assert!(host.recorded()["pending_since"].is_null());
}

#[test]
fn retry_keeps_options_given_by_hand() {
    let host = host();
    host.hook().succeeds();
    for fault in ["POST /api/certs/upload", "GET /api/me/sites"] {
        host.lineage.renew(&SITES);
        host.service.add_fault(Fault::status(fault, 503).header("Retry-After", "3600").times(99));
        host.by_hand().for_domain("b.example").exits_with(75);
        host.service.clear_faults();
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
fn run_by_hand_keeps_the_hooks_options() {
    let host = host();
    host.hook().for_domain("b.example").succeeds();
    host.lineage.renew(&SITES);
    host.by_hand().for_domain("a.example").succeeds();
    assert_eq!(host.reached(), ["a.example"]);
    host.lineage.renew(&SITES);
    host.sync().succeeds();
    assert_eq!(host.reached(), ["b.example"]);
    // The hook's last run decides.
    host.hook().succeeds();
    host.lineage.renew(&SITES);
    host.sync().succeeds();
    assert_eq!(host.reached(), SITES);
}

/// A flag, sites with the records that they are bound to, records with their domains, a certificate to deploy, and the exit
/// code without the flag.
type PermissionRow<'a> =
    (&'a str, &'a [(&'a str, u64)], &'a [(u64, &'a str)], &'a dyn Fn() -> IssuedCert, i32);

#[test]
fn permission_by_hand_ends_with_its_certificate() {
    let staging = Authority::new("(STAGING) Pretend Pear X1").unwrap();
    let trusted = |name| test_ca().issue(&[name]).unwrap();
    let one = &[(5, "a.example")][..];
    // The service replaces the one that the site is not bound to.
    let two = &[(5, "a.example"), (6, "a.example")][..];
    let rows: [PermissionRow<'_>; 4] = [
        ("--allow-untrusted", &[("a.example", 5)], one, &|| staging.issue(&["a.example"]).unwrap(), 65),
        ("--skip-unmatched", &[("a.example", 5)], one, &|| trusted("c.example"), 69),
        ("--allow-shrink", &[("a.example", 5), ("b.example", 5)], one, &|| trusted("a.example"), 65),
        ("--rebind", &[("a.example", 6)], two, &|| trusted("a.example"), 69),
    ];
    for (permission, sites, records, issue, code) in rows {
        let host = Host::of(bound(sites, records), &SITES);
        host.lineage.save(&issue());
        host.by_hand().exits_with(code);
        host.by_hand().args([permission]).succeeds();
        host.sync().succeeds();
        host.lineage.save(&issue());
        if permission == "--rebind" {
            change(&host.service, "/api/sites/1/update", &json!({"cert_id": 6}));
        }
        for _ in 0..2 {
            let output = host.sync().exits_with(code);
            assert_eq!(host.reached(), [""; 0], "{permission}: {}", output.stderr);
        }
        // The next hook has the options that it is given, whatever was given by hand.
        host.hook().args([permission]).succeeds();
    }
}

#[test]
fn setting_by_hand_is_for_one_run() {
    for has_hook in [true, false] {
        let host = host();
        if has_hook {
            host.hook().succeeds();
        }
        host.lineage.renew(&SITES);
        let outcomes = |hook: Hook| hook.args(["--json"]).succeeds().json();
        let first = outcomes(host.by_hand().args(["--verify", "off"]));
        assert_eq!(first["sites"][0]["outcome"], "synced");
        host.lineage.renew(&SITES);
        let later = outcomes(host.sync());
        let expected = if has_hook { "served" } else { "synced" };
        assert_eq!(later["lineages"][0]["sites"][0]["outcome"], expected);
    }
}

#[test]
fn service_named_by_hand_is_still_reached() {
    let host = host();
    let key_file = host.key_file();
    let edge = ["--edge-address", &host.service.endpoints().edge];
    let bare = || edgecert().env("EDGECERT_STATE_DIR", host.state());
    let named = [host.service.endpoints().api.as_str(), "--api-key-file"];
    let by_hand = bare().args(["--lineage".as_ref(), host.lineage.path()]).args(["--base-url"]).args(named);
    by_hand.args([&key_file]).args(["--verify", "off"]).succeeds();
    host.lineage.renew(&SITES);
    bare().args(["sync"]).args(edge).succeeds();
    assert_eq!(host.reached(), SITES);

    // The configuration names another one, which the key is not for.
    let other = sandbox(&SITES);
    host.lineage.renew(&SITES);
    let sync = bare().args(["sync"]).args(edge);
    let config = sync.write_file("config.toml", &format!("base_url = '{}'\n", other.endpoints().api));
    let (requests, _) = requests_during(&other, || sync.env("EDGECERT_CONFIG", config).succeeds());
    assert_eq!((requests, host.reached()), (Vec::new(), SITES.map(str::to_owned).to_vec()));
}

#[test]
fn renewal_during_sync_gets_no_options_by_hand() {
    let host = host();
    host.service.add_fault(Fault::status("GET /api/me/sites", 503).header("Retry-After", "3600").times(99));
    host.by_hand().for_domain("b.example").exits_with(75);
    host.service.clear_faults();
    let code = sync_with(host.sync(), host.state(), || host.lineage.renew(&SITES));
    assert_eq!((code, host.reached()), (0, SITES.map(str::to_owned).to_vec()));
}
