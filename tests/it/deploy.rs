//! `edgecert deploy`: brings a renewed certificate to the service and its sites.

use expect_test::{expect, expect_file};
use serde_json::json;

use crate::harness::{
    Fault, Host, LISTING, Lineage, Options, account, assert_contains, configured, edgecert, fresh, record,
    request_lines, requests_during, sandbox, sandbox_and_lineage, sandbox_with, tls_sandbox, upload_count,
};

#[test]
fn first_certificate_is_created_and_bound() {
    let sites = [(1, "a.example", None), (2, "x.b.example", None), (3, "other.example", None)];
    let service = account(&sites, &[]);
    let renewed = Lineage::issued_for(&["a.example", "*.b.example"]);
    let output = fresh(&service, &renewed).succeeds();
    expect![[r#"
        a.example, *.b.example   P-256, expires DATE (TIME)
          * checked   validity, names, key, purpose, chain, issuer
          * uploaded  certificate 1001 (created), bound to 2 sites
          * served    a.example    1/1
          * served    x.b.example  1/1
        done in TIME
        ---
    "#]]
    .assert_eq(&output.snapshot());
    assert_eq!(upload_count(&service), 1, "one creation binds both");
}

#[test]
fn renewal_replaces_the_record_in_place() {
    let service = account(&[(1, "a.example", None)], &[]);
    let lineage = Lineage::issued_for(&["a.example"]);
    fresh(&service, &lineage).succeeds();
    let first = service.certs();
    lineage.renew(&["a.example"]);
    let output = fresh(&service, &lineage).args(["--verify", "off"]).succeeds();
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          * checked   validity, names, key, purpose, chain, issuer
          * uploaded  certificate 1001 (replaced), bound to 1 site
          * synced    a.example  not verified because of --verify off
        done in TIME
        ---
    "#]]
    .assert_eq(&output.snapshot());
    let second = service.certs();
    assert_eq!((first.len(), second.len()), (1, 1), "no second record");
    assert_eq!(first[0]["id"], second[0]["id"]);
    assert_ne!(first[0]["cert_pem"], second[0]["cert_pem"]);
    assert_eq!(second[0]["cert_pem"], lineage.read("fullchain.pem"));
}

#[test]
fn json_report_has_the_documented_fields() {
    let service = sandbox_with(Options { quirks: 0, ..Options::default() }, &["a.example"]);
    let renewed = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &renewed).args(["--json"]).succeeds();
    expect_file!["look/deploy-json.txt"].assert_eq(&output.snapshot());
}

#[test]
fn upload_only_is_one_request() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let output = fresh(&service, &renewed).for_domain("a.example").args(["--wait", "0", "--json"]).succeeds();
    assert_eq!(request_lines(&service), ["POST /api/certs/upload"]);
    assert_eq!(output.sites(), ["a.example: uploaded"]);
    assert_eq!(output.json()["sites"][0]["id"], json!(null), "no listing was made");
    assert_eq!(output.json()["warnings"], json!([]));
}

/// Another run makes a record and binds the site after the records were listed, and before the sites are.
#[test]
fn record_made_between_listings_is_found() {
    let host = Host::new();
    fresh(&host.service, &host.lineage).succeeds();
    host.lineage.renew(&["a.example"]);
    let earlier = Fault::status("GET /api/certs", 200).body(json!({"certs": [], "total": 0}));
    for (command, listings) in [("deploy", 2), ("sync", 2), ("sync", 1)] {
        if listings == 2 {
            host.service.add_fault(earlier.clone());
        }
        let hook = configured(edgecert().against(&host.service), &[&host.lineage]).args([command]);
        let hook = if command == "deploy" { hook.called_by_certbot(&host.lineage) } else { hook };
        let hook = hook.with_state(host.state());
        let (requests, _) = requests_during(&host.service, || hook.succeeds());
        let records = requests.iter().filter(|request| *request == "GET /api/certs");
        assert_eq!(records.count(), listings, "{command}: {requests:?}");
        assert_eq!(host.service.certs().len(), 1, "{command}");
    }
}

#[test]
fn few_sites_of_large_account_are_reread_singly() {
    let others: Vec<String> = (0..40).map(|n| format!("other{n}.example")).collect();
    let service = sandbox(&others.iter().map(String::as_str).collect::<Vec<_>>());
    let id = service.add_site("a.example");
    let renewed = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &renewed).args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: served"]);
    let requests = request_lines(&service);
    assert_eq!(requests.iter().filter(|request| *request == "GET /api/me/sites").count(), 1, "{requests:?}");
    assert!(requests.contains(&format!("GET /api/sites/{id}")), "{requests:?}");
}

#[test]
fn each_record_costs_one_upload() {
    let domains = ["a.example", "b.example", "c.example"];
    let sites: Vec<_> = (1..).zip(domains).map(|(id, domain)| (id, domain, Some(id))).collect();
    let records: Vec<_> = (1..).zip(domains).map(|(id, domain)| record(id, domain, "upload")).collect();
    // No quirks: if the service kept a record for each of its names, the first upload would make its record the one for
    // all three domains, and only `--rebind` would reach the others.
    let service = account(&sites, &records);
    let renewed = Lineage::issued_for(&domains);
    fresh(&service, &renewed).args(["--wait", "0"]).succeeds();
    let mut requests = request_lines(&service);
    requests[..2].sort();
    let ([certs, sites], upload) = (LISTING, "POST /api/certs/upload");
    assert_eq!(requests, [certs, sites, upload, upload, upload, sites]);
}

