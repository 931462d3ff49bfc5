//! Limits, pauses and repetitions of the requests of one run, without the requests: for simulations.

use std::time::Duration;

use super::error::AttemptError;
use super::limiter::Limiter;
use super::retries::Retries;
use crate::clock::Deadline;

/// Paces simulated requests of one run to one service as those of a client are paced.
pub struct Pacing(Limiter);

impl Pacing {
    /// Whether requests share a connection, as in HTTP/2.
    pub fn new(is_http2: bool) -> Self {
        let limiter = Limiter::new();
        limiter.set_http2(is_http2);
        Self(limiter)
    }

    /// Waits until another request could be sent, or for as long as one would wait.
    pub async fn wait(&self, limit: Duration) {
        self.0.wait(Deadline::after(limit)).await;
    }

    /// Sends a request until it is admitted, or no time is left. `send` fails with the `Retry-After` of a 429. Returns
    /// whether the request was admitted.
    pub async fn request(&self, limit: Duration, send: impl AsyncFn() -> Result<(), Duration>) -> bool {
        let deadline = Deadline::after(limit);
        let refused = |pause| AttemptError::Unavailable {
            status: 429,
            retry_after: Some(pause),
            message: String::new(),
        };
        let attempt = async || {
            let permit = self.0.acquire(deadline).await.map_err(refused)?;
            let result = send().await.map_err(refused);
            self.0.release(permit, &result);
            result
        };
        Retries { deadline, max_attempts: u32::MAX }.run(&"a simulated request", attempt).await.is_ok()
    }
}
