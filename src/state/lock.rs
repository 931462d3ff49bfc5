//! Keeps two runs off the same lineage, with a lock of the operating system (flock) that ends with its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::mpsc;

use super::{Store, WriteError};
use crate::clock::Deadline;

/// The lock on a lineage, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    /// Whether another run held it first.
    pub(crate) has_waited: bool,
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
    pub(crate) fn lock(&self, name: &str, deadline: Deadline) -> Result<Lock, LockError> {
        let path = self.file(name, "lock");
        let failed = |error: std::io::Error| WriteError::new(&path, &error);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _file: file, has_waited: false }),
            Err(TryLockError::Error(error)) => return Err(failed(error).into()),
            Err(TryLockError::WouldBlock) => log::info!("waiting for another run on {name}"),
        }
        // flock has no time limit; a thread that still waits ends with the process.
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(file.lock().map(|()| file)));
        match receiver.recv_timeout(deadline.left()) {
            Ok(Ok(file)) => Ok(Lock { _file: file, has_waited: true }),
            Ok(Err(error)) => Err(failed(error).into()),
            Err(_) => Err(LockTimeout { name: name.to_owned() }.into()),
        }
    }
}
