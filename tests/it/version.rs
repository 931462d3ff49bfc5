//! The version: of the package, with the commit that a release was built from.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::harness::{edgecert, require};
use crate::tidy::root;

#[test]
fn version_is_of_package() {
    for arguments in [&["--version"][..], &["-V"], &["-v", "--version"]] {
        let output = edgecert().args(arguments).succeeds().stdout;
        let version = output.strip_prefix("edgecert ").unwrap().trim_end();
        // A debug build has no commit.
        let (number, commit) = version.split_once(' ').unwrap_or((version, "(0123456789ab)"));
        assert_eq!(number, env!("CARGO_PKG_VERSION"));
        let commit = commit.strip_prefix('(').and_then(|commit| commit.strip_suffix(')')).unwrap();
        let commit = commit.strip_suffix("-modified").unwrap_or(commit);
        assert!(commit.len() >= 12 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{output}");
    }
}

fn run(directory: &Path, program: impl AsRef<Path>, arguments: &[&str]) -> Output {
    let mut command = Command::new(program.as_ref());
    command.current_dir(directory).args(arguments);
    command.env("CARGO_PKG_VERSION", "1.2.3").env("OUT_DIR", directory.join("out"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn release_names_commit_of_checkout() {
    require("git", "git");
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path();
    let tree = top.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("Cargo.toml"), "").unwrap();
    let script = top.join("build");
    let source = root().join("src/build.rs");
    run(top, "rustc", &["--edition", "2024", "-o", script.to_str().unwrap(), source.to_str().unwrap()]);
    let version = |profile: &str| {
        let output = run(&tree, "env", &[&format!("PROFILE={profile}"), script.to_str().unwrap()]);
        let output = String::from_utf8(output.stdout).unwrap();
        let mut lines =
            output.lines().filter_map(|line| line.strip_prefix("cargo:rustc-env=EDGECERT_VERSION="));
        lines.next().unwrap().to_owned()
    };
    let git = |directory: &Path, arguments: &[&str]| {
        run(directory, "git", &[&["-c", "user.name=a", "-c", "user.email=a@a.example"], arguments].concat())
    };
    let commit = |directory: &Path| {
        git(directory, &["add", "."]);
        git(directory, &["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        let output = git(directory, &["rev-parse", "--short=12", "HEAD"]);
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };

    assert_eq!(version("release"), "1.2.3", "no checkout");
    git(top, &["init", "--quiet"]);
    commit(top);
    assert_eq!(version("release"), "1.2.3", "a source tree that another repository contains");

    git(&tree, &["init", "--quiet"]);
    assert_eq!(version("release"), "1.2.3", "nothing committed");
    let first = commit(&tree);
    assert_eq!(version("release"), format!("1.2.3 ({first})"));
    assert_eq!(version("debug"), "1.2.3");
    fs::write(tree.join("Cargo.toml"), "[package]\n").unwrap();
    assert_eq!(version("release"), format!("1.2.3 ({first}-modified)"));
    let second = commit(&tree);
    assert_eq!(version("release"), format!("1.2.3 ({second})"));
}