#[test]
fn site_keeps_its_own_spelling() {
    let (service, renewed) = (sandbox(&[]), Lineage::issued_for(&["xn--bcher-kva.example"]));
    fresh(&service, &renewed).for_domain("B\u{fc}cher.Example").args(["--wait", "0"]).exits_with(69);
    assert_eq!(service.requests()[0].body["domain"], "B\u{fc}cher.Example");
}

#[test]
fn https_is_verified_against_ca_file() {
    let service = tls_sandbox(&["a.example"]);
    let renewed = Lineage::issued_for(&["a.example"]);
    fresh(&service, &renewed).succeeds();
    assert_eq!(upload_count(&service), 1);

    fresh(&service, &renewed)
        .without_env("EDGECERT_CA_FILE")
        .exits_with(78)
        .says("is not trusted: its issuer is not in the trust store")
        .says("--ca-file");
    assert_eq!(upload_count(&service), 1, "nothing reaches a service that is not trusted");
}

#[test]
fn unconfirmed_push_is_reported() {
    let service = sandbox(&["a.example"]);
    service.hold_pushes(true);
    let renewed = Lineage::issued_for(&["a.example"]);
    let hook = fresh(&service, &renewed);
    let output = hook.facing("127.0.0.1:1").args(["--wait", "1", "--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: uploaded"]);
    assert!(output.json()["warnings"].to_string().contains("not confirmed yet"));
}

#[test]
fn no_covered_site_is_an_error() {
    let (service, renewed) = (sandbox(&["other.example"]), Lineage::issued_for(&["a.example"]));
    let output = fresh(&service, &renewed).exits_with(69);
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          * checked   validity, names, key, purpose, chain, issuer
        failed after TIME
        ---
        edgecert: error: none of the account's 1 site is covered by the certificate for a.example; nothing was sent
        edgecert: hint: create the site, check that the API key is for the right account, or pass --skip-unmatched in a hook that runs for every lineage
    "#]].assert_eq(&output.snapshot());
    let skipped = fresh(&service, &renewed).args(["--skip-unmatched", "--json"]).succeeds();
    assert_eq!(skipped.sites(), ["a.example: skipped"]);
    assert_eq!(upload_count(&service), 0);
}

#[test]
fn unknown_domain_does_not_stop_the_others() {
    let (service, renewed) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example", "b.example"]));
    let hook = fresh(&service, &renewed).args(["--json"]);
    let output = hook.for_domain("a.example").for_domain("b.example").exits_with(69);
    assert_eq!(output.sites(), ["a.example: served", "b.example: refused"]);
    assert_eq!(upload_count(&service), 1);
}

#[test]
fn record_of_another_domain_is_replaced() {
    let sites = [(10, "a.example", Some(5)), (11, "b.example", Some(5))];
    let service = account(&sites, &[record(5, "b.example", "uploaded")]);
    let renewed = Lineage::issued_for(&["a.example", "b.example"]);
    let output = fresh(&service, &renewed).args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: served", "b.example: served"]);
    assert_eq!(service.certs().len(), 1, "no orphan was created");
    assert_contains(&output.json()["uploads"], &json!([{"domain": "b.example"}]));
    assert_eq!(upload_count(&service), 1);
}

#[test]
fn lineage_entry_overrides_settings() {
    let (service, renewed) = sandbox_and_lineage(&["a.example", "b.example"]);
    let hook = fresh(&service, &renewed);
    let text = format!("[[lineage]]\npath = {:?}\ndomains = [\"b.example\"]\nwait = 0\n", renewed.path());
    let output = hook.with_config(&text).args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: synced", "b.example: synced"]);
    let reason = "a configuration file does not disable the guards: two listings, an upload, a reading";
    assert_eq!(request_lines(&service).len(), 4, "{reason}");
}

#[test]
fn record_with_several_names_is_renewed() {
    for quirks in [0, 6, 9, 13] {
        let service = sandbox_with(Options { quirks, ..Options::default() }, &["a.example", "b.example"]);
        let lineage = Lineage::issued_for(&["a.example", "b.example"]);
        for _ in 0..2 {
            let output = fresh(&service, &lineage).args(["--json"]).succeeds();
            assert_eq!(output.sites(), ["a.example: served", "b.example: served"], "seed {quirks}");
            lineage.renew(&["a.example", "b.example"]);
        }
        assert_eq!(service.certs().len(), 1, "seed {quirks}");
    }
}

#[test]
fn lineage_entry_matches_named_directory() {
    let (service, mounted) = sandbox_and_lineage(&["a.example", "b.example"]);
    std::fs::create_dir(mounted.file("..v1")).unwrap();
    std::os::unix::fs::symlink("..v1", mounted.file("..data")).unwrap();
    for (from, to) in [("fullchain.pem", "tls.crt"), ("privkey.pem", "tls.key")] {
        std::fs::rename(mounted.file(from), mounted.file("..v1").join(to)).unwrap();
        std::os::unix::fs::symlink(format!("..data/{to}"), mounted.file(to)).unwrap();
    }
    let hook = edgecert().against(&service).args(["--json", "--lineage"]).args([mounted.path()]);
    let text = format!("[[lineage]]\npath = {:?}\ndomains = [\"b.example\"]\nwait = 0\n", mounted.path());
    let output = hook.with_config(&text).succeeds();
    assert_eq!(output.sites()[1], "b.example: synced");
    assert_eq!(output.json()["source"]["client"], "kubernetes");
}

#[test]
fn repeated_domain_is_uploaded_once() {
    let (service, renewed) = sandbox_and_lineage(&["a.example"]);
    let hook = fresh(&service, &renewed).args(["--wait", "0"]);
    hook.for_domain("a.example").for_domain("A.Example").succeeds();
    assert_eq!(upload_count(&service), 1);
}
