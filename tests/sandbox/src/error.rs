//! Errors that end the program, as data. `main.rs` adds hints and exit codes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the sandbox cannot start or the rehearsal cannot run.
#[derive(Debug)]
pub enum Error {
    /// A listen address that other machines could reach.
    NotLoopback(SocketAddr),
    /// A listen address that cannot be bound.
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A file or directory that cannot be read or written.
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A world that cannot be parsed or contradicts itself.
    InvalidWorld(String),
    /// Another sandbox holds the lock on this data directory.
    DataInUse(PathBuf),
    /// A database written by a later version.
    SchemaTooNew {
        /// The database file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The latest schema version that this version reads.
        supported: i64,
    },
    /// An unexpected error of the database.
    Database(rusqlite::Error),
    /// There is no hook at this path.
    HookNotFound(PathBuf),
    /// A check of this step of the rehearsal failed.
    StepFailed(u32),
    /// The rehearsal was interrupted.
    Interrupted,
    /// A certificate of the run could not be created.
    Authority(String),
    /// The async runtime, its thread or its signal handlers could not be started.
    Runtime(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLoopback(addr) => {
                write!(f, "{addr} is not a loopback address; the sandbox serves this machine only")
            }
            Self::Listen { addr, source } => write!(f, "cannot listen on {addr}: {source}"),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::InvalidWorld(reason) => write!(f, "invalid world: {reason}"),
            Self::DataInUse(path) => write!(f, "{} is in use by another sandbox", path.display()),
            Self::SchemaTooNew { path, found, supported } => write!(
                f,
                "{} has schema version {found}; this version reads up to {supported}",
                path.display()
            ),
            Self::Database(source) => write!(f, "database error: {source}"),
            Self::HookNotFound(path) => write!(f, "no hook at {}", path.display()),
            Self::StepFailed(number) => write!(f, "step {number} failed; later steps were skipped"),
            Self::Interrupted => f.write_str("interrupted; the hook and the sandbox were stopped"),
            Self::Authority(reason) => write!(f, "cannot create a test certificate: {reason}"),
            Self::Runtime(source) => write!(f, "cannot start the async runtime: {source}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::Database(source)
    }
}
