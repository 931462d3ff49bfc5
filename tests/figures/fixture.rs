//! What the figures share: the hook's binary, a certificate to upload, the server, and the CA bundle for hook and curl.

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

/// Files and server for the measured commands.
pub(crate) struct Fixture {
    binary: PathBuf,
    /// Without nginx, the figures that need no server are still measured.
    server: Result<Server>,
    /// Number of certificates in the CA bundle.
    ca_count: usize,
    dir: TempDir,
}

/// A command line of the hook with its environment, to be run directly or under another program.
pub(crate) struct HookCall {
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(&'static str, OsString)>,
}

impl Fixture {
    /// Finds or builds the binary, writes the files and starts the server.
    pub(crate) fn new() -> Result<Self> {
        let binary = binary()?;
        let dir = TempDir::new().context("cannot create a temporary directory")?;
        let authority = Authority::new("edgecert figures").map_err(|error| anyhow!("{error}"))?;
        let ca_count = write_files(dir.path(), &authority)?;
        Ok(Self { binary, server: Server::start(&authority), ca_count, dir })
    }

    pub(crate) fn server(&self) -> Result<&Server> {
        self.server.as_ref().map_err(|error| anyhow!("{error:#}"))
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// The temporary directory of this run.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the temporary directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Describes the binary and what else the figures depend on.
    pub(crate) fn environment(&self) -> String {
        let version = |name, flag| {
            let found = system::find_program(name, name).and_then(|program| system::version(program, flag));
            found.unwrap_or_else(|error| format!("{error:#}"))
        };
        let (curl, nginx, ca_count) = (version("curl", "--version"), version("nginx", "-v"), self.ca_count);
        format!("{}\n{curl}\n{nginx}\nCA bundle of {ca_count} certificates", self.binary.display())
    }

    /// `edgecert --version`
    pub(crate) fn version_call(&self) -> HookCall {
        HookCall { args: vec![self.binary.clone().into(), "--version".into()], env: Vec::new() }
    }

    /// `edgecert check`
    pub(crate) fn check_call(&self, cert: &str, key: &str) -> HookCall {
        let mut args: Vec<OsString> = vec![self.binary.clone().into()];
        args.extend(["check", "--cert", cert, "--key", key].map(OsString::from));
        HookCall { args, env: Vec::new() }
    }

    /// The bare upload: `edgecert --domain DOMAIN --wait 0`
    pub(crate) fn upload_call(&self, port: u16) -> HookCall {
        let mut args: Vec<OsString> = vec![self.binary.clone().into()];
        args.extend(["--domain", DOMAIN, "--wait", "0", "--cert"].map(OsString::from));
        args.extend([self.path("fullchain.pem").into(), "--key".into(), self.path("privkey.pem").into()]);
        let env = vec![
            ("EDGECERT_BASE_URL", format!("https://127.0.0.1:{port}").into()),
            ("EDGECERT_API_KEY", API_KEY.into()),
            ("EDGECERT_CA_FILE", self.path("bundle.pem").into()),
            ("EDGECERT_STATE_DIR", self.path("state").into()),
        ];
        HookCall { args, env }
    }

    /// curl with the same request as the bare upload.
    pub(crate) fn curl(&self, port: u16) -> Result<Command> {
        let mut curl = Command::new(system::find_program("curl", "curl")?);
        curl.env_clear().current_dir(self.dir.path());
        curl.args(["--disable", "--silent", "--show-error", "--fail", "--cacert", "bundle.pem"]);
        curl.args(["--header", &format!("Authorization: Bearer {API_KEY}")]);
        curl.args(["--header", "Accept: application/json", "--header", "Content-Type: application/json"]);
        curl.args(["--data-binary", "@body.json"]);
        curl.arg(format!("https://127.0.0.1:{port}{}", server::UPLOAD));
        Ok(curl)
    }

    /// A command with no environment but that of the call.
    pub(crate) fn command(&self, call: HookCall) -> Command {
        self.wrapped_command(&[], call)
    }

    /// The same, with the call as the last arguments of another program.
    pub(crate) fn wrapped_command(&self, wrapper: &[OsString], call: HookCall) -> Command {
        let mut args = wrapper.iter().cloned().chain(call.args);
        let mut command = Command::new(args.next().unwrap_or_default());
        command.args(args).env_clear().envs(call.env).current_dir(self.dir.path());
        command.stdin(Stdio::null());
        command
    }
}

/// Writes the CA bundle (the system's and the test root), the certificate to upload and curl's request body. Returns
/// the number of certificates in the bundle.
fn write_files(dir: &Path, authority: &Authority) -> Result<usize> {
    let issued = authority.issue(&[DOMAIN]).map_err(|error| anyhow!("{error}"))?;
    let system = fs::read_to_string(SYSTEM_BUNDLE)
        .with_context(|| format!("cannot read {SYSTEM_BUNDLE} (Debian package ca-certificates)"))?;
    let bundle = system + authority.root();
    let body = json!({"domain": DOMAIN, "cert_pem": issued.fullchain(), "key_pem": issued.key});
    let write =
        |name, text: &str| fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"));
    write("bundle.pem", &bundle)?;
    write("fullchain.pem", &issued.fullchain())?;
    write("privkey.pem", &issued.key)?;
    write("body.json", &body.to_string())?;
    Ok(bundle.matches("BEGIN CERTIFICATE").count())
}

/// `EDGECERT_BIN`, or a release build of this tree.
fn binary() -> Result<PathBuf> {
    let Some(path) = system::env_var("EDGECERT_BIN").map(PathBuf::from) else {
        return build(&["--package", "edgecert", "--bin", "edgecert"]);
    };
    path.canonicalize()
        .with_context(|| format!("{} does not exist; run cargo build --release", path.display()))
}

/// Builds the program that repeats the local checks.
pub(crate) fn build_rounds() -> Result<PathBuf> {
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
    messages.lines().find_map(executable).context("`cargo build --release` reported no executable")
}
