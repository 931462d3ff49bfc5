//! A host of its own for `doctor`: systemd with the units of edgecert, edgecert, and a record of its timer. It does not see
//! the system files of the machine that runs the tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::Hook;

/// The root directory of the host, below the home directory of the hook.
const ROOT: &str = "host";

const FILES: [(&str, &str); 3] = [
    ("usr/local/bin/edgecert", ""),
    ("run/systemd/system/.keep", ""),
    ("usr/lib/systemd/system/edgecert-sync.timer", "[Timer]\nOnCalendar=hourly\n"),
];

impl Hook {
    /// Examines such a host; for `doctor` only.
    pub(crate) fn on_host(self) -> Self {
        for (path, text) in FILES {
            let file = self.write_file(&format!("{ROOT}/{path}"), text);
            fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
        }
        record_sync(&self.home().join("state"));
        // Tests name lineages and scripts by their paths outside.
        let temporary = std::env::temp_dir();
        let link = self.host_path(temporary.strip_prefix("/").unwrap().to_str().unwrap());
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&temporary, link).unwrap();
        let root = self.host_path("");
        self.args(["--root"]).args([root])
    }

    /// Where a file of the host is.
    pub(crate) fn host_path(&self, path: &str) -> PathBuf {
        self.home().join(ROOT).join(path)
    }
}

/// Records an unattended `sync` twelve minutes ago in a state directory, which is created.
#[expect(clippy::disallowed_methods, reason = "the program compares the record with the real time")]
pub(crate) fn record_sync(state: &Path) {
    fs::create_dir_all(state).unwrap();
    fs::set_permissions(state, Permissions::from_mode(0o700)).unwrap();
    let ended_at = OffsetDateTime::now_utc() - Duration::seconds(12 * 60 + 10);
    let record = json!({
        "version": 1,
        "ended_at": ended_at.format(&Rfc3339).unwrap(),
        "exit_code": 0,
        "message": null,
        "failing_since": null,
        "unattended": true,
    });
    fs::write(state.join("last-sync"), record.to_string()).unwrap();
}
