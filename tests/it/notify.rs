//! Failure notification: the `on_failure` program receives failures of `deploy` and `sync`, without effect on output or
//! exit code; usage errors of hooks count.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Fault, Hook, Lineage, PANIC_IN_SLEEP, binary, edgecert, fresh, require_trusted_root, run_with_syslog,
    sandbox_and_lineage, step, with_rejected_key, write_with_mode,
};

/// A directory with a configuration file whose `on_failure` program records its input, arguments and environment.
struct Recorder {
    home: TempDir,
}

const SCRIPT: &str = "#!/bin/sh\n\
    cd \"${0%/*}\"\n\
    cat >> report\n\
    printf '%s\\n' \"$@\" >> arguments\n\
    tr '\\0' '\\n' < /proc/self/environ > environment\n\
    echo to standard output\n\
    echo to standard error >&2\n";

impl Recorder {
    /// Installs this script as the `on_failure` program.
    fn with(script: &str) -> Self {
        require_trusted_root();
        let recorder = Self { home: TempDir::new().unwrap() };
        write_with_mode(recorder.path("notify"), script, 0o755);
        recorder.with_config("on_failure = [\"./notify\", \"first word\", \"\"]\n")
    }

    fn with_config(self, configuration: &str) -> Self {
        fs::write(self.path("config.toml"), configuration).unwrap();
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn attach_to(&self, hook: Hook) -> Hook {
        hook.env("EDGECERT_CONFIG", self.path("config.toml"))
    }
}

/// A `sync` whose state directory cannot be created.
fn failing_sync() -> Hook {
    edgecert().with_state("/dev/null/state").args(["sync"])
}

#[test]
fn program_receives_report_without_secrets() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let key = lineage.read("privkey.pem");
    let body = format!("what is this? sandbox-key {key}");
    service.add_fault(Fault::status("POST /api/certs/upload", 400).body(body).times(9));
    let recorder = Recorder::with(SCRIPT);
    let hook = recorder.attach_to(fresh(&service, &lineage));
    let hook = hook.env("LC_ALL", "C").env("LANG", "C").env("SECRET", "sandbox-key").args(["--json"]);
    let output = hook.exits_with(69);

    assert_eq!(recorder.read("report"), output.stdout, "the program receives what --json prints");
    assert_eq!(output.json()["exit_code"], 69);
    assert_eq!(recorder.read("arguments"), "first word\n\n");
    let environment = recorder.read("environment");
    let mut names: Vec<&str> = environment
        .lines()
        .map(|line| line.split_once('=').unwrap().0)
        .filter(|name| *name != "PWD")
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["EDGECERT_COMMAND", "EDGECERT_EXIT_CODE", "HOME", "LANG", "LC_ALL", "PATH"]);
    for variable in ["EDGECERT_COMMAND=deploy\n", "EDGECERT_EXIT_CODE=69\n"] {
        assert!(environment.contains(variable), "{variable}");
    }
    for line in key.lines().chain(["sandbox-key"]).filter(|line| !line.starts_with("-----")) {
        assert!(!recorder.read("report").contains(line) && !environment.contains(line), "{line}");
    }
    // The program's stdout goes to stderr, and it runs after the error is printed.
    output.says("to standard output\n");
    assert!(output.stderr.ends_with("to standard error\n"), "{}", output.stderr);
}

#[test]
fn odd_programs_and_configurations_are_run() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);

    // certbot and lego wait until no process holds their pipe, and certbot exits 1 at what it cannot decode.
    step("background_process_does_not_hold_the_client");
    let recorder = Recorder::with(
        "#!/bin/sh\ncd \"${0%/*}\"\nsleep 60 &\necho $! > background\nprintf 'b\\303\\274cher\\nno \\377 end'\n",
    );
    let output = recorder.attach_to(with_rejected_key(&service, &lineage)).exits_with(77);
    assert!(output.stderr.ends_with("b\\u00fccher\nno \\ufffd end\n"), "{}", output.stderr);
    let background = recorder.read("background");
    let kill = Command::new("sh").args(["-c", &format!("kill {background}")]).status().unwrap();
    assert!(kill.success(), "the hook waited for process {background}");

    step("program_runs_despite_faulty_configuration");
    let notify = "on_failure = [\"./notify\",\n\"first word\"] # comment\n";
    for configuration in [format!("{notify}basurl = \"x\"\n"), format!("x = [1\n{notify}")] {
        for hook in [fresh(&service, &lineage), edgecert().args(["sync"])] {
            let recorder = Recorder::with(SCRIPT).with_config(&configuration);
            recorder.attach_to(hook).exits_with(78);
            let report: Value = serde_json::from_str(&recorder.read("report")).expect(&configuration);
            assert_eq!((&report["exit_code"], &*recorder.read("arguments")), (&78.into(), "first word\n"));
            assert!(report["error"].as_str().unwrap().contains("config.toml:"), "{report}");
        }
    }
}

