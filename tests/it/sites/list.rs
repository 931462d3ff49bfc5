//! Reading: `sites list` and `sites get` (sections 4.4 and 4.5).

use serde_json::{Value, json};

use super::{shop, site, sites};
use crate::harness::{Lineage, asked, edgecert};

fn domains(json: &Value) -> Vec<&str> {
    json["sites"].as_array().unwrap().iter().map(|site| site["domain"].as_str().unwrap()).collect()
}

#[test]
fn section_4_4_the_accounts_sites_are_listed_and_no_others() {
    let edge = shop();
    let outcome = sites(&edge, &["list"]).succeeds();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", outcome.stdout);
    assert!(lines[0].starts_with("id  domain"), "{}", lines[0]);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(
        (words[0], words[1], words[3], words[5], words[6]),
        ("10", "shop.example.com", "yes", "5", "yes")
    );
    assert!(lines[2].contains("none"), "{}", lines[2]);
    assert_eq!(asked(&edge), ["GET /api/me/sites"]);
}

#[test]
fn section_2_3_json_is_the_services_own_objects_under_the_envelope() {
    let edge = shop();
    let json = sites(&edge, &["list", "--json"]).succeeds().json();
    assert_eq!((&json["version"], &json["command"]), (&json!(1), &json!("sites list")));
    assert_eq!((&json["ok"], &json["exit_code"], &json["error"]), (&json!(true), &json!(0), &json!(null)));
    assert_eq!(domains(&json), ["shop.example.com", "plain.example.com"]);
    assert_eq!(json["sites"][0]["origin_protocol"], "http");
}

#[test]
fn filters_narrow_the_list() {
    let edge = shop();
    let listed = |arguments: &[&str]| {
        let json = sites(&edge, &[&["list", "--json"], arguments].concat()).succeeds().json();
        domains(&json).join(" ")
    };
    assert_eq!(listed(&["--domain", "shop.*"]), "shop.example.com");
    assert_eq!(listed(&["--domain", "*.net"]), "");
    assert_eq!(listed(&["--without-cert"]), "plain.example.com");
    assert_eq!(listed(&["--unsynced"]), "");
    edge.hold_pushes(true);
    sites(&edge, &["update", "10", "--set", "remark=x"]).succeeds();
    assert_eq!(listed(&["--unsynced"]), "shop.example.com");
    let text = sites(&edge, &["list", "--domain", "*.net"]).succeeds().stdout;
    assert_eq!(text, "none of 2 sites matches\n");
}

#[test]
fn a_certificate_that_was_deployed_from_here_is_shown_with_its_days() {
    let edge = shop();
    let lineage = Lineage::issued_for(&["shop.example.com"]);
    let state = lineage.path().join("state");
    let deploy = edgecert().called_by_certbot(&lineage).against(&edge);
    deploy.env("EDGECERT_STATE_DIR", &state).succeeds();
    let outcome = sites(&edge, &["list"]).env("EDGECERT_STATE_DIR", &state).succeeds();
    assert!(outcome.stdout.contains("5, ") && outcome.stdout.contains(" days left"), "{}", outcome.stdout);
}

#[test]
fn section_4_5_one_site_is_shown_by_number_and_by_domain() {
    let edge = shop();
    for name in ["10", "shop.example.com", "SHOP.example.com."] {
        let json = sites(&edge, &["get", name, "--json"]).succeeds().json();
        assert_eq!((&json["command"], &json["site"]["id"]), (&json!("sites get"), &json!(10)), "{name}");
        assert_eq!(json["site"]["cname"], site(&edge, 10)["cname"]);
        let text = sites(&edge, &["get", name]).succeeds().stdout;
        assert!(text.lines().any(|line| line.split_whitespace().eq(["cert_id", "5"])), "{text}");
    }
    assert!(asked(&edge).contains(&"GET /api/sites/10".to_owned()));
}

#[test]
fn section_7_404_a_site_that_is_missing_or_anothers_is_exit_69() {
    let edge = shop();
    for name in ["99", "20", "other.example.net", "nobody.example"] {
        let outcome = sites(&edge, &["get", name]).fails_with(69);
        assert!(outcome.stderr.contains("the account has no site"), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: run `edgecert sites list`"), "{}", outcome.stderr);
    }
}

#[test]
fn section_5_a_wrong_key_is_exit_77() {
    let edge = shop();
    for command in
        [&["sites", "list"][..], &["sites", "get", "10"], &["certs", "list"], &["sites", "enable", "10"]]
    {
        let hook = edgecert().against(&edge).env("EDGECERT_API_KEY", "wrong-key-entirely").args(command);
        let outcome = hook.fails_with(77);
        assert!(!outcome.stderr.contains("wrong-key"), "{}", outcome.stderr);
    }
}

#[test]
fn what_is_piped_has_no_colour_and_is_never_cut() {
    let edge = shop();
    let long = format!("{}.{}.example.com", "a".repeat(60), "b".repeat(60));
    edge.add_site(&long);
    let outcome = sites(&edge, &["list"]).env("COLUMNS", "40").succeeds();
    assert!(outcome.stdout.contains(&long) && !outcome.stdout.contains('\u{1b}'), "{}", outcome.stdout);
}

#[test]
fn a_usage_error_names_the_command_in_json() {
    let json = edgecert().args(["sites", "get", "--json"]).fails_with(2).json();
    assert_eq!((&json["command"], &json["exit_code"]), (&json!("sites get"), &json!(2)));
    let json = edgecert().args(["certs", "--json", "download"]).fails_with(2).json();
    assert_eq!(json["command"], "certs download");
}
