//! `sites create` (section 4.6).

use std::time::Duration;

use serde_json::{Value, json};

use super::{changed_anything, last_body, set_traffic, shop, site, sites};
use crate::harness::{Fault, Options, assert_contains, edgecert, sandbox_with, step};

#[test]
fn created_site_is_shown() {
    let service = shop();
    step("existing_site_is_not_created_again");
    let output = sites(&service, &["create", "Shop.example.com"]).exits_with(69);
    output.says("shop.example.com (site 10) already exists; nothing was sent");
    assert!(!changed_anything(&service));
    // The certificate belongs to another account, so the service refuses.
    sites(&service, &["create", "other.example.net"]).exits_with(69);

    // Section 4.6 of the API document.
    step("created_site_shows_its_dns_record");
    let output = sites(&service, &["create", "new.example.com", "--origin", "192.0.2.10"]).succeeds();
    let made = service.sites().into_iter().find(|site| site["domain"] == "new.example.com").unwrap();
    let record = format!("new.example.com. IN CNAME {}.", made["cname"].as_str().unwrap());
    assert!(output.stdout.lines().any(|line| line == record), "{}", output.stdout);
    assert_eq!(made["origins"], json!([{"addr": "192.0.2.10", "weight": 1, "status": true}]));
    assert_eq!(last_body(&service, "/api/sites")["domain"], "new.example.com");

    step("response_without_site_lists_the_sites");
    service.add_fault(Fault::status("POST /api/sites", 200).body(json!({"ok": true, "ignored_fields": []})));
    let output = sites(&service, &["create", "newer.example.com"]).exits_with(69);
    output.says("is not among the sites, although");
    assert_eq!(site(&service, 1), Value::Null);
}

