//! A full, broken or read-only disk: the deployment goes on without its state file, and no file is left half-written.
//!
//! strace makes calls on the state directory fail: each writing call in turn, alone and with all later ones.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::harness::{Fault, Hook, Output, cannot_run, print_uncaptured};
use crate::kills::{SITE, Scene};

/// System calls that create, change or rename files in the state directory.
const WRITING_CALLS: [&str; 6] = ["mkdir", "openat", "flock", "write", "fsync", "rename"];
/// More calls of one name than any run makes.
const MAX_CALLS: usize = 1000;

/// The run that meets the fault.
type Run = fn(&Scene) -> Hook;

/// The paths in the state directory that a run uses.
fn paths(scene: &Scene, run: Run) -> BTreeSet<String> {
    let state = scene.state().to_str().unwrap().to_owned();
    let (output, trace) = scene.traced(run, &[]);
    assert!(output.status.success(), "{output:?}");
    let ends = |c: char| c == '"' || c == '>';
    let paths = trace.match_indices(&state).map(|(at, _)| trace[at..].split(ends).next().unwrap().to_owned());
    paths.collect()
}

/// Asserts that a warning names the file and the reason.
fn assert_warned(stderr: &str, scene: &Scene, at: &str) {
    let warnings = [
        "warning: this deployment is not recorded: cannot write ",
        "warning: other lineages may not notice this deployment: cannot write ",
        "warning: cannot read ",
    ];
    let line = stderr.lines().find(|line| warnings.iter().any(|warning| line.contains(warning)));
    let line = line.unwrap_or_else(|| panic!("{at}: no warning: {stderr}"));
    assert!(line.contains(scene.state().to_str().unwrap()), "{at}: {line}");
    let reasons =
        ["No space left on device", "Input/output error", "Read-only file system", "File too large"];
    assert!(reasons.iter().any(|reason| line.ends_with(reason)), "{at}: {line}");
}

/// A run in which one call failed, alone or with all later ones.
struct FailedCall {
    scene: Scene,
    code: Option<i32>,
    stderr: String,
    /// The call.
    line: String,
    /// The call, its error and the output, for messages.
    at: String,
}

impl FailedCall {
    /// Makes the K-th call fail in a run that has a renewal to deploy; `None` if the run makes no such call.
    fn of(run: Run, is_recorded: bool, call: &str, fault: &str) -> Option<Self> {
        let scene = Scene::first();
        // The file names depend on the lineage's path.
        let mut paths_of_runs = paths(&scene, Scene::deploy);
        paths_of_runs.extend(paths(&scene, run));
        if !is_recorded {
            fs::remove_dir_all(scene.state()).unwrap();
        }
        scene.lineage.renew(&[SITE]);
        let inject = format!("inject={call}:{fault}");
        let mut options = vec!["-e", inject.as_str()];
        options.extend(paths_of_runs.iter().flat_map(|path| ["-P", path.as_str()]));
        let (output, trace) = scene.traced(run, &options);
        let line = trace.lines().find(|line| line.contains("(INJECTED)"))?.to_owned();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let at = format!("{inject}, recorded {is_recorded}: {line}\n{stderr}");
        scene.assert_clean(&at);
        Some(Self { scene, code: output.status.code(), stderr, line, at })
    }

    /// A further run without the fault finishes the work.
    fn finish(self, run: Run) {
        let again = run(&self.scene).succeeds();
        assert!(!again.stderr.contains("warning"), "{}: {}", self.at, again.stderr);
        self.scene.assert_clean(&self.at);
        self.scene.assert_done(&self.at);
    }
}

#[test]
fn failed_write_only_warns_a_deployment() {
    // Which error it is makes no difference before the message.
    let ways = [("ENOSPC", false, "+"), ("EROFS", false, ""), ("EIO", true, ""), ("EIO", true, "+")];
    let mut failures = 0;
    for call in WRITING_CALLS {
        let before = failures;
        for (error, is_recorded, onwards) in ways {
            let fail = |count| {
                let fault = format!("error={error}:when={count}{onwards}");
                FailedCall::of(Scene::deploy, is_recorded, call, &fault)
            };
            for failed in (1..MAX_CALLS).map_while(fail) {
                assert_eq!(failed.code, Some(0), "{}", failed.at);
                // An existing directory is not created.
                if !is_recorded || call != "mkdir" {
                    assert_warned(&failed.stderr, &failed.scene, &failed.at);
                }
                failed.scene.assert_bound(&failed.at);
                failed.finish(Scene::deploy);
                failures += 1;
            }
        }
        assert!(failures - before >= ways.len(), "no run makes {call}");
    }
    print_uncaptured(&format!("{failures} disk failures"));
}

