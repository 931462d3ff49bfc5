//! The packages of `.ci/release`: their content, and that they work where they are installed.

mod configuration;
mod deb;
mod deb_systemd;
mod image;
mod rpm;
mod shipped_readme;
mod static_binary;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{cannot_run, env_var};

/// The file of the release whose name ends like this.
fn package(end: &str) -> PathBuf {
    let Some(directory) = env_var("EDGECERT_TEST_DIST") else {
        cannot_run("EDGECERT_TEST_DIST names no release; tests/run makes one");
    };
    let files = Path::new(&directory).read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut found = files.filter(|path| path.to_str().unwrap().ends_with(end));
    let Some(file) = found.next() else {
        cannot_run(&format!("the release lacks a file *{end}: .ci/release says why"));
    };
    assert_eq!(found.next(), None, "two files end with {end}");
    file
}

/// The standard output of a program that must succeed.
#[track_caller]
fn output(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C.UTF-8");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{errors}{text}", output.status);
    text
}

/// The paths that every package installs, apart from the manual's pages.
const INSTALLED: [&str; 9] = [
    "/etc/edgecert/config.toml",
    "/usr/bin/edgecert",
    "/usr/lib/systemd/system/edgecert-sync.service",
    "/usr/lib/systemd/system/edgecert-sync.timer",
    "/usr/share/bash-completion/completions/edgecert",
    "/usr/share/edgecert/README.md",
    "/usr/share/edgecert/hooks/README.md",
    "/usr/share/edgecert/hooks/certbot/edgecert",
    "/usr/share/fish/vendor_completions.d/edgecert.fish",
];

/// Names of the software in the binaries, one for each kind of licence text.
pub(super) fn assert_is_notices(text: &str) {
    for wanted in ["\nreqwest 0.", "\nring 0.", "\nGNU C Library\n", "\nhickory-resolver 0."] {
        assert!(text.contains(wanted), "{wanted:?} is missing");
    }
    let machine = [env!("HOME"), env!("CARGO_MANIFEST_DIR")];
    assert!(machine.iter().all(|path| !text.contains(path)), "paths of this machine");
}

/// Fails unless a package with these paths contains what every package does.
#[track_caller]
fn assert_complete(paths: &[String]) {
    for path in INSTALLED {
        assert!(paths.iter().any(|found| found == path), "{path} is missing: {paths:?}");
    }
    let is_page = |name: &str| paths.iter().any(|path| path == &format!("/usr/share/man/{name}.gz"));
    for page in ["man1/edgecert.1", "man1/edgecert-sync.1", "man5/edgecert.toml.5"] {
        assert!(is_page(page), "{page} is missing: {paths:?}");
    }
}
