//! SIGKILL at every system call of a run that others can see: `sync` finishes the work.
//!
//! strace counts the calls by name and kills before the K-th one. K goes from 1 up to the number of calls that a run makes,
//! for every name but those of `INWARD_CALLS`; a kill after a call is a kill before the next.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    API_KEY, Hook, Lineage, Sandbox, edgecert, fingerprint, print_uncaptured, sandbox_and_lineage,
    system_calls,
};

pub(crate) const SITE: &str = "a.example";

/// Calls that neither change files nor send anything: a kill before one leaves what a kill before the next other call
/// does. A kill closes what `close` would.
const INWARD_CALLS: &str = "access arch_prctl brk clock_nanosleep clone3 close dup epoll_create1 epoll_ctl epoll_wait eventfd2 faccessat2 fcntl fstat futex getdents64 getegid geteuid getgid getpid getrandom getsockname getsockopt gettid getuid ioctl lseek lstat madvise mmap mprotect munmap newfstatat pipe2 poll prctl pread64 prlimit64 read readlink recvfrom rseq rt_sigaction rt_sigprocmask sched_getaffinity sched_yield set_robust_list set_tid_address setsockopt sigaltstack socket socketpair statx uname";

/// The run that is killed.
type Run = fn(&Scene) -> Hook;

/// A service with one site, a lineage for it, and a state directory that outlives the runs.
pub(crate) struct Scene {
    pub(crate) service: Sandbox,
    pub(crate) lineage: Lineage,
    home: TempDir,
    /// The number of requests before the run that is killed.
    requests_before: usize,
    /// The record that existed before it.
    record: Option<u64>,
    /// Whether the run that is killed begins with a listing.
    lists_first: bool,
}

impl Scene {
    /// The first deployment of a certificate.
    pub(crate) fn first() -> Self {
        let (service, lineage) = sandbox_and_lineage(&[SITE]);
        let home = TempDir::new().unwrap();
        Self { service, lineage, home, requests_before: 0, record: None, lists_first: false }
    }

    /// A renewal of a certificate that is served.
    pub(crate) fn renewal() -> Self {
        let mut scene = Self::first();
        scene.deploy().succeeds();
        scene.lineage.renew(&[SITE]);
        scene.requests_before = scene.service.requests().len();
        scene.record = scene.service.certs()[0]["id"].as_u64();
        scene
    }

    /// A renewal that no hook was called for, which `sync` finds.
    pub(crate) fn unnoticed_renewal() -> Self {
        Self { lists_first: true, ..Self::renewal() }
    }

    pub(crate) fn deploy(&self) -> Hook {
        self.call().called_by_certbot(&self.lineage)
    }

    pub(crate) fn sync(&self) -> Hook {
        self.call().args(["sync", "--timeout", "20"])
    }

    /// Finishes the work of the killed run with `sync`. Without a state file the run was killed before its intent, so no
    /// request was sent, and the hook is called again.
    fn finish(&self, at: &str) {
        if self.only_state().is_none() {
            assert!(!self.was_requested(), "{at}: the intent is lost");
            self.deploy().succeeds();
        }
        let output = self.sync().run();
        assert_eq!(output.code, 0, "{at}: {}{}", output.stdout, output.stderr);
    }

