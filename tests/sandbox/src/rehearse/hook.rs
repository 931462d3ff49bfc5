//! Finds the real hook, runs it in an emptied environment, and collects its output.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::Error;

/// An environment variable for the hook.
pub(super) type Variable = (&'static str, String);

/// The hook's executable.
#[derive(Debug)]
pub struct Hook {
    path: PathBuf,
}

impl Hook {
    /// Returns the hook at `explicit`, or else the `edgecert` in the directory of the executable `own`.
    pub fn find(explicit: Option<&Path>, own: Option<&Path>) -> Result<Self, Error> {
        let sibling = own.and_then(Path::parent).map(|directory| directory.join("edgecert"));
        let path = explicit.map(Path::to_owned).or(sibling).unwrap_or_else(|| PathBuf::from("edgecert"));
        // Absolute, because the hook runs in another directory.
        match path.canonicalize() {
            Ok(path) if path.is_file() => Ok(Self { path }),
            _ => Err(Error::HookNotFound(path)),
        }
    }

    /// Returns the path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the hook in `home` with these arguments and variables and no other but `PATH` and `HOME`.
    pub(super) fn start(
        &self,
        home: &Path,
        arguments: &[&str],
        variables: &[Variable],
    ) -> Result<RunningHook, Error> {
        let mut command = Command::new(&self.path);
        command.args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home).current_dir(home);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let file_error = |source| Error::File { path: self.path.clone(), source };
        let mut child = command.spawn().map_err(file_error)?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            collect_lines(stdout, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            collect_lines(stderr, sender);
        }
        Ok(RunningHook { child, lines })
    }
}

/// A running hook.
pub(super) struct RunningHook {
    child: Child,
    lines: Receiver<String>,
}

impl RunningHook {
    pub(super) fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the hook to exit. Returns its exit code, or `None` if a signal killed it, and the lines of
    /// its standard output and standard error in order of arrival.
    pub(super) fn wait(mut self) -> (Option<i32>, Vec<String>) {
        let lines = self.lines.iter().collect();
        let code = self.child.wait().ok().and_then(|status| status.code());
        (code, lines)
    }
}

/// Sends the lines of a stream, without control characters, from a thread of its own.
fn collect_lines(stream: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(stream.read_until(b'\n', &mut line), Ok(1..)) {
            let text: String = String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
            line.clear();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
}
