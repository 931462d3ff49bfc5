//! How a sandbox is to be, and what it says once it listens.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::error::Error;
use crate::world::World;

/// Seed of the quirks where nobody chose one, so that a whole test suite can be run under another seed:
/// `EDGECERT_SANDBOX_QUIRKS=7 cargo test`.
const SEED_VARIABLE: &str = "EDGECERT_SANDBOX_QUIRKS";

/// How a sandbox is to be. The default suits a test: free ports, everything in memory, pushes at once.
#[derive(Debug, Clone)]
pub struct Options {
    /// What exists at the start; not looked at when `data` holds a world already.
    pub world: World,
    /// Serve the API over HTTPS from a CA made for the run.
    pub tls: bool,
    /// From a saved change to the edge.
    pub push_delay: Duration,
    /// Seed of the quirks; 0 is plain. The default is what `EDGECERT_SANDBOX_QUIRKS` says, else 0.
    pub quirks: u64,
    /// Directory of the database; in memory when absent.
    pub data: Option<PathBuf>,
    /// Address of the API.
    pub listen: SocketAddr,
    /// Address of the edge.
    pub edge_listen: SocketAddr,
    /// Address of the control port.
    pub control_listen: SocketAddr,
}

impl Default for Options {
    fn default() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            world: World::default(),
            tls: false,
            push_delay: Duration::ZERO,
            quirks: seed_of_the_environment(),
            data: None,
            listen: any,
            edge_listen: any,
            control_listen: any,
        }
    }
}

impl Options {
    /// The sandbox holds keys and obeys everybody: nobody else may reach it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let addresses = [self.listen, self.edge_listen, self.control_listen];
        match addresses.into_iter().find(|addr| !addr.ip().is_loopback()) {
            Some(addr) => Err(Error::NotLoopback(addr)),
            None => self.world.check(),
        }
    }
}

/// Where a running sandbox can be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoints {
    /// Base URL of the API.
    pub api: String,
    /// Host and port of the edge.
    pub edge: String,
    /// Base URL of the control port.
    pub control: String,
    /// A key of the first account.
    pub api_key: String,
    /// What to trust when the API is served over HTTPS.
    pub ca_file: Option<PathBuf>,
}

impl Endpoints {
    /// Writes the ready file whole: who sees it sees all of it.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let fail = |source| Error::File { path: path.to_owned(), source };
        let text = serde_json::to_string(self).map_err(|error| fail(error.into()))?;
        let temporary = beside(path);
        std::fs::write(&temporary, text + "\n").map_err(fail)?;
        std::fs::rename(&temporary, path).map_err(fail)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one variable that the library reads")]
fn seed_of_the_environment() -> u64 {
    std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// A name in the same directory that nobody waits for.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
