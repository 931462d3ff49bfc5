//! A full, broken or read-only disk: the deployment goes on without its state file, and no file is left half-written.
//!
//! strace makes calls on the state directory fail: each writing call in turn, alone and with all later ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Fault, Hook, Lineage, Output, Sandbox, cannot_run, edgecert, print_uncaptured, sandbox,
};

const SITE: &str = "a.example";

/// System calls that create, change or rename files in the state directory.
const WRITING_CALLS: [&str; 6] = ["mkdir", "openat", "flock", "write", "fsync", "rename"];
/// More calls of one name than any run makes.
const MAX_CALLS: usize = 1000;

/// A service with one site, a lineage for it, and a state directory that outlives the runs.
struct Scene {
    service: Sandbox,
    lineage: Lineage,
    home: TempDir,
}

impl Scene {
    fn new() -> Self {
        let (service, lineage) = (sandbox(&[SITE]), Lineage::issued_for(&[SITE]));
        Self { service, lineage, home: TempDir::new().unwrap() }
    }

    fn deploy(&self) -> Hook {
        edgecert()
            .called_by_certbot(&self.lineage)
            .against(&self.service)
            .env("EDGECERT_STATE_DIR", self.state())
    }

    fn sync(&self) -> Hook {
        edgecert().against(&self.service).env("EDGECERT_STATE_DIR", self.state()).args(["sync"])
    }

    fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// Runs a hook under strace, and also returns the trace.
    fn traced(&self, run: Hook, options: &[&str]) -> (Output, String) {
        let trace = self.home.path().join("trace");
        let strace = ["strace", "-f", "-y", "-qq", "-o", trace.to_str().unwrap()];
        let output = run.under(&[&strace, options].concat()).run();
        (output, fs::read_to_string(trace).unwrap())
    }

    /// The paths in the state directory that a run uses.
    fn paths(&self, run: Hook) -> BTreeSet<String> {
        let state = self.state().to_str().unwrap().to_owned();
        let (output, trace) = self.traced(run, &[]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let ends = |c: char| c == '"' || c == '>';
        let paths =
            trace.match_indices(&state).map(|(at, _)| trace[at..].split(ends).next().unwrap().to_owned());
        paths.collect()
    }

    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(self.state()).into_iter().flatten().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|other| other == ending)).collect()
    }

    fn assert_whole(&self, at: &str) {
        for file in self.files("json") {
            let text = fs::read_to_string(&file).unwrap();
            serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{at}: {error}: {text}"));
        }
    }

    fn assert_deployed(&self, at: &str) {
        let records = self.service.certs();
        let [record] = records.as_slice() else { panic!("{at}: {} records", records.len()) };
        assert_eq!(record["cert_pem"], self.lineage.read("fullchain.pem"), "{at}");
        assert_eq!(self.service.sites()[0]["cert_id"], record["id"], "{at}");
    }
}

/// Asserts that a warning names the file and the reason.
fn assert_warned(output: &Output, state: &Path, at: &str) {
    let warnings = [
        "warning: this deployment is not recorded: cannot write ",
        "warning: other lineages may not notice this deployment: cannot write ",
        "warning: cannot read ",
    ];
    let line = output.stderr.lines().find(|line| warnings.iter().any(|warning| line.contains(warning)));
    let line = line.unwrap_or_else(|| panic!("{at}: no warning: {}", output.stderr));
    assert!(line.contains(state.to_str().unwrap()), "{at}: {line}");
    let reasons =
        ["No space left on device", "Input/output error", "Read-only file system", "File too large"];
    assert!(reasons.iter().any(|reason| line.ends_with(reason)), "{at}: {line}");
}

/// A call that fails, alone or with all later ones.
struct InjectedFault {
    call: &'static str,
    error: &'static str,
    count: usize,
    onwards: &'static str,
    /// Whether the lineage was deployed before.
    is_renewal: bool,
}

impl InjectedFault {
    /// Runs a deployment with the fault and one without. Returns false if a run makes no such call.
    fn is_hit(&self) -> bool {
        let Self { call, error, count, onwards, is_renewal } = self;
        let scene = Scene::new();
        // The file names depend on the lineage's path.
        let paths = scene.paths(scene.deploy());
        if !is_renewal {
            fs::remove_dir_all(scene.state()).unwrap();
        }
        scene.lineage.renew(&[SITE]);
        let inject = format!("inject={call}:error={error}:when={count}{onwards}");
        let mut options = vec!["-e", inject.as_str()];
        options.extend(paths.iter().flat_map(|path| ["-P", path.as_str()]));
        let (output, trace) = scene.traced(scene.deploy(), &options);
        let Some(line) = trace.lines().find(|line| line.contains("(INJECTED)")) else { return false };
        let at = format!("{inject}, renewal {is_renewal}: {line}");
        assert_eq!(output.code, 0, "{at}: {}", output.stderr);
        // An existing directory is not created.
        if !is_renewal || *call != "mkdir" {
            assert_warned(&output, &scene.state(), &at);
        }
        scene.assert_deployed(&at);
        scene.assert_whole(&at);

        let again = scene.deploy().succeeds();
        assert!(!again.stderr.contains("warning"), "{at}: {}", again.stderr);
        assert_eq!((scene.files("json").len(), scene.files("new").len()), (1, 0), "{at}");
        scene.assert_whole(&at);
        true
    }
}

