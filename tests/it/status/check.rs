//! `edgecert status --check`: thresholds, the state UNKNOWN, the time limit, and the alert for the last `sync`.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::status;
use crate::harness::{
    Hook, Host, Lineage, Output, PANIC_IN_SLEEP, cannot_run, configured, require_tracer, set_back_file,
};

impl Host {
    fn check(&self, arguments: &[&str]) -> Hook {
        self.status(&["--check"]).args(arguments)
    }

    /// Runs the check and returns its exit code and its first line.
    fn verdict(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.check(arguments).run();
        (output.code, first_line(&output))
    }
}

#[track_caller]
fn first_line(output: &Output) -> String {
    let line = output.stdout.lines().next().expect("a verdict").to_owned();
    let text = line.split(" |").next().unwrap();
    assert!(text.chars().count() <= 80, "{text}");
    line
}

#[test]
fn usage_error_is_unknown() {
    let rows = [
        (&["--nonsense"][..], "unexpected argument '--nonsense' found"),
        (&["--wide"], "the argument '--check' cannot be used with '--wide'"),
        (&["-w", "soon"], "invalid value 'soon' for '--warning <LIMIT>': expected days (14), a duration"),
        (&["-t", "0"], "expected a whole number of seconds above 0"),
    ];
    let host = Host::deployed();
    for (arguments, message) in rows {
        let output = host.check(arguments).exits_with(3);
        assert!(first_line(&output).starts_with("EDGECERT UNKNOWN - "), "{}", output.stdout);
        let detail = output.stdout.lines().nth(1).unwrap();
        assert!(detail.starts_with("UNKNOWN: ") && detail.contains(message), "{message} is wanted: {detail}");
        output.says(message);
        let json = host.check(arguments).args(["--json"]).exits_with(3).json();
        assert_eq!((&json["command"], &json["exit_code"]), (&json!("status"), &json!(3)));
        assert_eq!(json["check"]["level"], "unknown");
        assert!(json["error"].as_str().unwrap().contains(message), "{json}");
    }
    // Without `--check`, it is a usage error as in any command.
    let output = host.status(&["--nonsense"]).exits_with(2);
    assert_eq!(output.stdout, "");
    // Only a monitoring system uses these flags.
    for arguments in [&["--chek", "-w", "14"][..], &["--check=true"], &["-t", "5"]] {
        let output = host.status(arguments).exits_with(3);
        assert!(output.stdout.starts_with("EDGECERT UNKNOWN - "), "{arguments:?}: {}", output.stdout);
    }
}

