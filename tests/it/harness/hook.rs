//! Runs the real binary in an emptied environment with its own home directory.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use edgecert_sandbox::{Fault, Sandbox};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use super::{
    LISTING, Lineage, requests_during, require, require_isolation, require_tracer, scrub_times, test_ca,
};

/// Builder for one run of the hook.
pub(crate) struct Hook {
    command: Command,
    home: TempDir,
    /// The system's trust store, which holds the root of the test CA.
    roots: NamedTempFile,
    filters: Filters,
}

/// Text that differs from run to run, and its placeholder in snapshots.
type Filters = Vec<(String, &'static str)>;

/// Exit code, output and state files of a finished run.
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// All files of the state directory, concatenated.
    pub(crate) state: String,
    filters: Filters,
}

/// The binary under test: `EDGECERT_BIN`, or the one that cargo built for this test run.
pub(crate) fn binary() -> PathBuf {
    env_var("EDGECERT_BIN").map_or_else(|| env!("CARGO_BIN_EXE_edgecert").into(), PathBuf::from)
}

/// Reads a variable of the test process's own environment.
#[expect(clippy::disallowed_methods, reason = "the one place where tests read their own environment")]
pub(crate) fn env_var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Starts building a run of the hook.
pub(crate) fn edgecert() -> Hook {
    Hook::new(Command::new(binary()))
}

/// Starts building a run whose address space is limited to this many bytes.
pub(crate) fn edgecert_with_memory(bytes: u64) -> Hook {
    limited(&format!("--as={bytes}"))
}

/// Starts building a run whose heap and stacks are limited to this many bytes. Unlike the address space, they do not
/// include what threads reserve without using it.
pub(crate) fn edgecert_with_heap(bytes: u64) -> Hook {
    limited(&format!("--data={bytes}"))
}

fn limited(limit: &str) -> Hook {
    require("prlimit", "util-linux");
    let mut command = Command::new("prlimit");
    command.arg(limit).arg(binary());
    Hook::new(command)
}

impl Hook {
    fn new(mut command: Command) -> Self {
        let home = TempDir::new().unwrap();
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path());
        command.env("EDGECERT_STATE_DIR", home.path().join("state"));
        let roots = NamedTempFile::new().unwrap();
        std::fs::write(&roots, test_ca().root()).unwrap();
        command.env("SSL_CERT_FILE", roots.path());
        command.current_dir(home.path()).stdin(Stdio::null());
        Self { command, home, roots, filters: Vec::new() }
    }

    /// Sets certbot's variables.
    pub(crate) fn called_by_certbot(self, lineage: &Lineage) -> Self {
        let hook = self.with_filter_for(lineage);
        hook.env("RENEWED_LINEAGE", lineage.path()).env("RENEWED_DOMAINS", "ignored.example")
    }

    /// Points the hook to a sandbox and its edge, with a valid API key.
    pub(crate) fn against(mut self, service: &Sandbox) -> Self {
        let endpoints = service.endpoints();
        self.filters.push((endpoints.api.clone(), "API"));
        self.filters.push((endpoints.edge.clone(), "EDGE"));
        let hook = self.env("EDGECERT_BASE_URL", &endpoints.api).env("EDGECERT_API_KEY", &endpoints.api_key);
        let hook = hook.env("EDGECERT_EDGE_ADDRESS", &endpoints.edge);
        match &endpoints.ca_file {
            Some(file) => hook.env("EDGECERT_CA_FILE", file),
            None => hook,
        }
    }

    /// Replaces the addresses of the edge.
    pub(crate) fn facing(self, addresses: impl Display) -> Self {
        self.env("EDGECERT_EDGE_ADDRESS", addresses.to_string())
    }

    /// Replaces the state directory.
    pub(crate) fn with_state(self, directory: impl AsRef<OsStr>) -> Self {
        self.env("EDGECERT_STATE_DIR", directory)
    }

    /// Adds `--domain DOMAIN`.
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

    /// Runs the hook under another program, such as `["strace", "-f"]`.
    pub(crate) fn under(mut self, wrapper: &[&str]) -> Self {
        let (program, arguments) = wrapper.split_first().unwrap();
        if ["strace", "proot"].contains(program) {
            require_tracer(program);
        }
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

    /// Shows this lineage's directory as `LINEAGE` in snapshots.
    pub(crate) fn with_filter_for(mut self, lineage: &Lineage) -> Self {
        self.filters.push((lineage.path().to_str().unwrap().to_owned(), "LINEAGE"));
        self
    }

    /// The file that the hook takes for the system's trust store.
    pub(crate) fn system_roots(&self) -> &Path {
        self.roots.path()
    }

    /// The hook's home.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file below the hook's home and returns its path.
    pub(crate) fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a configuration file and names it.
    pub(crate) fn with_config(self, text: &str) -> Self {
        let path = self.write_file("config.toml", text);
        self.env("EDGECERT_CONFIG", path)
    }

    /// Adds the arguments with which dehydrated calls its hook for `a.example`.
    pub(crate) fn called_by_dehydrated(self, operation: &str, lineage: &Lineage) -> Self {
        let files = ["privkey.pem", "cert.pem", "fullchain.pem", "chain.pem"].map(|name| lineage.file(name));
        self.args([operation, "a.example"]).args(files).args(["1700000000"])
    }

    /// Runs the hook, which succeeds and sends nothing but the requests of a listing.
    #[track_caller]
    pub(crate) fn only_lists(self, service: &Sandbox) -> Output {
        let (requests, output) = requests_during(service, || self.succeeds());
        assert_eq!(requests, LISTING, "{}{}", output.stdout, output.stderr);
        output
    }

    /// The underlying command, for tests that spawn it themselves.
    pub(crate) fn command(&mut self) -> &mut Command {
        require_isolation(self.command.get_args().map(OsStr::to_string_lossy));
        &mut self.command
    }

    /// Runs the hook to completion.
    pub(crate) fn run(mut self) -> Output {
        let output = self.command().output().unwrap_or_else(|error| {
            panic!("cannot run {}: {error}", self.command.get_program().display());
        });
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        self.filters.push((self.home.path().to_str().unwrap().to_owned(), "HOME"));
        let state = contents_below(&self.home.path().join("state"));
        Output {
            code: output.status.code().expect("the hook was not killed by a signal"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            state,
            filters: self.filters,
        }
    }

    /// Runs the hook and expects exit code 0.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Output {
        self.exits_with(0)
    }

    /// Runs the hook while the service asks for a longer pause than any run makes, which ends it at once.
    #[track_caller]
    pub(crate) fn fails_temporarily(self, service: &Sandbox) -> Output {
        self.fails_temporarily_at(service, "*")
    }

    /// As [`Self::fails_temporarily`], but only these requests fail.
    #[track_caller]
    pub(crate) fn fails_temporarily_at(self, service: &Sandbox, requests: &str) -> Output {
        service.add_fault(Fault::status(requests, 503).header("Retry-After", "3600").times(999));
        let output = self.exits_with(75);
        service.clear_faults();
        output
    }

    /// Runs the hook and expects this exit code.
    #[track_caller]
    pub(crate) fn exits_with(self, code: i32) -> Output {
        let output = self.run();
        assert_eq!(output.code, code, "stdout:\n{}stderr:\n{}", output.stdout, output.stderr);
        output
    }
}

