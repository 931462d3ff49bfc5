//! What can keep the sandbox from starting, as facts. `main.rs` adds the exit code and prints.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the sandbox does not run.
#[derive(Debug)]
pub enum Error {
    /// An address that other machines could reach.
    NotLoopback(SocketAddr),
    /// The port is taken, or the system says no.
    Listen {
        /// The address that was asked for.
        addr: SocketAddr,
        /// What the system answered.
        source: std::io::Error,
    },
    /// A file or directory that cannot be read or written.
    File {
        /// Which one.
        path: PathBuf,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The world contradicts itself or is not a world.
    InvalidWorld(String),
    /// Another sandbox works on this directory.
    DataInUse(PathBuf),
    /// The database in the data directory was written by a newer sandbox.
    SchemaTooNew {
        /// The database file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version that this program reads.
        known: i64,
    },
    /// SQLite refused.
    Database(rusqlite::Error),
    /// The hook is not where it was looked for.
    HookNotFound(PathBuf),
    /// The test CA could not be made.
    Authority(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoopback(addr) => {
                write!(f, "{addr} is not a loopback address; the sandbox never listens to other machines")
            }
            Self::Listen { addr, source } => write!(f, "cannot listen on {addr}: {source}"),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::InvalidWorld(reason) => write!(f, "the world cannot be used: {reason}"),
            Self::DataInUse(path) => write!(f, "another sandbox is using {}", path.display()),
            Self::SchemaTooNew { path, found, known } => write!(
                f,
                "{} has schema version {found}, this sandbox knows versions up to {known}",
                path.display()
            ),
            Self::Database(source) => write!(f, "database: {source}"),
            Self::HookNotFound(path) => write!(f, "the hook is not at {}", path.display()),
            Self::Authority(reason) => write!(f, "cannot make the test CA: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::Database(source)
    }
}
