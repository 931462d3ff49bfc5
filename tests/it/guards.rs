//! Guards refuse what would break other sites, each with an override; sites that no upload reaches are reported or, with
//! `--rebind`, bound.

use expect_test::expect;
use serde_json::json;

use crate::harness::{
    Fault, Lineage, Options, P256, RSA, account, edgecert, fresh, is_bound_to, record, record_of,
    request_lines, sandbox_with, test_ca, upload_count, world,
};

const UPDATE: &str = "POST /api/sites/*/update";

#[test]
fn shrink_guard_keeps_names_of_bound_sites() {
    let service = account(
        &[(10, "a.example", Some(5)), (11, "b.example", Some(5))],
        &[record(5, "a.example", "upload")],
    );
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &lineage).exits_with(65);
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          * checked   validity, names, key, purpose, chain, issuer
          x guarded   a.example
        failed after TIME
        ---
        edgecert: error: a.example is guarded: certificate 5 is also bound to b.example, which the new certificate does not cover; nothing was sent for it
        edgecert: hint: add those names to the certificate, or first give the other site a record of its own (deploy a lineage that covers it with `--domain NAME --wait 0`, then run `edgecert sites bind NAME ID`), or run `edgecert deploy --lineage LINEAGE --allow-shrink` to replace the certificate anyway
    "#]].assert_eq(&output.snapshot());
    assert_eq!(upload_count(&service), 0);

    fresh(&service, &lineage).args(["--allow-shrink"]).succeeds();
    assert!(is_bound_to(&service, "a.example", &lineage) && is_bound_to(&service, "b.example", &lineage));
}

/// A record that is stored for one site and feeds another one leads to a refusal whose hint frees the record.
#[test]
fn hint_of_shrink_guard_works() {
    const LEAVE: &str = "first give the other site a record of its own (deploy a lineage that covers it with `--domain NAME --wait 0`, then run `edgecert sites bind NAME ID`)";
    for names in ["*.example", "y.example"] {
        let service = account(&[(10, "x.example", None), (11, "y.example", None)], &[]);
        fresh(&service, &Lineage::issued_for(&["*.example"])).succeeds();
        let (lineage, other) = (Lineage::issued_for(&["x.example"]), Lineage::issued_for(&[names]));
        for flags in [&[][..], &["--rebind"]] {
            let output = fresh(&service, &lineage).args(flags).exits_with(65);
            output.says(LEAVE);
            assert!(!output.stderr.contains("--rebind"), "{}", output.stderr);
        }
        let bare = ["--json", "--domain", "y.example", "--wait", "0"];
        let id = fresh(&service, &other).args(bare).exits_with(69).json()["uploads"][0]["id"].to_string();
        edgecert().against(&service).args(["sites", "bind", "y.example", &id]).succeeds();
        fresh(&service, &lineage).succeeds();
        assert!(is_bound_to(&service, "x.example", &lineage) && is_bound_to(&service, "y.example", &other));
    }
    // The record is stored for another site, so this one may leave it.
    let sites = [(10, "x.example", Some(5)), (11, "y.example", Some(5)), (12, "z.example", Some(5))];
    let service = account(&sites, &[record(5, "z.example", "upload")]);
    let lineage = Lineage::issued_for(&["x.example", "z.example"]);
    fresh(&service, &lineage)
        .for_domain("x.example")
        .exits_with(65)
        .says("--rebind` to bind this site to a record of its own");
    fresh(&service, &lineage).for_domain("x.example").args(["--rebind"]).succeeds();
    assert!(is_bound_to(&service, "x.example", &lineage));
}

#[test]
fn rebind_leaves_a_shared_record() {
    let service = account(
        &[(10, "a.example", Some(5)), (11, "b.example", Some(5))],
        &[record(5, "b.example", "upload")],
    );
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &lineage).args(["--json"]).exits_with(69);
    assert_eq!(output.sites(), ["a.example: misbound"]);
    assert_eq!(upload_count(&service), 0);

    let output = fresh(&service, &lineage).args(["--rebind", "--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: served"]);
    assert!(is_bound_to(&service, "a.example", &lineage));
    let other = service.sites().into_iter().find(|site| site["domain"] == "b.example").unwrap();
    assert_eq!(other["cert_id"], 5, "the other site keeps what it had");
}

