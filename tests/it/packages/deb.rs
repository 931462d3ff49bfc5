//! The Debian package: lintian, and its life in a clean Debian 12 with certbot.

use std::os::unix::process::parent_id;
use std::process::Command;

use crate::clients::Pebble;
use crate::harness::{cannot_run, require, require_root, sandbox};
use crate::readme::root;

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

#[test]
fn deb_is_used_upgraded_and_purged() {
    // A user who is root in a namespace only can neither make device files nor mount everything.
    require_root();
    if !output("cat", &["/proc/self/uid_map"]).split_whitespace().eq(["0", "0", "4294967295"]) {
        cannot_run("it makes a root directory, which needs root");
    }
    require("mmdebstrap", "mmdebstrap");
    let (service, pebble) = (sandbox(&["a.example"]), Pebble::start());
    let endpoints = service.endpoints();

    // Debian's packages come from the network. `tests/isolated` hides it from this process, but not from its parent.
    let namespaces = "exec 9<\"/proc/$0/ns/net\"; exec setpriv --pdeathsig KILL unshare --mount \
        --propagation private --mount-proc --pid --fork --kill-child bash \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", namespaces]).arg(parent_id().to_string());
    command.arg(root().join("tests/it/packages/lifecycle.sh")).arg(package(".deb"));
    command.arg(pebble.directory()).arg(pebble.ca_file());
    command.args([&endpoints.api, &endpoints.api_key, &endpoints.edge]);
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    if !log.contains("begun\n") {
        cannot_run(&format!("no root directory: {}", messages.lines().last().unwrap_or_default()));
    }
    assert!(output.status.success() && log.ends_with("complete\n"), "{}\n{messages}{log}", output.status);
    assert!(log.contains("* served    a.example"), "{log}");
}
