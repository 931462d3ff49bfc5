//! First hour of a new user: the commands of README.md and tests/sandbox/README.md, run one after another on a bare
//! Debian 12, lead to a renewed certificate that the edge serves, and to a timer for `sync`.

mod script;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::harness::{binary, print_uncaptured, skip};
use crate::readme::{README, root};

use script::Script;

const TEST: &str = "first_hour::readme_leads_to_renewal_by_timer";
const CONTAINER: &str = "tests/it/first_hour/container.sh";

/// Programs that the container needs, with their Debian packages.
const TOOLS: [(&str, &str); 4] = [
    ("/usr/bin/mmdebstrap", "mmdebstrap"),
    ("/usr/bin/setpriv", "util-linux"),
    ("/usr/bin/systemd-nspawn", "systemd-container"),
    ("/usr/bin/unshare", "util-linux"),
];

#[test]
fn readme_leads_to_renewal_by_timer() {
    if let Some(reason) = missing_requirement() {
        return skip(TEST, &reason);
    }
    let script = Script::from_documents();
    let output = run(&script);
    let log = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    if log.is_empty() && !messages.contains("Unable to locate package") {
        let reason = messages.lines().last().unwrap_or("it printed nothing");
        return skip(TEST, &format!("the container did not start: {reason}"));
    }
    let is_complete = output.status.success() && log.ends_with("walk: complete\n");
    assert!(is_complete, "{}\n{messages}{log}", output.status);
    for substitution in &script.substitutions {
        print_uncaptured(&format!("{README}, replaced: {substitution}"));
    }
}

/// Why the container cannot be started, if that is known beforehand.
fn missing_requirement() -> Option<String> {
    // A user who is root in a namespace only can neither make device files nor mount everything.
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if users.split_whitespace().ne(["0", "0", "4294967295"]) || !is_root() {
        return Some("it starts a container, which needs root".to_owned());
    }
    let missing = TOOLS.iter().find(|(program, _)| !Path::new(program).exists());
    if let Some((program, package)) = missing {
        return Some(format!("{program} (Debian package {package}) is not installed"));
    }
    (!simulator().exists())
        .then(|| format!("{} is missing; run cargo build --workspace", simulator().display()))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The program `edgecert-sandbox`, which cargo builds beside the hook.
fn simulator() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_edgecert")).with_file_name("edgecert-sandbox")
}

/// Runs the script in a container. However this process ends, the kernel kills the process that unshares the
/// namespaces, and with it everything in them.
fn run(script: &Script) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"]);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "bash"]);
    command.arg(root().join(CONTAINER)).arg(script.packages.join(",")).arg(root().join("hooks"));
    command.arg(binary()).arg(simulator());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Small enough for the pipe's buffer, so that this does not wait for the container to read it.
    child.stdin.take().unwrap().write_all(script.text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}
