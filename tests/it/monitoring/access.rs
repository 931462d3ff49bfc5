//! A monitoring user cannot read the state directory. The check says so, and works with sudo.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::host::Host;
use crate::harness::{binary, cannot_run, require, step};
use crate::readme::root;

const SUDOERS: &str = "hooks/monitoring/sudoers";

/// Sets up a host in a mount namespace of its own: edgecert in the directory `$5`, the state from `$2`, and `$3` as the
/// only sudoers rules. Then runs the remaining arguments as the user nagios.
const LAYOUT: &str = r#"set -e
mount -t tmpfs -o mode=755 none /usr/local/bin
mkdir "$4/bin"
cp "$1" "$4/bin/edgecert"
mount -t overlay -o "lowerdir=$4/bin:$5" none "$5"
cp -r "$2" "$4/state"
mount -t tmpfs -o mode=755 none /var/lib
cp -r "$4/state" /var/lib/edgecert
chmod 700 /var/lib/edgecert
chown -R root:root /var/lib/edgecert
# As on Debian.
{ echo 'Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"'; cat "$3"; } > "$4/sudoers"
chmod 440 "$4/sudoers"
mount --bind "$4/sudoers" /etc/sudoers
shift 5
exec setpriv --reuid nagios --regid nagios --clear-groups "$@"
"#;

/// Where `cargo install` and the packages install edgecert.
const DIRECTORIES: [&str; 2] = ["/usr/local/bin", "/usr/bin"];

/// Runs a command as the user nagios on a host with this state, and edgecert in this directory.
fn as_nagios(host: &Host, directory: &str, command: &[&str]) -> Output {
    let scratch = TempDir::new().unwrap();
    let mut layout = Command::new("unshare");
    layout.args(["--mount", "sh", "-c", LAYOUT, "sh"]).arg(binary()).arg(host.state.path());
    layout.arg(root().join(SUDOERS)).arg(scratch.path()).arg(directory).args(command);
    layout.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/").output().unwrap()
}

/// Fails with `cannot run here` unless there are users other than root.
fn require_users() {
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    if users.split_whitespace().ne(["0", "0", "4294967295"]) || !Path::new("/proc/self").exists() {
        cannot_run("it becomes another user, which needs root");
    }
    require("sudo", "sudo");
    require("nagios4", "nagios4-core");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn monitoring_user_may_only_check() {
    require_users();
    let host = Host::healthy();

    step("monitoring_user_needs_sudo");
    let check = ["edgecert", "status", "--check"];
    let state = ["--state-dir", "/var/lib/edgecert"];
    let denied = as_nagios(&host, "/usr/bin", &[&check[..], &state].concat());
    let printed = text(&denied);
    assert_eq!(denied.status.code(), Some(3), "{printed}");
    assert!(printed.starts_with("EDGECERT UNKNOWN - ") && printed.contains("/var/lib/edgecert"), "{printed}");
    assert!(
        printed.to_lowercase().contains("permission denied") && printed.contains("user that owns it"),
        "{printed}"
    );

    for directory in DIRECTORIES {
        let allowed = as_nagios(&host, directory, &[&["sudo", "-n"], &check[..]].concat());
        assert_eq!(allowed.status.code(), Some(0), "{directory}: {}", text(&allowed));
        assert!(text(&allowed).starts_with("EDGECERT OK - "), "{}", text(&allowed));
    }

    step("sudo_allows_the_check_only");
    let permits = |directory: &str, arguments: &str| {
        let command = format!("sudo -n -l {directory}/edgecert {arguments} > /dev/null 2>&1");
        as_nagios(&host, directory, &["sh", "-c", &command]).status.success()
    };
    for arguments in [
        "status --check",
        "status --check -t 30",
        "status --check --json -t 2",
        "status --check -t 30 -w 25% -c 36h --lag-warning 1.5 --lag-critical 2d --sync-warning off --sync-critical 1w",
    ] {
        assert!(DIRECTORIES.iter().all(|directory| permits(directory, arguments)), "{arguments}");
    }
    for arguments in [
        "",
        "status",
        "deploy",
        "status --check --metrics /etc/passwd",
        "status --check -t 30 --config /tmp/config.toml",
        "status --check --state-dir /tmp",
        "status --check -w --config",
        "status --forget x",
        "sync status --check",
    ] {
        assert!(!DIRECTORIES.iter().any(|directory| permits(directory, arguments)), "{arguments}");
    }
    let mode = fs::metadata(root().join(SUDOERS)).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0);
}
