//! A call of a program, and what a call of edgecert does.

use std::ffi::OsString;
use std::path::PathBuf;

use super::program::{Program, SNAP_APP};
use crate::cli::{Command, Invocation, Task};
use crate::cmd::doctor::host::Host;
use crate::env::Env;
use crate::source::Named;

/// A call of a program.
#[derive(Clone, Debug, Default)]
pub(in crate::cmd::doctor) struct Call {
    /// The program as it is written.
    pub(in crate::cmd::doctor) program: String,
    pub(in crate::cmd::doctor) arguments: Vec<String>,
    /// The user that a wrapper switches to.
    pub(in crate::cmd::doctor) user: Option<String>,
    /// Variables that are set for it, in order.
    pub(super) environment: Vec<(String, String)>,
    /// The scripts around it, as they are written.
    pub(super) scripts: Vec<String>,
    /// Whether the arguments were guessed from a script that is not a shell script.
    pub(super) is_guess: bool,
}

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd::doctor) enum Action {
    /// Deploys the certificate that the arguments name, or else that of the hook's variables.
    Deploy { cert: Option<PathBuf>, lineage: Option<PathBuf> },
    /// Runs `sync`, with this state directory.
    Sync { state_dir: Option<PathBuf> },
    /// Deploys nothing.
    Other,
}

impl Call {
    /// What a call of edgecert does, according to edgecert's own parser.
    pub(in crate::cmd::doctor) fn action(&self) -> Action {
        if self.is_guess {
            return self.guessed_action();
        }
        // In a hook, a call without arguments deploys.
        let env: Env = [("RENEWED_LINEAGE", "/")].into_iter().collect();
        let words =
            std::iter::once(Program::Edgecert.name()).chain(self.arguments.iter().map(String::as_str));
        let words: Vec<OsString> = words.map(OsString::from).collect();
        match Invocation::parse(&words, &env, None) {
            Invocation::Command(command_line) => match &command_line.task {
                Task::Command(Command::Deploy(args)) if !args.dry_run => {
                    let Named { cert, lineage, .. } = args.certificate.named();
                    Action::Deploy { cert, lineage }
                }
                Task::Command(Command::Sync(args)) => {
                    let flag = args.settings.layer.state_dir.clone();
                    Action::Sync { state_dir: flag.or_else(|| self.variable("EDGECERT_STATE_DIR")) }
                }
                Task::DehydratedDeploy(_) => Action::Deploy { cert: None, lineage: None },
                Task::Command(_) | Task::DehydratedSync(_) => Action::Other,
            },
            // Only the script knows the value of words such as `"$@"`.
            Invocation::Usage(_) if self.arguments.iter().any(|word| word.contains('$')) => {
                self.guessed_action()
            }
            _ => Action::Other,
        }
    }

    fn guessed_action(&self) -> Action {
        const COMMANDS: [&str; 8] =
            ["deploy", "sync", "check", "plan", "status", "doctor", "help", "completions"];
        if self.arguments.iter().any(|word| word == "--dry-run") {
            return Action::Other;
        }
        match self.arguments.iter().find(|word| COMMANDS.contains(&word.as_str())).map(String::as_str) {
            None | Some("deploy") => Action::Deploy { cert: None, lineage: None },
            Some("sync") => Action::Sync { state_dir: self.variable("EDGECERT_STATE_DIR") },
            Some(_) => Action::Other,
        }
    }

    fn variable(&self, wanted: &str) -> Option<PathBuf> {
        let last = self.environment.iter().rev().find(|(name, _)| name == wanted);
        last.map(|(_, value)| PathBuf::from(value))
    }

    /// Adds variables that the caller sets. Its search path is known to the finder.
    pub(in crate::cmd::doctor) fn with_environment(mut self, variables: &[(String, String)]) -> Self {
        let variables = variables.iter().filter(|(name, _)| name != "PATH").cloned();
        self.environment.splice(0..0, variables);
        self
    }

    /// Replaces the search path of its caller.
    pub(in crate::cmd::doctor) fn with_path(mut self, path: &[String]) -> Self {
        self.environment.insert(0, ("PATH".to_owned(), path.join(":")));
        self
    }

    /// The words that name programs: scripts around it, and the program itself. snapd finds its own.
    pub(super) fn searched(&self) -> impl Iterator<Item = &str> {
        let scripts = self.scripts.iter().map(String::as_str).filter(|word| !word.contains('/'));
        scripts.chain([self.program.as_str()].into_iter().filter(|program| *program != SNAP_APP))
    }

    /// The directories that are searched for it: the caller's, as changed by the commands around it. One that depends
    /// on an unknown variable keeps its `$`.
    pub(in crate::cmd::doctor) fn search_path(&self, callers: &[String], host: &Host<'_>) -> Vec<String> {
        let mut path = callers.to_vec();
        for (_, value) in self.environment.iter().filter(|(name, _)| name == "PATH") {
            let value = value.replace("${PATH}", "$PATH").replace("$PATH", &path.join(":"));
            path = value.split(':').map(|directory| host.expand_home(directory)).collect();
        }
        path
    }

    /// The value of the first of these options, as the next word or after `=`.
    pub(in crate::cmd::doctor) fn option(&self, names: &[&str]) -> Option<&str> {
        let mut words = self.arguments.iter();
        while let Some(word) = words.next() {
            if names.contains(&word.as_str()) {
                return words.next().map(String::as_str);
            }
            if let Some((name, value)) = word.split_once('=')
                && names.contains(&name)
            {
                return Some(value);
            }
        }
        None
    }

    /// Whether one of its arguments is one of these.
    pub(in crate::cmd::doctor) fn has_argument(&self, wanted: &[&str]) -> bool {
        self.arguments.iter().any(|word| wanted.contains(&word.as_str()))
    }
}
