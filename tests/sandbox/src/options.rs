//! How to start a sandbox, and where to reach it once it runs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::error::Error;
use crate::world::World;

/// Sets the default quirk seed, so that a whole test suite can run under another one.
const QUIRKS_VARIABLE: &str = "EDGECERT_SANDBOX_QUIRKS";

/// How to start a sandbox. The default suits tests: free ports, everything in memory, immediate pushes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Initial contents of the database; ignored if `data` already holds one.
    pub world: World,
    /// Serve the API over HTTPS with a certificate of a CA created for the run.
    pub tls: bool,
    /// Time from a saved change to its push to the edge.
    pub push_delay: Duration,
    /// Quirk seed; 0 is the plain service. Defaults to `EDGECERT_SANDBOX_QUIRKS`, or 0 if unset.
    pub quirks: u64,
    /// Directory of the database; in memory if `None`.
    pub data: Option<PathBuf>,
    /// Address of the API. Only loopback addresses are accepted; port 0 picks a free port.
    pub listen: SocketAddr,
    /// Address of the edge.
    pub edge_listen: SocketAddr,
    /// Address of the control port.
    pub control_listen: SocketAddr,
}

impl Default for Options {
    fn default() -> Self {
        let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            world: World::default(),
            tls: false,
            push_delay: Duration::ZERO,
            quirks: quirks_from_environment(),
            data: None,
            listen: free_port,
            edge_listen: free_port,
            control_listen: free_port,
        }
    }
}

impl Options {
    /// Rejects addresses that other machines could reach, because the control port has no authentication and
    /// the default API key is public. Also rejects worlds that contradict themselves.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let ports = [self.listen, self.edge_listen, self.control_listen];
        match ports.into_iter().find(|addr| !addr.ip().is_loopback()) {
            Some(addr) => Err(Error::NotLoopback(addr)),
            None => self.world.check(),
        }
    }
}

/// Where to reach a running sandbox, and with which credentials. The ready file holds it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoints {
    /// Base URL of the API.
    pub api: String,
    /// Host and port of the edge.
    pub edge: String,
    /// Base URL of the control port.
    pub control: String,
    /// An API key of the first account.
    pub api_key: String,
    /// CA certificate of the API; `None` if the API is served over plain HTTP.
    pub ca_file: Option<PathBuf>,
}

impl Endpoints {
    /// Writes the ready file atomically, so that a reader never sees a part of it.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let file_error = |source| Error::File { path: path.to_owned(), source };
        let text = serde_json::to_string(self).map_err(|error| file_error(error.into()))?;
        let temporary = temporary_sibling(path);
        std::fs::write(&temporary, text + "\n").map_err(file_error)?;
        std::fs::rename(&temporary, path).map_err(file_error)
    }
}

#[expect(clippy::disallowed_methods, reason = "the only variable that the library reads")]
fn quirks_from_environment() -> u64 {
    std::env::var(QUIRKS_VARIABLE).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

fn temporary_sibling(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
