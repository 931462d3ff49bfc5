//! The real binary in an emptied environment with a home of its own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use edgecert_sandbox::Sandbox;
use serde_json::Value;
use tempfile::TempDir;

use super::Lineage;

/// A call of the hook that is being put together.
pub(crate) struct Hook {
    command: Command,
    home: TempDir,
    /// Texts that differ from run to run, and what stands for them in a snapshot.
    names: Vec<(String, &'static str)>,
}

/// What a finished call left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Everything in the state directory.
    pub(crate) state: String,
    names: Vec<(String, &'static str)>,
}

/// The binary under test: `EDGECERT_BIN`, or the one that cargo built for this test run.
pub(crate) fn binary() -> PathBuf {
    variable("EDGECERT_BIN").map_or_else(|| env!("CARGO_BIN_EXE_edgecert").into(), PathBuf::from)
}

/// A variable of the test run itself.
#[expect(clippy::disallowed_methods, reason = "the one place where the tests look at their own environment")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// A call of the hook without any argument.
pub(crate) fn edgecert() -> Hook {
    called_as(Command::new(binary()))
}

/// The same in an address space of this many bytes.
pub(crate) fn edgecert_within(bytes: u64) -> Hook {
    const PRLIMIT: &str = "/usr/bin/prlimit";
    assert!(Path::new(PRLIMIT).exists(), "prlimit must be installed (Debian package util-linux)");
    let mut command = Command::new(PRLIMIT);
    command.arg(format!("--as={bytes}")).arg(binary());
    called_as(command)
}

fn called_as(mut command: Command) -> Hook {
    let home = TempDir::new().unwrap();
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path());
    command.env("EDGECERT_STATE_DIR", home.path().join("state"));
    command.current_dir(home.path()).stdin(Stdio::null());
    Hook { command, home, names: Vec::new() }
}

impl Hook {
    /// Sets certbot's variables.
    pub(crate) fn called_by_certbot(self, lineage: &Lineage) -> Self {
        self.knows(lineage).env("RENEWED_LINEAGE", lineage.path()).env("RENEWED_DOMAINS", "ignored.example")
    }

    /// Points the hook to a sandbox and its edge, with its key.
    pub(crate) fn against(mut self, sandbox: &Sandbox) -> Self {
        let ready = sandbox.endpoints();
        self.names.push((ready.api.clone(), "API"));
        self.names.push((ready.edge.clone(), "EDGE"));
        let hook = self.env("EDGECERT_BASE_URL", &ready.api).env("EDGECERT_API_KEY", &ready.api_key);
        let hook = hook.env("EDGECERT_EDGE_ADDRESS", &ready.edge);
        match &ready.ca_file {
            Some(file) => hook.env("EDGECERT_CA_FILE", file),
            None => hook,
        }
    }

    /// Names a site with `--domain`.
    pub(crate) fn for_domain(self, domain: &str) -> Self {
        self.args(["--domain", domain])
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs it under another program, which gets these arguments before the hook's own command line.
    pub(crate) fn under(mut self, wrapper: &[&str]) -> Self {
        let (program, arguments) = wrapper.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).arg(self.command.get_program()).args(self.command.get_args());
        command.env_clear();
        for (name, value) in self.command.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.current_dir(self.home.path()).stdin(Stdio::null());
        self.command = command;
        self
    }

    /// Lets snapshots show this lineage's directory as `LINEAGE`.
    pub(crate) fn knows(mut self, lineage: &Lineage) -> Self {
        self.names.push((lineage.path().to_str().unwrap().to_owned(), "LINEAGE"));
        self
    }

    /// Writes a file into the hook's home and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command, for a test that starts it in its own way.
    pub(crate) fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Outcome {
        let output = self.command.output().unwrap_or_else(|error| {
            panic!("cannot run {}: {error}", self.command.get_program().display());
        });
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the hook prints UTF-8 only");
        self.names.push((self.home.path().to_str().unwrap().to_owned(), "HOME"));
        let files = std::fs::read_dir(self.home.path().join("state")).into_iter().flatten();
        let state = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        Outcome {
            code: output.status.code().expect("the hook is never killed by a signal"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            state,
            names: self.names,
        }
    }

    /// Runs it and expects exit code 0.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Outcome {
        self.fails_with(0)
    }

    /// Runs it and expects this exit code.
    #[track_caller]
    pub(crate) fn fails_with(self, code: i32) -> Outcome {
        let outcome = self.run();
        assert_eq!(outcome.code, code, "stdout:\n{}stderr:\n{}", outcome.stdout, outcome.stderr);
        outcome
    }
}

impl Outcome {
    /// The JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("exactly one JSON object on standard output")
    }

    /// The outcome of each site, as `domain: outcome`.
    #[track_caller]
    pub(crate) fn sites(&self) -> Vec<String> {
        let json = self.json();
        let word = |site: &Value, field: &str| site[field].as_str().unwrap().to_owned();
        let sites = json["sites"].as_array().unwrap();
        sites.iter().map(|site| format!("{}: {}", word(site, "domain"), word(site, "outcome"))).collect()
    }

    /// Standard output and standard error with what differs from run to run replaced.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("{}---\n{}", self.stdout, self.stderr);
        for (value, name) in &self.names {
            text = text.replace(value, name);
        }
        scrub(&text)
    }
}

/// Replaces dates, spans of time, fingerprints and ports.
fn scrub(text: &str) -> String {
    let mut shown = String::new();
    for word in text.split_inclusive([' ', '\n', '"', ',']) {
        let end = word.trim_end_matches([' ', '\n', '"', ',', ';']);
        let is_date = end.len() == 20 && end.ends_with('Z') && end.as_bytes()[10] == b'T';
        let is_fingerprint = end.len() == 64 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
        let replacement = if is_date {
            "DATE"
        } else if is_fingerprint {
            "FINGERPRINT"
        } else {
            end
        };
        shown.push_str(replacement);
        shown.push_str(&word[end.len()..]);
    }
    shown
}
