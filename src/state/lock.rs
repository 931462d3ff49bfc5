//! Keeps two runs off the same lineage. The lock is the system's own (flock), so that it ends with the process, however
//! that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::mpsc;

use super::{Store, WriteError};
use crate::clock::Deadline;
use crate::file;

/// The lock on a lineage; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    /// Whether another run had it first.
    pub(crate) waited: bool,
}

/// Another run keeps the lock.
#[derive(Debug, thiserror::Error)]
#[error("another run of edgecert is still deploying {name}")]
pub(crate) struct LockTimeout {
    name: String,
}

impl Store {
    /// Takes the lock of a lineage, waiting for it until the deadline. The outer error is of the file system.
    pub(crate) fn lock(
        &self,
        name: &str,
        deadline: Deadline,
    ) -> Result<Result<Lock, LockTimeout>, WriteError> {
        let path = self.file(name, "lock");
        let failed = |error: std::io::Error| WriteError { path: path.clone(), reason: file::reason(&error) };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => return Ok(Ok(Lock { _file: file, waited: false })),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => log::info!("waiting for another run on {name}"),
        }
        // The wait itself knows no time limit; a thread that is still in it ends with the process.
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(file.lock().map(|()| file)));
        match receiver.recv_timeout(deadline.left()) {
            Ok(Ok(file)) => Ok(Ok(Lock { _file: file, waited: true })),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Ok(Err(LockTimeout { name: name.to_owned() })),
        }
    }
}
