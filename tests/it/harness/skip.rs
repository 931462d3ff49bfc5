//! Tests that cannot run on this host, and output that the test harness does not capture.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::env_var;

/// The bit of the capability `CAP_SYS_PTRACE`.
const SYS_PTRACE: u64 = 1 << 19;

/// The tests of the full profile.
const FULL: &str = include_str!("../../full");

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

/// Ends the test because of what this host lacks. Under `cargo test` it fails; `tests/summary`, which reads the
/// output for `tests/run`, knows the message and counts the test as skipped.
#[track_caller]
pub(crate) fn cannot_run(reason: &str) -> ! {
    panic!("cannot run here: {}", reason.trim().replace('\n', "; "))
}

/// Ends the test unless a program is installed. Fails if a test of the quick profile needs it.
#[track_caller]
pub(crate) fn require(program: &str, package: &str) {
    assert_listed(package);
    if !DIRECTORIES.iter().any(|directory| Path::new(directory).join(program).is_file()) {
        cannot_run(&format!("{program} is not installed (Debian package {package})"));
    }
}

/// Asserts that `tests/full` lists this test, unless every test may use the package.
#[track_caller]
fn assert_listed(package: &str) {
    let thread = thread::current();
    // Other threads than that of the test have no name, or another.
    let Some(test) = thread.name().filter(|name| name.contains("::")) else { return };
    let is_listed = FULL.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|part| {
            if part == "*" { words.any(|word| word == package) } else { test.contains(part) }
        })
    });
    assert!(is_listed, "tests/full lists no line for {test}, which needs {package}");
}

/// Ends the test unless `tests/run` has installed a program from `PyPI`, and returns its path.
#[track_caller]
pub(crate) fn require_from_pypi(program: &str) -> PathBuf {
    let path = env_var("EDGECERT_TEST_PYPI").map(|directory| Path::new(&directory).join(program));
    let Some(path) = path.filter(|path| path.is_file()) else {
        cannot_run(&format!("{program} is not installed (PyPI)"));
    };
    path
}

/// Ends the test unless Debian's Python has a module.
#[track_caller]
pub(crate) fn require_python_module(module: &str, package: &str) {
    assert_listed(package);
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

/// Ends the test if a run with these arguments could see the configuration or hooks of the host.
#[track_caller]
pub(crate) fn require_isolation(arguments: impl Iterator<Item = impl AsRef<str>>) {
    let Some(reason) = why_not_isolated() else { return };
    if Path::new(SYSTEM_CONFIGURATION).exists() {
        cannot_run(&format!("{SYSTEM_CONFIGURATION} of this host is visible: {reason}"));
    }
    let arguments: Vec<String> = arguments.map(|argument| argument.as_ref().to_owned()).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if has("doctor") && !has("--root") {
        cannot_run(&format!("the hooks of this host are visible: {reason}"));
    }
}

/// Why `tests/isolated` could not hide the host from this process.
fn why_not_isolated() -> Option<String> {
    let isolated =
        env_var("EDGECERT_TEST_ISOLATED").unwrap_or_else(|| "not started by tests/isolated".into());
    Some(isolated.to_string_lossy().into_owned()).filter(|reason| reason != "yes")
}
