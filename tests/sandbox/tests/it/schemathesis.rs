//! The sandbox against its own `/openapi.json`, tested by schemathesis.
//!
//! It needs the `PyPI` package schemathesis, which `tests/run NAME` installs for these tests, or one in `PATH`.

use std::path::PathBuf;
use std::process::Command;

use edgecert_sandbox::{Authority, Options, Sandbox};

#[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
fn schemathesis() -> PathBuf {
    std::env::var_os("EDGECERT_TEST_PYPI").map(PathBuf::from).unwrap_or_default().join("schemathesis")
}

/// Runs schemathesis against a sandbox with this seed; no check may fail and no response may be a 5xx.
///
/// `positive_data_acceptance` is excluded: the schema cannot express that a string is a certificate.
#[track_caller]
fn assert_conforms(quirks: u64, examples: &str) {
    let sandbox = Sandbox::start(Options { quirks, ..Options::default() }).unwrap();
    let issued = Authority::new("test").unwrap().issue(&["a.example", "b.example"]).unwrap();
    // So that guessed IDs exist.
    for domain in ["a.example", "b.example"] {
        sandbox.add_site(domain);
        sandbox.upload_as_other_client(domain, &issued.fullchain(), &issued.key);
    }
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(schemathesis())
        .args(["run", &format!("{}/openapi.json", sandbox.endpoints().api)])
        .args(["--header", &format!("Authorization: Bearer {}", sandbox.endpoints().api_key)])
        .args(["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", examples])
        .args(["--exclude-checks", "positive_data_acceptance", "--generation-deterministic"])
        .args(["--no-color", "--warnings", "off"])
        .current_dir(home.path())
        .output()
        .expect("cannot run here: schemathesis is not installed (PyPI)");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(sandbox.requests().len() > 100, "too few requests:\n{stdout}");
    let server_error =
        sandbox.requests().into_iter().find(|request| request.status.is_some_and(|status| status >= 500));
    assert!(server_error.is_none(), "{server_error:?}");
}

#[test]
fn responses_match_the_openapi_description() {
    assert_conforms(0, "50");
}

/// Seeds change the shape of responses, so only server errors count.
#[test]
fn no_seed_causes_a_server_error() {
    for seed in [1, 2] {
        assert_conforms(seed, "10");
    }
}
