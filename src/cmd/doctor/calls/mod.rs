//! Finds the calls of a program in commands, also through shells, wrappers and scripts, and determines what they do.

mod call;
mod lexer;
mod program;
mod shell;
mod wrapper;

use std::path::Path;

pub(super) use self::call::{Action, Call};
pub(super) use self::lexer::words;
pub(super) use self::program::{Program, SNAP_APP};
use self::wrapper::{Inner, Unwrapped};
use super::host::{Host, ProgramStatus, USUAL_PATH, file_name, is_executable, read_text};

/// Maximum depth of scripts that call each other.
const MAX_DEPTH: usize = 4;

/// Directories whose programs are not searched: those of the distribution call neither edgecert nor an ACME client, and
/// reading every program that a script runs would be slow.
const DISTRIBUTION: [&str; 6] = ["/bin", "/sbin", "/lib", "/usr/bin", "/usr/sbin", "/usr/lib"];

/// Finds the calls of a service unit.
pub(super) type UnitCalls<'a> = &'a dyn Fn(&str) -> Vec<Call>;

/// Searches for calls on a host.
#[derive(Clone, Copy)]
pub(super) struct CallFinder<'a> {
    pub(super) host: &'a Host<'a>,
    /// The program whose calls are searched for.
    pub(super) wanted: Program,
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

    /// Calls in an entry of a directory of scripts: the program itself, a link to it, or a script of any name.
    pub(super) fn in_entry(&self, path: &Path) -> Vec<Call> {
        let Some(word) = path.to_str() else { return Vec::new() };
        let target = self.host.at(path).read_link().unwrap_or_default();
        if !self.wanted.is_named(file_name(&target)) && read_text(&self.host.at(path)).is_some() {
            return self.in_script(word, true, &Call::default(), 0);
        }
        self.in_words(&[word.to_owned()])
    }

    /// Whether the program of a call, and the scripts around it, are found where the caller searches for them.
    pub(super) fn status(&self, call: &Call) -> ProgramStatus {
        let path = self.search_path(call);
        let statuses = call.searched().map(|word| self.host.program_status(word, &path));
        statuses.max().unwrap_or(ProgramStatus::Found)
    }

    /// The first program of a call that its caller does not find.
    pub(super) fn not_found<'c>(&self, call: &'c Call) -> Option<&'c str> {
        let path = self.search_path(call);
        let is_found = |word: &&str| self.host.program_status(word, &path) <= ProgramStatus::Unknown;
        call.searched().find(|word| !is_found(word))
    }

    fn search_path(&self, call: &Call) -> Vec<String> {
        call.search_path(self.path, self.host)
    }

    fn in_text_below(&self, text: &str, outer: &Call, depth: usize) -> Vec<Call> {
        let (mut calls, mut scope) = (Vec::new(), outer.clone());
        if depth < MAX_DEPTH {
            for words in shell::commands(text) {
                scope.environment.extend(self.exports(&words, depth));
                self.add(&words, scope.clone(), depth, &mut calls);
            }
        }
        calls
    }

    /// The variables that a command sets for those after it.
    fn exports(&self, words: &[String], depth: usize) -> Vec<(String, String)> {
        let pairs = |words: &[String]| words.iter().filter_map(|word| assignment(word)).collect();
        match words {
            [first, rest @ ..] if ["export", "declare", "typeset"].contains(&first.as_str()) => pairs(rest),
            [first, file, ..] if [".", "source"].contains(&first.as_str()) && depth < MAX_DEPTH => {
                let file = self.host.expand_home(file);
                match self.host.find_program(&file, self.path).and_then(|file| read_text(&file)) {
                    Some(text) => shell::commands(&text)
                        .iter()
                        .flat_map(|words| self.exports(words, depth + 1))
                        .collect(),
                    // It may add anything.
                    None => vec![("PATH".to_owned(), "$PATH:$".to_owned())],
                }
            }
            // Only variables that are exported already reach other programs.
            words if words.iter().all(|word| assignment(word).is_some()) => {
                let mut pairs: Vec<(String, String)> = pairs(words);
                pairs.retain(|(name, _)| name == "PATH");
                pairs
            }
            _ => Vec::new(),
        }
    }

    /// Adds the calls of a command. `call` holds what the commands around it set.
    fn add(&self, words: &[String], mut call: Call, depth: usize, calls: &mut Vec<Call>) {
        let mut words = words;
        loop {
            while let Some((pair, rest)) =
                words.split_first().and_then(|(word, rest)| Some((assignment(word)?, rest)))
            {
                call.environment.push(pair);
                words = rest;
            }
            let Some((program, arguments)) = words.split_first() else { return };
            if self.is_wanted(program) {
                calls.push(Call { program: program.clone(), arguments: arguments.to_vec(), ..call });
                return;
            }
            let Some(Unwrapped { inner, user }) = wrapper::unwrap(words) else {
                call.scripts.push(program.clone());
                return calls.extend(self.in_script(program, true, &call, depth + 1));
            };
            if wrapper::resets_path(program) {
                call.environment.push(("PATH".to_owned(), USUAL_PATH.join(":")));
            }
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
    fn is_wanted(&self, word: &str) -> bool {
        let name = file_name(Path::new(word));
        if self.wanted.is_named(name) {
            return true;
        }
        let found = self.host.find_program(word, self.path);
        let target = found.as_deref().and_then(|path| path.canonicalize().ok());
        let is_link = target.is_some_and(|target| self.wanted.is_named(file_name(&target)));
        let is_script = || found.as_deref().is_some_and(|path| read_text(path).is_some());
        is_link || self.wanted.may_be_named(name) && !is_script()
    }

    /// Calls in a script; none if it `is_run` as a program but is not executable.
    fn in_script(&self, word: &str, is_run: bool, outer: &Call, depth: usize) -> Vec<Call> {
        let Some(path) = self.host.find_program(word, self.path) else { return Vec::new() };
        let is_of_distribution =
            DISTRIBUTION.iter().any(|directory| path.starts_with(self.host.at(directory)));
        if is_of_distribution && !file_name(&path).contains(self.wanted.name()) {
            return Vec::new();
        }
        let Some(text) = read_text(&path).filter(|_| !is_run || is_executable(&path)) else {
            return Vec::new();
        };
        let interpreter = text.lines().next().and_then(|line| line.strip_prefix("#!"));
        if interpreter.is_none_or(|line| line.contains("sh")) {
            return self.in_text_below(&text, outer, depth);
        }
        text.lines().filter_map(|line| guess(line, self.wanted, outer)).collect()
    }
}

/// A call in a line of another language, such as `run(["edgecert", "sync"])`.
fn guess(line: &str, wanted: Program, outer: &Call) -> Option<Call> {
    if line.trim_start().starts_with(['#', '/']) {
        return None;
    }
    let is_separator = |c: char| c.is_whitespace() || ";|&()[]{}'\",".contains(c);
    let mut words = line.split(is_separator).filter(|word| !word.is_empty());
    let program = words.find(|word| wanted.is_named(file_name(Path::new(word))))?.to_owned();
    let arguments = words.map(str::to_owned).collect();
    Some(Call { program, arguments, is_guess: true, ..outer.clone() })
}

/// The name and the value of the variable that a word assigns.
fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_valid = is_name && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    is_valid.then(|| (name.to_owned(), value.to_owned()))
}
