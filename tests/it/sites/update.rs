//! `sites update` (section 4.7).

use serde_json::json;

use super::{changed_anything, last_body, shop, site, sites};
use crate::harness::{Fault, assert_contains, step};

#[test]
fn named_fields_are_saved_or_refused() {
    let service = shop();
    // Section 4.7 of the API document.
    step("only_named_fields_change");
    let before = site(&service, 10);
    sites(&service, &["update", "shop.example.com", "--set", "force_https=true", "--set", "remark=the shop"])
        .succeeds();
    let mut after = site(&service, 10);
    assert_eq!((&after["force_https"], &after["remark"]), (&json!(true), &json!("the shop")));
    for field in ["force_https", "remark", "updated_at", "config_synced"] {
        after[field] = before[field].clone();
    }
    assert_eq!(after, before);
    assert_eq!(last_body(&service, "/update"), json!({"force_https": true, "remark": "the shop"}));

    // Sections 4.7 and 7 of the API document.
    step("ignored_fields_are_a_failure");
    let output =
        sites(&service, &["update", "10", "--set", "force_htps=true", "--set", "http3=true"]).exits_with(69);
    output.says("the service ignored force_htps of shop.example.com (site 10); http3 was saved");
    output.says("force_https is");
    assert_eq!(site(&service, 10)["http3"], true);
    assert_eq!(last_body(&service, "/update"), json!({"force_htps": true, "http3": true}));

    // Sections 4.7 and 7 of the API document.
    step("reference_to_another_account_is_exit_69");
    for field in ["cert_id=6", "package_id=2"] {
        let output = sites(&service, &["update", "10", "--set", field]).exits_with(69);
        output.says("shop.example.com (site 10) was not changed: the service refused the request (403)");
        output.says("hint: name a cert_id or package_id of this account");
    }
    assert_eq!(site(&service, 10)["cert_id"], 5);
}

#[test]
fn diff_shows_only_what_changes() {
    let service = shop();
    step("diff_shows_only_changes");
    let arguments = ["update", "10", "--set", "http3=true", "--set", "http2=true", "--diff"];
    let output = sites(&service, &arguments).succeeds();
    let lines: Vec<Vec<&str>> = output.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1..], [vec!["FIELD", "BEFORE", "AFTER"], vec!["http3", "false", "true"]]);
    let json =
        sites(&service, &["update", "10", "--set", "http3=false", "--diff", "--json"]).succeeds().json();
    assert_eq!(json["diff"], json!([{"field": "http3", "before": true, "after": false}]));
    let report = json!({"command": "sites update", "site": {"id": 10}, "ignored_fields": [], "warnings": []});
    assert_contains(&json, &report);

    step("diff_shows_nested_values");
    let set = |mode: &str| format!("security={{\"rule\":\"{}\",\"mode\":\"{mode}\"}}", "x".repeat(300));
    sites(&service, &["update", "10", "--set", &set("off")]).succeeds();
    let output = sites(&service, &["update", "10", "--diff", "--set", &set("on")]).succeeds();
    let last: Vec<&str> = output.stdout.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["security.mode", "off", "on"]);
    assert!(sites(&service, &["get", "10"]).succeeds().stdout.contains(&"x".repeat(300)));

    step("diff_shows_elements_in_order");
    let rows = |rules: &str| -> Vec<String> {
        let rules = format!("cache_rules={rules}");
        let shown = sites(&service, &["update", "10", "--diff", "--set", &rules]).succeeds().stdout;
        let rows = shown.lines().skip_while(|line| !line.starts_with("FIELD")).skip(1);
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let numbers: Vec<u8> = (0..11).collect();
    let expected = |row: fn(u8) -> String| numbers.iter().copied().map(row).collect::<Vec<_>>();
    assert_eq!(rows(&format!("{numbers:?}")), expected(|at| format!("cache_rules.{at} null {at}")));
    assert_eq!(rows("[]"), expected(|at| format!("cache_rules.{at} {at} null")));
    sites(&service, &["update", "10", "--set", r#"security={"mode":"on"}"#]).succeeds();
    let with_list = r#"security={"mode":"on","ips":[]}"#;
    let output = sites(&service, &["update", "10", "--diff", "--set", with_list]).succeeds();
    assert!(output.stdout.lines().any(|row| row.split_whitespace().eq(["security.ips", "null", "[]"])));
}

#[test]
fn fields_can_come_from_a_file() {
    let service = shop();
    step("file_without_changes_sends_nothing");
    let hook = sites(&service, &["update", "10", "--from"]);
    let file = hook.write_file("site.json", r#"{"origin_protocol": "http"}"#);
    assert_eq!(hook.args([file]).succeeds().stdout, "shop.example.com (site 10): already up to date\n");
    assert!(!changed_anything(&service));
    sites(&service, &["update", "10"]).exits_with(2);

    step("byte_order_mark_is_accepted");
    let hook = sites(&service, &["update", "10", "--from"]);
    let file = hook.write_file("site.json", "\u{feff}{\"http3\":true}");
    hook.args([file]).succeeds();
    assert_eq!(site(&service, 10)["http3"], true);

    step("file_may_be_an_edited_site");
    let mut json = sites(&service, &["get", "10", "--json"]).succeeds().json();
    json["site"]["remark"] = json!("edited");
    let hook = sites(&service, &["update", "10", "--from"]);
    let file = hook.write_file("site.json", &json.to_string());
    hook.args([file]).succeeds();
    assert_eq!(last_body(&service, "/update"), json!({"remark": "edited"}));

    step("fields_can_come_from_stdin");
    let mut hook = sites(&service, &["update", "10", "--from", "-"]);
    let file = hook.write_file("in.json", r#"{"remark": "piped"}"#);
    hook.command().stdin(std::fs::File::open(file).unwrap());
    hook.succeeds();
    assert_eq!(site(&service, 10)["remark"], "piped");
}

#[test]
fn coverage_and_changes_by_others_are_checked() {
    let service = shop();

    step("cert_id_is_checked_as_in_bind");
    let update = |id: &str, arguments: &[&str]| sites(&service, &["update", id]).args(arguments);
    update("11", &["--set", "cert_id=5"]).exits_with(65);
    for value in ["null", "0"] {
        let output = update("10", &["--set", &format!("cert_id={value}")]).exits_with(65);
        output.says("shop.example.com (site 10) would be left without a certificate; nothing was changed");
    }
    assert!(!changed_anything(&service));
    update("11", &["--set", "cert_id=null"]).succeeds();
    update("11", &["--set", "cert_id=5", "--allow-uncovered"]).succeeds();
    assert_eq!(site(&service, 11)["cert_id"], 5);
    update("10", &["--set", "cert_id=0", "--allow-uncovered"]).succeeds();
    let output = sites(&service, &["create", "new.example.com", "--set", "cert_id=5"]).exits_with(65);
    output.says("does not cover new.example.com");

    step("changed_value_is_a_warning");
    let mut other = site(&service, 10);
    (other["remark"], other["force_https"]) = (json!("cut"), json!(true));
    let body = json!({"ok": true, "site": other, "ignored_fields": []});
    service.add_fault(Fault::status("POST /api/sites/*/update", 200).body(body));
    let output = sites(&service, &["update", "10", "--set", "remark=longer"]).succeeds();
    output.says(r#"warning: remark was saved as "cut", not as "longer""#);
    output.says("force_https was not part of the request but changed, from false to true");
}
