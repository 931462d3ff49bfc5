//! A property-based tester that knows nothing of edgecert tries the sandbox by its OpenAPI description: no
//! answer is a fault of the server, and none contradicts what `/openapi.json` promises.
//!
//! It needs the `PyPI` package schemathesis: `SCHEMATHESIS=$(tests/sandbox/install-schemathesis)`, or one in `PATH`.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use edgecert_sandbox::{Authority, Options, Sandbox};
use serde_json::json;

const NEEDED: &str = "the PyPI package schemathesis is needed: \
    SCHEMATHESIS=$(tests/sandbox/install-schemathesis)";

/// The program named by the environment when the test runs, else the one in `PATH`.
#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
fn program() -> String {
    std::env::var("SCHEMATHESIS").unwrap_or_else(|_| "schemathesis".to_owned())
}

/// Something to find for who guesses numbers.
fn inhabit(sandbox: &Sandbox) {
    let issued = Authority::new("test").unwrap().issue(&["a.example", "b.example"]).unwrap();
    for domain in ["a.example", "b.example"] {
        sandbox.add_site(domain);
        let body = json!({ "domain": domain, "cert_pem": issued.fullchain(), "key_pem": issued.key });
        ureq::post(format!("{}/api/certs/upload", sandbox.endpoints().api))
            .header("authorization", format!("Bearer {}", sandbox.endpoints().api_key))
            .send_json(body)
            .unwrap();
    }
}

/// That a certificate be one cannot be said in a schema, so acceptance of what fits the schema is not asked for.
#[track_caller]
fn holds(quirks: u64, examples: &str) {
    let sandbox = Sandbox::start(Options { quirks, ..Options::default() }).unwrap();
    inhabit(&sandbox);
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(program())
        .args(["run", &format!("{}/openapi.json", sandbox.endpoints().api)])
        .args(["--header", &format!("Authorization: Bearer {}", sandbox.endpoints().api_key)])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", examples])
        .args(["--exclude-checks", "positive_data_acceptance", "--generation-deterministic"])
        .args(["--no-color", "--warnings", "off"])
        .current_dir(home.path())
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; {NEEDED}", program()));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(sandbox.requests().len() > 100, "it tried:\n{said}");
    let failed =
        sandbox.requests().into_iter().find(|request| request.status.is_some_and(|status| status >= 500));
    assert!(failed.is_none(), "{failed:?}");
}

#[test]
fn no_answer_contradicts_the_description() {
    holds(0, "50");
}

/// Under other seeds the forms are open; faults of the server are not.
#[test]
fn no_seed_brings_a_fault_of_the_server() {
    for seed in [1, 2] {
        holds(seed, "10");
    }
}
