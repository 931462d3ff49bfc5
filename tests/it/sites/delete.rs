//! `sites delete` (sections 3 and 4.9): irreversible, so it asks for confirmation.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use super::{changed_anything, shop, site, sites};
use crate::harness::{Fault, Sandbox, step};

#[test]
fn deletion_is_confirmed() {
    let service = shop();

    step("delete_needs_terminal_or_yes");
    for more in [&[][..], &["--json"]] {
        sites(&service, &[&["delete", "10"], more].concat()).exits_with(2).says("pass --yes");
    }
    assert!(service.requests().is_empty());

    step("site_that_survives_delete_is_a_failure");
    service.add_fault(Fault::status("DELETE /api/sites/*", 200).body("success"));
    let output = sites(&service, &["delete", "10", "--yes", "--json"]).exits_with(69);
    assert_eq!(output.json()["deleted"], false);
    output.says("still exists, although");

    // Sections 3 and 4.9 of the API document.
    step("yes_deletes_the_site");
    let json = sites(&service, &["delete", "shop.example.com", "--yes", "--json"]).succeeds().json();
    assert_eq!((&json["command"], &json["deleted"]), (&json!("sites delete"), &json!(true)));
    assert_eq!(json["site"]["id"], 10);
    assert!(site(&service, 10).is_null() && !site(&service, 11).is_null());
    let output = sites(&service, &["delete", "11", "--yes"]).succeeds();
    assert_eq!(
        output.stdout,
        "plain.example.com (site 11): deleted, with its DNS records and edge configuration\n"
    );
}

/// Runs `sites delete 10` on a terminal and types a line.
fn at_a_terminal(service: &Sandbox, line: &str) -> (Option<i32>, String) {
    let mut hook = sites(service, &["delete", "10"]);
    let mut child = hook.on_terminal(200).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn delete_asks_on_a_terminal() {
    let service = shop();
    let question =
        "permanently delete shop.example.com (site 10) with its DNS records and edge configuration? [y/N]";
    for line in ["n", "", "perhaps"] {
        let (code, shown) = at_a_terminal(&service, line);
        assert_eq!(code, Some(65), "{shown}");
        assert!(
            shown.contains(question) && shown.contains("shop.example.com (site 10) was not deleted"),
            "{shown}"
        );
    }
    assert!(!changed_anything(&service));
    let (code, shown) = at_a_terminal(&service, "y");
    assert_eq!(code, Some(0), "{shown}");
    assert!(site(&service, 10).is_null());
}
