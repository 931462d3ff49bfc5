//! A failure is told to the program of `on_failure` and to the system's log, and nothing else changes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Fault, Hook, Lineage, Output, Sandbox, edgecert, sandbox};

/// A directory with a configuration that names a program, which writes down what it is told.
struct Watch {
    home: TempDir,
}

const SCRIPT: &str = "#!/bin/sh\n\
    cd \"${0%/*}\"\n\
    cat >> report\n\
    printf '%s\\n' \"$@\" >> arguments\n\
    tr '\\0' '\\n' < /proc/self/environ > environment\n\
    echo to standard output\n\
    echo to standard error >&2\n";

impl Watch {
    /// The program is this script, and the configuration says so.
    fn with(script: &str) -> Self {
        let watch = Self { home: TempDir::new().unwrap() };
        fs::write(watch.path("tell"), script).unwrap();
        fs::set_permissions(watch.path("tell"), fs::Permissions::from_mode(0o755)).unwrap();
        watch.says("on_failure = [\"./tell\", \"first word\", \"\"]\n")
    }

    fn says(self, configuration: &str) -> Self {
        fs::write(self.path("config.toml"), configuration).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn on(&self, hook: Hook) -> Hook {
        hook.env("EDGECERT_CONFIG", self.path("config.toml"))
    }
}

/// A hook whose service refuses its key.
fn refused(service: &Sandbox, lineage: &Lineage) -> Hook {
    edgecert().called_by_certbot(lineage).against(service).env("EDGECERT_API_KEY", "another-key-than-its")
}

/// A run that has no place to remember anything.
fn failing_sync() -> Hook {
    edgecert().env("EDGECERT_STATE_DIR", "/dev/null/state").args(["sync"])
}

#[test]
fn a_failure_is_told_with_the_report_and_without_secrets() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let key = lineage.read("privkey.pem");
    let body = format!("what is this? sandbox-key {key}");
    service.add_fault(Fault::status("POST /api/certs/upload", 400).body(body).times(9));
    let watch = Watch::with(SCRIPT);
    let hook = watch.on(edgecert().called_by_certbot(&lineage).against(&service));
    let hook = hook.env("LC_ALL", "C").env("LANG", "C").env("SECRET", "sandbox-key").args(["--json"]);
    let output = hook.exits_with(69);

    assert_eq!(watch.read("report"), output.stdout, "the very object that --json prints");
    assert_eq!(output.json()["exit_code"], 69);
    assert_eq!(watch.read("arguments"), "first word\n\n");
    let environment = watch.read("environment");
    let mut names: Vec<&str> = environment
        .lines()
        .map(|line| line.split_once('=').unwrap().0)
        .filter(|name| *name != "PWD")
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["EDGECERT_COMMAND", "EDGECERT_EXIT_CODE", "HOME", "LANG", "LC_ALL", "PATH"]);
    assert!(
        environment.contains("EDGECERT_COMMAND=deploy\n") && environment.contains("EDGECERT_EXIT_CODE=69\n")
    );
    for line in key.lines().chain(["sandbox-key"]).filter(|line| !line.starts_with("-----")) {
        assert!(!watch.read("report").contains(line) && !environment.contains(line), "{line}");
    }
    assert!(output.stderr.contains("to standard output\n"), "not to ours: {}", output.stderr);
    assert!(output.stderr.ends_with("to standard error\n"), "after the error: {}", output.stderr);
}

#[test]
fn each_way_to_fail_is_told_and_nothing_else() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let [key, cert, chain] = ["privkey.pem", "fullchain.pem", "chain.pem"].map(|name| lineage.file(name));
    let dehydrated = ["deploy_cert".into(), "a.example".into(), key, cert.clone(), cert.clone(), chain];
    let other = || edgecert().against(&service).env("EDGECERT_API_KEY", "another-key-than-its");
    let told: [(&str, Hook); 4] = [
        ("deploy", refused(&service, &lineage)),
        ("deploy", refused(&service, &lineage).args(["deploy"])),
        ("deploy", other().args(dehydrated.iter().map(PathBuf::from).chain(["0".into()]))),
        ("sync", failing_sync()),
    ];
    for (command, hook) in told {
        let watch = Watch::with(SCRIPT);
        let output = watch.on(hook).run();
        let report: Value = serde_json::from_str(&watch.read("report")).expect(&output.stderr);
        assert_eq!((&report["command"], &report["exit_code"]), (&command.into(), &output.code.into()));
        assert_ne!(output.code, 0);
    }

    let silent: [(i32, Hook); 6] = [
        (0, edgecert().called_by_certbot(&lineage).against(&service)),
        (77, refused(&service, &lineage).args(["plan"])),
        (77, refused(&service, &lineage).args(["--dry-run"])),
        (65, edgecert().called_by_certbot(&lineage).args(["check", "--domain", "b.example"])),
        (2, edgecert().args(["--no-such-flag"])),
        (2, edgecert().args(["deploy"])),
    ];
    for (code, hook) in silent {
        let watch = Watch::with(SCRIPT);
        watch.on(hook).exits_with(code);
        assert!(!watch.path("environment").exists(), "exit code {code}");
    }
}

