//! A system call fails once: the run succeeds or says why not, claims nothing false, and one `sync` finishes the work.
//!
//! strace fails the K-th call of each name, in every thread, with one of the errors that the kernel may return for it.
//! Allocations are left out: a process without memory ends as by a signal, see `kills`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::{API_KEY, Hook, is_bound_to, print_uncaptured, system_calls};
use crate::kills::{SITE, Scene};

/// The errors of each call, which take turns.
const ERRORS: [(&str, &[&str]); 7] = [
    ("openat", &["EACCES", "EMFILE", "EIO", "ENOMEM"]),
    ("fsync mkdir rename unlink", &["EIO", "ENOSPC", "EACCES"]),
    ("flock getdents64 pread64 read", &["EIO", "EINTR"]),
    ("write writev", &["ENOSPC", "EIO", "EINTR"]),
    ("connect recvfrom sendto", &["ECONNRESET", "EINTR", "ENOMEM"]),
    ("newfstatat readlink statx", &["EACCES", "EIO"]),
    ("clone3 epoll_create1 epoll_ctl eventfd2 socket", &["EMFILE", "EAGAIN", "ENOMEM"]),
];

/// Codes of a failure that is understood: all of sysexits.h but `EX_SOFTWARE`, and those of a monitoring plugin.
fn is_understood(code: i32) -> bool {
    matches!(code, 0..=3 | 64..=69 | 71..=78)
}

/// Lets each call of a run fail, and prints how often the run ended with which code.
fn fail_each_call(what: &str, scene: fn() -> Scene, run: fn(&Scene) -> Hook, finish: fn(&Scene, i32, &str)) {
    let (output, trace) = scene().traced(run, &[]);
    assert!(output.status.code().is_some_and(is_understood), "{output:?}");
    let names = system_calls(&trace);
    let mut codes: BTreeMap<i32, usize> = BTreeMap::new();
    for (calls, errors) in ERRORS {
        for call in calls.split(' ').filter(|call| names.contains(*call)) {
            for (count, error) in (1..).zip(errors.iter().cycle()) {
                let (scene, fault) = (scene(), format!("inject={call}:error={error}:when={count}"));
                let (output, trace) = scene.traced(run, &["-e", &fault]);
                let Some(line) = trace.lines().find(|line| line.contains("(INJECTED)")) else { break };
                let [stdout, stderr] =
                    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
                // The loader fails before the program begins, and the kernel always takes a wake-up.
                if stderr.contains("error while loading shared libraries") || line.contains("[eventfd]>, ") {
                    continue;
                }
                let at = format!("{what}, {fault}: {line}\n{stdout}{stderr}");
                let code = output.status.code().unwrap_or_else(|| panic!("killed: {at}"));
                assert!(is_understood(code), "exit code {code}: {at}");
                assert!(code == 0 || !(stdout.is_empty() && stderr.is_empty()), "failed silently: {at}");
                assert!(!stdout.contains(API_KEY) && !stderr.contains(API_KEY), "shows the key: {at}");
                if says_served(&stdout) {
                    assert!(is_bound_to(&scene.service, SITE, &scene.lineage), "not served: {at}");
                }
                scene.assert_clean(&at);
                finish(&scene, code, &at);
                *codes.entry(code).or_default() += 1;
            }
        }
    }
    let total: usize = codes.values().sum();
    print_uncaptured(&format!("{what}: {total} failing calls; exit codes: {codes:?}"));
    assert!(total > 20, "the run has become unexpectedly short");
}

/// Whether a report says that the site is served.
fn says_served(stdout: &str) -> bool {
    let report: Value = serde_json::from_str(stdout).unwrap_or_default();
    report["sites"][0]["outcome"] == "served"
}

/// What could not be recorded is deployed again; `sync` finishes the rest.
fn finish_with_sync(scene: &Scene, _: i32, at: &str) {
    if scene.only_state().is_none() {
        scene.deploy().succeeds();
    }
    let output = scene.sync().run();
    assert_eq!(output.code, 0, "{at}: {}{}", output.stdout, output.stderr);
    scene.assert_done(at);
}

#[test]
fn first_deployment_survives() {
    let run = |scene: &Scene| scene.deploy().args(["--json"]);
    fail_each_call("first deployment", Scene::first, run, finish_with_sync);
}

#[test]
fn renewal_survives() {
    let run = |scene: &Scene| scene.deploy().args(["--json"]);
    fail_each_call("renewal", Scene::renewal, run, finish_with_sync);
}

#[test]
fn sync_survives() {
    fail_each_call("sync", Scene::unnoticed_renewal, Scene::sync, finish_with_sync);
}

#[test]
fn status_survives() {
    let run = |scene: &Scene| scene.call().args(["status", "--check"]);
    fail_each_call("status", Scene::renewal, run, finish_with_sync);
}

#[test]
fn binding_survives() {
    fn bind(scene: &Scene) -> Hook {
        scene.call().args(["sites", "bind", SITE, &scene.service.certs()[0]["id"].to_string()])
    }
    let scene = || {
        let scene = Scene::first();
        scene.deploy().succeeds();
        scene.call().args(["sites", "update", SITE, "--set", "cert_id=null", "--allow-uncovered"]).succeeds();
        scene
    };
    let finish = |scene: &Scene, code: i32, at: &str| {
        let is_bound = || is_bound_to(&scene.service, SITE, &scene.lineage);
        assert!(code != 0 || is_bound(), "{at}");
        bind(scene).succeeds();
        assert!(is_bound(), "{at}");
    };
    fail_each_call("sites bind", scene, bind, finish);
}
