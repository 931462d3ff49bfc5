//! Hosts to be monitored, each with a real deployment: a healthy one, and one for each kind of problem.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use time::macros::format_description;
use time::{Duration, OffsetDateTime};

use crate::harness::{
    EdgeAddress, Hook, Lineage, P256, Sandbox, deploy, edgecert, edit_state, sandbox, state_files, sync,
    test_ca,
};

/// The site of each host.
pub(super) const SITE: &str = "a.example";

/// A host that deployed a certificate and ran `sync`.
pub(super) struct Host {
    service: Sandbox,
    pub(super) state: TempDir,
    lineage: Lineage,
    /// An address of the edge that `status` is to connect to.
    edge: Option<String>,
}

/// Lifetime of the certificate of an expiring host.
const SHORT_LIFETIME: Duration = Duration::days(6);
/// The record of the last `sync` in the state directory.
const LAST_SYNC: &str = "last-sync";

impl Host {
    /// A healthy host.
    pub(super) fn healthy() -> Self {
        Self::with(Lineage::issued_for(&[SITE]))
    }

    /// This much of a 6-day certificate is left.
    pub(super) fn expiring(left: Duration) -> Self {
        let lineage = Lineage::from_openssl(&P256);
        let until = now() + left;
        let format = format_description!("[year][month][day][hour][minute][second]Z");
        let [from, until] = [until - SHORT_LIFETIME, until].map(|at| at.format(format).unwrap());
        lineage.sign_between(&from, &until);
        Self::with(lineage)
    }

    /// A renewal has been pending for this long; `sync` does not finish it.
    pub(super) fn pending(age: Duration) -> Self {
        let host = Self::healthy();
        host.lineage.renew(&[SITE]);
        let unreachable =
            |hook: Hook| hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").args(["--timeout", "1"]);
        unreachable(deploy(&host.service, &host.lineage, host.state.path())).exits_with(75);
        unreachable(sync(&host.service, host.state.path())).exits_with(75);
        let since = now() - age;
        edit_state(&state_files(host.state.path())[0], |state| state["pending_since"] = rfc3339(since));
        host
    }

    /// The last `sync` ended this long ago.
    pub(super) fn without_timer(age: Duration) -> Self {
        let host = Self::healthy();
        let ended = now() - age;
        edit_state(&host.state.path().join(LAST_SYNC), |record| record["ended_at"] = rfc3339(ended));
        host
    }

    /// The edge serves a certificate for the site that this host did not deploy.
    pub(super) fn stale() -> Self {
        let mut host = Self::healthy();
        let other = test_ca().issue_between(&[SITE], [-30, 60]).unwrap();
        let address = EdgeAddress::serving(&other.fullchain(), &other.key);
        host.edge = Some(host.service.open_edge_address(&address));
        host
    }

    /// A state file cannot be parsed, so nothing is known of its lineage.
    pub(super) fn damaged() -> Self {
        let host = Self::healthy();
        fs::write(host.state.path().join("other-0123456789.json"), "{").unwrap();
        host
    }

    /// Another lineage was deployed to the site later.
    pub(super) fn superseded() -> Self {
        let host = Self::healthy();
        let later = Lineage::issued_for(&[SITE]);
        later.renew_between(&[SITE], [0, 90]);
        deploy(&host.service, &later, host.state.path()).succeeds();
        sync(&host.service, host.state.path()).succeeds();
        Self { lineage: later, ..host }
    }

    fn with(lineage: Lineage) -> Self {
        let (service, state) = (sandbox(&[SITE]), TempDir::new().unwrap());
        deploy(&service, &lineage, state.path()).succeeds();
        sync(&service, state.path()).succeeds();
        Self { service, state, lineage, edge: None }
    }

    /// A call of `status` on this host.
    pub(super) fn status(&self) -> Hook {
        let status = edgecert().args(["status"]).with_state(self.state.path());
        match &self.edge {
            Some(address) => status.args(["--verify", "--edge-address", address]),
            None => status,
        }
    }

    /// Exit code and output of `status --check`.
    pub(super) fn check(&self) -> (i32, String) {
        let output = self.status().args(["--check"]).run();
        (output.code, output.stdout)
    }

    /// Writes the metrics file; returns the JSON report of the same run, with the verdict of the check.
    pub(super) fn write_metrics(&self, file: &Path) -> Value {
        self.status().args(["--check", "--json", "--metrics"]).args([file]).run().json()
    }

    /// Writes a script that replaces `sudo -n edgecert`.
    pub(super) fn write_script(&self, file: &Path) {
        write_script(file, self.state.path());
    }
}

/// Writes a script that runs edgecert with a state directory.
pub(super) fn write_script(file: &Path, state: &Path) {
    let mut hook = edgecert().args(["status"]);
    let program = PathBuf::from(hook.command().get_program());
    let text = format!(
        "#!/bin/sh\nexport HOME=/nonexistent EDGECERT_STATE_DIR='{}'\nexec '{}' \"$@\"\n",
        state.display(),
        program.display()
    );
    let source = file.with_extension("source");
    fs::write(&source, text).unwrap();
    // Not written here: what another test starts at this moment would hold it open, and it could not be run.
    let installed = std::process::Command::new("install").args(["-m", "755"]).args([&source, file]).status();
    assert!(installed.unwrap().success());
}

#[expect(
    clippy::disallowed_methods,
    reason = "certificates and state files that are so old, for the real programs"
)]
pub(super) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

fn rfc3339(at: OffsetDateTime) -> Value {
    let at = at.replace_nanosecond(0).unwrap();
    json!(at.format(&time::format_description::well_known::Rfc3339).unwrap())
}