#[test]
fn only_failed_deploy_and_sync_notify() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let rejected_key = || edgecert().against(&service).env("EDGECERT_API_KEY", "another-key-than-its");
    let notifying: [(&str, Hook); 4] = [
        ("deploy", with_rejected_key(&service, &lineage)),
        ("deploy", with_rejected_key(&service, &lineage).args(["deploy"])),
        ("deploy", rejected_key().called_by_dehydrated("deploy_cert", &lineage)),
        ("sync", failing_sync()),
    ];
    for (command, hook) in notifying {
        let recorder = Recorder::with(SCRIPT);
        let output = recorder.attach_to(hook).run();
        let report: Value = serde_json::from_str(&recorder.read("report")).expect(&output.stderr);
        assert_eq!((&report["command"], &report["exit_code"]), (&command.into(), &output.code.into()));
        assert_ne!(output.code, 0);
    }

    let silent: [(i32, Hook); 7] = [
        (0, fresh(&service, &lineage)),
        (77, with_rejected_key(&service, &lineage).args(["plan"])),
        (77, with_rejected_key(&service, &lineage).args(["--dry-run"])),
        (65, edgecert().called_by_certbot(&lineage).args(["check", "--domain", "b.example"])),
        (2, edgecert().args(["--no-such-flag"])),
        (2, edgecert().called_by_certbot(&lineage).args(["check", "--no-such-flag"])),
        (2, edgecert().args(["deploy"])),
    ];
    for (code, hook) in silent {
        let recorder = Recorder::with(SCRIPT);
        recorder.attach_to(hook).exits_with(code);
        assert!(!recorder.path("environment").exists(), "exit code {code}");
    }
}

#[test]
fn usage_error_of_hook_notifies() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let wrong: [&[&str]; 3] =
        [&["--edge-address", "nonsense"], &["--wait=soon", "--json"], &["--no-such-flag"]];
    for arguments in wrong {
        let recorder = Recorder::with(SCRIPT);
        let hook = edgecert().called_by_certbot(&lineage).args(arguments);
        let (output, lines) = run_with_syslog(recorder.attach_to(hook), &[]);
        assert_eq!(output.code, 2);
        let report: Value = serde_json::from_str(&recorder.read("report")).expect(&output.stderr);
        assert_eq!((&report["command"], &report["exit_code"]), (&"deploy".into(), &2.into()));
        let [line] = lines.as_slice() else { panic!("expected one line: {lines:?}") };
        assert!(line.contains("]: deploy failed with exit code 2; "), "{line}");
        assert!(line.contains(&arguments[0][..6]), "{line}");
    }
    let recorder = Recorder::with(SCRIPT);
    let named = ["--config".into(), recorder.path("config.toml"), "--no-such-flag".into()];
    edgecert().called_by_certbot(&lineage).args(named).exits_with(2);
    assert!(recorder.path("environment").exists(), "--config names the file");
}

#[test]
fn failing_program_is_a_warning() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
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
    for (configuration, message) in rows {
        let recorder = Recorder::with(SCRIPT).with_config(configuration);
        let output =
            recorder.attach_to(with_rejected_key(&service, &lineage)).args(["--json"]).exits_with(77);
        assert_eq!(output.json()["exit_code"], 77);
        assert_eq!(output.stderr.contains("on_failure"), !message.is_empty(), "{}", output.stderr);
        output.says(message);
    }
}

#[test]
fn writable_configuration_names_no_program() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let not_run = |recorder: &Recorder, reason: &str| {
        let output = recorder.attach_to(with_rejected_key(&service, &lineage)).exits_with(77);
        let program = recorder.path("./notify");
        let message =
            format!("edgecert: warning: did not run {}, named by on_failure: {reason}\n", program.display());
        assert!(output.stderr.contains(&message), "{message}{}", output.stderr);
        assert!(!recorder.path("report").exists());
    };
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let recorder = Recorder::with(SCRIPT);
    let file = recorder.path("config.toml");
    for mode in [0o664, 0o660, 0o620, 0o602, 0o666] {
        set_mode(&file, mode);
        not_run(&recorder, &format!("group or others can write {0}; run `chmod go-w {0}`", file.display()));
    }
    set_mode(&file, 0o644);
    // Whoever can write to the directory can replace the file by a link to another one.
    let home = recorder.home.path();
    for mode in [0o775, 0o777, 0o707] {
        set_mode(home, mode);
        let place = home.display();
        not_run(
            &recorder,
            &format!("group or others can replace files in {place}; run `chmod go-w {place}`"),
        );
    }
    // Except with the sticky bit, as /tmp has it.
    set_mode(home, 0o1777);
    recorder.attach_to(with_rejected_key(&service, &lineage)).exits_with(77);
    assert!(recorder.path("report").exists());
}

