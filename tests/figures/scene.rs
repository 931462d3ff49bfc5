//! Everything that one figure has in common with the next: the binary, a certificate to upload, the server, and the
//! CA bundle that hook and curl read alike.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};
use edgecert_sandbox::Authority;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{self, Server};
use crate::system;

const SYSTEM_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
const DOMAIN: &str = "a.example";
const API_KEY: &str = "rehearsal";

/// The stage on which hook and curl appear.
pub(crate) struct Scene {
    binary: PathBuf,
    /// A failure is kept: figures that need no server are taken nevertheless.
    server: Result<Server>,
    /// How many certificates the bundle holds.
    trusted: usize,
    home: TempDir,
}

/// A call of the hook that can be put under another program.
pub(crate) struct Call {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

impl Scene {
    /// Finds or builds the binary, writes the files and starts the server.
    pub(crate) fn set() -> Result<Self> {
        let binary = binary()?;
        let home = TempDir::new().context("cannot make a temporary directory")?;
        let authority = Authority::new("edgecert figures").map_err(|error| anyhow!("{error}"))?;
        let trusted = write_files(home.path(), &authority)?;
        Ok(Self { binary, server: Server::start(&authority), trusted, home })
    }

    pub(crate) fn server(&self) -> Result<&Server> {
        self.server.as_ref().map_err(|error| anyhow!("{error:#}"))
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// The directory of this run.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A file or directory of this run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What the figures depend on besides the hook.
    pub(crate) fn peers(&self) -> String {
        let line = |name, flag| {
            let found = system::program(name, name).and_then(|program| system::version(program, flag));
            found.unwrap_or_else(|error| format!("{error:#}"))
        };
        let (curl, nginx, trusted) = (line("curl", "--version"), line("nginx", "-v"), self.trusted);
        format!("{}\n{curl}\n{nginx}\nCA bundle of {trusted} certificates", self.binary.display())
    }

    /// The hook as it prints its version.
    pub(crate) fn version(&self) -> Call {
        Call { arguments: vec![self.binary.clone().into(), "--version".into()], environment: Vec::new() }
    }

    /// The hook as it checks a certificate and its key and does nothing else.
    pub(crate) fn check(&self, cert: &str, key: &str) -> Call {
        let mut arguments: Vec<OsString> = vec![self.binary.clone().into()];
        arguments.extend(["check", "--cert", cert, "--key", key].map(OsString::from));
        Call { arguments, environment: Vec::new() }
    }

    /// The hook as it uploads one certificate for one named domain and does not wait.
    pub(crate) fn upload(&self, port: u16) -> Call {
        let mut arguments: Vec<OsString> = vec![self.binary.clone().into()];
        arguments.extend(["--domain", DOMAIN, "--wait", "0", "--cert"].map(OsString::from));
        arguments.extend([
            self.file("fullchain.pem").into(),
            "--key".into(),
            self.file("privkey.pem").into(),
        ]);
        let environment = vec![
            ("EDGECERT_BASE_URL", format!("https://127.0.0.1:{port}").into()),
            ("EDGECERT_API_KEY", API_KEY.into()),
            ("EDGECERT_CA_FILE", self.file("bundle.pem").into()),
            ("EDGECERT_STATE_DIR", self.file("state").into()),
        ];
        Call { arguments, environment }
    }

    /// Curl as it sends what the hook would send.
    pub(crate) fn curl(&self, port: u16) -> Result<Command> {
        let mut curl = Command::new(system::program("curl", "curl")?);
        curl.env_clear().current_dir(self.home.path());
        curl.args(["--disable", "--silent", "--show-error", "--fail", "--cacert", "bundle.pem"]);
        curl.args(["--header", &format!("Authorization: Bearer {API_KEY}")]);
        curl.args(["--header", "Accept: application/json", "--header", "Content-Type: application/json"]);
        curl.args(["--data-binary", "@body.json"]);
        curl.arg(format!("https://127.0.0.1:{port}{}", server::UPLOAD));
        Ok(curl)
    }

    /// The call in an environment that holds nothing else.
    pub(crate) fn command(&self, call: Call) -> Command {
        self.under(&[], call)
    }

    /// The call as the last arguments of another program.
    pub(crate) fn under(&self, wrapper: &[OsString], call: Call) -> Command {
        let mut words = wrapper.iter().cloned().chain(call.arguments);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env_clear().envs(call.environment).current_dir(self.home.path());
        command.stdin(Stdio::null());
        command
    }
}

/// The system's bundle with the authority's root, the certificate to upload, and curl's body. Returns the number of
/// certificates in the bundle.
fn write_files(home: &Path, authority: &Authority) -> Result<usize> {
    let issued = authority.issue(&[DOMAIN]).map_err(|error| anyhow!("{error}"))?;
    let system = fs::read_to_string(SYSTEM_BUNDLE).with_context(|| {
        format!("cannot read {SYSTEM_BUNDLE}, which comes with the Debian package ca-certificates")
    })?;
    let bundle = system + authority.root();
    let body = json!({"domain": DOMAIN, "cert_pem": issued.fullchain(), "key_pem": issued.key});
    let write =
        |name, text: &str| fs::write(home.join(name), text).with_context(|| format!("cannot write {name}"));
    write("bundle.pem", &bundle)?;
    write("fullchain.pem", &issued.fullchain())?;
    write("privkey.pem", &issued.key)?;
    write("body.json", &body.to_string())?;
    Ok(bundle.matches("BEGIN CERTIFICATE").count())
}

/// `EDGECERT_BIN`, or the release binary of this tree, brought up to date.
fn binary() -> Result<PathBuf> {
    let Some(named) = system::variable("EDGECERT_BIN").map(PathBuf::from) else {
        return build(&["--package", "edgecert", "--bin", "edgecert"]);
    };
    named.canonicalize().with_context(|| {
        format!("{} does not exist; `cargo build --release` builds target/release/edgecert", named.display())
    })
}

/// Builds the program that repeats the local checks, with the release profile of the hook.
pub(crate) fn rounds() -> Result<PathBuf> {
    build(&["--package", "edgecert-rounds"])
}

fn build(target: &[&str]) -> Result<PathBuf> {
    let mut cargo = system::cargo(&["build", "--release"]);
    let output =
        cargo.args(target).arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let output = output.context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo build --release` failed");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    };
    messages.lines().find_map(executable).context("`cargo build --release` told of no executable")
}
