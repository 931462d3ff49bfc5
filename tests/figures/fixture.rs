//! What the figures share: the hook's binary, directories on disk and in memory, the CA, and its bundle.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use edgecert_workload::{Authority, Call, Lineage, domain};
use tempfile::TempDir;

use crate::server::Server;
use crate::system;

const SYSTEM_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

pub(crate) const API_KEY: &str = "rehearsal";

/// What all groups of figures need.
pub(crate) struct Fixture {
    pub(crate) binary: PathBuf,
    pub(crate) authority: Authority,
    /// The roots of the system and of the CA, as for curl.
    pub(crate) ca_file: PathBuf,
    disk: TempDir,
    memory: TempDir,
}

impl Fixture {
    /// Finds or builds the binary and writes the bundle.
    pub(crate) fn new() -> Result<Self> {
        let binary = system::binary()?;
        let disk = TempDir::with_prefix("figures-").context("cannot create a temporary directory")?;
        let memory = TempDir::with_prefix_in("figures-", MEMORY).context("no file system in memory")?;
        let authority = Authority::new("figures")?;
        let roots = fs::read_to_string(SYSTEM_BUNDLE)
            .with_context(|| format!("cannot read {SYSTEM_BUNDLE} (Debian package ca-certificates)"))?;
        let ca_file = disk.path().join("bundle.pem");
        fs::write(&ca_file, roots + &authority.root())?;
        Ok(Self { binary, authority, ca_file, disk, memory })
    }

    /// Creates a directory on disk.
    pub(crate) fn disk(&self, name: &str) -> Result<PathBuf> {
        create(self.disk.path().join(name))
    }

    /// Creates a directory in memory.
    pub(crate) fn memory(&self, name: &str) -> Result<PathBuf> {
        create(self.memory.path().join(name))
    }

    /// Writes the lineage of a number below certbot's configuration directory.
    pub(crate) fn lineage(&self, certbot: &Path, number: usize) -> Result<Lineage> {
        let name = domain(number);
        Lineage::write(certbot, &name, &self.authority.issue(std::slice::from_ref(&name))?)
    }

    /// The hook with the settings of every call.
    pub(crate) fn hook(&self, server: &Server, state_dir: &Path) -> Call {
        self.hook_on_port(server.port(), state_dir)
    }

    /// The same, with a proxy's port.
    pub(crate) fn hook_on_port(&self, port: u16, state_dir: &Path) -> Call {
        let hook = Call::new(&self.binary)
            .env("EDGECERT_BASE_URL", format!("https://127.0.0.1:{port}"))
            .env("EDGECERT_API_KEY", API_KEY)
            .env("EDGECERT_CA_FILE", &self.ca_file)
            .env("EDGECERT_STATE_DIR", state_dir);
        let configuration = configuration(state_dir);
        if configuration.exists() { hook.env("EDGECERT_CONFIG", configuration) } else { hook }
    }

    /// Describes what the figures depend on.
    pub(crate) fn environment(&self) -> Result<String> {
        let ca_count = fs::read_to_string(&self.ca_file)?.matches("BEGIN CERTIFICATE").count();
        let versions = [("curl", "curl", "--version"), ("nginx", "nginx-light", "-v")];
        let versions = versions.map(|(program, package, flag)| {
            system::version(program, package, flag).unwrap_or_else(|error| format!("{error:#}"))
        });
        let binary = self.binary.display();
        Ok(format!("{binary}\n{}\nCA bundle of {ca_count} certificates", versions.join("\n")))
    }
}

/// The configuration for the calls with a state directory, if there is one.
pub(crate) fn configuration(state_dir: &Path) -> PathBuf {
    state_dir.with_extension("toml")
}

fn create(directory: PathBuf) -> Result<PathBuf> {
    if directory.exists() {
        bail!("{} exists", directory.display());
    }
    fs::create_dir(&directory)?;
    Ok(directory)
}
