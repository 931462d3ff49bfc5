//! Listings that lack sites or records: what is listed is deployed, guards do not guess the rest, and no run succeeds.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Fault, Hook, Host, Lineage, Output, Sandbox, account, configured, deploy, edgecert, fresh, is_bound_to,
    record, record_of, sandbox, sync, test_ca, upload_count,
};

const SITES: &str = "GET /api/me/sites";

/// A site that is bound to record 5, whose certificate is for these names.
fn bound_site(names: &[&str]) -> Sandbox {
    let issued = test_ca().issue(names).unwrap();
    account(&[(10, "a.example", Some(5))], &[record_of(5, "a.example", &issued)])
}

/// The site as the service lists it.
fn listed() -> Value {
    json!({"id": 10, "domain": "a.example", "cert_id": 5, "config_synced": true, "enabled": true})
}

fn lists(service: &Sandbox, endpoint: &str, body: Value) {
    service.clear_faults();
    service.add_fault(Fault::status(endpoint, 200).body(body).times(1000));
}

fn run(service: &Sandbox, arguments: &[&str]) -> Output {
    let lineage = Lineage::issued_for(&["a.example"]);
    fresh(service, &lineage).args(["--json"]).args(arguments).run()
}

#[test]
fn listed_sites_are_deployed() {
    let service = bound_site(&["a.example"]);
    lists(&service, SITES, json!({"sites": [listed()], "total": 2}));
    let output = run(&service, &[]);
    let served = vec!["a.example: served".to_owned()];
    assert_eq!((output.code, output.sites()), (76, served), "{}", output.stdout);
    output.prints("the service lists only 1 of 2 sites; what is not listed was not deployed");
    assert_eq!(upload_count(&service), 1);
}

