//! The Ansible role and module of `hooks/ansible`, run by ansible-core on this host: what the role writes goes to a
//! layer above the host's directories, in a mount namespace of its own.

mod systemd;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{API_KEY, Sandbox, binary, cannot_run, require, sandbox, test_ca, upload_count};

const ROLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/ansible/roles");

/// Puts a writable layer above what the role changes, then waits for the end of its standard input.
const LAYERS: &str = r#"
set -e
mount -t tmpfs -o mode=755 none "$1/layers"
for directory in etc usr/local var/lib; do
    upper=$1/layers/$directory/upper work=$1/layers/$directory/work
    mkdir -p "$upper" "$work"
    mount -t overlay -o "lowerdir=/$directory,upperdir=$upper,workdir=$work" none "/$directory"
done
echo ready
exec cat
"#;

/// A host that Ansible manages, with a lineage and a playbook that deploys it.
struct ManagedHost {
    home: TempDir,
    namespace: Child,
}

impl ManagedHost {
    fn new(service: &Sandbox) -> Self {
        require("ansible-playbook", "ansible-core");
        let home = TempDir::new().unwrap();
        std::fs::create_dir(home.path().join("layers")).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", LAYERS, "bash"]).arg(home.path());
        let mut namespace = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(namespace.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            cannot_run("it mounts overlays, which this host does not permit");
        }
        let host = Self { home, namespace };
        host.write("playbook.yml", &host.playbook(service));
        host
    }

    fn playbook(&self, service: &Sandbox) -> String {
        let home = self.home.path().display();
        let endpoints = service.endpoints();
        format!(
            r#"
- hosts: localhost
  connection: local
  # The role needs none.
  gather_facts: false
  roles:
    - role: edgecert
      vars:
        edgecert_program: {program}
        edgecert_base_url: {api}
        edgecert_api_key: {API_KEY}
        edgecert_settings: {{edge_address: "{edge}", allow_untrusted: true}}
        edgecert_lineages: [{{cert: {home}/fullchain.pem, key: {home}/privkey.pem}}]
  tasks:
    - name: Deploy
      edgecert_certificate:
        cert: {home}/fullchain.pem
        key: {home}/privkey.pem
"#,
            program = binary().display(),
            api = endpoints.api,
            edge = endpoints.edge,
        )
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).unwrap();
    }

    /// Renews the lineage.
    fn renew(&self) {
        let issued = test_ca().issue(&["a.example", "*.a.example"]).unwrap();
        self.write("fullchain.pem", &issued.fullchain());
        self.write("privkey.pem", &issued.key);
    }

    /// A command that sees the host as Ansible does.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.namespace.id())).arg(program);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("HOME", self.home.path()).env("ANSIBLE_ROLES_PATH", ROLES).env("COLUMNS", "200");
        command
    }

    /// Runs the playbook.
    fn play(&self, arguments: &[&str]) -> Play {
        let mut command = self.command("ansible-playbook");
        command.args(["--inventory", "localhost,", "-e", "ansible_python_interpreter=/usr/bin/python3"]);
        let output = command.args(arguments).arg(self.home.path().join("playbook.yml")).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!text.contains(API_KEY), "{text}");
        Play { text }
    }

    /// The fingerprint of the lineage's leaf.
    fn fingerprint(&self) -> String {
        let mut command = self.command("/usr/local/bin/edgecert");
        command.args(["check", "--json", "--cert"]);
        let output = command.arg(self.home.path().join("fullchain.pem")).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["certificate"]["fingerprint"].as_str().unwrap().to_owned()
    }

    /// Whether the role has installed this file.
    fn has(&self, path: &str) -> bool {
        self.command("test").args(["-e", path]).status().unwrap().success()
    }
}

impl Drop for ManagedHost {
    fn drop(&mut self) {
        let _ = self.namespace.kill();
        let _ = self.namespace.wait();
    }
}

/// What a run of the playbook printed.
struct Play {
    text: String,
}

