//! `tests/run` and its parts, with stubs of cargo, apt-get and other programs that print what a case needs.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::harness::{cannot_run, edgecert, require, require_tracer, sandbox};
use crate::tidy::{read, root};

/// What `cargo test` prints with `--list` for two programs.
const LIST: &str = "deploy::a: test\ndeploy::b: test\ndisk::c: test\n\n3 tests, 0 benchmarks\n\
    edge::d: test\n\n1 test, 0 benchmarks\n";

const PASSED: &str = "running 3 tests\ntest deploy::a ... ok\ntest deploy::b ... ok\ntest disk::c ... ok\n\n\
    test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";

const SECOND_PASSED: &str =
    "running 1 test\ntest edge::d ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";

/// A program of which one test did not pass, with this panic message.
fn one_not_passed(message: &str) -> String {
    format!(
        "running 3 tests\ntest deploy::a ... ok\ntest deploy::b ... FAILED\ntest disk::c ... ok\n\nfailures:\n\n\
         ---- deploy::b stdout ----\n\nthread 'deploy::b' panicked at x.rs:1:\n{message}\n\n\nfailures:\n    deploy::b\n\n\
         test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\n\
         error: test failed, to rerun pass `-p edgecert --test it`\n"
    )
}

/// A directory of programs that come first in `PATH`.
struct Stubs(TempDir);

