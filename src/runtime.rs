//! The asynchronous runtime. One thread is enough, because the work is waiting.

use anyhow::Context as _;

/// A single-threaded runtime. Dropping it does not wait for DNS lookups in progress, which must not delay the exit.
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts a runtime.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self(Some(runtime.context("cannot start the runtime")?)))
    }

    /// Runs a future to completion.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> anyhow::Result<F::Output> {
        let runtime = self.0.as_ref().context("the runtime has ended")?;
        Ok(runtime.block_on(future))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
