//! Threads and files that the system refuses, as a container's limits do: a run needs few, fails as a temporary failure
//! without them, and is recorded.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Hook, Host, Lineage, configured, edgecert, fresh, is_bound_to, sandbox, sandbox_and_lineage, state_files,
    sync, upload_count,
};

/// As with `pids.max` at its limit. A hang fails the test.
const NO_THREAD: &str = "inject=clone,clone3:error=EAGAIN";

/// As if the limit on open files left too few for the event loop.
const NO_EVENTS: &str = "inject=eventfd2:error=EMFILE";

fn refused(hook: Hook, fault: &str) -> Hook {
    hook.under(&["timeout", "20", "strace", "-f", "-qq", "-o", "/dev/null", "-e", fault])
}

fn pending_since(state: &Path) -> Value {
    let [file] = &state_files(state)[..] else { panic!("one state file") };
    let state: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    state["pending_since"].clone()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn configuration_pipe_needs_no_thread() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let hook = fresh(&service, &lineage);
    let pipe = hook.home().join("config");
    make_pipe(&pipe);
    let writer = {
        let pipe = pipe.clone();
        thread::spawn(move || fs::write(pipe, "wait = 5\n").unwrap())
    };
    refused(hook.env("EDGECERT_CONFIG", &pipe), NO_THREAD).succeeds();
    writer.join().unwrap();
    assert!(is_bound_to(&service, "a.example", &lineage));
}

#[test]
fn lineages_of_sync_need_no_thread() {
    let service = sandbox(&["a.example", "b.example"]);
    let lineages = ["a.example", "b.example"].map(|domain| Lineage::issued_for(&[domain]));
    let state = TempDir::new().unwrap();
    let hook = configured(sync(&service, state.path()), &lineages.each_ref());
    refused(hook, NO_THREAD).succeeds();
    assert_eq!((upload_count(&service), state_files(state.path()).len()), (2, 2));
}

#[test]
fn name_resolution_without_a_thread_is_temporary() {
    let host = Host::new();
    let url = host.service.endpoints().api.replace("127.0.0.1", "localhost");
    let hook = || host.hook().env("EDGECERT_BASE_URL", &url);
    let output = refused(hook().args(["--timeout", "2"]), NO_THREAD).exits_with(75);
    let cause = "cannot start a thread: Resource temporarily unavailable";
    output.says(cause);
    assert_ne!(pending_since(host.state()), Value::Null);

    // The edge is not said to have no address.
    let edge = host.service.endpoints().edge.replace("127.0.0.1", "localhost");
    let hook = host.hook().facing(edge);
    refused(hook.args(["--wait", "1"]), NO_THREAD).run().says(cause);
}

#[test]
fn lock_is_awaited_without_a_thread() {
    let host = Host::new();
    let hook = || host.hook();
    hook().succeeds();
    let [file] = &state_files(host.state())[..] else { panic!("one state file") };
    let lock = File::open(file.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let output = refused(hook().args(["--timeout", "1"]), NO_THREAD).exits_with(75);
    output.says("another run of edgecert is still deploying");
}

#[test]
fn check_without_a_time_limit_is_unknown() {
    let state = TempDir::new().unwrap();
    let hook = edgecert().with_state(state.path());
    let hook = hook.args(["status", "--check", "--allow-empty", "-t", "5"]);
    let output = refused(hook, NO_THREAD).exits_with(3);
    let cause = "UNKNOWN: cannot limit the time of this check: no thread can be started\n";
    assert!(output.stdout.ends_with(cause), "{}", output.stdout);
}

#[test]
fn first_deployment_without_event_loop_is_recorded() {
    let host = Host::new();
    let output = refused(host.hook(), NO_EVENTS).exits_with(75);
    let cause = "cannot start the event loop: Too many open files";
    assert!(output.stderr.contains(cause) && output.stderr.contains("hint: "), "{}", output.stderr);
    assert!(!output.stderr.contains("not recorded"), "{}", output.stderr);
    assert_ne!(pending_since(host.state()), Value::Null);

    refused(host.sync(), NO_EVENTS).exits_with(75).says(cause);
    host.sync().succeeds();
    assert_eq!(pending_since(host.state()), Value::Null);
    assert!(host.is_bound("a.example"));
}

/// Replaces each file in the state directory with a named pipe that has no other end.
#[test]
fn pipes_in_the_state_directory_are_not_opened() {
    let host = Host::new();
    let commands = || [host.hook(), host.sync()];
    for hook in commands() {
        hook.succeeds();
    }
    host.edit(|state| state["pending_since"] = "2026-01-01T00:00:00Z".into());
    let mut names: Vec<_> =
        fs::read_dir(host.state()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.extend([".probe.new".into(), "other.damaged".into()]);
    for name in names {
        let path = host.state().join(&name);
        let backup = host.state().with_extension("backup");
        let is_known = fs::rename(&path, &backup).is_ok();
        make_pipe(&path);
        for hook in commands() {
            let output = hook.args(["--timeout", "5"]).under(&["timeout", "15"]).run();
            assert_ne!(output.code, 124, "{}: {}", name.display(), output.stderr);
        }
        let _ = fs::remove_file(&path);
        if is_known {
            fs::rename(&backup, &path).unwrap();
        }
    }
}
