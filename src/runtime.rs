//! The asynchronous runtime. One thread is enough, because the work is waiting; what would block it runs in threads of
//! its own, if the system grants them. tokio's `spawn_blocking` panics where it does not.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

/// The system refuses what the runtime needs, such as another open file.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot start the event loop: {0}")]
pub(crate) struct RuntimeError(String);

/// A single-threaded runtime.
pub(crate) struct Runtime(tokio::runtime::Runtime);

impl Runtime {
    /// Starts a runtime.
    pub(crate) fn new() -> Result<Self, RuntimeError> {
        Self::start(tokio::runtime::Builder::new_current_thread().enable_all())
    }

    /// Starts a runtime for work that opens no connection. It needs nothing that the system could refuse.
    pub(crate) fn without_network() -> Result<Self, RuntimeError> {
        Self::start(tokio::runtime::Builder::new_current_thread().enable_time())
    }

    fn start(builder: &mut tokio::runtime::Builder) -> Result<Self, RuntimeError> {
        let failed = |error: io::Error| RuntimeError(crate::file::reason(&error));
        builder.build().map(Self).map_err(failed)
    }

    /// Runs a future to completion.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}

/// Runs work in another thread, so that it does not block the tasks of this one; in this thread if the system grants no
/// other.
pub(crate) async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    run(work, |work, _| work()).await
}

/// Runs work in another thread, because it may take longer than the time limit. Fails if the system grants none.
pub(crate) async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run(work, |_, error| {
        let reason = format!("cannot start a thread: {}", crate::file::reason(&error));
        Err(io::Error::new(error.kind(), reason))
    })
    .await
}

/// Runs work in another thread, or `otherwise` in this one. Unlike tasks, the thread may outlive the future, and does
/// not delay the exit.
async fn run<T: Send + 'static, F: FnOnce() -> T + Send + 'static>(
    work: F,
    otherwise: impl FnOnce(F, io::Error) -> T,
) -> T {
    let (sender, receiver) = mpsc::channel::<(F, oneshot::Sender<T>)>();
    let run_next = move || receiver.recv().map(|(work, done)| done.send(work()).is_ok());
    // The work is passed to a thread that exists, since it would be lost with one that does not start.
    match thread::Builder::new().spawn(run_next) {
        Ok(_) => {
            let (done, result) = oneshot::channel();
            let _ = sender.send((work, done));
            result.await.unwrap_or_else(|_| resume_unwind(Box::new("the thread has panicked")))
        }
        Err(error) => otherwise(work, error),
    }
}