#[test]
fn older_guard_keeps_newer_edge_certificate() {
    let service = account(&[(10, "a.example", None)], &[]);
    // The test CA dates its certificates yesterday.
    let (older, newer) = (Lineage::issued_for(&["a.example"]), Lineage::from_openssl(&P256));
    fresh(&service, &newer).succeeds();

    let shown = fresh(&service, &older).exits_with(65).snapshot();
    let parts = ["guarded: certificate 1001 (", ") was issued at DATE, later than the new one"];
    for part in parts.into_iter().chain(["--allow-older` to go back to this one"]) {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    fresh(&service, &older).args(["--rebind"]).exits_with(65);
    assert_eq!(upload_count(&service), 1, "only the newer one was sent");

    fresh(&service, &older).args(["--allow-older"]).succeeds();
    assert!(is_bound_to(&service, "a.example", &older));
}

#[test]
fn lets_guard_keeps_system_records() {
    let service = account(&[(10, "a.example", Some(5))], &[record(5, "a.example", "lets")]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &lineage).exits_with(65);
    output.says("the service itself issues and renews certificate 5").says("--replace-lets");
    assert_eq!(upload_count(&service), 0);

    fresh(&service, &lineage).args(["--replace-lets"]).succeeds();
    assert!(is_bound_to(&service, "a.example", &lineage));
    assert_eq!(service.certs().len(), 1, "replaced in place");
}

#[test]
fn unbound_site_gets_its_existing_record() {
    let service = account(&[(10, "a.example", None)], &[record(5, "a.example", "upload")]);
    let lineage = Lineage::issued_for(&["a.example"]);
    assert_eq!(fresh(&service, &lineage).args(["--json"]).succeeds().sites(), ["a.example: served"]);
    assert_eq!((service.certs().len(), upload_count(&service)), (1, 1), "no second record");
    assert!(request_lines(&service).contains(&"POST /api/sites/10/update".to_owned()));
}

#[test]
fn creation_without_binding_is_repaired() {
    let service = account(&[(10, "a.example", None)], &[record(5, "a.example", "upload")]);
    service.add_fault(Fault::status("GET /api/certs", 200).body(json!({"certs": []})));
    let answer =
        json!({"ok": true, "id": "5", "created": true, "bound_sites": [{"id": 10, "domain": "a.example"}]});
    service.add_fault(Fault::status("POST /api/certs/upload", 201).body(answer));
    let lineage = Lineage::issued_for(&["a.example"]);
    let output = fresh(&service, &lineage).args(["--json", "--verify", "off"]).succeeds();
    assert_eq!(output.json()["sites"][0]["cert_id"], 5);
    assert_eq!(service.sites()[0]["cert_id"], 5);
    let requests = request_lines(&service);
    let sent: Vec<&str> = requests.iter().map(String::as_str).skip(2).take(4).collect();
    let update = "POST /api/sites/10/update";
    assert_eq!(sent, ["POST /api/certs/upload", "GET /api/me/sites", update, "GET /api/me/sites"]);
}

#[test]
fn binding_without_effect_fails() {
    let ignoring = json!({"ok": true, "site": {}, "ignored_fields": ["cert_id"]});
    let forbidden = "could not be bound to certificate 5: the service refused the request (403)";
    let rows = [
        (Fault::status(UPDATE, 200).body(ignoring), 69, "a.example: refused", "the service ignored cert_id"),
        (Fault::status(UPDATE, 403), 69, "a.example: refused", forbidden),
        (Fault::status(UPDATE, 503).times(99), 75, "a.example: queued", "the service is unavailable (503)"),
    ];
    for (fault, code, site, message) in rows {
        let service = account(&[(10, "a.example", None)], &[record(5, "a.example", "upload")]);
        service.add_fault(fault);
        let lineage = Lineage::issued_for(&["a.example"]);
        let hook = fresh(&service, &lineage).args(["--json", "--timeout", "3", "--wait", "1"]);
        let output = hook.exits_with(code);
        assert_eq!(output.sites(), [site], "{message}");
        assert!(output.stdout.contains(message), "{message}: {}", output.stdout);
    }
}

#[test]
fn other_covered_sites_are_only_reported() {
    let service = account(
        &[
            (10, "a.example", Some(5)),
            (11, "b.example", Some(5)),
            (12, "c.example", Some(6)),
            (13, "d.example", None),
        ],
        &[record(5, "a.example", "upload"), record(6, "c.example", "upload")],
    );
    let lineage = Lineage::issued_for(&["*.example"]);
    let output = fresh(&service, &lineage).for_domain("a.example").args(["--json"]).succeeds();
    let others = ["b.example: served", "c.example: misbound", "d.example: skipped"];
    assert_eq!(output.sites(), [&["a.example: served"], &others[..]].concat());
    assert_eq!(upload_count(&service), 1);
}

#[test]
fn site_reached_by_another_upload_is_served() {
    for quirks in 0..10 {
        let issued = test_ca().issue(&["z.example", "a.example"]).unwrap();
        let mut shared = record_of(5, "z.example", &issued);
        shared["name"] = json!("shop");
        let sites = [
            json!({"id": 10, "account": 1, "domain": "b.example", "cert_id": 5}),
            json!({"id": 11, "account": 1, "domain": "a.example"}),
        ];
        let world = world(json!({"sites": sites, "certs": [shared]}));
        let service = sandbox_with(Options { world, quirks, ..Options::default() }, &[]);
        let lineage = Lineage::issued_for(&["a.example", "b.example"]);
        let sites = fresh(&service, &lineage).args(["--json"]).run().sites();
        let is_misbound = sites.contains(&"b.example: misbound".to_owned());
        assert_eq!(is_bound_to(&service, "b.example", &lineage), !is_misbound, "{quirks}: {sites:?}");
    }
}

#[test]
fn older_guard_sees_all_addresses_and_key_types() {
    let [service, behind] = [0, 1].map(|_| account(&[(10, "a.example", None)], &[]));
    let (older, newer) = (Lineage::issued_for(&["a.example"]), Lineage::from_openssl(&RSA));
    fresh(&service, &older).succeeds();
    fresh(&behind, &newer).succeeds();
    let both = format!("{},{}", service.endpoints().edge, behind.endpoints().edge);
    fresh(&service, &older).facing(both).exits_with(65).says("later than the new one");
}

#[test]
fn refused_domain_does_not_stop_the_others() {
    let service = account(&[(10, "a.example", None), (11, "b.example", None)], &[]);
    service.add_fault(Fault::status("POST /api/certs/upload", 403));
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    let output = fresh(&service, &lineage).args(["--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: served", "b.example: served"]);
    let uploads = &output.json()["uploads"];
    assert_eq!((&uploads[0]["ok"], &uploads[1]["ok"]), (&json!(false), &json!(true)));
}
