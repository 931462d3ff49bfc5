//! The scripts of `hooks/`, with the search path of cron: they find edgecert where `cargo install` and where a package
//! installs it, and fail with a message before they order anything if there is none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::harness::cannot_run;

/// Adds the programs in `$1/installed` to the directory `$2`, and hides what is in `/usr/local/bin`; then runs the line
/// `$3` in `$1`, with clients in `$1/bin`.
const HOST: &str = r#"
mount -t tmpfs none /usr/local/bin && mount -t overlay -o "lowerdir=$1/installed:$2" none "$2" || exit 99
cd "$1"
SHELL_NAME=$0 HOOKS=$4 exec env PATH=bin:/usr/bin:/bin "$0" -c "$3"
"#;

/// A line that runs a script, and the arguments that edgecert gets. `-q` is what cron lines pass to clients.
const SCRIPTS: [(&str, &str); 9] = [
    ("$SHELL_NAME $HOOKS/certbot/edgecert", "--skip-unmatched"),
    ("$SHELL_NAME $HOOKS/certbot/edgecert -q", "--skip-unmatched"),
    (
        "CADDY_DATA=. $SHELL_NAME $HOOKS/caddy/edgecert-caddy a.crt a.key",
        "--cert a.crt --key a.key --timeout 25",
    ),
    ("$SHELL_NAME $HOOKS/certmonger/edgecert-certmonger .", "--lineage ."),
    ("$SHELL_NAME $HOOKS/dehydrated/edgecert-hook.sh deploy_cert a.example", "deploy_cert a.example"),
    ("$SHELL_NAME $HOOKS/mod_md/edgecert-mod-md md installed a.example", "--lineage md/domains/a.example"),
    ("$SHELL_NAME $HOOKS/lego/edgecert-lego a.example -q", "from-lego"),
    ("$SHELL_NAME $HOOKS/uacme/edgecert-uacme -q issue a.example", "--lineage /etc/ssl/uacme/a.example"),
    (
        "_getdeployconf() { eval \"$1=\\${$1-}\"; }; . $HOOKS/acme.sh/edgecert.sh; \
         edgecert_deploy a.example a.key a.cer ca.cer fullchain.cer",
        "deploy",
    ),
];

/// A directory with the programs that the scripts run: clients that say that they run, and edgecert if it is installed.
fn programs(has_edgecert: bool) -> TempDir {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    // lego runs the hook, its last argument.
    write(
        "bin/lego",
        "[ \"$*\" = 'run --help' ] || { echo lego runs; for hook; do :; done; exec \"$hook\" from-lego; }",
    );
    write("bin/uacme", "echo uacme runs");
    for name in ["cert.pem", "chain.pem"] {
        write(name, "");
    }
    fs::create_dir_all(directory.path().join("installed")).unwrap();
    if has_edgecert {
        write("installed/edgecert", "echo \"$0: $*\"");
    }
    directory
}

/// Runs a line with the programs in this directory of the host.
fn run(shell: &str, line: &str, programs: &TempDir, directory: &str) -> Output {
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks");
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", HOST, shell])
        .arg(programs.path())
        .args([directory, line])
        .arg(hooks);
    let output = command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
    if output.status.code() == Some(99) {
        cannot_run("it mounts overlays, which this host does not permit");
    }
    output
}

#[test]
fn scripts_find_program_of_either_installation() {
    for (line, arguments) in SCRIPTS {
        for (shell, directory) in [("dash", "/usr/local/bin"), ("bash", "/usr/bin")] {
            let output = run(shell, line, &programs(true), directory);
            let printed = String::from_utf8(output.stdout).unwrap();
            let call = format!("{directory}/edgecert: {arguments}\n");
            assert!(output.status.success() && printed.ends_with(&call), "{line}: {printed}");
        }
    }
}

#[test]
fn scripts_say_that_program_is_missing() {
    for (line, _) in SCRIPTS {
        for shell in ["dash", "bash"] {
            let output = run(shell, line, &programs(false), "/usr/local/bin");
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(78), "{line}: {errors}");
            assert!(
                errors.contains(": found no edgecert in bin:/usr/bin:/bin:/usr/local/bin:/usr/bin"),
                "{line}: {errors}"
            );
            assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{line}: nothing is ordered");
        }
    }
}

/// Where the program is installed is said only where it is copied, packaged, or permitted to sudo.
const WITH_PATH: [&str; 3] =
    ["hooks/README.md", "hooks/ansible/roles/edgecert/tasks/main.yml", "hooks/monitoring/sudoers"];

#[test]
fn recipes_name_program_without_path() {
    let mut grep = Command::new("grep");
    grep.args([
        "-rlE",
        "bin/edgecert([^-a-z]|$)",
        "README.md",
        "hooks",
        "src/cli",
        ".ci/packaging/config.toml",
    ]);
    let output = grep.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut files: Vec<&str> = text.lines().collect();
    files.sort_unstable();
    assert_eq!(files, WITH_PATH);
}
