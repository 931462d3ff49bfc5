//! Keeps two runs off the same lineage, with a lock of the operating system (flock) that ends with its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use super::{Store, WriteError};
use crate::clock::Deadline;
use crate::file;

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
        let file = match self.try_lock(name)? {
            Ok(lock) => return Ok(lock),
            Err(file) => file,
        };
        self.waited(name, wait(&file, deadline).map(|()| file))
    }

    /// Like `lock`, without blocking other tasks.
    pub(crate) async fn lock_in_task(&self, name: &str, deadline: Deadline) -> Result<Lock, LockError> {
        let file = match self.try_lock(name)? {
            Ok(lock) => return Ok(lock),
            Err(file) => file,
        };
        let locked = loop {
            match try_until(&file, deadline) {
                Ok(false) => tokio::time::sleep(PAUSE).await,
                Ok(true) => break Ok(file),
                Err(error) => break Err(error),
            }
        };
        self.waited(name, locked)
    }

    /// Acquires the lock of a lineage unless another run holds it; if so, returns the file to lock.
    fn try_lock(&self, name: &str) -> Result<Result<Lock, File>, WriteError> {
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
            Ok(()) => Ok(Ok(Lock { _file: file, has_waited: false })),
            Err(TryLockError::Error(error)) => Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                log::info!("waiting for another run on {name}");
                Ok(Err(file))
            }
        }
    }

    /// The lock after the wait.
    fn waited(&self, name: &str, locked: io::Result<File>) -> Result<Lock, LockError> {
        match locked {
            Ok(file) => Ok(Lock { _file: file, has_waited: true }),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(LockTimeout { name: name.to_owned() }.into())
            }
            Err(error) => Err(WriteError::new(&self.file(name, EXTENSION), &error).into()),
        }
    }
}

const EXTENSION: &str = "lock";

/// Pause between two attempts: flock has no time limit, and the system may refuse a thread to wait in.
const PAUSE: Duration = Duration::from_millis(10);

fn wait(file: &File, deadline: Deadline) -> io::Result<()> {
    while !try_until(file, deadline)? {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Tries once; an error of the kind `TimedOut` if another run holds the lock after the deadline.
fn try_until(file: &File, deadline: Deadline) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) if deadline.left().is_zero() => Err(io::ErrorKind::TimedOut.into()),
        Err(TryLockError::WouldBlock) => Ok(false),
    }
}
