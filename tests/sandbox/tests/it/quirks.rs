//! Quirks: documented behaviour holds for every seed, and `QUIRKS.md` is current.

use std::fmt::Write;

use edgecert_sandbox::Options;
use serde_json::{Value, json};

use crate::support::{Server, TestCert, assert_contains, plain};

/// The records of a certificate list, bare or under any key.
fn cert_list(value: &Value) -> Vec<Value> {
    let wrapped = || value.as_object().unwrap().values().find_map(Value::as_array).unwrap();
    value.as_array().unwrap_or_else(wrapped).clone()
}

#[test]
fn documented_behaviour_holds_under_every_seed() {
    for seed in 0..50 {
        let server = Server::start_with(Options { quirks: seed, ..plain() });
        let cert = TestCert::new(&["a.example", "b.example"]);
        let response = server.upload("a.example", &cert).expect_ok();
        assert_contains(&response, &json!({ "ok": true, "created": true, "id": "1001" }));
        assert_eq!(response["bound_sites"].as_array().unwrap().len(), 2);
        assert!(response["not_after"].as_str().unwrap().starts_with("2099-01-01T0"));
        assert_eq!(server.upload("a.example", &cert).expect_ok()["created"], false);
        let certs = cert_list(&server.get("/api/certs"));
        assert_eq!(certs.iter().map(|cert| cert["id"].clone()).collect::<Vec<_>>(), [5, 1001]);
        assert!(certs[1]["domain"].as_str().unwrap().contains("a.example"));
        assert_eq!(certs[0]["type"], "lets");
        let site = server.site(10);
        let site = site.get("site").unwrap_or(&site);
        assert_contains(site, &json!({ "id": 10, "cert_id": 1001, "domain": "a.example" }));
        assert_eq!(server.api("GET", "/api/sites/20", None).status, 404);
        assert_eq!(server.api_with_key("wrong", "GET", "/api/certs", None).status, 401);
        let expired = TestCert::valid(&["a.example"], [2019, 2020]);
        assert_eq!(server.upload("a.example", &expired).status, 400);
        assert_eq!(server.update(&json!({ "cert_id": 7 })).status, 403);
        let update = server.update(&json!({ "htp2": true })).expect_ok();
        assert_contains(&update, &json!({ "ok": true, "ignored_fields": ["htp2"] }));
        let calls = [
            ("POST", "/api/sites/10/disable"),
            ("POST", "/api/sites/10/enable"),
            ("DELETE", "/api/sites/12"),
        ];
        for (method, path) in calls {
            let status = server.api(method, path, None).status;
            assert!((200..300).contains(&status), "seed {seed} {method} {path}: {status}");
        }
        server.push_now();
        assert_eq!(server.served_leaf("a.example"), Some(cert.fingerprint()), "seed {seed}");
        server.control_post("/packages/1", &json!({ "traffic_used": 9999 })).expect_ok();
        server.api("POST", "/api/sites/10/enable", None);
        assert_eq!(server.served_leaf("a.example"), None);
    }
}

/// Seed 0 is the default.
#[test]
fn seeds_are_reproducible() {
    let drawn =
        |args: &[&str]| Server::start_process(args).control("GET", "/quirks").expect_ok()["drawn"].clone();
    assert_eq!(drawn(&["--quirks", "7"]), drawn(&["--quirks", "7"]));
    assert_ne!(drawn(&["--quirks", "7"]), drawn(&["--quirks", "8"]));
    assert_eq!(drawn(&["--quirks", "0"]), drawn(&[]));
}

/// `WRITE_QUIRKS=1 cargo test -p edgecert-sandbox quirks` rewrites `QUIRKS.md`.
#[test]
fn quirks_table_is_current() {
    let table = Server::start().control("GET", "/quirks").expect_ok()["table"].clone();
    let mut page = String::from(
        "# Quirks\n\n\
         What `edge-api.md` leaves open, with the number of the section, and the variants that the sandbox implements.\n\
         `--quirks SEED` draws one variant of each row; seed 0 takes the first of each row.\n\n\
         | left open | variants |\n|---|---|\n",
    );
    for row in table.as_array().unwrap() {
        let variants = row["variants"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
        let variants = variants.collect::<Vec<_>>().join(" · ");
        writeln!(page, "| {} | {variants} |", row["open"].as_str().unwrap()).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/QUIRKS.md");
    if option_env!("WRITE_QUIRKS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, page, "set WRITE_QUIRKS=1 to rewrite {path}");
}
