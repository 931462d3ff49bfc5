//! Standard output that cannot be written: an error for commands that are run for their output, a warning for those
//! that change something. A closed pipe is neither.

use std::fs::{self, OpenOptions};
use std::process::Stdio;

use tempfile::TempDir;

use crate::harness::{Hook, Lineage, Sandbox, edgecert, request_lines, sandbox, sandbox_and_lineage};

const ERROR: &str = "edgecert: error: cannot write standard output: No space left on device\n\
    edgecert: hint: the output is incomplete; free some space or redirect it, then run the command again\n";
const WARNING: &str = "edgecert: warning: cannot write standard output: No space left on device\n";

/// Sends the output of a hook to a device that is always full.
fn to_full_device(mut hook: Hook) -> Hook {
    hook.command().stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    hook
}

fn with_lineage(service: &Sandbox, lineage: &Lineage, arguments: &[&str]) -> Hook {
    edgecert().against(service).args(arguments).args(["--lineage".as_ref(), lineage.path()])
}

#[test]
fn lost_output_of_reads_is_exit_66() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    with_lineage(&service, &lineage, &[]).succeeds();
    let id = service.certs()[0]["id"].to_string();
    let download = format!("certs download {id} --cert-only --out -");
    let offline = [
        "--help",
        "-h",
        "--version",
        "help sites update",
        "sync --help",
        "completions bash",
        "status --json",
    ];
    let service_reads = ["sites list", "sites get a.example", "certs list --json", &download, "doctor"];
    let lineage_reads = ["check", "plan", "deploy --dry-run"];
    let call = |command: &str| edgecert().args(command.split(' '));
    let hooks = offline.into_iter().map(|command| (command, call(command)));
    let hooks = hooks.chain(service_reads.map(|command| (command, call(command).against(&service))));
    let with_lineage =
        |command: &str| call(command).against(&service).args(["--lineage".as_ref(), lineage.path()]);
    let hooks = hooks.chain(lineage_reads.map(|command| (command, with_lineage(command))));
    for (command, hook) in hooks {
        let output = to_full_device(hook).run();
        assert_eq!(output.code, 66, "{command}: {}", output.stderr);
        assert!(output.stderr.ends_with(ERROR), "{command}: {}", output.stderr);
    }
    to_full_device(with_lineage("plan")).env("EDGECERT_API_KEY", "x").exits_with(77);
    // For a monitoring system, that is UNKNOWN.
    to_full_device(edgecert().args(["status", "--check"])).exits_with(3);
}

#[test]
fn changes_keep_their_exit_code() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let (state, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let uncovered = Lineage::issued_for(&["elsewhere.example"]);
    let warns = |hook: Hook, code: i32| {
        let hook = hook.with_state(state.path());
        to_full_device(hook).exits_with(code).says(WARNING);
    };
    warns(with_lineage(&service, &lineage, &[]), 0);
    assert_eq!(service.certs().len(), 1);
    warns(with_lineage(&service, &lineage, &["--json"]), 0);
    warns(edgecert().against(&service).args(["sync"]), 0);
    warns(with_lineage(&service, &uncovered, &["--json"]), 69);
    let service_changes: [&[&str]; 2] =
        [&["sites", "update", "a.example", "--set", "remark=new"], &["sites", "enable", "a.example"]];
    for arguments in service_changes {
        warns(edgecert().against(&service).args(arguments), 0);
    }
    assert!(request_lines(&service).iter().any(|line| line.ends_with("/update")));
    let id = service.certs()[0]["id"].to_string();
    let download =
        edgecert().against(&service).args(["certs", "download", &id, "--out"]).args([files.path()]);
    warns(download, 0);
    assert_eq!(fs::read_dir(files.path()).unwrap().count(), 2);
}

#[test]
fn closed_pipe_is_no_error() {
    let service = sandbox(&["a.example"]);
    for arguments in [&["sites", "list"][..], &["--help"], &["completions", "zsh"], &["status"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut hook = edgecert().against(&service).args(arguments);
        hook.command().stdout(Stdio::from(writer));
        assert_eq!(hook.exits_with(0).stderr, "", "{arguments:?}");
    }
}