impl Play {
    /// Expects these counts of tasks in the recap.
    #[track_caller]
    fn ends_with(&self, changed: usize, failed: usize) {
        let recap = self.text.lines().find(|line| line.starts_with("localhost ")).unwrap_or_default();
        let counts: Vec<&str> = recap.split_whitespace().collect();
        assert!(counts.contains(&format!("changed={changed}").as_str()), "{}", self.text);
        assert!(counts.contains(&format!("failed={failed}").as_str()), "{}", self.text);
    }
}

const INSTALLED: [&str; 4] = [
    "/usr/local/bin/edgecert",
    "/etc/edgecert/config.toml",
    "/etc/edgecert/api-key",
    "/etc/cron.d/edgecert-sync",
];

#[test]
fn role_installs_once_and_deploys_renewals() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let host = ManagedHost::new(&service);
    host.renew();
    // Five files and directories, and the deployment.
    host.play(&["--check"]).ends_with(6, 0);
    assert_eq!(INSTALLED.map(|path| host.has(path)), [false; 4]);
    assert_eq!(service.requests().len(), 0);

    host.play(&[]).ends_with(6, 0);
    assert_eq!(INSTALLED.map(|path| host.has(path)), [true; 4]);
    assert_eq!(upload_count(&service), 1);
    // The timer's command finds the configured lineage deployed.
    let sync = host.command("/usr/local/bin/edgecert").arg("sync").output().unwrap();
    let summary = String::from_utf8(sync.stdout).unwrap();
    assert!(summary.starts_with("1 lineage: 1 unchanged"), "{summary}");

    host.renew();
    let leaf = host.fingerprint();
    let play = host.play(&["--check", "--diff", "-vvv"]);
    play.ends_with(1, 0);
    for site in ["a.example", "www.a.example"] {
        assert!(play.text.contains(&format!("-{site}: another certificate\n")), "{}", play.text);
        assert!(play.text.contains(&format!("+{site}: {leaf}\n")), "{}", play.text);
    }
    assert_eq!(upload_count(&service), 1);
    host.play(&["-vvv"]).ends_with(1, 0);
    assert_eq!(upload_count(&service), 2);
    host.play(&[]).ends_with(0, 0);
    assert_eq!(upload_count(&service), 2);
}

#[test]
fn failures_name_cause_and_hint() {
    let service = sandbox(&["other.example"]);
    let host = ManagedHost::new(&service);
    let playbook = host.playbook(&service);
    let play = |from: &str, to: &str| {
        host.write("playbook.yml", &playbook.replace(from, to));
        host.play(&[])
    };
    let config = || host.command("cat").arg("/etc/edgecert/config.toml").output().unwrap().stdout;
    let invalid = play("allow_untrusted: true", "wait: soon").text;
    let message = "`wait`: expected a whole number";
    assert!(invalid.contains("failed to validate") && invalid.contains(message), "{invalid}");
    assert!(config().is_empty(), "there is no file");

    host.renew();
    let uncovered = play("", "");
    uncovered.ends_with(2, 1);
    assert!(uncovered.text.contains("none of the account's 1 site is covered"), "{}", uncovered.text);
    assert!(uncovered.text.contains("hint: "), "{}", uncovered.text);

    let secret = play("        cert: ", "        settings: {api_key: x}\n        cert: ");
    secret.ends_with(0, 1);
    assert!(secret.text.contains("api_key is an argument of its own"), "{}", secret.text);

    let before = config();
    for settings in ["wait: null", "wiat: 60"] {
        let shown = play("allow_untrusted: true", settings).text;
        assert!(shown.contains("failed to validate"), "{settings}: {shown}");
        assert_eq!(config(), before, "{settings}");
    }
}

#[test]
fn linter_finds_nothing() {
    require("ansible-lint", "ansible-lint");
    let home = TempDir::new().unwrap();
    let mut command = Command::new("ansible-lint");
    command.args(["--offline", "--nocolor"]).current_dir(Path::new(ROLES).parent().unwrap());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path()).env("LC_ALL", "C.UTF-8");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains("0 failure(s), 0 warning(s)"), "{text}");
}
