//! Tests that cannot run on this host, and output that the test harness does not capture.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use super::env_var;

/// The bit of the capability `CAP_SYS_PTRACE`.
const SYS_PTRACE: u64 = 1 << 19;

/// Where Debian packages install programs.
const DIRECTORIES: [&str; 4] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];

/// Debian's Python, which has the modules of Debian packages.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// The system's configuration file of edgecert. A test that could see it would depend on it.
const SYSTEM_CONFIGURATION: &str = "/etc/edgecert/config.toml";

/// Prints a line to standard error. The test harness captures `eprintln!`, but not this.
pub(crate) fn print_uncaptured(line: &str) {
    io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Adds a test to the skipped ones in the summary of `tests/run`; under plain `cargo test`, prints it. The test must
/// return afterwards.
pub(crate) fn skip(test: &str, reason: &str) {
    let reason = reason.trim().replace('\n', " ");
    if let Some(file) = env_var("EDGECERT_TEST_SKIPS") {
        let mut file = OpenOptions::new().append(true).open(file).unwrap();
        file.write_all(format!("{test}\t{reason}\n").as_bytes()).unwrap();
    } else {
        print_uncaptured(&format!("skipped: {test}: {reason}"));
    }
}

/// Ends the test because of what this host lacks. Under `cargo test` it fails; `tests/progress`, which reads the
/// output for `tests/run`, knows the message and counts the test as skipped.
#[track_caller]
pub(crate) fn cannot_run(reason: &str) -> ! {
    panic!("cannot run here: {}", reason.trim().replace('\n', "; "))
}

/// Ends the test unless a program is installed.
#[track_caller]
pub(crate) fn require(program: &str, package: &str) {
    if !DIRECTORIES.iter().any(|directory| Path::new(directory).join(program).is_file()) {
        cannot_run(&format!("{program} is not installed (Debian package {package})"));
    }
}

/// Ends the test unless Debian's Python has a module.
#[track_caller]
pub(crate) fn require_python_module(module: &str, package: &str) {
    let import = Command::new(PYTHON).args(["-c", &format!("import {module}")]).env_clear().output();
    if !import.is_ok_and(|output| output.status.success()) {
        cannot_run(&format!("Python's {module} is not installed (Debian package {package})"));
    }
}

/// Ends the test unless a program can trace the hook, which makes its memory unreadable for other processes.
#[track_caller]
pub(crate) fn require_tracer(program: &str) {
    require(program, program);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    if u64::from_str_radix(effective, 16).unwrap() & SYS_PTRACE == 0 {
        cannot_run(&format!("{program} may not trace the hook: {}", why_not_isolated().unwrap_or_default()));
    }
}

/// Ends the test if edgecert runs no `on_failure` program, because the directories above belong to neither root nor
/// this user. In namespaces of a user other than root, root is not known.
#[track_caller]
pub(crate) fn require_trusted_root() {
    let [owner, user] = ["/", "/proc/self"].map(|path| fs::metadata(path).unwrap().uid());
    if owner != 0 && owner != user {
        cannot_run("in this user's namespaces, / does not belong to root");
    }
}

/// Ends the test unless it runs as root, if only in a namespace: it expects the remedies that root gets.
#[track_caller]
pub(crate) fn require_root() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        cannot_run("it needs root, if only in a namespace");
    }
}

/// Ends the test if a run with these arguments could see the configuration, hooks or timers of the host.
#[track_caller]
pub(crate) fn require_isolation(arguments: impl Iterator<Item = impl AsRef<str>>) {
    let Some(reason) = why_not_isolated() else { return };
    if Path::new(SYSTEM_CONFIGURATION).exists() {
        cannot_run(&format!("{SYSTEM_CONFIGURATION} of this host is visible: {reason}"));
    }
    let arguments: Vec<String> = arguments.map(|argument| argument.as_ref().to_owned()).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if has("doctor") && !has("--root") {
        cannot_run(&format!("the hooks and timers of this host are visible: {reason}"));
    }
}

/// Why `tests/isolated` could not hide the host from this process.
fn why_not_isolated() -> Option<String> {
    let isolated =
        env_var("EDGECERT_TEST_ISOLATED").unwrap_or_else(|| "not started by tests/isolated".into());
    Some(isolated.to_string_lossy().into_owned()).filter(|reason| reason != "yes")
}
