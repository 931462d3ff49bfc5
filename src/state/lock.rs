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

/// The reason why a lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another run still held it at the deadline.
    #[error("another run of edgecert is still deploying {name}")]
    Timeout { name: String },
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Store {
    /// Acquires the lock of a lineage, waiting for it until the deadline.
    pub(crate) async fn lock(&self, name: &str, deadline: Deadline) -> Result<Lock, LockError> {
        let path = self.file(name, EXTENSION);
        let failed = |error: io::Error| WriteError::new(&path, &error);
        let mut options = OpenOptions::new();
        let file = file::open_regular(&path, options.write(true).create(true).truncate(false).mode(0o600));
        let file = file.map_err(failed)?;
        let mut is_waiting = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed(error).into()),
                Err(TryLockError::WouldBlock) if deadline.left().is_zero() => {
                    return Err(LockError::Timeout { name: name.to_owned() });
                }
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut is_waiting, true) {
                        log::info!("waiting for another run on {name}");
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

const EXTENSION: &str = "lock";

/// Pause between two attempts: flock has no time limit, and the system may refuse a thread to wait in.
const PAUSE: Duration = Duration::from_millis(10);