#[test]
fn unreadable_state_is_unknown() {
    let host = Host::deployed();
    let unusable = |path: &Path, config: &str| {
        status(path, &["--check", "--allow-empty"]).with_config(config).exits_with(3).stdout
    };
    let file = host.state_file();
    let shown = unusable(&file, "");
    assert!(shown.starts_with("EDGECERT UNKNOWN - cannot read the state directory "), "{shown}");
    let shown = unusable(host.state(), "nonsense = 1\n");
    assert!(shown.starts_with("EDGECERT UNKNOWN - ") && shown.contains("nonsense"), "{shown}");

    // A file that cannot be read, beside one that can.
    fs::write(host.state().join("other-0123456789.json"), r#"{"version": 99}"#).unwrap();
    let (code, line) = host.verdict(&[]);
    assert!(code == 3 && line.contains("| pending=0;;;0 "), "{line}");
    let details = host.check(&[]).run().stdout;
    assert!(details.contains("UNKNOWN: ") && details.contains(" has version 99; "), "{details}");
}

#[test]
fn no_lineage_is_unknown_unless_allowed() {
    let state = TempDir::new().unwrap();
    let check = |state: &Path, arguments: &[&str]| {
        let output = status(state, &["--check"]).args(arguments).run();
        (output.code, first_line(&output))
    };
    let line = "EDGECERT UNKNOWN - no lineage is known (see --state-dir and --allow-empty) | \
                pending=0;;;0 lag=0s;21600;86400;0";
    assert_eq!(check(state.path(), &[]), (3, line.into()));
    let missing = state.path().join("none");
    let (code, line) = check(&missing, &[]);
    assert!(code == 3 && line.starts_with("EDGECERT UNKNOWN - cannot read the state directory "), "{line}");
    for state in [state.path(), &missing] {
        let line = "EDGECERT OK - 0 lineages, nothing pending | pending=0;;;0 lag=0s;21600;86400;0";
        assert_eq!(check(state, &["--allow-empty"]), (0, line.into()));
    }
    // A configured lineage is known.
    let lineage = Lineage::issued_for(&["a.example"]);
    configured(status(state.path(), &["--check"]), &[&lineage]).exits_with(0);
}

#[test]
fn time_limit_ends_a_hang() {
    const LINE: &str = "EDGECERT UNKNOWN - timed out after 1 second\n";
    let timed_out = |output: Output| {
        assert_eq!(output.stdout, format!("{LINE}UNKNOWN: timed out after 1 second\n"));
        assert_eq!(output.stderr, "");
    };
    let host = Host::deployed();
    assert_eq!(host.verdict(&["-t", "600"]).0, 0);
    // An edge that accepts connections and stays silent.
    let edge = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = edge.local_addr().unwrap().to_string();
    let check = |arguments| host.check(&["--verify", "--edge-address", &address]).args(arguments);
    timed_out(check(["-t", "1"]).exits_with(3));
    let json = check(["--timeout=1", "--json"]).exits_with(3).json();
    assert_eq!(json["check"]["findings"][0]["text"], "timed out after 1 second", "{json}");
    assert_eq!(json["exit_code"], 3);
}

#[test]
fn verdict_is_printed_once() {
    require_tracer("strace");
    let host = Host::deployed();
    // The time limit ends while the verdict is written.
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=write:delay_enter=3000000:when=1"];
    let output = host.check(&["-t", "1"]).under(&strace).exits_with(0);
    assert!(output.stdout.starts_with("EDGECERT OK - "), "{}", output.stdout);
    assert_eq!(output.stdout.lines().count(), 1, "{}", output.stdout);
}

#[test]
fn panic_is_unknown() {
    require_tracer("strace");
    let host = Host::deployed();
    // The edge is silent, so only the thread of the time limit ends.
    let edge = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = edge.local_addr().unwrap().to_string();
    let check = host.check(&["--verify", "--edge-address", &address, "-t", "30"]);
    let output = check.under(&PANIC_IN_SLEEP).exits_with(3);
    assert_eq!(first_line(&output), "EDGECERT UNKNOWN - internal error");
    output.prints("UNKNOWN: internal error: panic at ");
    assert_eq!((output.stdout.lines().count(), output.stderr.as_str()), (2, ""));
}

#[test]
fn late_sync_raises_an_alert() {
    let host = Host::deployed();
    assert_eq!(host.verdict(&[]).0, 0, "a fresh deployment");
    host.sync().succeeds();
    assert_eq!(host.verdict(&[]).0, 0);
    set_back_file(&host.state().join("last-sync"), 4 * 3_600);
    let output = host.check(&[]).exits_with(1);
    assert!(first_line(&output).contains(" - sync last ran 4 hours ago"), "{}", output.stdout);
    output.prints(" hours ago; check its timer with `edgecert doctor`\n");
    assert_eq!(host.verdict(&["--sync-warning", "off"]).0, 0);
}

/// Debian's program that negates the state of a plugin.
const NEGATE: &str = "/usr/lib/nagios/plugins/negate";

#[test]
fn monitoring_plugins_read_the_verdict() {
    if !Path::new(NEGATE).exists() {
        cannot_run("negate is not installed (Debian package monitoring-plugins-basic)");
    }
    let host = Host::deployed();
    for (arguments, code, text) in [
        (&[][..], 2, "EDGECERT CRITICAL - 1 lineage, nothing pending"),
        (&["-w", "100%"], 1, "EDGECERT WARNING - "),
        (&["-w", "100%", "-c", "100%"], 0, "EDGECERT OK - "),
        (&["-w", "never"], 3, "EDGECERT UNKNOWN - invalid value 'never'"),
    ] {
        let output = host.check(arguments).under(&[NEGATE, "-s"]).exits_with(code);
        assert!(output.stdout.starts_with(text), "{}", output.stdout);
    }
}
