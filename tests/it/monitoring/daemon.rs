//! Runs a monitoring system in a temporary directory, until the test ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::require;

/// A wait fails after a minute. Most events take a second, but a busy host may need more.
const MAX_ATTEMPTS: u32 = 1_200;
const RETRY_DELAY: Duration = Duration::from_millis(50);
const LOG: &str = "daemon.log";

/// A running program with a directory of its own. It is terminated on drop.
pub(super) struct Daemon {
    process: Child,
    directory: TempDir,
}

impl Daemon {
    /// Starts a program in a directory, with its output in a file there.
    pub(super) fn start(directory: TempDir, program: &str, package: &str, arguments: &[&str]) -> Self {
        require(program, package);
        let log = File::create(directory.path().join(LOG)).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory.path()).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", directory.path());
        let process =
            command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { process, directory }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The address that a program of the Prometheus project logs after it was started with port 0.
    pub(super) fn address(&mut self) -> String {
        self.wait_for("an address", |directory| {
            let log = fs::read_to_string(directory.join(LOG)).unwrap();
            let addresses = log.split("address=").skip(1).filter_map(|rest| rest.split_whitespace().next());
            addresses.filter(|address| !address.ends_with(":0")).map(str::to_owned).next()
        })
    }

    /// Waits until the closure, which receives the directory, returns a value.
    #[track_caller]
    pub(super) fn wait_for<T>(&mut self, what: &str, mut value: impl FnMut(&Path) -> Option<T>) -> T {
        let mut ended = None;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(value) = value(self.directory.path()) {
                return value;
            }
            ended = self.process.try_wait().unwrap();
            if ended.is_some() {
                break;
            }
            sleep(RETRY_DELAY);
        }
        let log = fs::read_to_string(self.path(LOG)).unwrap();
        panic!("no {what}; ended: {ended:?}; log:\n{log}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Not SIGKILL, which would leave their helpers behind.
        let terminated = Command::new("kill").arg(self.process.id().to_string()).status();
        if !terminated.is_ok_and(|status| status.success()) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}
