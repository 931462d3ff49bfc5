//! README.md: its world file, and its description of the API, which must be complete.

use std::collections::BTreeSet;

use edgecert_sandbox::{Options, World};
use serde_json::{Value, json};

use crate::support::{Server, plain};

const README: &str = include_str!("../../README.md");

/// A section of the document, from its heading to the next one.
fn section(heading: &str) -> &'static str {
    let start = README.split_once(&format!("\n## {heading}\n")).expect("the section exists").1;
    start.split("\n## ").next().unwrap()
}

/// The code spans in the first column of a table.
fn first_column(text: &str, header: &str) -> BTreeSet<String> {
    let table = text.split_once(header).expect("the table exists").1;
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn world_of_the_readme_is_complete() {
    let text = section("World file").split_once("```json\n").unwrap().1.split("```").next().unwrap();
    let shown: Value = serde_json::from_str(text).unwrap();
    let world = World::parse(text).unwrap();
    let parsed = json!(world);
    let server = Server::start_with(Options { world, ..plain() });
    assert_eq!(server.site(10)["cert_id"], 5);
    assert_eq!(server.certs()[0]["type"], "lets");

    let elements = ["", "/accounts/0", "/accounts/0/packages/0", "/sites/0", "/certs/0"];
    for element in elements {
        assert_eq!(shown.pointer(element).map(keys), parsed.pointer(element).map(keys), "{element}");
    }
    let read_only = ["cname", "config_synced", "created_at", "disabled_reason", "site_status", "updated_at"];
    let writable = keys(&server.site(10)).into_iter().filter(|key| !read_only.contains(&key.as_str()));
    let missing: Vec<_> = writable.filter(|key| shown["sites"][0].get(key).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn api_of_the_readme_is_complete() {
    let server = Server::start();
    let api = section("The API");
    assert_eq!(first_column(api, "| Site field | Type |\n"), keys(&server.site(10)));

    let described = server.api("GET", "/openapi.json", None).json();
    let mut requests = BTreeSet::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in keys(methods).into_iter().filter(|key| key != "parameters") {
            requests.insert(format!("{} {}", method.to_uppercase(), path.replace("{id}", "ID")));
        }
    }
    let shown = first_column(api, "| Request | Effect | Response |\n");
    assert_eq!(shown, requests);
}