impl Output {
    /// The JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("exactly one JSON object on standard output")
    }

    /// The outcome of each site, as `domain: outcome`.
    #[track_caller]
    pub(crate) fn sites(&self) -> Vec<String> {
        let json = self.json();
        let field = |site: &Value, name: &str| site[name].as_str().unwrap().to_owned();
        let sites = json["sites"].as_array().unwrap();
        sites.iter().map(|site| format!("{}: {}", field(site, "domain"), field(site, "outcome"))).collect()
    }

    /// Expects this text on standard error.
    #[track_caller]
    pub(crate) fn says(&self, text: impl AsRef<str>) -> &Self {
        self.assert_contains(&self.stderr, text.as_ref())
    }

    /// Expects this text on standard output.
    #[track_caller]
    pub(crate) fn prints(&self, text: impl AsRef<str>) -> &Self {
        self.assert_contains(&self.stdout, text.as_ref())
    }

    #[track_caller]
    fn assert_contains(&self, stream: &str, text: &str) -> &Self {
        let Self { stdout, stderr, .. } = self;
        assert!(stream.contains(text), "{text:?} is wanted; stdout:\n{stdout}stderr:\n{stderr}");
        self
    }

    /// Standard output without dates and durations.
    pub(crate) fn shown(&self) -> String {
        scrub_times(&self.stdout)
    }

    /// Standard output and standard error, with text that differs from run to run replaced by placeholders.
    pub(crate) fn snapshot(&self) -> String {
        let mut text = format!("{}---\n{}", self.stdout, self.stderr);
        for (value, placeholder) in &self.filters {
            text = text.replace(value, placeholder);
        }
        scrub_times(&mask_dates_and_fingerprints(&text))
    }
}

fn mask_dates_and_fingerprints(text: &str) -> String {
    const SEPARATORS: [char; 4] = [' ', '\n', '"', ','];
    let mut masked = String::new();
    for word in text.split_inclusive(SEPARATORS) {
        let end = word.trim_end_matches([' ', '\n', '"', ',', ';']);
        let is_date = end.len() == 20 && end.ends_with('Z') && end.as_bytes()[10] == b'T';
        let is_fingerprint = end.len() == 64 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
        masked.push_str(match (is_date, is_fingerprint) {
            (true, _) => "DATE",
            (_, true) => "FINGERPRINT",
            _ => end,
        });
        masked.push_str(&word[end.len()..]);
    }
    masked
}

/// The contents of all files below a directory.
fn contents_below(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let contents = |path: PathBuf| {
        if path.is_dir() { contents_below(&path) } else { std::fs::read_to_string(path).unwrap() }
    };
    entries.map(contents).collect()
}
