//! Keeps two runs off the same lineage, with a lock of the operating system (flock) that ends with its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

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
        let file = match self.try_lock(name)? {
            Ok(lock) => return Ok(lock),
            Err(file) => file,
        };
        let (sender, receiver) = mpsc::channel();
        wait_in_thread(file, move |locked| _ = sender.send(locked));
        self.waited(name, receiver.recv_timeout(deadline.left()).ok())
    }

    /// Like `lock`, without blocking other tasks.
    pub(crate) async fn lock_in_task(&self, name: &str, deadline: Deadline) -> Result<Lock, LockError> {
        let file = match self.try_lock(name)? {
            Ok(lock) => return Ok(lock),
            Err(file) => file,
        };
        let (sender, receiver) = oneshot::channel();
        wait_in_thread(file, move |locked| _ = sender.send(locked));
        self.waited(name, timeout(deadline.left(), receiver).await.ok().and_then(Result::ok))
    }

    /// Acquires the lock of a lineage unless another run holds it; if so, returns the file to lock.
    fn try_lock(&self, name: &str) -> Result<Result<Lock, File>, WriteError> {
        let path = self.file(name, EXTENSION);
        let failed = |error: io::Error| WriteError::new(&path, &error);
        let file = match OpenOptions::new().write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut options = OpenOptions::new();
                let create = options.write(true).create(true).truncate(false).mode(0o600);
                self.track(None, || create.open(&path))
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

    /// The lock after the wait; `locked` is `None` if the deadline has passed.
    fn waited(&self, name: &str, locked: Option<io::Result<File>>) -> Result<Lock, LockError> {
        match locked {
            Some(Ok(file)) => Ok(Lock { _file: file, has_waited: true }),
            Some(Err(error)) => Err(WriteError::new(&self.file(name, EXTENSION), &error).into()),
            None => Err(LockTimeout { name: name.to_owned() }.into()),
        }
    }
}

const EXTENSION: &str = "lock";

/// Locks a file that other runs hold only for moments; `None` if that takes longer than the time limit, or fails.
pub(super) fn lock_file(file: File, limit: Duration) -> Option<File> {
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => {
            let (sender, receiver) = mpsc::channel();
            wait_in_thread(file, move |locked| _ = sender.send(locked));
            receiver.recv_timeout(limit).ok()?.ok()
        }
    }
}

/// Waits for a lock that another run holds. flock has no time limit; a thread that still waits ends with the process.
fn wait_in_thread(file: File, on_locked: impl FnOnce(io::Result<File>) + Send + 'static) {
    std::thread::spawn(move || on_locked(file.lock().map(|()| file)));
}
