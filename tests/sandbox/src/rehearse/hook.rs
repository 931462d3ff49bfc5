//! Finds the real hook, runs it in an emptied environment, collects its output, and kills it when its time is up.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Interrupt, POLL_INTERVAL};
use crate::{Error, clock};

/// Limits of the output that is collected; the rest is discarded.
const MAX_LINES: usize = 1000;
const MAX_LINE_BYTES: u64 = 4 << 10;

/// Lines that may wait until they are collected.
const QUEUED_LINES: usize = 100;

/// An environment variable for the hook.
pub(super) type Variable = (&'static str, String);

/// The hook's executable.
#[derive(Debug)]
pub struct Hook {
    path: PathBuf,
    time_limit: Duration,
    /// Whether its output may contain characters beyond ASCII.
    is_utf8: bool,
}

impl Hook {
    /// Returns the hook at `explicit`, or else the `edgecert` in the directory of the executable `own`. It is killed when it
    /// runs longer than `time_limit`.
    pub fn find(explicit: Option<&Path>, own: Option<&Path>, time_limit: Duration) -> Result<Self, Error> {
        let sibling = own.and_then(Path::parent).map(|directory| directory.join("edgecert"));
        let path = explicit.map(Path::to_owned).or(sibling).unwrap_or_else(|| PathBuf::from("edgecert"));
        // Absolute, because the hook runs in another directory.
        match path.canonicalize() {
            Ok(path) if path.is_file() => Ok(Self { path, time_limit, is_utf8: false }),
            _ => Err(Error::HookNotFound(path)),
        }
    }

    /// Gives the hook a UTF-8 locale, as certbot does, instead of the locale `C`.
    #[must_use]
    pub fn utf8(self, is_utf8: bool) -> Self {
        Self { is_utf8, ..self }
    }

    /// Returns the path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how long the hook may run.
    pub(super) fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Starts the hook in `home` with these arguments and variables and no other but `PATH`, `HOME` and a locale.
    pub(super) fn start(
        &self,
        home: &Path,
        arguments: &[&str],
        variables: &[Variable],
    ) -> Result<RunningHook, Error> {
        let mut command = Command::new(&self.path);
        command.args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home).current_dir(home);
        if self.is_utf8 {
            command.env("LC_CTYPE", "C.UTF-8");
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The hook and the processes that it starts form a process group, which can be killed as a whole.
        command.process_group(0);
        let file_error = |source| Error::File { path: self.path.clone(), source };
        let mut child = command.spawn().map_err(file_error)?;
        let deadline = clock::monotonic() + self.time_limit;
        let (sender, lines) = sync_channel(QUEUED_LINES);
        if let Some(stdout) = child.stdout.take() {
            collect_lines(stdout, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            collect_lines(stderr, sender);
        }
        Ok(RunningHook { child, lines, deadline })
    }
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookEnd {
    /// With this exit code.
    Exit(i32),
    /// By a signal that the rehearsal did not send.
    Signal,
    /// It was killed because it took too long.
    TimedOut,
}

/// A running hook. Dropping it kills the hook and the processes that it has started.
pub(super) struct RunningHook {
    child: Child,
    lines: Receiver<String>,
    deadline: Instant,
}

impl RunningHook {
    pub(super) fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns whether the hook's time is up.
    pub(super) fn is_overdue(&self) -> bool {
        clock::monotonic() >= self.deadline
    }

    /// Waits until the hook has exited and its output has ended. Also returns the lines of its standard output and standard
    /// error in order of arrival.
    pub(super) fn wait(mut self, interrupt: &Interrupt) -> Result<(HookEnd, Vec<String>), Error> {
        let mut lines = Vec::new();
        while !(self.has_read_all(&mut lines) && self.has_exited()) {
            interrupt.check()?;
            if self.is_overdue() {
                return Ok((HookEnd::TimedOut, lines));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let code = self.child.wait().ok().and_then(|status| status.code());
        Ok((code.map_or(HookEnd::Signal, HookEnd::Exit), lines))
    }

    /// Takes the lines that have arrived, and returns whether there will be no more.
    fn has_read_all(&self, lines: &mut Vec<String>) -> bool {
        // Not those that arrive meanwhile: the output may be endless.
        for _ in 0..QUEUED_LINES {
            match self.lines.try_recv() {
                Ok(line) if lines.len() < MAX_LINES => lines.push(line),
                Ok(_) => {}
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
        false
    }
}

impl Drop for RunningHook {
    fn drop(&mut self) {
        // Also after a normal end, because what the hook has left running must not outlive the rehearsal. The ID of a group
        // is not reused while the group has members.
        if let Ok(id) = i32::try_from(self.child.id())
            && let Some(group) = Pid::from_raw(id)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Sends the lines of a stream, without control characters, from a thread of its own.
fn collect_lines(stream: impl Read + Send + 'static, sender: SyncSender<String>) {
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!((&mut stream).take(MAX_LINE_BYTES).read_until(b'\n', &mut line), Ok(1..)) {
            let text: String = String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
            line.clear();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
}
