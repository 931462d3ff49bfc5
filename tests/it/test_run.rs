//! `tests/run` and its parts, with stubs of cargo, apt-get and other programs that print what a case needs.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::harness::{cannot_run, edgecert, require, require_tracer, sandbox, step};
use crate::tidy::{read, root};

const PASSED: &str = "     Running tests/it/main.rs (it)\n\nrunning 3 tests\ntest deploy::a ... ok\ntest deploy::b ... ok\n\
    test disk::c ... ok\n\ntest result: ok. 3 passed; 0 failed; 0 ignored\n\n";

const UNITS_PASSED: &str = "     Running unittests src/lib.rs (edgecert)\n\nrunning 1 test\ntest edge::d ... ok\n\n\
    test result: ok. 1 passed; 0 failed; 0 ignored\n\n";

/// A program of which one test did not pass, with this panic message.
fn one_not_passed(message: &str) -> String {
    format!(
        "     Running tests/it/main.rs (it)\n\nrunning 3 tests\ntest deploy::a ... ok\ntest deploy::b ... FAILED\n\
         test disk::c ... ok\n\nfailures:\n\n---- deploy::b stdout ----\n\n\
         thread 'deploy::b' (7) panicked at x.rs:1:\n{message}\n\n\nfailures:\n    deploy::b\n\n\
         test result: FAILED. 2 passed; 1 failed; 0 ignored\n\n\
         error: test failed, to rerun pass `-p edgecert --test it`\n"
    )
}

/// A directory of programs that come first in `PATH`.
struct Stubs(TempDir);

impl Stubs {
    /// A cargo that lists these tests, runs one unit test, prints the output of others, exits as if one was skipped, and
    /// notes how it was called; all Debian packages but those missing; and an apt-get that fails.
    fn new(list: &str, output: &str, missing: &[&str]) -> Self {
        let stubs = Self(TempDir::new().unwrap());
        fs::write(stubs.path("list"), list).unwrap();
        fs::write(stubs.path("output"), output).unwrap();
        fs::write(stubs.path("units"), UNITS_PASSED).unwrap();
        let full = read("tests/full");
        let packages = full.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
        let installed = packages.filter(|package| !missing.contains(package));
        let installed: Vec<String> = installed.map(|package| format!("installed {package}\n")).collect();
        fs::write(stubs.path("installed"), installed.concat()).unwrap();
        let directory = stubs.0.path().display();
        let cargo = format!(
            "echo \"$*\" >> {directory}/calls\n\
             case \"$*\" in *--list*) cat {directory}/list ;;\n\
             *--lib*--no-fail-fast*) cat {directory}/units; exit 101 ;;\n\
             *--no-fail-fast*) cat {directory}/output; exit 101 ;; esac"
        );
        stubs.add("cargo", &cargo);
        stubs.add("cc", "");
        stubs.add("dpkg-query", &format!("cat {directory}/installed"));
        stubs.add("sudo", "shift; exec \"$@\"");
        let apt = format!("echo noise; echo \"$*\" >> {directory}/apt; echo E: no network >&2; exit 1");
        stubs.add("apt-get", &apt);
        stubs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn add(&self, name: &str, script: &str) {
        // In a process of its own: a child of another thread may inherit a file that is open here, and the system runs no
        // program that is open for writing.
        let mut install = Command::new("install");
        install.args(["-m", "755", "/dev/stdin"]).arg(self.path(name)).stdin(Stdio::piped());
        let mut install = install.spawn().unwrap();
        write!(install.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
        assert!(install.wait().unwrap().success());
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", self.0.path().display()));
        command.env("HOME", self.0.path()).env("EDGECERT_TEST_DIST", "/dist").current_dir(root());
        command
    }

    /// Runs `tests/run` as a user other than root.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let user = ["--user", "--", "tests/run"];
        let probe = Command::new("unshare").args(["--user", "true"]).output().unwrap();
        if !probe.status.success() {
            cannot_run(&String::from_utf8_lossy(&probe.stderr));
        }
        text(&self.command("unshare").args(user).args(arguments).output().unwrap())
    }
}

/// Exit code, and standard output followed by standard error.
fn text(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap())
}

