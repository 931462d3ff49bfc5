//! When a request is repeated, and after which pause.

use std::time::Duration;

use tokio::time::sleep;

use super::client::Client;
use super::error::{AttemptError, RequestError};
use super::listing::Element;
use super::response::Response;
use super::transport::Request;

/// The shortest and the longest pause between attempts, without jitter.
const MIN_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Attempts of a request whose response cannot be parsed; the next one is unlikely to differ.
const MAX_INVALID_RESPONSES: u32 = 4;

impl Client {
    /// Sends a request and reads the response, given the number of attempts, and repeats that until it succeeds, fails for
    /// good, or no time is left for another attempt.
    pub(super) async fn call<E: Element, T>(
        &self,
        request: &Request,
        read: impl Fn(Response<E>, u32) -> Result<T, AttemptError>,
    ) -> Result<T, RequestError> {
        let (mut attempts, mut may_be_done, mut doubling) = (0, false, MIN_PAUSE);
        loop {
            attempts += 1;
            let error = match self.send(request).await.and_then(|response| read(response, attempts)) {
                Ok(value) => {
                    if attempts > 1 {
                        log::warn!("{request} succeeded on attempt {attempts}");
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            may_be_done |= error.may_be_done();
            // At random, so that many hosts do not come back at the same moment.
            let pause = doubling + doubling.mul_f64(fastrand::f64());
            // `Retry-After: 0` does not shorten it.
            let pause = pause.max(error.retry_after().unwrap_or_default());
            doubling = MAX_PAUSE.min(doubling * 2);
            let max_attempts = match error {
                _ if request.is_sent_once => 1,
                AttemptError::InvalidResponse { .. } => self.max_attempts.min(MAX_INVALID_RESPONSES),
                _ => self.max_attempts,
            };
            if !error.is_retryable() || attempts >= max_attempts || pause >= self.deadline.left() {
                return Err(RequestError { attempts, may_be_done, error });
            }
            log::warn!("{request}: {error}; retrying in {:.1} s", pause.as_secs_f32());
            sleep(pause).await;
        }
    }
}
