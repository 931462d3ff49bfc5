//! `edgecert-sandbox rehearse`, with the real hook and with hooks that do not do their work.
//!
//! The real one is `EDGECERT_BIN`, else the `edgecert` that the workspace's build leaves beside the sandbox.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use edgecert_sandbox::Authority;

fn sandbox() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_edgecert-sandbox"))
}

#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
fn hook() -> PathBuf {
    let beside = || sandbox().with_file_name("edgecert");
    let hook = std::env::var_os("EDGECERT_BIN").map_or_else(beside, PathBuf::from);
    assert!(hook.is_file(), "the hook is needed at {}: cargo build, or set EDGECERT_BIN", hook.display());
    hook
}

fn rehearse(hook: &Path, more: &[&str]) -> Output {
    Command::new(sandbox()).arg("rehearse").args(more).env_clear().env("EDGECERT_BIN", hook).output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// A hook of one shell script.
fn scripted(script: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hook");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    (dir, path)
}

#[test]
fn the_real_hook_plays_its_part() {
    let output = rehearse(&hook(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for told in [
        "1. the first certificate",
        "2. the renewal",
        "3. a service that stumbles",
        "4. a service that is down",
        "still the old leaf",
        "edgecert sync",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(said.ends_with("\nevery step did what it should\n") && !said.contains("NOT OK"), "{said}");
    assert!(!said.contains('\x1b'), "no colour without a terminal");
    assert!(!said.contains("sandbox-key") && !said.contains("PRIVATE KEY"), "{said}");
}

#[test]
fn a_lineage_of_ones_own_can_be_rehearsed() {
    let dir = tempfile::tempdir().unwrap();
    let issued = Authority::new("mine").unwrap().issue(&["mine.example"]).unwrap();
    std::fs::write(dir.path().join("fullchain.pem"), issued.fullchain()).unwrap();
    std::fs::write(dir.path().join("privkey.pem"), &issued.key).unwrap();
    let output = rehearse(&hook(), &["--lineage", dir.path().to_str().unwrap()]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("ok mine.example is bound to record 1001"), "{said}");
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 2, "nothing is written to it");
}

#[test]
fn a_hook_that_does_nothing_is_found_out() {
    for (script, told) in [
        ("exit 0", "NOT OK the service has one record; found: 0 records"),
        ("echo something; echo else >&2; exit 3", "NOT OK the hook exits 0; found: 3"),
        ("kill -9 $$", "NOT OK the hook exits 0; found: a signal"),
    ] {
        let (_dir, hook) = scripted(script);
        let output = rehearse(&hook, &[]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(told), "{said}");
        assert!(!said.contains("2. the renewal"), "the rest is left out: {said}");
        assert_eq!(script.contains("something"), said.contains("\n    something\n"), "{said}");
    }
}

/// The hook gets certbot's variables and a set-up, and nothing else of the caller's environment.
#[test]
fn the_hook_is_called_as_certbot_calls_it() {
    let (_dir, hook) = scripted(
        "echo \"argv $#\"; env | sort; readlink \"$RENEWED_LINEAGE/privkey.pem\"; stat -L -c %a \"$RENEWED_LINEAGE/privkey.pem\"; exit 1",
    );
    let said = said(&rehearse(&hook, &[]));
    let wanted = [
        "argv 0",
        "EDGECERT_API_KEY=",
        "EDGECERT_BASE_URL=https://127.0.0.1:",
        "RENEWED_DOMAINS=shop.example *.shop.example",
        "../../archive/shop.example/privkey1.pem",
        "600",
    ];
    for line in wanted {
        assert!(said.lines().any(|shown| shown.trim().starts_with(line)), "{line}: {said}");
    }
    assert!(!said.contains("EDGECERT_BIN="), "{said}");
}

#[test]
fn a_hook_that_is_not_there_is_named_with_what_builds_it() {
    let output = rehearse(Path::new("/nowhere/edgecert"), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(66), "{said}");
    let expected = "edgecert-sandbox: error: the hook is not at /nowhere/edgecert\nedgecert-sandbox: hint: build it with: cargo build --release; EDGECERT_BIN names one elsewhere\n";
    assert_eq!(said, expected);
}
