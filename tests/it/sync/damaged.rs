//! A damaged state file may be that of a pending deployment: every `sync` fails until that is resolved.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;

use super::{configured, deploy, file, is_bound_to, sync};
use crate::harness::{Hook, Lineage, Output, Sandbox, edgecert, edit_state, sandbox};

/// A host with two lineages; the deployment of one is pending, and its state file is damaged.
struct DamagedHost {
    service: Sandbox,
    state: TempDir,
    lineage: Lineage,
    other: Lineage,
    /// The state file before it was damaged.
    state_file: PathBuf,
}

impl DamagedHost {
    fn new() -> Self {
        let (service, state) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
        let [lineage, other] = ["a.example", "b.example"].map(|name| Lineage::issued_for(&[name]));
        deploy(&service, &lineage, state.path()).fails_temporarily(&service);
        let state_file = file(state.path(), "json");
        fs::write(&state_file, "{").unwrap();
        deploy(&service, &other, state.path()).succeeds();
        Self { service, state, lineage, other, state_file }
    }

    fn sync(&self) -> Hook {
        sync(&self.service, self.state.path())
    }

    fn status(&self, arguments: &[&str]) -> Hook {
        edgecert().args(["status"]).args(arguments).env("EDGECERT_STATE_DIR", self.state.path())
    }

    fn name(&self) -> &str {
        self.state_file.file_stem().unwrap().to_str().unwrap()
    }

    /// Where the damaged file is kept.
    fn kept(&self) -> PathBuf {
        self.state_file.with_extension("damaged")
    }

    #[track_caller]
    fn assert_unresolved(&self, output: &Output) {
        let (kept, name) = (self.kept(), self.name());
        let message = format!(
            "{} is an invalid state file, so {name} may be pending and is not retried",
            kept.display()
        );
        assert!(output.stderr.contains(&message), "{}", output.stderr);
        let hint = format!(
            "edgecert: hint: deploy the lineage again, for example with `edgecert deploy --lineage DIR`, or run `edgecert status --forget {name}`"
        );
        assert!(output.stderr.contains(&hint), "{}", output.stderr);
    }
}

#[test]
fn damaged_pending_state_fails_every_sync() {
    let host = DamagedHost::new();
    for _ in 0..2 {
        let output = host.sync().exits_with(78);
        host.assert_unresolved(&output);
        assert!(output.shown().ends_with("2 lineages: 1 unchanged, 1 failed (TIME)\n"), "{}", output.stdout);
        let shown = host.status(&[]).exits_with(78);
        assert!(shown.stderr.contains(&format!("`edgecert status --forget {}`", host.name())));
        host.status(&["--check"]).exits_with(1);
    }
    assert_eq!(fs::read(host.kept()).unwrap(), b"{");
    // The work of others goes on.
    host.other.renew(&["b.example"]);
    host.sync().exits_with(78);
    assert!(is_bound_to(&host.service, "b.example", &host.other));
    // Pending for longer than the limit.
    let written = UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    File::options().write(true).open(host.kept()).unwrap().set_modified(written).unwrap();
    let output = host.status(&["--check"]).exits_with(2);
    assert!(output.stdout.contains("may be pending and is not retried"), "{}", output.stdout);
}

#[test]
fn deploying_again_resolves_a_damaged_state() {
    let host = DamagedHost::new();
    host.sync().exits_with(78);
    deploy(&host.service, &host.lineage, host.state.path()).succeeds();
    let output = host.sync().succeeds();
    assert_eq!((&*output.shown(), &*output.stderr), ("2 lineages: 2 unchanged (TIME)\n", ""));
    assert_eq!(host.status(&["--check"]).succeeds().stderr, "");
    assert!(host.kept().exists(), "kept for inspection");
}

#[test]
fn failed_deployment_is_pending_again() {
    let host = DamagedHost::new();
    host.sync().exits_with(78);
    deploy(&host.service, &host.lineage, host.state.path()).fails_temporarily(&host.service);
    host.sync().succeeds();
    assert!(is_bound_to(&host.service, "a.example", &host.lineage));
}

#[test]
fn forgetting_resolves_a_damaged_state() {
    let host = DamagedHost::new();
    host.sync().exits_with(78);
    assert_eq!(host.status(&["--forget", host.name()]).succeeds().stderr, "");
    assert!(!host.kept().exists());
    host.sync().succeeds();

    let host = DamagedHost::new();
    host.sync().exits_with(78);
    fs::remove_file(host.kept()).unwrap();
    host.sync().succeeds();
}

#[test]
fn configured_lineage_is_deployed_anew() {
    let host = DamagedHost::new();
    let output = configured(host.sync(), &[&host.lineage]).succeeds();
    assert!(output.stderr.ends_with(" was treated as a new lineage\n"), "{}", output.stderr);
    assert!(is_bound_to(&host.service, "a.example", &host.lineage));
    assert_eq!(configured(host.sync(), &[&host.lineage]).succeeds().stderr, "");
}

#[test]
fn damaged_state_without_pending_work_is_a_warning() {
    let host = DamagedHost::new();
    deploy(&host.service, &host.lineage, host.state.path()).succeeds();
    edit_state(&host.state_file, |state| state["begun"] = "yesterday".into());
    for _ in 0..2 {
        let output = host.sync().succeeds();
        assert!(output.stderr.starts_with("edgecert: warning: "), "{}", output.stderr);
        assert!(output.stderr.contains(host.name()), "{}", output.stderr);
    }
}

#[test]
fn damaged_state_is_reported_by_one_shard() {
    let host = DamagedHost::new();
    let codes = || ["0/2", "1/2"].map(|shard| host.sync().args(["--shard", shard]).run().code);
    for _ in 0..2 {
        let mut codes = codes();
        codes.sort_unstable();
        assert_eq!(codes, [0, 78]);
    }
}