#[test]
fn failed_write_fails_sync_until_repaired() {
    let mut failures = 0;
    for call in WRITING_CALLS {
        for (error, onwards) in [("ENOSPC", ""), ("EROFS", "+")] {
            let fail = |count| {
                FailedCall::of(Scene::sync, true, call, &format!("error={error}:when={count}{onwards}"))
            };
            for failed in (1..MAX_CALLS).map_while(fail) {
                let FailedCall { code, line, at, .. } = &failed;
                // The directory exists. A state file that cannot be reread before it is written is a warning; the
                // record of the last sync is replaced as if it had none.
                let is_replaced = line.contains("/last-sync\", O_RDONLY");
                // These files only help the runs on other lineages; `sync` writes them again.
                let is_claim = line.contains("/sites");
                if *code == Some(0) && line.contains(".json\", O_RDONLY") {
                    assert_warned(&failed.stderr, &failed.scene, at);
                } else if call != "mkdir" && !is_replaced && !is_claim {
                    assert_ne!(*code, Some(0), "{at}");
                    let state = failed.scene.state();
                    let mut errors = failed.stderr.lines().filter(|line| line.contains("error: "));
                    assert!(errors.any(|line| line.contains(state.to_str().unwrap())), "{at}: unnamed");
                }
                failed.finish(Scene::sync);
                failures += 1;
            }
        }
    }
    print_uncaptured(&format!("{failures} disk failures during a sync"));
    assert!(failures > 2 * WRITING_CALLS.len(), "{failures}");
}

/// How often a run syncs a file or a directory to disk.
fn sync_count(scene: &Scene, run: Run, code: i32) -> usize {
    let (output, trace) = scene.traced(run, &["-e", "trace=fsync,fdatasync,sync,syncfs"]);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    trace.lines().filter(|line| line.contains("sync") && line.contains(" = 0")).count()
}

#[test]
fn only_the_intent_is_synced_twice() {
    let scene = Scene::first();
    assert_eq!(sync_count(&scene, Scene::deploy, 0), 3, "the intent with its name, and the result");
    let unchanged = sync_count(&scene, Scene::sync, 0);
    scene.lineage.renew(&[SITE]);
    assert_eq!(sync_count(&scene, Scene::sync, 0), unchanged + 3, "a renewal");
}

#[test]
fn repeated_intent_is_not_written_again() {
    let scene = Scene::first();
    let busy = Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600").times(2);
    scene.service.add_fault(busy);
    assert_eq!(sync_count(&scene, Scene::deploy, 75), 3);
    let counts = [75, 0, 0].map(|code| sync_count(&scene, Scene::sync, code));
    assert_eq!([counts[0] - counts[2], counts[1] - counts[2]], [1, 1], "the result");
}

/// Deploys in a mount namespace with another file system at the state directory, after a script.
fn mounted(scene: &Scene, script: &str) -> Output {
    const UNSHARE: [&str; 5] = ["unshare", "--map-root-user", "--mount", "sh", "-c"];
    fs::create_dir(scene.state()).unwrap();
    let state = scene.state();
    let mount = format!("mount -t tmpfs -o size=16k none {}", state.display());
    let mut probe = Command::new(UNSHARE[0]);
    let allowed = probe.args(&UNSHARE[1..]).arg(&mount).output().expect("unshare is in util-linux");
    if !allowed.status.success() {
        cannot_run(&format!("no file system may be mounted: {}", String::from_utf8_lossy(&allowed.stderr)));
    }
    let list = format!("cd {} && ls -A >&2", state.display());
    let script = format!("{mount} && {script}; \"$@\"; code=$?; {list}; exit $code");
    scene.deploy().under(&[&UNSHARE[..], &[&script, "sh"]].concat()).run()
}

#[test]
fn full_disk_stops_no_deployment() {
    let scene = Scene::first();
    let fill = format!("! cat /dev/zero > {}/filler 2> /dev/null", scene.state().display());
    let output = mounted(&scene, &fill);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_warned(&output.stderr, &scene, "a full disk");
    scene.assert_bound("a full disk");
    let left: Vec<&str> = output.stderr.lines().skip_while(|line| *line != "filler").collect();
    assert!(left.len() == 1 || left.len() == 2 && left[1].contains(".lock"), "{}", output.stderr);
}

#[test]
fn file_size_limit_stops_no_deployment() {
    let scene = Scene::first();
    let output = scene.deploy().under(&["/usr/bin/prlimit", "--fsize=0"]).succeeds();
    assert_warned(&output.stderr, &scene, "a file size limit");
    scene.assert_bound("a file size limit");
    scene.sync().under(&["/usr/bin/prlimit", "--fsize=0"]).exits_with(78);
}

#[test]
fn read_only_directory_stops_no_deployment() {
    let scene = Scene::first();
    // Not a remount: in the namespace of another user than root that would fail.
    let remount = format!("mount -t tmpfs -o ro none {}", scene.state().display());
    let output = mounted(&scene, &remount);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_warned(&output.stderr, &scene, "a read-only directory");
    scene.assert_bound("a read-only directory");
}