impl Stubs {
    /// A cargo that prints this list and this output of tests, a Rust that is new enough, and all Debian packages.
    fn new(list: &str, output: &str) -> Self {
        let stubs = Self(TempDir::new().unwrap());
        fs::write(stubs.path("list"), list).unwrap();
        fs::write(stubs.path("output"), output).unwrap();
        let cargo = format!(
            "case \"$*\" in\n--version) echo cargo 1.99.0 ;;\nmetadata*) echo '{{\"target_directory\":\"{0}/target\"}}' ;;\n\
             *--list*) cat {0}/list ;;\n*--no-fail-fast*) cat {0}/output; exit 101 ;;\nesac",
            stubs.0.path().display()
        );
        stubs.add("cargo", &cargo);
        stubs.add("rustc", "echo rustc 1.99.0");
        stubs.add("dpkg-query", "echo installed");
        stubs.add("sudo", "exit 1");
        stubs.add("apt-get", "exit 1");
        stubs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, name: &str, script: &str) {
        fs::write(self.path(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", format!("{}:/usr/bin:/bin", self.0.path().display()));
        command
            .env("HOME", self.0.path())
            .env("SCHEMATHESIS", "/bin/true")
            .env("EDGECERT_TEST_DIST", "/dist")
            // Otherwise they would be installed from PyPI.
            .env("EDGECERT_TEST_NEWEST_CERTBOT", "/bin/true")
            .env("EDGECERT_TEST_KUBERNETES_VALIDATE", "/bin/true")
            .current_dir(root());
        command
    }

    /// Runs `tests/run` as a user other than root.
    fn run(&self, arguments: &[&str], strict: &str) -> (Option<i32>, String) {
        let user = ["--user", "--", "tests/run"];
        let probe = Command::new("unshare").args(["--user", "true"]).output().unwrap();
        if !probe.status.success() {
            cannot_run(&String::from_utf8_lossy(&probe.stderr));
        }
        let mut command = self.command("unshare");
        text(&command.args(user).args(arguments).env("EDGECERT_TEST_STRICT", strict).output().unwrap())
    }
}

/// Exit code, and standard output followed by standard error.
fn text(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap())
}

/// Exit code and output of `tests/progress` after this output of `cargo test`.
fn progress(output: &str, skips: &str, strict: &str) -> (Option<i32>, String) {
    let stubs = Stubs::new(LIST, output);
    fs::write(stubs.path("skips"), skips).unwrap();
    let mut command = stubs.command("tests/progress");
    command.arg(stubs.path("list")).stdin(fs::File::open(stubs.path("output")).unwrap());
    command.env("EDGECERT_TEST_SKIPS", stubs.path("skips")).env("EDGECERT_TEST_STRICT", strict);
    text(&command.output().unwrap())
}

#[test]
fn summary_counts_each_test_once() {
    let missing = "cannot run here: lego is not installed (Debian package lego)";
    let not_found = format!("{missing}: Os {{ code: 2, kind: NotFound, message: \"No such file\" }}");
    let denied = not_found.replace("NotFound", "PermissionDenied");
    let (failed, skipped) = (one_not_passed("left != right"), one_not_passed(missing));
    let crashed = "running 3 tests\ntest deploy::a ... ok\n";
    let ignored = PASSED.replace("b ... ok", "b ... ignored, slow").replace("3 passed", "2 passed");
    for (output, skips, strict, code, summary) in [
        (PASSED, "", "", 0, "4 passed, 0 failed, 0 skipped"),
        (&failed, "", "", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed("left != right\ncannot run here: x"), "", "", 1, "3 passed, 1 failed, 0 skipped"),
        (&skipped, "", "", 0, "3 passed, 0 failed, 1 skipped"),
        (&one_not_passed(&not_found), "", "", 0, "3 passed, 0 failed, 1 skipped"),
        (&one_not_passed(&denied), "", "", 1, "3 passed, 1 failed, 0 skipped"),
        (&skipped, "disk::c\tno data\n", "", 0, "2 passed, 0 failed, 2 skipped"),
        (&skipped, "", "1", 1, "3 passed, 1 failed, 0 skipped"),
        (&one_not_passed("cannot run here: no mounts"), "", "1", 0, "3 passed, 0 failed, 1 skipped"),
        (
            &one_not_passed("cannot run here: the release lacks a file *.deb"),
            "",
            "1",
            1,
            "3 passed, 1 failed, 0 skipped",
        ),
        (
            &one_not_passed("cannot run here: the release lacks a file *.deb"),
            "",
            "",
            0,
            "3 passed, 0 failed, 1 skipped",
        ),
        (&ignored, "", "", 0, "3 passed, 0 failed, 1 skipped"),
        (crashed, "", "", 1, "1 passed, 1 failed, 0 skipped"),
        ("", "", "", 1, "1 passed, 1 failed, 0 skipped"),
    ] {
        let (exit_code, shown) = progress(&format!("{output}{SECOND_PASSED}"), skips, strict);
        assert_eq!((exit_code, shown.lines().last()), (Some(code), Some(summary)), "{shown:?}");
    }
}

#[test]
fn failures_and_skips_come_last() {
    let missing = one_not_passed("cannot run here: lego is not installed (Debian package lego)");
    let (_, shown) = progress(&(missing + SECOND_PASSED), "", "");
    let expected = "tests to run: 4\ndid not pass: deploy::b\n\
        skipped: lego is not installed (Debian package lego)\n    deploy::b\n3 passed, 0 failed, 1 skipped\n";
    assert_eq!(shown, expected);
    let (_, shown) = progress(&(one_not_passed("left != right") + SECOND_PASSED), "", "");
    let begins = "tests to run: 4\ndid not pass: deploy::b\n\n---- deploy::b ----\n";
    assert!(shown.starts_with(begins) && shown.contains("left != right"), "{shown:?}");
    assert!(shown.ends_with("\nfailed: deploy::b\n3 passed, 1 failed, 0 skipped\n"), "{shown:?}");
}

#[test]
fn progress_names_running_tests() {
    let stubs = Stubs::new(LIST, "");
    let mut command = stubs.command("tests/progress");
    command.arg(stubs.path("list")).env("EDGECERT_TEST_INTERVAL", "1").env("RUST_TEST_THREADS", "2");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"running 3 tests\ntest deploy::a ... ok\n").unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let line = stdout.by_ref().lines().map(Result::unwrap).find(|line| line.contains("1 of 4")).unwrap();
    assert!(line.contains(" s: 1 of 4 tests finished; running: "), "{line}");
    assert!(
        line.contains("deploy::b (") && line.contains("disk::c (") && !line.contains("edge::d"),
        "{line}"
    );
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(rest.ends_with("\n0 passed, 2 failed, 0 skipped\n"), "{rest:?}");
}

