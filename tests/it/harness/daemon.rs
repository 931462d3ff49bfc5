//! Runs a server in a temporary directory, until the test ends.

use std::fs::{self, File};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

use super::require;

/// A wait fails after a minute. Most events take a second, but a busy host may need more.
const MAX_ATTEMPTS: u32 = 6_000;
const RETRY_DELAY: Duration = Duration::from_millis(10);
const LOG: &str = "daemon.log";

/// A running program with a directory of its own. It is terminated on drop.
pub(crate) struct Daemon {
    process: Child,
    directory: TempDir,
}

impl Daemon {
    /// Starts a program in a directory, with its output in a file there.
    pub(crate) fn start(directory: TempDir, program: &str, package: &str, arguments: &[&str]) -> Self {
        Self::with_env(directory, program, package, arguments, &[])
    }

    /// As [`Self::start`], with these variables.
    pub(crate) fn with_env(
        directory: TempDir,
        program: &str,
        package: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        require(program, package);
        let log = File::create(directory.path().join(LOG)).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory.path()).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", directory.path());
        command.envs(variables.iter().copied());
        let process =
            command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { process, directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The address that a program of the Prometheus project logs after it was started with port 0.
    pub(crate) fn address(&mut self) -> String {
        self.wait_for("an address", |directory| {
            let log = fs::read_to_string(directory.join(LOG)).unwrap();
            let addresses = log.split("address=").skip(1).filter_map(|rest| rest.split_whitespace().next());
            addresses.filter(|address| !address.ends_with(":0")).map(str::to_owned).next()
        })
    }

    /// Waits until the closure, which receives the directory, returns a value.
    #[track_caller]
    pub(crate) fn wait_for<T>(&mut self, what: &str, mut value: impl FnMut(&Path) -> Option<T>) -> T {
        let found = poll(|| match value(self.directory.path()) {
            Some(value) => Some(Ok(value)),
            None => self.process.try_wait().unwrap().map(Err),
        });
        let ended = match found {
            Some(Ok(value)) => return value,
            Some(Err(status)) => Some(status),
            None => None,
        };
        let log = fs::read_to_string(self.path(LOG)).unwrap();
        panic!("no {what}; ended: {ended:?}; log:\n{log}");
    }
}

/// The lines of a request or response before its body.
pub(crate) fn read_head(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => return Some(head),
            line => head.push(line.to_owned()),
        }
    }
}

/// Calls a function until it returns a value, for a minute.
pub(crate) fn poll<T>(mut value: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(value) = value() {
            return Some(value);
        }
        sleep(RETRY_DELAY);
    }
    None
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
