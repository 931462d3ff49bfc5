//! Finds the calls of edgecert in commands, also through shells, wrappers and scripts, and determines what they do.

mod lexer;
mod shell;
mod wrapper;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) use self::lexer::words;
use self::wrapper::{Inner, Unwrapped};
use super::host::{Host, ProgramStatus, file_name, is_executable, read_text};
use crate::cli::{Command, Invocation, Task};
use crate::env::Env;
use crate::source::Named;

/// The name of the program.
pub(super) const PROGRAM: &str = "edgecert";

/// The simulated service, which is not edgecert itself.
const SANDBOX: &str = "edgecert-sandbox";

/// Maximum depth of scripts that call each other.
const MAX_DEPTH: usize = 4;

/// Programs of the distribution do not call edgecert, and reading every program that a script runs would be slow.
const DISTRIBUTION: [&str; 6] = ["/bin", "/sbin", "/lib", "/usr/bin", "/usr/sbin", "/usr/lib"];

/// A call of edgecert.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    /// The program as it is written.
    pub(super) program: String,
    arguments: Vec<String>,
    /// The user that a wrapper switches to.
    pub(super) user: Option<String>,
    /// Variables that are set for it.
    environment: Vec<(String, String)>,
    /// Whether the arguments were guessed from a script that is not a shell script.
    is_guess: bool,
}

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Deploys the certificate that the arguments name, or else that of the hook's variables.
    Deploy { cert: Option<PathBuf>, lineage: Option<PathBuf> },
    /// Runs `sync`, with this state directory.
    Sync { state_dir: Option<PathBuf> },
    /// Deploys nothing.
    Other,
}

/// Finds the calls of a service unit.
pub(super) type UnitCalls<'a> = &'a dyn Fn(&str) -> Vec<Call>;

/// Searches for calls on a host.
#[derive(Clone, Copy)]
pub(super) struct CallFinder<'a> {
    pub(super) host: &'a Host<'a>,
    /// Directories of programs that are named without a path.
    pub(super) path: &'a [String],
    /// Calls of the service units that commands may start.
    pub(super) unit_calls: Option<UnitCalls<'a>>,
}