    pub(crate) fn call(&self) -> Hook {
        edgecert().against(&self.service).with_state(self.state())
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    pub(crate) fn traced(&self, run: fn(&Self) -> Hook, options: &[&str]) -> (Output, String) {
        let trace = self.home.path().join("trace");
        let strace = ["strace", "-f", "-y", "-qq", "-o", trace.to_str().unwrap()];
        let mut hook = run(self).under(&[&strace, options].concat());
        let output = hook.command().output().unwrap();
        (output, fs::read_to_string(trace).unwrap())
    }

    /// Whether a request arrived that must follow the intent.
    fn was_requested(&self) -> bool {
        let after = self.service.requests().into_iter().skip(self.requests_before);
        after.into_iter().any(|request| !self.lists_first || request.method != "GET")
    }

    /// Asserts that the state directory holds neither secrets nor half-written state files.
    pub(crate) fn assert_clean(&self, at: &str) {
        let key = self.lineage.read("privkey.pem");
        let body: String = key.lines().filter(|line| !line.starts_with("-----")).collect();
        for file in files(&self.state()) {
            let text = fs::read_to_string(&file).unwrap();
            let pieces = body.as_bytes().windows(16).map(|piece| std::str::from_utf8(piece).unwrap());
            for secret in pieces.chain([API_KEY]) {
                assert!(!text.contains(secret), "{at}: {} holds {secret}", file.display());
            }
            if file.extension().is_some_and(|ending| ending == "json") {
                serde_json::from_str::<Value>(&text)
                    .unwrap_or_else(|error| panic!("{at}: {} is half-written: {error}", file.display()));
            }
        }
    }

    /// Asserts that the intent is recorded.
    fn assert_intent(&self, at: &str) {
        let only_state = self.only_state().unwrap_or_else(|| panic!("{at}: the intent is lost"));
        let (leaf, cert) =
            (fingerprint(&self.lineage.read("cert.pem")), json!(self.lineage.file("fullchain.pem")));
        assert_eq!(only_state["certificate"]["fingerprint"], leaf, "{at}");
        assert_eq!(only_state["lineage"]["cert"], cert, "{at}");
    }

    /// The only state file.
    pub(crate) fn only_state(&self) -> Option<Value> {
        let state_files = files(&self.state()).into_iter();
        let mut state_files =
            state_files.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
        let only_state = state_files.next().map(|file| fs::read_to_string(file).unwrap());
        assert!(state_files.next().is_none(), "there are two state files");
        only_state.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Asserts that the site is bound to the lineage's only record.
    pub(crate) fn assert_bound(&self, at: &str) {
        let (sites, records) = (self.service.sites(), self.service.certs());
        let [record] = records.as_slice() else { panic!("{at}: {} records", records.len()) };
        assert_eq!(record["cert_pem"], self.lineage.read("fullchain.pem"), "{at}");
        assert_eq!(sites[0]["cert_id"], record["id"], "{at}");
        assert!(self.record.is_none_or(|id| record["id"] == id), "{at}: the record was replaced by another");
    }

    /// As [`Self::assert_bound`]; nothing is pending.
    pub(crate) fn assert_done(&self, at: &str) {
        self.assert_bound(at);
        self.assert_intent(at);
        let only_state = self.only_state().unwrap();
        let is_done = only_state["pending_since"].is_null() && only_state["result"]["exit_code"] == 0;
        assert!(is_done, "{at}: {only_state}");
        let left = files(&self.state());
        let temporary: Vec<_> =
            left.iter().filter(|file| file.extension().is_some_and(|ending| ending == "new")).collect();
        assert!(temporary.is_empty(), "{at}: {temporary:?} is left");
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|file| file.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Kills a run at every system call, and prints how many there were.
fn kill_at_every_call(what: &str, scene: fn() -> Scene, run: Run) {
    let (output, trace) = scene().traced(run, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = system_calls(&trace);
    assert!(names.contains("fsync") && names.contains("exit_group"), "{names:?}");
    let (mut points, mut after_request) = (0, 0);
    let is_inward = |name: &&String| INWARD_CALLS.split(' ').any(|inward| inward == *name);
    for name in names.iter().filter(|name| !is_inward(name)) {
        for count in 1.. {
            let (scene, at) = (scene(), format!("{what}, killed before {name} number {count}"));
            let (output, trace) =
                scene.traced(run, &["-e", &format!("inject={name}:signal=KILL:when={count}")]);
            if output.status.success() {
                break;
            }
            let is_killed = output.status.signal() == Some(9) && trace.contains("killed by SIGKILL");
            assert!(is_killed, "{at}: {output:?}");
            points += 1;
            scene.assert_clean(&at);
            if scene.was_requested() {
                after_request += 1;
                scene.assert_intent(&at);
            }
            scene.finish(&at);
            scene.assert_done(&at);
            scene.assert_clean(&at);
        }
    }
    let shown = format!("{what}: killed at {points} points, at {after_request} of them after a request");
    print_uncaptured(&shown);
    assert!(points > 60 && after_request > 15, "the run has become unexpectedly short: {shown}");
}

#[test]
fn sync_finishes_a_killed_first_deployment() {
    kill_at_every_call("first deployment", Scene::first, Scene::deploy);
}

#[test]
fn sync_finishes_a_killed_renewal() {
    kill_at_every_call("renewal", Scene::renewal, Scene::deploy);
}

#[test]
fn next_sync_finishes_a_killed_sync() {
    kill_at_every_call("sync", Scene::unnoticed_renewal, Scene::sync);
}