#[test]
fn failing_program_is_logged() {
    let recorder = Recorder::with(SCRIPT).with_config("on_failure = [\"false\"]\n");
    let (output, lines) = run_with_syslog(recorder.attach_to(failing_sync()), &[]);
    let [first, second] = lines.as_slice() else { panic!("expected two lines: {lines:?}") };
    assert!(first.contains(&format!("]: sync failed with exit code {}; ", output.code)), "{first}");
    assert!(second.starts_with("<28>edgecert["), "{second}");
    assert!(second.contains("]: false, named by on_failure, failed"), "{second}");
}

/// The variables of certbot's post hook, from 4.2 on.
fn called_as_post_hook(hook: Hook) -> Hook {
    hook.env("RENEWED_DOMAINS", "").env("FAILED_DOMAINS", "b.example")
}

#[test]
fn certbot_post_hook_notifies() {
    let advice = "use --deploy-hook, not --post-hook; nothing was sent";
    for arguments in [&[][..], &["deploy"], &["--domain", "a.example"], &["--json"]] {
        let recorder = Recorder::with(SCRIPT);
        let hook = recorder.attach_to(called_as_post_hook(edgecert().args(arguments)));
        let (output, lines) = run_with_syslog(hook, &[]);
        assert_eq!(output.code, 78, "{}", output.stderr);
        output.says(advice);
        let [line] = lines.as_slice() else { panic!("expected one line: {lines:?}") };
        assert!(line.contains("]: deploy failed with exit code 78; ") && line.contains(advice), "{line}");
        let report: Value = serde_json::from_str(&recorder.read("report")).unwrap();
        assert_eq!((&report["command"], &report["exit_code"]), (&"deploy".into(), &78.into()));
        assert!(report["error"].as_str().unwrap().contains(advice), "{report}");
        assert_eq!(output.state, "", "nothing is recorded");
    }
}

#[test]
fn post_hook_variables_concern_deploy_only() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let call = |arguments: &[&str]| called_as_post_hook(edgecert().against(&service)).args(arguments);
    for arguments in [&["status"][..], &["sync"], &["sites", "list"], &["help"], &["--version"]] {
        call(arguments).succeeds();
    }
    for arguments in [&["plan"][..], &["check"], &["deploy", "--dry-run"]] {
        call(arguments).exits_with(2).says("no certificate is named");
    }
    call(&["--lineage", lineage.path().to_str().unwrap()]).succeeds();
    // Another client that certbot's post hook runs.
    let [cert, key] = ["fullchain.pem", "privkey.pem"].map(|name| lineage.file(name));
    call(&[]).env("LEGO_CERT_PATH", cert).env("LEGO_CERT_KEY_PATH", key).succeeds();
}

#[test]
fn panic_names_command_and_notifies() {
    let recorder = Recorder::with(SCRIPT);
    let sync = recorder.attach_to(edgecert()).args(["sync", "--json", "--splay", "1"]);
    let output = sync.under(&PANIC_IN_SLEEP).exits_with(70);

    let report = output.json();
    assert_eq!((&report["command"], &report["exit_code"]), (&"sync".into(), &70.into()), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with("internal error: panic at "), "{error}");
    assert_eq!(recorder.read("report"), output.stdout);
    assert!(recorder.read("environment").contains("EDGECERT_COMMAND=sync\n"));
}

#[test]
fn program_may_run_edgecert() {
    let recorder = Recorder::with("#!/bin/sh\ncd \"${0%/*}\"\necho run >> runs\nexec \"$@\" 2>> errors\n");
    let program = binary();
    let recorder = recorder.with_config(&format!(
        "on_failure = ['./notify', '{}', 'sync', '--config', 'config.toml', '--state-dir', '/dev/null/state']\n",
        program.display()
    ));
    recorder.attach_to(failing_sync()).exits_with(78);
    assert_eq!(recorder.read("runs"), "run\n");
    assert!(recorder.read("errors").contains("did not run ./notify"), "{}", recorder.read("errors"));
}