impl CallFinder<'_> {
    /// Calls in shell text.
    pub(super) fn in_text(&self, text: &str) -> Vec<Call> {
        self.in_text_below(text, &Call::default(), 0)
    }

    /// Calls in the words of one command.
    pub(super) fn in_words(&self, words: &[String]) -> Vec<Call> {
        let mut calls = Vec::new();
        self.add(words, Call::default(), 0, &mut calls);
        calls
    }

    /// Calls in an entry of a directory of scripts: edgecert itself, a link to it, or a script of any name.
    pub(super) fn in_entry(&self, path: &Path) -> Vec<Call> {
        let Some(word) = path.to_str() else { return Vec::new() };
        let target = self.host.at(path).read_link().unwrap_or_default();
        if file_name(&target) != PROGRAM && read_text(&self.host.at(path)).is_some() {
            return self.in_script(word, true, &Call::default(), 0);
        }
        self.in_words(&[word.to_owned()])
    }

    /// Whether the program of a call exists.
    pub(super) fn status(&self, call: &Call) -> ProgramStatus {
        self.host.program_status(&call.program, self.path)
    }

    fn in_text_below(&self, text: &str, outer: &Call, depth: usize) -> Vec<Call> {
        let mut calls = Vec::new();
        if depth < MAX_DEPTH {
            for words in shell::commands(text) {
                self.add(&words, outer.clone(), depth, &mut calls);
            }
        }
        calls
    }

    /// Adds the calls of a command. `call` holds what the commands around it set.
    fn add(&self, words: &[String], mut call: Call, depth: usize, calls: &mut Vec<Call>) {
        let mut words = words;
        loop {
            while let Some((first, rest)) = words.split_first().filter(|(first, _)| is_assignment(first)) {
                let (name, value) = first.split_once('=').unwrap_or_default();
                call.environment.push((name.to_owned(), value.to_owned()));
                words = rest;
            }
            let Some((program, arguments)) = words.split_first() else { return };
            if self.is_edgecert(program) {
                calls.push(Call { program: program.clone(), arguments: arguments.to_vec(), ..call });
                return;
            }
            let Some(Unwrapped { inner, user }) = wrapper::unwrap(words) else {
                return calls.extend(self.in_script(program, true, &call, depth + 1));
            };
            call.user = user.map(str::to_owned).or(call.user);
            match inner {
                Inner::Command(inner) => words = inner,
                Inner::Text(text) => return calls.extend(self.in_text_below(&text, &call, depth + 1)),
                Inner::Script(path) => return calls.extend(self.in_script(path, false, &call, depth + 1)),
                Inner::Unit(name) => {
                    return calls.extend(self.unit_calls.map(|calls_of| calls_of(name)).unwrap_or_default());
                }
            }
        }
    }

    /// Whether a word names the program: by its name, or by a link to it. A script may have a similar name.
    fn is_edgecert(&self, word: &str) -> bool {
        let name = file_name(Path::new(word));
        if name == PROGRAM {
            return true;
        }
        let found = self.host.find_program(word, self.path);
        let target = found.as_deref().and_then(|path| path.canonicalize().ok());
        let is_link = target.is_some_and(|target| file_name(&target) == PROGRAM);
        let is_script = || found.as_deref().is_some_and(|path| read_text(path).is_some());
        is_link || name.starts_with(PROGRAM) && name != SANDBOX && !is_script()
    }

    /// Calls in a script; none if it `is_run` as a program but is not executable.
    fn in_script(&self, word: &str, is_run: bool, outer: &Call, depth: usize) -> Vec<Call> {
        let Some(path) = self.host.find_program(word, self.path) else { return Vec::new() };
        let is_of_distribution =
            DISTRIBUTION.iter().any(|directory| path.starts_with(self.host.at(directory)));
        if is_of_distribution && !file_name(&path).contains(PROGRAM) {
            return Vec::new();
        }
        let Some(text) = read_text(&path).filter(|_| !is_run || is_executable(&path)) else {
            return Vec::new();
        };
        let interpreter = text.lines().next().and_then(|line| line.strip_prefix("#!"));
        if interpreter.is_none_or(|line| line.contains("sh")) {
            return self.in_text_below(&text, outer, depth);
        }
        text.lines().filter_map(|line| guess(line, outer)).collect()
    }
}

/// A call in a line of another language, such as `run(["edgecert", "sync"])`.
fn guess(line: &str, outer: &Call) -> Option<Call> {
    if line.trim_start().starts_with(['#', '/']) {
        return None;
    }
    let is_separator = |c: char| c.is_whitespace() || ";|&()[]{}'\",".contains(c);
    let mut words = line.split(is_separator).filter(|word| !word.is_empty());
    let program = words.find(|word| file_name(Path::new(word)) == PROGRAM)?.to_owned();
    let arguments = words.map(str::to_owned).collect();
    Some(Call { program, arguments, is_guess: true, ..outer.clone() })
}

impl Call {
    /// What the call does, according to edgecert's own parser.
    pub(super) fn action(&self) -> Action {
        if self.is_guess {
            return self.guessed_action();
        }
        // In a hook, a call without arguments deploys.
        let env: Env = [("RENEWED_LINEAGE", "/")].into_iter().collect();
        let words = std::iter::once(PROGRAM).chain(self.arguments.iter().map(String::as_str));
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

    /// Adds variables that the caller sets.
    pub(super) fn with_environment(mut self, variables: &[(String, String)]) -> Self {
        self.environment.splice(0..0, variables.iter().cloned());
        self
    }
}

/// Whether a word assigns a variable.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && is_name(name)
}
