//! A host of its own for `doctor`: systemd, cron, certbot and edgecert with their timers, acme.sh with its cron job. It
//! does not see the system files of the machine that runs the tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::Hook;
use super::hook::binary;

/// The root directory of the host, below the home directory of the hook.
const ROOT: &str = "host";

const FILES: [(&str, &str, u32); 12] = [
    ("etc/passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n", 0o644),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644),
    ("run/systemd/system/.keep", "", 0o644),
    ("usr/bin/certbot", "#!/usr/bin/python3\n", 0o755),
    ("usr/local/bin/acme.sh", "#!/bin/sh\n", 0o755),
    (
        "etc/cron.d/acme",
        "PATH=/usr/local/bin:/usr/bin:/bin\n7 3 * * * root acme.sh --cron > /dev/null\n",
        0o644,
    ),
    ("usr/bin/flock", "", 0o755),
    ("usr/sbin/cron", "", 0o755),
    ("usr/lib/systemd/system/certbot.timer", "[Timer]\nOnCalendar=*-*-* 00,12:00:00\n", 0o644),
    (
        "usr/lib/systemd/system/certbot.service",
        "[Service]\nExecStart=/usr/bin/certbot -q renew --no-random-sleep-on-renew\n",
        0o644,
    ),
    ("usr/lib/systemd/system/edgecert-sync.timer", "[Timer]\nOnCalendar=hourly\n", 0o644),
    ("usr/lib/systemd/system/edgecert-sync.service", "[Service]\nExecStart=edgecert sync\n", 0o644),
];

impl Hook {
    /// Examines such a host; for `doctor` only.
    pub(crate) fn on_host(self) -> Self {
        for (path, text, mode) in FILES {
            self.write_host_file(path, text, mode);
        }
        self.link_host_file("usr/local/bin/edgecert", binary());
        for timer in ["certbot.timer", "edgecert-sync.timer"] {
            let link = format!("etc/systemd/system/timers.target.wants/{timer}");
            self.link_host_file(&link, Path::new("/usr/lib/systemd/system").join(timer));
        }
        // Tests name lineages and scripts by their paths outside.
        let temporary = std::env::temp_dir();
        self.link_host_file(temporary.strip_prefix("/").unwrap().to_str().unwrap(), &temporary);
        let root = self.host_path("");
        self.args(["--root"]).args([root])
    }

    /// Where a file of the host is.
    pub(crate) fn host_path(&self, path: &str) -> PathBuf {
        self.home().join(ROOT).join(path)
    }

    /// Writes a file of the host.
    pub(crate) fn write_host_file(&self, path: &str, text: &str, mode: u32) -> PathBuf {
        let file = self.write_file(&format!("{ROOT}/{path}"), text);
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        file
    }

    /// Removes a file of the host.
    pub(crate) fn remove_host_file(&self, path: &str) {
        fs::remove_file(self.host_path(path)).unwrap();
    }

    fn link_host_file(&self, path: &str, target: impl AsRef<Path>) {
        let link = self.host_path(path);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }
}