/// Exit code and output of `tests/summary` after this output of `cargo test`.
fn summary(output: &str, strict: &str) -> (Option<i32>, String) {
    let stubs = Stubs::new("", output, &[]);
    let mut command = stubs.command("tests/summary");
    command.stdin(fs::File::open(stubs.path("output")).unwrap()).env("EDGECERT_TEST_STRICT", strict);
    text(&command.output().unwrap())
}

#[test]
fn summary_counts_each_test_once() {
    let missing = "cannot run here: lego is not installed (Debian package lego)";
    let not_found = format!("{missing}: Os {{ code: 2, kind: NotFound, message: \"No such file\" }}");
    let denied = not_found.replace("NotFound", "PermissionDenied");
    let lacks = "cannot run here: the release lacks a file *.deb";
    let crashed = "     Running tests/it/main.rs (it)\n\nrunning 3 tests\ntest deploy::a ... ok\n";
    for (output, strict, code, summary_line) in [
        (PASSED, "", 0, "4 passed, 0 failed, 0 skipped"),
        (&one_not_passed("left != right"), "", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed("left != right\ncannot run here: x"), "", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed(missing), "", 0, "3 passed, 0 failed, 1 skipped"),
        (&one_not_passed(&not_found), "", 0, "3 passed, 0 failed, 1 skipped"),
        (&one_not_passed(&denied), "", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed(lacks), "", 0, "3 passed, 0 failed, 1 skipped"),
        (&one_not_passed(missing), "1", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed(lacks), "1", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed("cannot run here: no mounts"), "1", 0, "3 passed, 0 failed, 1 skipped"),
        (crashed, "", 1, "1 passed, 1 failed, 0 skipped"),
    ] {
        let (exit_code, shown) = summary(&format!("{output}{UNITS_PASSED}"), strict);
        assert_eq!((exit_code, shown.lines().last()), (Some(code), Some(summary_line)), "{shown:?}");
    }
    for (output, summary_line) in [
        ("error: could not compile `edgecert` (lib)\n".to_owned(), "0 passed, 1 failed, 0 skipped"),
        ("error: no space left\n".to_owned(), "0 passed, 1 failed, 0 skipped"),
        (
            format!("{UNITS_PASSED}error: could not compile `edgecert` (test \"it\")\n"),
            "1 passed, 1 failed, 0 skipped",
        ),
    ] {
        let (exit_code, shown) = summary(&output, "");
        assert_eq!((exit_code, shown.lines().last()), (Some(1), Some(summary_line)), "{shown:?}");
    }
}

#[test]
fn failures_and_skips_come_last() {
    let missing = one_not_passed("cannot run here: lego is not installed (Debian package lego)");
    let (_, shown) = summary(&(missing + UNITS_PASSED), "");
    assert!(shown.contains("\ntest deploy::b ... did not pass\n"), "{shown:?}");
    assert!(!shown.contains("panicked"), "{shown:?}");
    let end = "\nskipped: lego is not installed (Debian package lego)\n    deploy::b\n3 passed, 0 failed, 1 skipped\n";
    assert!(shown.ends_with(end), "{shown:?}");
    let (_, shown) = summary(&(one_not_passed("left != right") + UNITS_PASSED), "");
    assert!(shown.contains("\n---- deploy::b ----\n") && shown.contains("\nleft != right\n"), "{shown:?}");
    assert!(shown.ends_with("\nfailed: deploy::b\n3 passed, 1 failed, 0 skipped\n"), "{shown:?}");
}

