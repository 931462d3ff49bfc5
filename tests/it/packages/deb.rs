//! The Debian package: its content, and lintian.

use crate::harness::require;

use super::{assert_complete, output, package};

#[test]
fn deb_contains_every_file() {
    let file = package(".deb");
    let list = output("dpkg-deb", &["--contents", file.to_str().unwrap()]);
    let words = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let files = words.filter(|words| words[0].starts_with('-'));
    let paths: Vec<String> = files.map(|words| words[5].trim_start_matches('.').to_owned()).collect();
    assert_complete(&paths);
    for path in
        ["zsh/vendor-completions/_edgecert", "doc/edgecert/copyright", "doc/edgecert/THIRD-PARTY-NOTICES.gz"]
    {
        let path = format!("/usr/share/{path}");
        assert!(paths.contains(&path), "{path} is missing: {paths:?}");
    }
    let conffiles = output("dpkg-deb", &["--info", file.to_str().unwrap(), "conffiles"]);
    assert_eq!(conffiles.trim(), "/etc/edgecert/config.toml");
}

/// Each override in `.ci/packaging/debian/lintian-overrides` says why.
#[test]
fn lintian_finds_nothing() {
    require("lintian", "lintian");
    let file = package(".deb");
    let found = output("lintian", &["--allow-root", "--fail-on", "error,warning", file.to_str().unwrap()]);
    assert_eq!(found, "");
}
