//! Concurrency with `sync`: hooks that start, clients that replace files, clocks that are set.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use super::file;
use crate::harness::{
    Hook, Host, Lineage, bind, deploy, is_bound_to, requests_during, sandbox, state_files, sync, upload_count,
};

/// Runs `sync` with an action between its scan and its deployment, and returns the exit code.
pub(super) fn sync_with(sync: Hook, state: &Path, action: impl FnOnce()) -> i32 {
    sync_while_locked(sync, &file(state, "lock"), action)
}

/// The same, between the scan and the deployment of the lineage with this lock.
fn sync_while_locked(mut sync: Hook, lock: &Path, action: impl FnOnce()) -> i32 {
    let lock = File::open(lock).unwrap();
    lock.lock().unwrap();
    let command = sync.command().arg("-v").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    stderr.find(|line| line.contains("waiting for another run")).expect("it finds the lock taken");
    action();
    lock.unlock().unwrap();
    stderr.for_each(drop);
    child.wait().unwrap().code().unwrap()
}

#[test]
fn concurrent_hook_keeps_its_overrides() {
    let (host, other) = (Host::deployed(), TempDir::new().unwrap());
    host.lineage.renew(&["a.example"]);
    let code = sync_with(host.sync(), host.state(), || {
        // Has the same effect as a hook that takes the lock first.
        deploy(&host.service, &host.lineage, other.path()).args(["--verify", "off"]).succeeds();
        fs::copy(file(other.path(), "json"), host.state_file()).unwrap();
    });
    assert_eq!((code, upload_count(&host.service)), (0, 2), "the hook's deployment is not repeated");
    assert_eq!(host.recorded()["standing"]["settings"]["verify"], "off");
}

#[test]
fn concurrent_hook_failure_keeps_its_options() {
    let (host, other) = (Host::deployed(), TempDir::new().unwrap());
    host.lineage.renew(&["a.example"]);
    let code = sync_with(host.sync(), host.state(), || {
        let down =
            deploy(&host.service, &host.lineage, other.path()).env("EDGECERT_BASE_URL", "http://127.0.0.1:1");
        down.env("EDGECERT_TIMEOUT", "1").args(["--verify", "off"]).exits_with(75);
        fs::copy(file(other.path(), "json"), host.state_file()).unwrap();
    });
    assert_eq!(code, 0);
    assert!(host.is_bound("a.example"));
    assert_eq!(host.recorded()["sites"][0]["outcome"], "synced", "with the options of the hook");
}

#[test]
fn clock_skew_hides_no_drift() {
    let host = Host::deployed();
    host.edit(|state| {
        for path in ["/begun", "/last_success", "/result/at"] {
            *state.pointer_mut(path).unwrap() = "2099-01-01T00:00:00Z".into();
        }
    });
    bind(&host.service, "a.example", None);
    host.sync().succeeds();
    assert!(host.is_bound("a.example"));
}

#[test]
fn mounted_secret_may_change_during_sync() {
    let (host, mount) = (Host::new(), TempDir::new().unwrap());
    let switch = |version: &str| {
        let directory = mount.path().join(version);
        fs::create_dir(&directory).unwrap();
        fs::copy(host.lineage.file("fullchain.pem"), directory.join("tls.crt")).unwrap();
        fs::copy(host.lineage.file("privkey.pem"), directory.join("tls.key")).unwrap();
        symlink(version, mount.path().join("..new")).unwrap();
        fs::rename(mount.path().join("..new"), mount.path().join("..data")).unwrap();
    };
    switch("..1");
    for name in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{name}"), mount.path().join(name)).unwrap();
    }
    host.call().args(["--lineage".as_ref(), mount.path().as_os_str()]).succeeds();
    host.lineage.renew(&["a.example"]);
    switch("..2");
    let code = sync_with(host.sync(), host.state(), || {
        host.lineage.renew(&["a.example"]);
        switch("..3");
        fs::remove_dir_all(mount.path().join("..2")).unwrap();
    });
    assert_eq!(code, 0);
    assert!(host.is_bound("a.example"));
}

#[test]
fn forgotten_lineage_stays_forgotten() {
    let host = Host::deployed();
    host.lineage.renew(&["a.example"]);
    // Has the same effect as `status --forget`, which takes the lock first.
    let forget = || fs::remove_file(file(host.state(), "json")).unwrap();
    // Nothing but the state says where the service is.
    let sync = host.sync().without_env("EDGECERT_BASE_URL");
    let code = sync_with(sync, host.state(), forget);
    assert_eq!((code, upload_count(&host.service)), (0, 1));
    assert!(state_files(host.state()).is_empty());
}

#[test]
fn renewal_that_widens_waits_for_others() {
    let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
    let [wide, other] = ["a.example", "b.example"].map(|name| Lineage::issued_days_ago(20, "x", &[name]));
    deploy(&service, &wide, state.path()).succeeds();
    let lock = file(state.path(), "lock");
    deploy(&service, &other, state.path()).succeeds();
    wide.renew(&["a.example"]);
    other.renew_between(&["b.example"], [-5, 85]);
    let (requests, code) = requests_during(&service, || {
        sync_while_locked(sync(&service, state.path()), &lock, || wide.renew(&["a.example", "b.example"]))
    });
    assert_eq!(code, 0);
    let listings = requests.iter().filter(|request| request.contains("GET /api/certs")).count();
    assert_eq!(listings, 2, "it needs a listing of its own: {requests:?}");
    assert!(["a.example", "b.example"].iter().all(|site| is_bound_to(&service, site, &wide)));
}
