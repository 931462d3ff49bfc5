//! A real journald, read back with `journalctl`. It runs in a mount namespace of its own with an empty `/run`.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output as ProcessOutput, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{DEPLOYMENT_FAILED, DEPLOYMENT_SUCCEEDED, Fields, SYNC_FAILED, WARNING, assert_has, only_name};
use crate::harness::{Hook, cannot_run, edgecert, fresh, require, sandbox_and_lineage, with_rejected_key};

const JOURNALD: &str = "/lib/systemd/systemd-journald";

const CONFIGURATION: &str = "[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nForwardToSyslog=no\nForwardToWall=no\nRateLimitBurst=0\n";

/// Longest wait for journald to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running journald, killed on drop.
struct Journald {
    process: Child,
    _home: TempDir,
}

impl Journald {
    fn start() -> Self {
        if !Path::new(JOURNALD).exists() {
            cannot_run(&format!("{JOURNALD} is not installed (Debian package systemd)"));
        }
        require("unshare", "util-linux");
        let home = TempDir::new().unwrap();
        let notify = home.path().join("notify");
        let ready = UnixDatagram::bind(&notify).unwrap();
        ready.set_read_timeout(Some(START_TIMEOUT)).unwrap();
        let script = "mount -t tmpfs none /run && mkdir -p /run/systemd/journal /run/systemd/journald.conf.d \
            && printf %s \"$1\" > /run/systemd/journald.conf.d/test.conf && exec \"$0\"";
        let mut process = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, JOURNALD, CONFIGURATION])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("NOTIFY_SOCKET", &notify)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut buffer = [0; 4096];
        loop {
            match ready.recv(&mut buffer) {
                Ok(length) if String::from_utf8_lossy(&buffer[..length]).contains("READY=1") => break,
                Ok(_) => {}
                Err(error) => {
                    let _ = process.kill();
                    let output = process.wait_with_output().unwrap();
                    cannot_run(&format!("journald did not start: {error}: {}", text(&output.stderr)));
                }
            }
        }
        Self { process, _home: home }
    }

    /// A command in the namespace of journald.
    fn enter(&self) -> [String; 3] {
        ["nsenter".into(), format!("--mount=/proc/{}/ns/mnt", self.process.id()), "--".into()]
    }

    fn run(&self, hook: Hook, code: i32) {
        let enter = self.enter();
        hook.under(&enter.each_ref().map(String::as_str)).exits_with(code);
    }

    fn journalctl(&self, arguments: &[&str]) -> ProcessOutput {
        let [program, options @ ..] = self.enter();
        let mut command = Command::new(program);
        command.args(options).arg("journalctl").args(arguments).env_clear().env("PATH", "/usr/bin:/bin");
        let output = command.output().unwrap();
        assert!(output.status.success(), "journalctl {arguments:?}: {}", text(&output.stderr));
        output
    }

    /// The entries that match, oldest first.
    fn entries(&self, matches: &[&str]) -> Vec<Fields> {
        self.journalctl(&["--sync"]);
        let options = ["--directory=/run/log/journal", "--output=json", "--quiet", "--no-pager"];
        let output = self.journalctl(&[&options, matches].concat());
        let entry = |line: &str| {
            let Value::Object(fields) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
            let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            fields.into_iter().map(|(name, value)| (name, text(value))).collect()
        };
        text(&output.stdout).lines().map(entry).collect()
    }
}

impl Drop for Journald {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn entries_are_read_back_with_journalctl() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let (journald, state) = (Journald::start(), TempDir::new().unwrap());
    let with_state = |hook: Hook| hook.with_state(state.path());
    journald.run(with_state(with_rejected_key(&service, &lineage)), 77);
    journald.run(with_state(fresh(&service, &lineage)), 0);
    let down = edgecert().args(["sync"]).env("EDGECERT_BASE_URL", "http://127.0.0.1:1");
    journald.run(with_state(down.env("EDGECERT_API_KEY", "k").env("EDGECERT_TIMEOUT", "1")), 75);
    let configured = edgecert().args(["sync"]).with_state("/dev/null/state");
    journald.run(configured.with_config("on_failure = [\"false\"]\n"), 78);