/// `tests/isolated` ends a program that takes too long.
#[test]
fn test_that_does_not_end_is_named() {
    let running = "     Running tests/it/main.rs (it)\n\nrunning 2 tests\n\
        test deploy::a has been running for over 60 seconds\ntest disk::c has been running for over 60 seconds\n\
        test deploy::a ... ok\n";
    let (code, shown) = summary(&(running.to_owned() + UNITS_PASSED), "");
    let end = "\nfailed: disk::c, which did not end\nfailed: a test program, which ended without a result\n1 passed, 2 failed, 0 skipped\n";
    assert!(code == Some(1) && shown.ends_with(end), "{shown:?}");
}

#[test]
fn quick_profile_installs_nothing() {
    let stubs = Stubs::new("", PASSED, &["lego"]);
    let (code, shown) = stubs.run(&[]);
    assert_eq!(code, Some(0), "{shown:?}");
    for part in ["tests/run --all runs: clients::caddy:: ", " kills:: "] {
        assert!(shown.contains(part), "{part}: {shown:?}");
    }
    assert!(shown.ends_with("\n4 passed, 0 failed, 0 skipped\n"), "{shown:?}");
    let calls = stubs.read("calls");
    assert!(calls.contains(" --skip=kills:: "), "{calls}");
    assert!(!calls.contains("--skip=*") && !calls.contains("--skip=#"), "{calls}");
    assert_eq!(stubs.read("apt"), "");
}

#[test]
fn full_profile_installs_what_is_missing() {
    let missing = one_not_passed("cannot run here: lego is not installed (Debian package lego)");
    let stubs = Stubs::new("", &missing, &["lego", "zsh"]);
    let pypi = ".cache/edgecert/pypi/certbot==5.8.0+kubernetes-validate==1.37.0+schemathesis==4.32.5";
    fs::create_dir_all(stubs.path(pypi)).unwrap();
    let (code, shown) = stubs.run(&["--all"]);
    assert_eq!((code, shown.contains("noise")), (Some(0), false), "{shown:?}");
    assert!(shown.contains("installs these Debian packages: lego zsh\n"), "{shown:?}");
    for package in ["lego", "zsh"] {
        let line = format!("tests/run: cannot install {package}: E: no network\n");
        assert!(shown.contains(&line), "{shown:?}");
    }
    assert!(shown.ends_with("\n3 passed, 0 failed, 1 skipped\n"), "{shown:?}");
    assert!(!stubs.read("calls").contains("--skip"));
}

#[test]
fn selected_tests_need_fewer_packages() {
    for (test, packages) in [
        ("clients::lego::x", ": iproute2 lego pebble\n"),
        ("system_log::x", ": iproute2 systemd\n"),
        ("deploy::x", ": iproute2\n"),
    ] {
        let missing = ["iproute2", "lego", "pebble", "systemd", "zsh"];
        let stubs = Stubs::new(&format!("{test}: test\n\n1 test, 0 benchmarks\n"), PASSED, &missing);
        let (_, shown) = stubs.run(&["x"]);
        assert!(shown.contains(&format!("installs these Debian packages{packages}")), "{test}: {shown:?}");
    }
}

#[test]
fn filter_without_tests_is_an_error() {
    let (code, shown) = Stubs::new("", "", &[]).run(&["no_such_test"]);
    assert_eq!(code, Some(1));
    assert!(shown.ends_with("error: no test matches no_such_test\n"), "{shown:?}");
}

#[test]
fn what_is_missing_is_reported() {
    let stubs = Stubs::new("", "", &[]);

    step("missing_compiler_is_named");
    let (code, shown) = text(&stubs.command("tests/run").env("CC", "no-such-compiler").output().unwrap());
    assert_eq!(code, Some(1), "{shown:?}");
    assert!(shown.contains("error: no-such-compiler is not installed: "), "{shown:?}");

    step("refused_namespaces_are_reported");
    stubs.add("unshare", "echo unshare: Operation not permitted >&2; exit 1");
    let (code, shown) = text(&isolated(&stubs, "echo \"$EDGECERT_TEST_ISOLATED\"").output().unwrap());
    assert_eq!((code, shown.as_str()), (Some(0), "unshare: Operation not permitted\n"));
    // A test that needs them says so, which `tests/summary` counts as skipped.
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "proxy::malformed_proxy_is_exit_78"]);
    let (code, shown) = text(&test.env("EDGECERT_TEST_ISOLATED", "refused").output().unwrap());
    let reason = "cannot run here: the hooks of this host are visible: refused\n";
    assert!(code == Some(101) && shown.contains(reason), "{shown:?}");
}

