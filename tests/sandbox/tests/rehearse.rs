//! `edgecert-sandbox rehearse` with the real hook and with broken ones.
//!
//! The real hook is `EDGECERT_BIN`, or the `edgecert` that the workspace's build leaves beside the sandbox.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use edgecert_sandbox::Authority;

fn sandbox() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_edgecert-sandbox"))
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
fn hook() -> PathBuf {
    let beside = || sandbox().with_file_name("edgecert");
    let hook = std::env::var_os("EDGECERT_BIN").map_or_else(beside, PathBuf::from);
    assert!(hook.is_file(), "no hook at {}; run cargo build or set EDGECERT_BIN", hook.display());
    hook
}

fn rehearse(hook: &Path, args: &[&str]) -> Output {
    Command::new(sandbox()).arg("rehearse").args(args).env_clear().env("EDGECERT_BIN", hook).output().unwrap()
}

/// Standard output followed by standard error.
fn text(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

/// A hook that runs this shell script, and the directory that holds it.
fn script_hook(script: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hook");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    (dir, path)
}

#[test]
fn real_hook_passes_every_step() {
    let output = rehearse(&hook(), &[]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for expected in [
        "1. first certificate",
        "2. renewal",
        "3. unreliable service",
        "4. service outage",
        "still serves the old leaf",
        "edgecert sync",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.ends_with("\nall steps passed\n") && !text.contains("FAILED"), "{text}");
    assert!(!text.contains('\x1b'), "no colour without a terminal");
    assert!(!text.contains("sandbox-key") && !text.contains("PRIVATE KEY"), "{text}");
}

#[test]
fn own_lineage_can_be_rehearsed() {
    let dir = tempfile::tempdir().unwrap();
    let issued = Authority::new("mine").unwrap().issue_between(&["mine.example"], [0, 90]).unwrap();
    std::fs::write(dir.path().join("fullchain.pem"), issued.fullchain()).unwrap();
    std::fs::write(dir.path().join("privkey.pem"), &issued.key).unwrap();
    let output = rehearse(&hook(), &["--lineage", dir.path().to_str().unwrap()]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("ok mine.example is bound to record 1001"), "{text}");
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 2, "the lineage is not modified");
}

#[test]
fn broken_hooks_fail_the_rehearsal() {
    for (script, expected) in [
        ("exit 0", "FAILED the service has one record; found 0"),
        ("echo stdout; echo stderr >&2; exit 3", "FAILED the hook exits 0; found exit code 3"),
        ("kill -9 $$", "FAILED the hook exits 0; found a signal"),
    ] {
        let (_dir, hook) = script_hook(script);
        let output = rehearse(&hook, &[]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("2. renewal"), "the remaining steps are skipped: {text}");
        assert_eq!(script.contains("stdout"), text.contains("\n    stdout\n"), "{text}");
    }
}

/// The hook gets certbot's variables and its own settings, and nothing else of the caller's environment.
#[test]
fn hook_gets_certbots_environment() {
    let (_dir, hook) = script_hook(
        "echo \"argv $#\"; env | sort; readlink \"$RENEWED_LINEAGE/privkey.pem\"; stat -L -c %a \"$RENEWED_LINEAGE/privkey.pem\"; exit 1",
    );
    let text = text(&rehearse(&hook, &[]));
    let lines = [
        "argv 0",
        "EDGECERT_API_KEY=",
        "EDGECERT_BASE_URL=https://127.0.0.1:",
        "RENEWED_DOMAINS=shop.example *.shop.example",
        "../../archive/shop.example/privkey1.pem",
        "600",
    ];
    for line in lines {
        assert!(text.lines().any(|shown| shown.trim().starts_with(line)), "{line}: {text}");
    }
    assert!(!text.contains("EDGECERT_BIN="), "{text}");
}

#[test]
fn missing_hook_is_named() {
    let output = rehearse(Path::new("/nowhere/edgecert"), &[]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(66), "{text}");
    let expected = "edgecert-sandbox: error: no hook at /nowhere/edgecert\nedgecert-sandbox: hint: run `cargo build --workspace`, or set EDGECERT_BIN to the path of the hook\n";
    assert_eq!(text, expected);
}