    let name = only_name(&state);
    let of_lineage = format!("EDGECERT_LINEAGE={name}");
    let entries = journald.entries(&["SYSLOG_IDENTIFIER=edgecert"]);
    let ids: Vec<&str> = entries.iter().map(|entry| entry["MESSAGE_ID"].as_str()).collect();
    assert_eq!(ids, [DEPLOYMENT_FAILED, DEPLOYMENT_SUCCEEDED, SYNC_FAILED, SYNC_FAILED, WARNING]);
    let failed = journald.entries(&[&format!("MESSAGE_ID={DEPLOYMENT_FAILED}"), &of_lineage]);
    let [failed] = failed.as_slice() else { panic!("expected one entry: {failed:?}") };
    assert_has(failed, &[("PRIORITY", "3"), ("SYSLOG_FACILITY", "3"), ("EDGECERT_COMMAND", "deploy")]);
    assert_has(
        failed,
        &[("EDGECERT_EXIT_CODE", "77"), ("_TRANSPORT", "journal"), ("EDGECERT_LINEAGE", &name)],
    );
    let served = journald.entries(&["EDGECERT_OUTCOME=served", &of_lineage]);
    let [served] = served.as_slice() else { panic!("expected one entry: {served:?}") };
    let message = format!("deploy: {name} served");
    assert_has(served, &[("PRIORITY", "6"), ("MESSAGE", &message), ("EDGECERT_EXIT_CODE", "0")]);
    let syncs = journald.entries(&["EDGECERT_COMMAND=sync", "PRIORITY=3"]);
    let codes: Vec<&str> = syncs.iter().map(|entry| entry["EDGECERT_EXIT_CODE"].as_str()).collect();
    assert_eq!(codes, ["75", "78"]);
    assert_eq!(journald.entries(&["--priority=warning..warning"]).len(), 1);
    for command in documented_commands() {
        let command = command.replace("example.com-5d41402abc", &name);
        let words: Vec<&str> = command.split(' ').chain(["--directory=/run/log/journal", "-q"]).collect();
        let found = text(&journald.journalctl(&words).stdout);
        assert!(found.contains(&name) && found.contains("failed with exit code 77"), "{command}: {found}");
    }
}

/// More entries than the queue of a socket holds by default, and than a run may write.
#[test]
fn burst_of_entries_is_bounded_not_lost() {
    let journald = Journald::start();
    let hook = edgecert().args(["sync"]).env("EDGECERT_API_KEY", "k");
    let missing = |number: usize| format!("[[lineage]]\npath = '/nonexistent/{number}'\n");
    let config = "base_url = 'http://127.0.0.1:1'\n".to_owned() + &(0..110).map(missing).collect::<String>();
    journald.run(hook.with_config(&config), 66);
    let count = |id: &str| journald.entries(&[&format!("MESSAGE_ID={id}")]).len();
    assert_eq!([SYNC_FAILED, DEPLOYMENT_FAILED, WARNING].map(count), [1, 100, 1]);
    let [more] = <[Fields; 1]>::try_from(journald.entries(&[&format!("MESSAGE_ID={WARNING}")])).unwrap();
    assert_eq!(more["MESSAGE"], "sync: 10 more lineages not logged; run `edgecert status`");
}

/// The arguments of `journalctl` in the reference's section on the system log.
fn documented_commands() -> Vec<String> {
    let reference =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/README.md")).unwrap();
    let section = reference.split("### System log").nth(1).unwrap().split("\n## ").next().unwrap();
    let commands: Vec<String> =
        section.lines().filter_map(|line| line.strip_prefix("journalctl ").map(str::to_owned)).collect();
    assert_eq!(commands.len(), 2);
    commands
}