/// A program in a directory `deps`, where cargo puts test programs, that runs this script.
fn isolated(stubs: &Stubs, script: &str) -> Command {
    fs::create_dir(stubs.path("deps")).unwrap();
    stubs.add("deps/test", script);
    let mut command = stubs.command("tests/isolated");
    command.arg(stubs.path("deps/test"));
    command
}

#[test]
fn tests_see_no_variables_of_the_caller() {
    const NAMES: [&str; 5] =
        ["EDGECERT_LIMBO", "EDGECERT_TEST_DIST", "EDGECERT_TEST_ISOLATED", "HOME", "PATH"];
    let stubs = Stubs::new("", "", &[]);
    let mut command = isolated(&stubs, "env");
    command.envs(["http_proxy", "EDGECERT_BASE_URL", "CERT_PATH", "SSL_CERT_FILE"].map(|name| (name, "x")));
    command.env("SHELLOPTS", "braceexpand:hashall");
    let (code, shown) = text(&command.env("EDGECERT_LIMBO", "/data").output().unwrap());
    assert_eq!(code, Some(0), "{shown:?}");
    let names = shown.lines().filter_map(|line| Some(line.split_once('=')?.0));
    let mut names: Vec<&str> = names.filter(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name)).collect();
    names.sort_unstable();
    assert_eq!(names, NAMES);
}

/// What `doctor` may read of the host's `/etc` besides what `tests/isolated` hides.
const VISIBLE: &str = "group host.conf hosts ld.so. nsswitch.conf passwd resolv.conf gai.conf";

#[test]
fn doctor_sees_nothing_of_the_host() {
    require_tracer("strace");
    let (service, directory) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    let trace = directory.path().join("trace");
    let hook = edgecert().against(&service).without_env("EDGECERT_STATE_DIR").args(["doctor"]);
    hook.under(&["strace", "-f", "-qq", "-e", "trace=%file", "-o", trace.to_str().unwrap()]).run();
    let trace = fs::read_to_string(trace).unwrap();
    let paths = trace.lines().filter_map(|line| line.split('"').nth(1));
    let of_the_host = paths
        .filter(|path| *path != "/var/lib")
        .filter(|path| ["/etc/", "/var/", "/run/"].iter().any(|start| path.starts_with(start)));
    let mut count = 0;
    let is_visible = |path: &&str| {
        let name = path.strip_prefix("/etc/");
        name.is_some_and(|name| VISIBLE.split(' ').any(|start| name.starts_with(start)))
    };
    for path in of_the_host.filter(|path| !is_visible(path)) {
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(_) => fs::read(path).map_or(true, |bytes| bytes.is_empty()),
        };
        assert!(is_empty, "{path} is not hidden by tests/isolated");
        count += 1;
    }
    assert!(count > 5, "{trace}");
}

#[test]
fn shell_scripts_pass_shellcheck() {
    let mut git = Command::new("git");
    git.args(["grep", "-lE", "^#!.*[ /](ba)?sh$", "--", ".ci", "hooks", "tests", ":!*.rs", ":!*.md"]);
    let listed = String::from_utf8(git.current_dir(root()).output().unwrap().stdout).unwrap();
    // acme.sh sources its hook, which needs no first line.
    let scripts: Vec<&str> = listed.lines().chain(["hooks/acme.sh/edgecert.sh"]).collect();
    assert!(scripts.len() > 25, "{scripts:?}");
    require("shellcheck", "shellcheck");
    let output = Command::new("shellcheck").args(scripts).current_dir(root()).output().unwrap();
    assert_eq!(text(&output), (Some(0), String::new()));
}
