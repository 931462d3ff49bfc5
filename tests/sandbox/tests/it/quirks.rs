//! Quirks: whatever the seed, what the document does say holds; and the table that readers see is the program's.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::{Made, Program, world};

/// The list of certificates under whatever wrapper.
fn list(value: &Value) -> Vec<Value> {
    let wrapped = || value.as_object().unwrap().values().find_map(Value::as_array).unwrap();
    value.as_array().unwrap_or_else(wrapped).clone()
}

#[test]
fn the_document_holds_under_every_seed() {
    for seed in 0..50 {
        let program = Program::with(&world(), &["--quirks", &seed.to_string()]);
        let made = Made::for_names(&["a.example", "b.example"]);
        let reply = program.upload("a.example", &made).ok();
        assert_eq!(
            (&reply["ok"], &reply["created"], &reply["id"]),
            (&json!(true), &json!(true), &json!("1001")),
            "seed {seed}"
        );
        assert_eq!(reply["bound_sites"].as_array().unwrap().len(), 2);
        assert!(reply["not_after"].as_str().unwrap().starts_with("2099-01-01T0"));
        assert_eq!(program.upload("a.example", &made).ok()["created"], false);
        let certs = list(&program.get("/api/certs"));
        assert_eq!(certs.iter().map(|cert| cert["id"].clone()).collect::<Vec<_>>(), [5, 1001]);
        assert!(certs[1]["domain"].as_str().unwrap().contains("a.example"));
        assert_eq!(certs[0]["type"], "lets");
        let site = program.site(10);
        let site = site.get("site").unwrap_or(&site);
        assert_eq!(
            (&site["id"], &site["cert_id"], &site["domain"]),
            (&json!(10), &json!(1001), &json!("a.example"))
        );
        assert_eq!(program.api("GET", "/api/sites/20", None).status, 404);
        assert_eq!(program.api_as("wrong", "GET", "/api/certs", None).status, 401);
        assert_eq!(program.upload("a.example", &Made::expired(&["a.example"])).status, 400);
        assert_eq!(program.post("/api/sites/10/update", &json!({ "cert_id": 7 })).status, 403);
        let update = program.post("/api/sites/10/update", &json!({ "htp2": true })).ok();
        assert_eq!((&update["ok"], &update["ignored_fields"]), (&json!(true), &json!(["htp2"])));
        for call in
            [("POST", "/api/sites/10/disable"), ("POST", "/api/sites/10/enable"), ("DELETE", "/api/sites/12")]
        {
            let status = program.api(call.0, call.1, None).status;
            assert!((200..300).contains(&status), "seed {seed} {call:?}: {status}");
        }
        program.push();
        assert_eq!(program.served("a.example"), Some(made.fingerprint()), "seed {seed}");
        program.control("POST", "/packages/1", Some(&json!({ "traffic_used": 9999 }))).ok();
        program.api("POST", "/api/sites/10/enable", None);
        assert_eq!(program.served("a.example"), None);
    }
}

#[test]
fn a_seed_draws_the_same_every_time_and_seed_0_is_plain() {
    let drawn = |seed: &str| {
        Program::with(&world(), &["--quirks", seed]).control("GET", "/quirks", None).ok()["drawn"].clone()
    };
    assert_eq!(drawn("7"), drawn("7"));
    assert_ne!(drawn("7"), drawn("8"));
    assert_eq!(drawn("0"), Program::start().control("GET", "/quirks", None).ok()["drawn"]);
}

/// `QUIRKS.md` is written from the program: `WRITE_QUIRKS=1 cargo test -p edgecert-sandbox quirks` renews it.
#[test]
fn the_documented_table_is_the_programs() {
    let table = Program::start().control("GET", "/quirks", None).ok()["table"].clone();
    let mut page = String::from(
        "# What `edge-api.md` leaves open, and how the sandbox varies it\n\n\
         `--quirks SEED` draws one variant of each row; seed 0 takes the first of every row.\n\n\
         | open | variants |\n|---|---|\n",
    );
    for row in table.as_array().unwrap() {
        let variants: Vec<&str> =
            row["variants"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        writeln!(page, "| {} | {} |", row["open"].as_str().unwrap(), variants.join(" · ")).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/QUIRKS.md");
    if option_env!("WRITE_QUIRKS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "WRITE_QUIRKS=1 renews {path}");
}