#[test]
fn a_program_that_cannot_tell_is_a_warning_and_changes_no_exit_code() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let rows = [
        ("on_failure = [\"./missing\"]\n", "/./missing, named by on_failure: no such file"),
        (
            "on_failure = [\"no-such-program\"]\n",
            "cannot start no-such-program, named by on_failure: no such",
        ),
        ("on_failure = [\"false\"]\n", "warning: false, named by on_failure, failed (exit status: 1)"),
        ("on_failure = [\"true\"]\n", ""),
        ("", ""),
    ];
    for (configuration, words) in rows {
        let watch = Watch::with(SCRIPT).says(configuration);
        let output = watch.on(refused(&service, &lineage)).args(["--json"]).exits_with(77);
        assert_eq!(output.json()["exit_code"], 77);
        assert_eq!(output.stderr.contains("on_failure"), !words.is_empty(), "{}", output.stderr);
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
}

#[test]
fn a_configuration_that_others_can_change_names_no_program() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let watch = Watch::with(SCRIPT);
    let file = watch.path("config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let output = watch.on(refused(&service, &lineage)).exits_with(77);
    let words = format!(": others can change {}, which names it", file.display());
    assert!(output.stderr.contains(&words), "{}", output.stderr);
    assert!(!watch.path("report").exists());
}

/// Runs a hook where the system's log is this socket, and returns what it says there. Only an administrator may make a
/// real `/dev/log`; proot shows the hook one.
fn logged(directory: &Path, hook: Hook, wrapper: &[&str]) -> (Output, Vec<String>) {
    let path = directory.join("log");
    let _ = fs::remove_file(&path);
    let log = UnixDatagram::bind(&path).unwrap();
    log.set_nonblocking(true).unwrap();
    let bind = format!("{}:/dev/log", path.display());
    let output = hook.under(&[&["proot", "-b", &bind], wrapper].concat()).run();
    let mut lines = Vec::new();
    let mut line = [0; 4096];
    while let Ok(length) = log.recv(&mut line) {
        lines.push(String::from_utf8(line[..length].to_vec()).unwrap());
    }
    (output, lines)
}

#[test]
fn without_a_terminal_a_failure_gets_one_line_in_the_systems_log() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let directory = TempDir::new().unwrap();
    let (output, lines) = logged(directory.path(), refused(&service, &lineage), &[]);
    assert_eq!(output.code, 77);
    let [line] = lines.as_slice() else { panic!("one line: {lines:?}") };
    assert!(line.starts_with("<27>edgecert["), "{line}");
    assert!(line.contains("]: deploy failed with exit code 77; the service does not accept"), "{line}");
    assert!(!line.contains('\n') && !line.contains("another-key-than-its"), "{line}");

    let (output, lines) = logged(directory.path(), failing_sync(), &[]);
    assert_eq!((output.code == 0, lines.len()), (false, 1), "{lines:?}");
    for (code, hook) in [
        (0, edgecert().called_by_certbot(&lineage).against(&service)),
        (77, refused(&service, &lineage).args(["plan"])),
    ] {
        let (output, lines) = logged(directory.path(), hook, &[]);
        assert_eq!((output.code, lines), (code, Vec::new()));
    }
}

#[test]
fn on_a_terminal_the_systems_log_is_left_alone() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let directory = TempDir::new().unwrap();
    // util-linux's `script` gives it a terminal.
    let wrapper = ["sh", "-c", "exec script -qec \"$0\" /dev/null"];
    let (output, lines) = logged(directory.path(), refused(&service, &lineage), &wrapper);
    assert_eq!((output.code, lines), (77, Vec::new()), "{}", output.stdout);
    assert!(output.stdout.contains(": the service does not accept"), "{}", output.stdout);
}

#[test]
fn panic_names_the_command_and_is_notified() {
    let watch = Watch::with(SCRIPT);
    let pipe = watch.path("api-key");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The thread that reads the pipe cannot be started, which the program has no error for.
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=clone3:error=EAGAIN:when=1"];
    let sync = watch.on(edgecert()).env("EDGECERT_API_KEY_FILE", &pipe).args(["sync", "--json"]);
    let sync = sync.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").under(&strace);
    let lineage = Lineage::issued_for(&["a.example"]);
    let entry = format!("[[lineage]]\npath = \"{}\"\n", lineage.path().display());
    fs::write(watch.path("config.toml"), watch.read("config.toml") + &entry).unwrap();
    let output = sync.exits_with(70);

    let report = output.json();
    assert_eq!((&report["command"], &report["exit_code"]), (&"sync".into(), &70.into()), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with("internal error: panic at "), "{error}");
    assert_eq!(watch.read("report"), output.stdout);
    assert!(watch.read("environment").contains("EDGECERT_COMMAND=sync\n"));
}
