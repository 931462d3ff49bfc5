//! Keeps two runs off the same lineage, with a lock of the operating system (flock) that ends with its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use tokio::time::sleep;

use super::{Store, WriteError};
use crate::clock::Deadline;
use crate::file;

/// The lock on a lineage, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Another run still held the lock at the deadline.
#[derive(Debug, thiserror::Error)]
#[error("another run of edgecert is still deploying {name}")]
pub(crate) struct LockTimeout {
    name: String,
}

/// The reason why a lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error(transparent)]
    Timeout(#[from] LockTimeout),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Store {
    /// Acquires the lock of a lineage, waiting for it until the deadline.
    pub(crate) async fn lock(&self, name: &str, deadline: Deadline) -> Result<Lock, LockError> {
        let file = match self.try_lock(name)? {
            Ok(lock) => return Ok(lock),
            Err(file) => file,
        };
        log::info!("waiting for another run on {name}");
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => {
                    return Err(WriteError::new(&self.file(name, EXTENSION), &error).into());
                }
                Err(TryLockError::WouldBlock) if deadline.left().is_zero() => {
                    return Err(LockTimeout { name: name.to_owned() }.into());
                }
                Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
            }
        }
    }

    /// Acquires the lock of a lineage unless another run holds it; if so, returns the file to lock.
    pub(super) fn try_lock(&self, name: &str) -> Result<Result<Lock, File>, WriteError> {
        let path = self.file(name, EXTENSION);
        let failed = |error: io::Error| WriteError::new(&path, &error);
        let file = match file::open_regular(&path, OpenOptions::new().write(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut options = OpenOptions::new();
                let create = options.write(true).create(true).truncate(false).mode(0o600);
                file::open_regular(&path, create)
            }
            file => file,
        };
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Ok(Lock { _file: file })),
            Err(TryLockError::Error(error)) => Err(failed(error)),
            Err(TryLockError::WouldBlock) => Ok(Err(file)),
        }
    }
}

const EXTENSION: &str = "lock";

/// Pause between two attempts: flock has no time limit, and the system may refuse a thread to wait in.
const PAUSE: Duration = Duration::from_millis(10);
