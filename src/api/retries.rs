//! When a request is repeated, and after which pause.

use std::fmt::Display;
use std::time::Duration;

use backon::BackoffBuilder as _;
use tokio::time::sleep;

use super::error::{AttemptError, RequestError};
use crate::clock::Deadline;

/// Attempts of a request whose response cannot be parsed; the next one is unlikely to differ.
const MAX_INVALID_RESPONSES: u32 = 4;

/// How long and how often requests are repeated.
pub(super) struct Retries {
    pub(super) deadline: Deadline,
    pub(super) max_attempts: u32,
}

impl Retries {
    /// Repeats `attempt` until it succeeds, fails for good, or no time is left for another one. Also returns the
    /// number of attempts.
    pub(super) async fn run<T>(
        &self,
        request: &impl Display,
        attempt: impl AsyncFn() -> Result<T, AttemptError>,
    ) -> Result<(T, u32), RequestError> {
        let mut delays = delays();
        let (mut attempts, mut may_be_done) = (0, false);
        loop {
            attempts += 1;
            let error = match attempt().await {
                Ok(value) => {
                    if attempts > 1 {
                        log::warn!("{request} succeeded on attempt {attempts}");
                    }
                    return Ok((value, attempts));
                }
                Err(error) => error,
            };
            may_be_done |= error.may_be_done();
            let delay = delays.next().unwrap_or_default();
            let Some(pause) = self.pause_before_retry(&error, attempts, delay) else {
                return Err(RequestError { request: request.to_string(), attempts, may_be_done, error });
            };
            log::warn!("{request}: {error}; retrying in {:.1} s", pause.as_secs_f32());
            sleep(pause).await;
        }
    }

    /// `None` if there is no further attempt.
    fn pause_before_retry(&self, error: &AttemptError, attempts: u32, delay: Duration) -> Option<Duration> {
        let max_attempts = match error {
            AttemptError::InvalidResponse { .. } => self.max_attempts.min(MAX_INVALID_RESPONSES),
            _ => self.max_attempts,
        };
        // `Retry-After: 0` does not shorten the delay.
        let pause = delay.max(error.retry_after().unwrap_or_default());
        (error.is_retryable() && attempts < max_attempts && pause < self.deadline.left()).then_some(pause)
    }
}

/// Pauses between attempts: 0.2 s, doubled up to 10 s, each with up to as much again at random, so that many hosts do
/// not come back at the same moment.
fn delays() -> impl Iterator<Item = Duration> {
    backon::ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(10))
        .with_jitter()
        .without_max_times()
        .build()
}
