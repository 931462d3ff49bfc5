//! The real hook: found, started as certbot starts it, and listened to.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::Error;

/// The hook's program.
#[derive(Debug)]
pub struct Hook {
    program: PathBuf,
}

impl Hook {
    /// The program that was named, else the one beside this program.
    pub fn find(named: Option<&Path>, own: Option<&Path>) -> Result<Self, Error> {
        let beside = own.and_then(Path::parent).map(|directory| directory.join("edgecert"));
        let program = named.map(Path::to_owned).or(beside).unwrap_or_else(|| PathBuf::from("edgecert"));
        // The hook is started from another directory.
        match program.canonicalize() {
            Ok(program) if program.is_file() => Ok(Self { program }),
            _ => Err(Error::HookNotFound(program)),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.program
    }

    /// Starts it with nothing but these arguments and variables and a plain `PATH`.
    pub(super) fn start(
        &self,
        home: &Path,
        arguments: &[&str],
        variables: &[(&str, String)],
    ) -> Result<Running, Error> {
        let fail = |source| Error::File { path: self.program.clone(), source };
        let mut command = Command::new(&self.program);
        command.args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home).current_dir(home);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        let (tell, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            listen(stdout, tell.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            listen(stderr, tell);
        }
        Ok(Running { child, lines })
    }
}

/// The hook while it runs.
pub(super) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Whether it has ended.
    pub(super) fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the end: exit code, `None` after a signal, and what it printed in the order of arrival.
    pub(super) fn finish(mut self) -> (Option<i32>, Vec<String>) {
        let lines = self.lines.iter().collect();
        let status = self.child.wait().ok().and_then(|status| status.code());
        (status, lines)
    }
}

/// Sends on what a stream says, line by line, without control characters.
fn listen(stream: impl Read + Send + 'static, tell: Sender<String>) {
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(stream.read_until(b'\n', &mut line), Ok(1..)) {
            let text: String = String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
            line.clear();
            if tell.send(text).is_err() {
                return;
            }
        }
    });
}
