//! Runs an installed ACME client in an emptied environment, with one home directory for all of its runs.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::harness::{Sandbox, edgecert, require};

/// An ACME client, its home directory and environment.
pub(super) struct Client {
    program: OsString,
    /// Contains a link `edgecert` to the hook.
    directory: TempDir,
    home: PathBuf,
    variables: Vec<(String, OsString)>,
}

/// Exit code and output of a finished run.
pub(super) struct ClientOutput {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Client {
    /// Sets up a program of a Debian package. Its home contains a link `edgecert` to the hook.
    pub(super) fn new(program: &str, package: &str) -> Self {
        require(program, package);
        Self::of_program(program.into())
    }

    /// As [`Self::new`], with a space in the path of the home, but not in that of the hook.
    pub(super) fn with_space_in_path(program: &str, package: &str) -> Self {
        require(program, package);
        Self::in_home(program.into(), "a home")
    }

    /// Sets up a program other than Debian's, if the host has it.
    pub(super) fn of_program(program: OsString) -> Self {
        Self::in_home(program, "")
    }

    fn in_home(program: OsString, home: &str) -> Self {
        let directory = TempDir::new().unwrap();
        symlink(edgecert().command().get_program(), directory.path().join("edgecert")).unwrap();
        let home = directory.path().join(home);
        fs::create_dir_all(&home).unwrap();
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into();
        let variables = vec![("PATH".into(), path), ("HOME".into(), home.clone().into())];
        Self { program, directory, home, variables }
    }

    /// Sets a variable for the client and its hook.
    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// Points the hook to a sandbox, and allows test issuers.
    pub(super) fn deploying_to(self, service: &Sandbox) -> Self {
        let state = self.path("state");
        let ready = service.endpoints();
        self.env("EDGECERT_BASE_URL", &ready.api)
            .env("EDGECERT_API_KEY", &ready.api_key)
            .env("EDGECERT_EDGE_ADDRESS", &ready.edge)
            .env("EDGECERT_STATE_DIR", state)
            .env("EDGECERT_ALLOW_UNTRUSTED", "true")
    }

    /// Lets command lines find the hook as `edgecert`.
    pub(super) fn with_hook_in_path(self) -> Self {
        let path = format!("{}:/usr/bin:/bin", self.directory.path().display());
        self.env("PATH", path)
    }

    /// Lets shell scripts wait for a twentieth of a second where they would wait for seconds.
    pub(super) fn with_short_pauses(self) -> Self {
        self.script("quick/sleep", "exec /bin/sleep 0.05\n");
        let path = format!("{}:/usr/bin:/bin", self.path_text("quick"));
        self.env("PATH", path)
    }

    /// Points the hook to an address where nothing listens.
    pub(super) fn with_service_down(self) -> Self {
        self.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").env("EDGECERT_TIMEOUT", "1")
    }

    /// The client's program, for command lines.
    pub(super) fn program_text(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// The path of the hook.
    pub(super) fn hook(&self) -> String {
        self.directory.path().join("edgecert").into_os_string().into_string().unwrap()
    }

    /// A path below the client's home.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// A path below the client's home, as text for command lines and configuration files.
    pub(super) fn path_text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }

    pub(super) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes a file with mode 0600.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Writes a shell script and returns its path.
    pub(super) fn script(&self, name: &str, text: &str) -> String {
        self.write(name, &format!("#!/bin/sh\n{text}"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o700)).unwrap();
        self.path_text(name)
    }

    /// Runs the client to completion in its home directory.
    #[track_caller]
    pub(super) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> ClientOutput {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        self.finish(command)
    }

    /// Runs a command line in the client's home directory and environment.
    #[track_caller]
    pub(super) fn run_in_shell(&self, line: &str) -> ClientOutput {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.finish(command)
    }

    #[track_caller]
    fn finish(&self, mut command: Command) -> ClientOutput {
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.home).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().expect("the client was not killed by a signal");
        ClientOutput { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The client that edgecert takes a directory in its home for.
#[track_caller]
pub(super) fn client_of(client: &Client, directory: &str) -> String {
    let check = edgecert().args(["check", "--json", "--allow-untrusted", "--lineage"]);
    let report = check.args([client.path(directory)]).succeeds().json();
    report["source"]["client"].as_str().unwrap().to_owned()
}

impl ClientOutput {
    /// Expects exit code 0.
    #[track_caller]
    pub(super) fn succeeds(self) -> Self {
        self.exits_with(0)
    }

    /// Expects this exit code.
    #[track_caller]
    pub(super) fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}stderr:\n{}", self.stdout, self.stderr);
        self
    }
}
