//! `sites list` and `sites get` (sections 4.4 and 4.5).

use serde_json::{Value, json};

use super::{shop, site, sites};
use crate::harness::{assert_contains, edgecert, request_lines, step};

fn domains(json: &Value) -> Vec<&str> {
    json["sites"].as_array().unwrap().iter().map(|site| site["domain"].as_str().unwrap()).collect()
}

#[test]
fn own_sites_are_listed_and_filtered() {
    let service = shop();
    // Section 4.4 of the API document.
    step("only_own_sites_are_listed");
    let output = sites(&service, &["list"]).succeeds();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.stdout);
    assert!(lines[0].starts_with("ID  DOMAIN"), "{}", lines[0]);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!([0, 1, 3, 5, 6].map(|at| words[at]), ["10", "shop.example.com", "yes", "5", "yes"]);
    assert!(lines[2].contains("none"), "{}", lines[2]);
    assert_eq!(request_lines(&service), ["GET /api/me/sites"]);

    // Section 2.3 of the API document.
    step("json_holds_the_services_objects");
    let json = sites(&service, &["list", "--json"]).succeeds().json();
    let expected = json!([
        {"domain": "shop.example.com", "origin_protocol": "http"}, {"domain": "plain.example.com"},
    ]);
    let report = json!({"version": 1, "command": "sites list", "ok": true, "exit_code": 0, "error": null});
    assert_contains(&json, &report);
    assert_contains(&json["sites"], &expected);

    step("filters_narrow_the_list");
    let listed = |arguments: &[&str]| {
        let json = sites(&service, &[&["list", "--json"], arguments].concat()).succeeds().json();
        domains(&json).join(" ")
    };
    assert_eq!(listed(&["--domain", "shop.*"]), "shop.example.com");
    assert_eq!(listed(&["--domain", "*.net"]), "");
    assert_eq!(listed(&["--without-cert"]), "plain.example.com");
    assert_eq!(listed(&["--unsynced"]), "");
    service.hold_pushes(true);
    sites(&service, &["update", "10", "--set", "remark=x"]).succeeds();
    assert_eq!(listed(&["--unsynced"]), "shop.example.com");
    let text = sites(&service, &["list", "--domain", "*.net"]).succeeds().stdout;
    assert_eq!(text, "none of 2 sites matches\n");
}

#[test]
fn sites_are_found_or_reported() {
    let service = shop();

    // Section 4.5 of the API document.
    step("site_is_found_by_id_and_domain");
    for name in ["10", "shop.example.com", "SHOP.example.com."] {
        let json = sites(&service, &["get", name, "--json"]).succeeds().json();
        assert_eq!((&json["command"], &json["site"]["id"]), (&json!("sites get"), &json!(10)), "{name}");
        assert_eq!(json["site"]["cname"], site(&service, 10)["cname"]);
        let text = sites(&service, &["get", name]).succeeds().stdout;
        assert!(text.lines().any(|line| line.split_whitespace().eq(["cert_id", "5"])), "{text}");
    }
    assert!(request_lines(&service).contains(&"GET /api/sites/10".to_owned()));

    // Sections 4.5 to 4.9 and 7 of the API document: 20 is of another account.
    step("missing_site_is_exit_69");
    for command in ["get", "update --set remark=x", "enable", "disable", "delete --yes", "bind"] {
        for name in ["99", "20", "other.example.net", "nobody.example"] {
            let record = if command == "bind" { &["5"][..] } else { &[] };
            let words: Vec<&str> = command.split(' ').collect();
            let output = sites(&service, &words).args([name]).args(record).exits_with(69);
            assert!(output.stderr.contains("the account has no site"), "{name}: {}", output.stderr);
            output.says("hint: run `edgecert sites list`");
        }
    }
    assert!(!site(&service, 20).is_null() && site(&service, 20)["enabled"] == true);

    // Section 5 of the API document.
    step("wrong_api_key_is_exit_77");
    for command in
        [&["sites", "list"][..], &["sites", "get", "10"], &["certs", "list"], &["sites", "enable", "10"]]
    {
        let hook = edgecert().against(&service).env("EDGECERT_API_KEY", "wrong-key-entirely").args(command);
        let output = hook.exits_with(77);
        assert!(!output.stderr.contains("wrong-key"), "{}", output.stderr);
    }
}