#[test]
fn failed_write_only_warns_a_deployment() {
    // Which error it is makes no difference before the message.
    let ways = [("ENOSPC", false, "+"), ("EROFS", false, ""), ("EIO", true, ""), ("EIO", true, "+")];
    let mut failures = 0;
    for call in WRITING_CALLS {
        let before = failures;
        for (error, is_renewal, onwards) in ways {
            let is_hit =
                |count: &usize| InjectedFault { call, error, count: *count, onwards, is_renewal }.is_hit();
            failures += (1..MAX_CALLS).take_while(is_hit).count();
        }
        assert!(failures - before >= ways.len(), "no run makes {call}");
    }
    print_uncaptured(&format!("{failures} disk failures"));
}

/// Makes one call fail in a `sync` that has a renewal to deploy. Returns false if the run makes no such call.
fn fails_sync(call: &str, error: &str, count: usize, onwards: &str) -> bool {
    let scene = Scene::new();
    let mut paths = scene.paths(scene.deploy());
    paths.extend(scene.paths(scene.sync()));
    scene.lineage.renew(&[SITE]);
    let inject = format!("inject={call}:error={error}:when={count}{onwards}");
    let mut options = vec!["-e", inject.as_str()];
    options.extend(paths.iter().flat_map(|path| ["-P", path.as_str()]));
    let (output, trace) = scene.traced(scene.sync(), &options);
    let Some(line) = trace.lines().find(|line| line.contains("(INJECTED)")) else { return false };
    let at = format!("sync, {inject}: {line}");
    // The directory exists. A state file that cannot be reread before it is written is a warning; the record of the last
    // sync is replaced as if it had none.
    let is_replaced = line.contains("/last-sync\", O_RDONLY");
    // These files only help the runs on other lineages; `sync` writes them again.
    let is_claim = line.contains("/sites");
    if output.code == 0 && line.contains(".json\", O_RDONLY") {
        assert_warned(&output, &scene.state(), &at);
    } else if call != "mkdir" && !is_replaced && !is_claim {
        assert_ne!(output.code, 0, "{at}: {}{}", output.stdout, output.stderr);
        let state = scene.state();
        let errors = output.stderr.lines().filter(|line| line.contains("error: "));
        let named = errors.filter(|line| line.contains(state.to_str().unwrap())).count();
        assert!(named > 0, "{at}: no error names the file: {}", output.stderr);
    }
    scene.assert_whole(&at);
    let again = scene.sync().run();
    assert_eq!(again.code, 0, "{at}: {}", again.stderr);
    scene.assert_deployed(&at);
    scene.assert_whole(&at);
    assert_eq!((scene.files("json").len(), scene.files("new").len()), (1, 0), "{at}");
    true
}

#[test]
fn failed_write_fails_sync_until_repaired() {
    let mut failures = 0;
    for call in WRITING_CALLS {
        for (error, onwards) in [("ENOSPC", ""), ("EROFS", "+")] {
            let is_hit = |count: &usize| fails_sync(call, error, *count, onwards);
            failures += (1..MAX_CALLS).take_while(is_hit).count();
        }
    }
    print_uncaptured(&format!("{failures} disk failures during a sync"));
    assert!(failures > 2 * WRITING_CALLS.len(), "{failures}");
}

/// How often a run syncs a file or a directory to disk.
fn sync_count(scene: &Scene, run: Hook, code: i32) -> usize {
    let (output, trace) = scene.traced(run, &["-e", "trace=fsync,fdatasync,sync,syncfs"]);
    assert_eq!(output.code, code, "{}", output.stderr);
    trace.lines().filter(|line| line.contains("sync") && line.contains(" = 0")).count()
}

#[test]
fn only_the_intent_is_synced_twice() {
    let scene = Scene::new();
    assert_eq!(sync_count(&scene, scene.deploy(), 0), 3, "the intent with its name, and the result");
    let unchanged = sync_count(&scene, scene.sync(), 0);
    scene.lineage.renew(&[SITE]);
    assert_eq!(sync_count(&scene, scene.sync(), 0), unchanged + 3, "a renewal");
}

#[test]
fn repeated_intent_is_not_written_again() {
    let scene = Scene::new();
    let busy = Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600").times(2);
    scene.service.add_fault(busy);
    assert_eq!(sync_count(&scene, scene.deploy(), 75), 3);
    let counts = [75, 0, 0].map(|code| sync_count(&scene, scene.sync(), code));
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
    let scene = Scene::new();
    let fill = format!("! cat /dev/zero > {}/filler 2> /dev/null", scene.state().display());
    let output = mounted(&scene, &fill);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_warned(&output, &scene.state(), "a full disk");
    scene.assert_deployed("a full disk");
    let left: Vec<&str> = output.stderr.lines().skip_while(|line| *line != "filler").collect();
    assert!(left.len() == 1 || left.len() == 2 && left[1].contains(".lock"), "{}", output.stderr);
}

#[test]
fn file_size_limit_stops_no_deployment() {
    let scene = Scene::new();
    let output = scene.deploy().under(&["/usr/bin/prlimit", "--fsize=0"]).succeeds();
    assert_warned(&output, &scene.state(), "a file size limit");
    scene.assert_deployed("a file size limit");
    scene.sync().under(&["/usr/bin/prlimit", "--fsize=0"]).exits_with(78);
}

#[test]
fn read_only_directory_stops_no_deployment() {
    let scene = Scene::new();
    // Not a remount: in the namespace of another user than root that would fail.
    let remount = format!("mount -t tmpfs -o ro none {}", scene.state().display());
    let output = mounted(&scene, &remount);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_warned(&output, &scene.state(), "a read-only directory");
    scene.assert_deployed("a read-only directory");
}