#[test]
fn origins_settings_and_file_are_merged() {
    let service = shop();
    let hook =
        sites(&service, &["create", "new.example.com", "--json", "--origin", "192.0.2.1:8080,weight=3"]);
    let file =
        hook.write_file("site.json", r#"{"force_https": false, "http3": true, "remark": "of the file"}"#);
    let hook = hook.args(["--origin", "[2001:db8::1]:8080", "--set", "origin_protocol=http"]);
    let hook = hook.args(["--set", "force_https=true", "--set", "cache_rules=[{\"path\":\"/\"}]"]);
    let json = hook.args(["--from"]).args([file]).succeeds().json();
    let expected = json!({
        "domain": "new.example.com", "origin_protocol": "http", "origin_http_port": 8080, "force_https": true,
        "http3": true, "remark": "of the file", "cache_rules": [{"path": "/"}],
        "origins": [{"addr": "192.0.2.1", "weight": 3, "status": true}, {"addr": "2001:db8::1", "weight": 1, "status": true}],
    });
    assert_eq!(last_body(&service, "/api/sites"), expected);
    assert_eq!(json["warnings"], json!([]));
}

#[test]
fn invalid_input_is_not_sent() {
    let service = shop();
    // Section 4.6, rules 1 and 2 of the API document.
    step("owner_and_cname_are_never_sent");
    for field in ["user_id=2", "cname=mine.example.com"] {
        sites(&service, &["create", "new.example.com", "--set", field]).exits_with(65).says("cannot be set");
    }
    assert!(service.requests().is_empty());

    step("known_fields_are_checked_first");
    for field in ["origin_protocol=ftp", "cert_id=five"] {
        let output = sites(&service, &["create", "new.example.com", "--set", field]).exits_with(65);
        assert!(output.stderr.contains("; nothing was sent"), "{field}: {}", output.stderr);
    }
    let rows: [&[&str]; 7] = [
        &["--set", "no-value"],
        &["--origin", "a b"],
        &["--origin", "a", "--set", "origins=[]"],
        &["--origin", "a:80", "--origin", "b:81", "--set", "origin_protocol=http"],
        &["--origin", "a:80"],
        &["--origin", "a:80", "--set", "origin_protocol=http", "--set", "origin_http_port=80"],
        &["--set", "domain=b.example"],
    ];
    for arguments in rows {
        sites(&service, &[&["create", "new.example.com"], arguments].concat()).exits_with(2);
    }
    assert!(service.requests().is_empty());

    step("file_without_fields_is_named");
    let hook = sites(&service, &["create", "new.example.com", "--from"]);
    let file = hook.write_file("broken.json", "{\n  nonsense");
    hook.args([file]).exits_with(65).says("broken.json:2: not JSON; nothing was sent");
    sites(&service, &["create", "new.example.com", "--from", "missing.json"]).exits_with(66);
    assert!(service.requests().is_empty());
}

/// Section 4.6, rule 3 of the API document.
#[test]
fn missing_package_is_exit_69() {
    let service = shop();
    let output = sites(&service, &["create", "new.example.com", "--set", "package_id=2"]).exits_with(69);
    output.says("new.example.com was not created");
    output.says("hint: see the reason that the service gives; a site needs a package");
    sites(&service, &["create", "new.example.com", "--set", "package_id=1"]).succeeds();
    set_traffic(&service, 9999);
    sites(&service, &["create", "newer.example.com"]).exits_with(69);
}

/// Section 4.6, rule 4 of the API document.
#[test]
fn ignored_field_is_exit_69() {
    let service = shop();
    let arguments =
        ["create", "new.example.com", "--set", "http3=true", "--set", "force_http=true", "--set", "waf=1"];
    let output = sites(&service, &arguments).exits_with(69);
    let id = service.sites().iter().find(|site| site["domain"] == "new.example.com").unwrap()["id"].clone();
    let message = format!(
        "the service ignored force_http and waf of new.example.com (site {id}); domain and http3 were saved"
    );
    output.says(&message);
    output.says("hint: force_http is not a known field; force_https is");
    assert!(output.stdout.contains(" IN CNAME "), "the site is there: {}", output.stdout);
    let json =
        sites(&service, &["create", "newer.example.com", "--set", "waf=1", "--json"]).exits_with(69).json();
    assert_contains(&json, &json!({"ignored_fields": ["waf"], "site": {"domain": "newer.example.com"}}));
}

#[test]
fn name_is_sent_as_spelled() {
    for (given, sent, record) in [
        ("b\u{fc}cher.example.com", "b\u{fc}cher.example.com", "xn--bcher-kva.example.com"),
        ("new.example.com.", "new.example.com", "new.example.com"),
    ] {
        let service = shop();
        sites(&service, &["create", given]).succeeds().prints(format!("\n{record}. IN CNAME "));
        assert_eq!(last_body(&service, "/api/sites")["domain"], sent);
    }
}

/// Section 3 of the API document.
#[test]
fn wait_ends_when_the_push_does() {
    let service = shop();
    service.hold_pushes(true);
    for (domain, limit) in
        [("new.example.com", &["--wait=1"][..]), ("b.example.com", &["--wait", "--timeout", "1"])]
    {
        let json = sites(&service, &[&["create", domain, "--json"], limit].concat()).exits_with(75).json();
        assert_eq!(json["site"]["config_synced"], false);
        assert!(json["error"].as_str().unwrap().contains("did not reach the edge within 1 second"), "{json}");
    }
    service.hold_pushes(false);
    // It ends between the third reading and the last, which the end of the wait brings forward.
    let slow = sandbox_with(
        Options { push_delay: Duration::from_millis(1600), ..Options::default() },
        &["a.example"],
    );
    sites(&slow, &["update", "a.example", "--set", "remark=x", "--wait=3"]).succeeds();
    let json = sites(&service, &["update", "new.example.com", "--set", "remark=x", "--wait", "--json"])
        .succeeds()
        .json();
    assert_eq!(json["site"]["config_synced"], true);
}

#[test]
fn missing_settings_are_named() {
    edgecert().args(["sites", "list"]).exits_with(78);
}