#[test]
fn missing_packages_need_no_root() {
    let output = one_not_passed("cannot run here: lego is not installed (Debian package lego)");
    let stubs = Stubs::new(LIST, &(output + SECOND_PASSED));
    stubs.add("dpkg-query", "case \"$*\" in *lego|*zsh) echo ;; *) echo installed ;; esac");
    let (code, shown) = stubs.run(&[], "");
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains(": lego zsh\n"), "{shown:?}");
    let command = "run:\n    apt-get install --no-install-recommends lego zsh\n";
    assert!(shown.contains(command), "{shown:?}");
    assert!(shown.contains("\n3 passed, 0 failed, 1 skipped\n"), "{shown:?}");
    let (code, shown) = stubs.run(&[], "1");
    assert_eq!(code, Some(1), "{shown:?}");
    assert!(shown.contains("\nfailed: deploy::b\n3 passed, 1 failed, 0 skipped\n"), "{shown:?}");
}

#[test]
fn packages_are_installed_quietly() {
    let stubs = Stubs::new(LIST, &format!("{PASSED}{SECOND_PASSED}"));
    stubs.add("dpkg-query", "case \"$*\" in *lego) echo ;; *) echo installed ;; esac");
    stubs.add("sudo", "shift; exec \"$@\"");
    let calls = stubs.path("calls");
    stubs.add("apt-get", &format!("echo noise\necho noise >&2\necho \"$*\" >> {}", calls.display()));
    let (code, shown) = stubs.run(&[], "");
    assert_eq!((code, shown.contains("noise")), (Some(0), false), "{shown:?}");
    let calls = fs::read_to_string(calls).unwrap();
    let last = "\nupdate -qq\ninstall -y -qq --no-install-recommends lego\n";
    assert!(calls.starts_with("install --print-uris ") && calls.ends_with(last), "{calls:?}");
}

#[test]
fn selected_tests_need_fewer_packages() {
    for (test, packages) in [
        ("clients::lego::x", ": bsdutils iproute2 lego openssl pebble\n"),
        ("cmd::doctor::schedule::calendar::x", ": bsdutils iproute2 openssl systemd\n"),
    ] {
        let stubs = Stubs::new(&format!("{test}: test\n\n1 test, 0 benchmarks\n"), SECOND_PASSED);
        stubs.add("dpkg-query", "case \"$*\" in *curl) echo installed ;; esac");
        let (_, shown) = stubs.run(&["x"], "");
        assert!(shown.contains(packages), "{test}: {shown:?}");
    }
}

#[test]
fn filter_without_tests_is_an_error() {
    let (code, shown) = Stubs::new("", "").run(&["no_such_test"], "");
    assert_eq!(code, Some(1));
    assert!(shown.ends_with("error: no test matches no_such_test\n"), "{shown:?}");
}