#[test]
fn element_for_another_domain_is_a_warning() {
    let service = bound_site(&["a.example"]);
    lists(&service, SITES, json!({"sites": [listed(), {"id": "x", "domain": "b.example"}]}));
    let output = run(&service, &[]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.says("warning: the service's list of sites has 1 element that cannot be read");
}

#[test]
fn hidden_sites_may_lose_coverage() {
    let body = json!({"sites": [listed(), {"cert_id": 5}]});
    let service = bound_site(&["a.example", "b.example"]);
    lists(&service, SITES, body.clone());
    let output = run(&service, &[]);
    assert_eq!((output.code, upload_count(&service)), (65, 0), "{}", output.stderr);
    let hint = "hint: deploy again when the service lists everything, or run `edgecert deploy --lineage ";
    output.says(hint);
    let output = run(&service, &["--allow-partial"]);
    assert_eq!((output.code, upload_count(&service)), (76, 1), "{}", output.stderr);

    // The edge shows that no site can lose coverage.
    let service = bound_site(&["a.example"]);
    lists(&service, SITES, body);
    let output = run(&service, &[]);
    assert_eq!((output.code, upload_count(&service)), (76, 1), "{}", output.stderr);
}

#[test]
fn null_and_errors_are_not_skipped() {
    for body in [json!({"sites": null}), json!({})] {
        let service = sandbox(&["a.example"]);
        lists(&service, SITES, body.clone());
        let output = run(&service, &["--skip-unmatched", "--timeout", "3"]);
        assert_eq!(output.code, 76, "{body}: {}{}", output.stdout, output.stderr);
        assert!(!output.stdout.contains("skipped"), "{body}: {}", output.stdout);
    }
    let service = sandbox(&["a.example"]);
    lists(&service, SITES, json!({"sites": null, "total": 0}));
    assert_eq!(run(&service, &["--skip-unmatched"]).code, 0, "an empty account");
}

#[test]
fn sync_and_status_keep_reporting() {
    let host = Host::deployed();
    let site = host.service.sites().remove(0);
    let status = || edgecert().with_state(host.state()).args(["status", "--check"]).run();
    assert_eq!(status().code, 0);
    lists(&host.service, SITES, json!({"sites": [site], "total": 2}));
    for _ in 0..2 {
        let output = host.sync().exits_with(76);
        let message = "error: the service lists only 1 of 2 sites; what is not listed was not deployed";
        assert_eq!(output.stderr.matches(message).count(), 1, "{}", output.stderr);
        let status = status();
        assert_eq!(status.code, 1, "{}", status.stdout);
        status.prints("the service lists only 1 of 2 sites");
    }
    assert_eq!(upload_count(&host.service), 1, "the listed site has its certificate");
    host.service.clear_faults();
    host.sync().succeeds();
    assert_eq!(status().code, 0);
}

#[test]
fn superseded_lineage_reports_what_is_hidden() {
    let host = Host::with(&["a.example"], &["a.example", "b.example"]);
    host.lineage.renew_between(&["a.example", "b.example"], [-2, 40]);
    let later = Lineage::issued_for(&["a.example"]);
    host.hook().succeeds();
    deploy(&host.service, &later, host.state()).succeeds();
    host.sync().succeeds().prints("superseded");
    let site = host.service.sites().remove(0);
    lists(&host.service, SITES, json!({"sites": [site, {"id": "x", "domain": "b.example"}]}));
    let output = host.sync().exits_with(76);
    output.says("the service's list of sites has 1 element that cannot be read");
    assert_eq!(upload_count(&host.service), 2);
}

#[test]
fn empty_account_is_drift() {
    let host = Host::new();
    let skipping = |hook: Hook| hook.env("EDGECERT_SKIP_UNMATCHED", "true");
    skipping(host.hook()).succeeds();
    lists(&host.service, SITES, json!({"sites": [], "total": 0}));
    for _ in 0..2 {
        let output = skipping(host.sync()).exits_with(69);
        output.says("the account no longer has a.example, to which this host deployed before");
        skipping(host.hook()).exits_with(69);
    }
    let other = Lineage::issued_for(&["b.example"]);
    skipping(deploy(&host.service, &other, host.state())).exits_with(69);
    host.service.clear_faults();
    skipping(host.sync()).succeeds();
}

#[test]
fn lost_sites_are_not_skipped() {
    let host = Host::with(&["a.example", "b.example"], &["a.example"]);
    let skipping = |hook: Hook| hook.env("EDGECERT_SKIP_UNMATCHED", "true");
    skipping(host.hook()).succeeds();
    let other = host.service.sites().remove(1);
    lists(&host.service, SITES, json!({"sites": [other], "total": 1}));
    let message = "the account no longer has a.example, to which this host deployed before";
    for hook in [host.sync(), host.hook()] {
        skipping(hook).exits_with(69).says(message);
    }
    // A lineage that was never deployed to the account is none of its business.
    let unrelated = Lineage::issued_for(&["c.example"]);
    skipping(deploy(&host.service, &unrelated, host.state())).succeeds();
}

#[test]
fn incomplete_reread_is_not_a_missing_site() {
    let service = sandbox(&["a.example"]);
    let complete = json!({"sites": service.sites(), "total": 1});
    service.add_fault(Fault::status(SITES, 200).body(complete).times(1));
    service.add_fault(Fault::status(SITES, 200).body(json!({"sites": [], "total": 1})).times(1000));
    let output = run(&service, &["--wait", "2"]);
    assert_eq!((output.code, output.sites()), (0, vec!["a.example: served".to_owned()]), "{}", output.stderr);
}

#[test]
fn lists_are_shown_with_an_error() {
    let service = bound_site(&["a.example"]);
    lists(&service, SITES, json!({"sites": [listed()], "total": 2}));
    let message = "the service lists only 1 of 2 sites";
    let lineage = Lineage::issued_for(&["a.example"]);
    for command in [&["sites", "list"][..], &["certs", "list"], &["doctor"]] {
        let output = edgecert().against(&service).args(command).run();
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(text.contains("a.example") || command == ["doctor"], "{command:?}: {text}");
        assert!(output.code != 0 && text.contains(message), "{command:?}: {} {text}", output.code);
    }
    let output = fresh(&service, &lineage).args(["plan"]).exits_with(76);
    assert!(output.stdout.contains("replace") && output.stderr.contains(message), "{}", output.stdout);
    let find = |domain: &str| edgecert().against(&service).args(["sites", "get", domain]).run();
    assert_eq!(find("a.example").code, 0);
    let output = find("b.example");
    assert_eq!(output.code, 76, "{}", output.stderr);
    output.says("whether the account has b.example is unknown");
}

/// Two sites bound to record 5, which is stored for `stored_for` and named after the first site.
fn named_record(stored_for: &str) -> Sandbox {
    let mut record = record(5, "*.a.example", "upload");
    (record["domain"], record["name"]) = (json!(stored_for), json!("shop.a.example"));
    account(&[(10, "shop.a.example", Some(5)), (11, "blog.a.example", Some(5))], &[record])
}

#[test]
fn created_record_is_bound() {
    for (stored_for, loses_response) in
        [("*.a.example", false), ("*.a.example", true), ("shop.a.example,blog.a.example", false)]
    {
        let service = named_record(stored_for);
        let lineage = Lineage::issued_for(&["*.a.example"]);
        let plan = fresh(&service, &lineage).args(["plan"]).succeeds();
        let both = "if the service creates a certificate instead, they are bound to that";
        plan.prints(both);
        if loses_response {
            service.add_fault(Fault::close_after("POST /api/certs/upload"));
        }
        let output = fresh(&service, &lineage).args(["--json"]).succeeds();
        assert_eq!(output.sites(), ["blog.a.example: served", "shop.a.example: served"]);
        for site in ["shop.a.example", "blog.a.example"] {
            assert!(is_bound_to(&service, site, &lineage), "{site}");
        }
        assert_eq!(output.json()["uploads"][0]["created"], !loses_response);
        // The next renewal replaces that record.
        let renewed = Lineage::issued_for(&["*.a.example"]);
        fresh(&service, &renewed).succeeds();
        assert_eq!(service.certs().len(), 2);
        assert!(is_bound_to(&service, "blog.a.example", &renewed));
    }
}

#[test]
fn lineages_share_one_message() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let lineages = ["a.example", "b.example"].map(|name| Lineage::issued_for(&[name]));
    configured(sync(&service, state.path()), &[&lineages[0], &lineages[1]]).succeeds();
    let mut sites = service.sites();
    lists(&service, SITES, json!({"sites": sites.clone(), "total": 3}));
    let output = sync(&service, state.path()).exits_with(76);
    assert_eq!(output.stderr.matches("lists only 2 of 3 sites").count(), 1, "{}", output.stderr);
    // Only the lineage that the element may belong to fails.
    sites.push(json!({"id": "x", "domain": "b.example"}));
    service.clear_faults();
    sync(&service, state.path()).succeeds();
    lists(&service, SITES, json!({"sites": sites, "total": 3}));
    let output = sync(&service, state.path()).args(["--json"]).exits_with(76);
    assert_eq!(output.json()["counts"]["unchanged"], 1, "{}", output.stdout);
}
