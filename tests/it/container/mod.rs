//! A bare Debian 12 with systemd, booted in a container, for what needs services and timers.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::harness::{binary, cannot_run, require};
use crate::readme::root;

const BOOT: &str = "tests/it/container/boot.sh";

/// The last line of a script that has reached its end.
pub(crate) const END: &str = "test: complete";

/// Runs the script in a container with these Debian packages, the programs in `/test`, and `hooks` in `/root/edgecert`,
/// and returns what it printed. The script must end by printing [`END`].
#[track_caller]
pub(crate) fn run_in_container(packages: &[impl AsRef<str>], script: &str) -> String {
    run_with_files(packages, &[], script)
}

/// The same with these files in `/test`, too.
#[track_caller]
pub(crate) fn run_with_files(packages: &[impl AsRef<str>], files: &[PathBuf], script: &str) -> String {
    require_container();
    let packages: Vec<&str> = packages.iter().map(AsRef::as_ref).collect();
    let output = boot(&packages.join(" "), files, script);
    let log = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    if log.is_empty() {
        cannot_run(&format!("the container did not start: {}", messages.lines().last().unwrap_or_default()));
    }
    let is_complete = output.status.success() && log.ends_with(&format!("{END}\n"));
    assert!(is_complete, "{}\n{messages}{log}", output.status);
    log.into_owned()
}

/// Ends the test if it is known that the container cannot start.
fn require_container() {
    // A user who is root in a namespace only can neither make device files nor mount everything.
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root || users.split_whitespace().ne(["0", "0", "4294967295"]) {
        cannot_run("it starts a container, which needs root");
    }
    require("mmdebstrap", "mmdebstrap");
    require("systemd-nspawn", "systemd-container");
    if !simulator().exists() {
        cannot_run(&format!("{} is missing: run cargo build --workspace", simulator().display()));
    }
}

/// The program `edgecert-sandbox`, which cargo builds beside the hook.
fn simulator() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_edgecert")).with_file_name("edgecert-sandbox")
}

/// Boots a container that runs the script. However this process ends, the kernel kills the process that unshares the
/// namespaces, and with it everything in them.
fn boot(packages: &str, files: &[PathBuf], script: &str) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    // Debian's packages come from the network. `tests/isolated` hides it from this process, but not from its parent.
    command.arg("nsenter").arg(format!("--net=/proc/{}/ns/net", parent_id()));
    command.args(["unshare", "--mount", "--propagation", "private", "--mount-proc"]);
    command.args(["--pid", "--fork", "--kill-child", "bash"]);
    command.arg(root().join(BOOT)).arg(packages).arg(root().join("hooks"));
    command.arg(binary()).arg(simulator()).args(files);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Small enough for the pipe's buffer, so that this does not wait for the container to read it.
    let _ = child.stdin.take().unwrap().write_all(script.as_bytes());
    child.wait_with_output().unwrap()
}