#[test]
fn missing_requirements_are_named() {
    let rust_version =
        read("Cargo.toml").lines().find_map(|line| line.strip_prefix("rust-version = ").map(str::to_owned));
    let rust_version = rust_version.unwrap().trim_matches('"').to_owned();
    let stubs = Stubs::new("", "");
    stubs.add("rustc", "echo rustc 1.63.0");
    stubs.add("df", "echo; echo x 9 9 100 9 /");
    let (code, shown) = text(&stubs.command("tests/run").env("CC", "no-such-compiler").output().unwrap());
    assert_eq!(code, Some(1), "{shown:?}");
    let errors: Vec<&str> = shown.lines().collect();
    let wanted = format!("error: rustc {rust_version} or later is needed, found 1.63.0: install Rust from ");
    assert!(errors[0].contains(&wanted), "{shown:?}");
    assert!(errors[1].contains("error: a C compiler is needed, found no no-such-compiler: "), "{shown:?}");
    assert!(errors[2].contains(" MB of disk are needed, found 100 MB in "), "{shown:?}");
    assert_eq!(errors.len(), 3, "{shown:?}");
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
    const NAMES: [&str; 8] = [
        "EDGECERT_LIMBO",
        "EDGECERT_TEST_DIST",
        "EDGECERT_TEST_ISOLATED",
        "EDGECERT_TEST_KUBERNETES_VALIDATE",
        "EDGECERT_TEST_NEWEST_CERTBOT",
        "HOME",
        "PATH",
        "SCHEMATHESIS",
    ];
    let stubs = Stubs::new("", "");
    let mut command = isolated(&stubs, "env");
    command.envs([
        ("SHELLOPTS", "braceexpand:hashall"),
        ("http_proxy", "x"),
        ("EDGECERT_BASE_URL", "x"),
        ("CERT_PATH", "x"),
        ("SSL_CERT_FILE", "x"),
    ]);
    let (code, shown) = text(&command.env("EDGECERT_LIMBO", "/data").output().unwrap());
    assert_eq!(code, Some(0), "{shown:?}");
    let names = shown.lines().filter_map(|line| Some(line.split_once('=')?.0));
    let mut names: Vec<&str> = names.filter(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name)).collect();
    names.sort_unstable();
    assert_eq!(names, NAMES);
}

#[test]
fn refused_namespaces_are_reported() {
    let stubs = Stubs::new("", "");
    stubs.add("unshare", "echo unshare: Operation not permitted >&2; exit 1");
    let (code, shown) = text(&isolated(&stubs, "echo \"$EDGECERT_TEST_ISOLATED\"").output().unwrap());
    assert_eq!((code, shown.as_str()), (Some(0), "unshare: Operation not permitted\n"));
    // A test that needs them says so, which `tests/progress` counts as skipped.
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "proxy::malformed_proxy_is_exit_78"]);
    let (code, shown) = text(&test.env("EDGECERT_TEST_ISOLATED", "refused").output().unwrap());
    let reason = "cannot run here: the hooks and timers of this host are visible: refused\n";
    assert!(code == Some(101) && shown.contains(reason), "{shown:?}");
}

/// What `doctor` may read of the host besides what `tests/isolated` hides.
const VISIBLE: [&str; 8] = [
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/gai.conf",
];

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
    for path in of_the_host.filter(|path| !VISIBLE.iter().any(|start| path.starts_with(start))) {
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(_) => fs::read(path).map_or(true, |bytes| bytes.is_empty()),
        };
        assert!(is_empty, "{path} is not hidden by tests/isolated");
        count += 1;
    }
    assert!(count > 10, "{trace}");
}

#[test]
fn shell_scripts_pass_shellcheck() {
    const SCRIPTS: [&str; 27] = [
        ".ci/check-release",
        ".ci/packaging/debian/postinst",
        ".ci/packaging/debian/postrm",
        ".ci/packaging/debian/prerm",
        ".ci/packaging/image",
        ".ci/packaging/install-tools",
        ".ci/packaging/notices",
        ".ci/packaging/sbom",
        ".ci/packaging/stage",
        ".ci/release",
        ".ci/run",
        "hooks/acme.sh/edgecert.sh",
        "hooks/caddy/edgecert-caddy",
        "hooks/certbot/edgecert",
        "hooks/certmonger/edgecert-certmonger",
        "hooks/dehydrated/edgecert-hook.sh",
        "hooks/dehydrated/edgecert.sh",
        "hooks/lego/edgecert-lego",
        "hooks/mod_md/edgecert-mod-md",
        "hooks/uacme/edgecert-uacme",
        "tests/fuzz/run",
        "tests/isolated",
        "tests/install-from-pypi",
        "tests/it/container/boot.sh",
        "tests/it/packages/lifecycle.sh",
        "tests/progress",
        "tests/run",
    ];
    require("shellcheck", "shellcheck");
    let output = Command::new("shellcheck").args(SCRIPTS).current_dir(root()).output().unwrap();
    assert_eq!(text(&output), (Some(0), String::new()));
}
