//! A damaged state file may be that of a pending deployment: every `sync` fails until that is resolved.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use crate::harness::{Hook, Host, Lineage, Output, configured, deploy, edit_state, is_bound_to, step};

/// A host with two lineages; the deployment of one is pending, and its state file is damaged.
struct DamagedHost {
    host: Host,
    other: Lineage,
    /// The state file before it was damaged.
    state_file: PathBuf,
}

impl DamagedHost {
    fn new() -> Self {
        let (host, other) =
            (Host::with(&["a.example", "b.example"], &["a.example"]), Lineage::issued_for(&["b.example"]));
        host.hook().fails_temporarily(&host.service);
        let state_file = host.state_file();
        fs::write(&state_file, "{").unwrap();
        deploy(&host.service, &other, host.state()).succeeds();
        Self { host, other, state_file }
    }

    fn sync(&self) -> Hook {
        self.host.sync()
    }

    fn status(&self, arguments: &[&str]) -> Hook {
        self.host.status(arguments)
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
        output.says(format!(
            "{} is an invalid state file, so {name} may be pending and is not retried",
            kept.display()
        ));
        output.says(format!(
            "edgecert: hint: deploy the lineage again, for example with `edgecert deploy --lineage DIR`, or run `edgecert status --forget {name}`"
        ));
    }
}

#[test]
fn damaged_pending_state_is_reported() {
    let damaged = DamagedHost::new();

    step("damaged_state_is_reported_by_one_shard");
    for _ in 0..2 {
        let mut codes = ["0/2", "1/2"].map(|shard| damaged.sync().args(["--shard", shard]).run().code);
        codes.sort_unstable();
        assert_eq!(codes, [0, 78]);
    }

    step("damaged_pending_state_fails_every_sync");
    for _ in 0..2 {
        let output = damaged.sync().exits_with(78);
        damaged.assert_unresolved(&output);
        assert!(output.shown().ends_with("2 lineages: 1 unchanged, 1 failed (TIME)\n"), "{}", output.stdout);
        damaged.status(&[]).exits_with(78).says(format!("`edgecert status --forget {}`", damaged.name()));
        damaged.status(&["--check"]).exits_with(1);
    }
    assert_eq!(fs::read(damaged.kept()).unwrap(), b"{");
    // The work of others goes on.
    damaged.other.renew(&["b.example"]);
    damaged.sync().exits_with(78);
    assert!(is_bound_to(&damaged.host.service, "b.example", &damaged.other));
    // Pending for longer than the limit.
    let written = UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    File::options().write(true).open(damaged.kept()).unwrap().set_modified(written).unwrap();
    damaged.status(&["--check"]).exits_with(2).prints("may be pending and is not retried");
}

#[test]
fn deploying_again_resolves_a_damaged_state() {
    let damaged = DamagedHost::new();
    damaged.sync().exits_with(78);
    damaged.host.hook().succeeds();
    let output = damaged.sync().succeeds();
    assert_eq!((&*output.shown(), &*output.stderr), ("2 lineages: 2 unchanged (TIME)\n", ""));
    assert_eq!(damaged.status(&["--check"]).succeeds().stderr, "");
    assert!(damaged.kept().exists(), "kept for inspection");
}

#[test]
fn failed_deployment_is_pending_again() {
    let damaged = DamagedHost::new();
    damaged.sync().exits_with(78);
    damaged.host.hook().fails_temporarily(&damaged.host.service);
    damaged.sync().succeeds();
    assert!(damaged.host.is_bound("a.example"));
}

#[test]
fn forgetting_resolves_a_damaged_state() {
    let damaged = DamagedHost::new();
    damaged.sync().exits_with(78);
    assert_eq!(damaged.status(&["--forget", damaged.name()]).succeeds().stderr, "");
    assert!(!damaged.kept().exists());
    damaged.sync().succeeds();

    let damaged = DamagedHost::new();
    damaged.sync().exits_with(78);
    fs::remove_file(damaged.kept()).unwrap();
    damaged.sync().succeeds();
}

#[test]
fn configured_lineage_is_deployed_anew() {
    let damaged = DamagedHost::new();
    let output = configured(damaged.sync(), &[&damaged.host.lineage]).succeeds();
    assert!(output.stderr.ends_with(" was treated as a new lineage\n"), "{}", output.stderr);
    assert!(damaged.host.is_bound("a.example"));
    assert_eq!(configured(damaged.sync(), &[&damaged.host.lineage]).succeeds().stderr, "");
}

#[test]
fn damaged_state_without_pending_work_is_a_warning() {
    let damaged = DamagedHost::new();
    damaged.host.hook().succeeds();
    edit_state(&damaged.state_file, |state| state["begun"] = "yesterday".into());
    for _ in 0..2 {
        let output = damaged.sync().succeeds();
        assert!(output.stderr.starts_with("edgecert: warning: "), "{}", output.stderr);
        output.says(damaged.name());
    }
}
