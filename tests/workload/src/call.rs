//! A call of the hook, to be run as it is or under a program that observes it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// A command line with its whole environment.
#[derive(Clone)]
pub struct Call {
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
}

impl Call {
    /// A call of a program without arguments, in an empty environment.
    pub fn new(program: &Path) -> Self {
        Self { args: vec![program.into()], env: Vec::new() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.as_ref().to_owned()));
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| *known != name);
        self
    }

    /// The command.
    pub fn command(&self) -> Command {
        self.under(&[] as &[&OsStr])
    }

    /// The command as the last arguments of another program.
    pub fn under(&self, wrapper: &[impl AsRef<OsStr>]) -> Command {
        let wrapper = wrapper.iter().map(|arg| arg.as_ref().to_owned());
        let mut args = wrapper.chain(self.args.iter().cloned());
        let mut command = Command::new(args.next().unwrap_or_default());
        command.args(args).env_clear().envs(self.env.iter().cloned()).stdin(Stdio::null());
        command
    }
}
