//! The client of one task: when a request is repeated, and after which pause.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::error::{AttemptError, RequestError};
use super::listing::Element;
use super::response::Response;
use super::transport::{Request, Service};
use super::wire::Site;
use crate::clock::Deadline;
use crate::secret::Redactor;

/// The shortest and the longest pause between attempts, without jitter.
const MIN_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Attempts of a request whose response cannot be parsed; the next one is unlikely to differ.
const MAX_INVALID_RESPONSES: u32 = 4;

/// Sends requests to the service until a deadline.
pub(crate) struct Client {
    pub(super) service: Arc<Service>,
    /// The secrets that responses must not repeat.
    pub(super) redactor: Arc<Redactor>,
    /// How far this host's clock is ahead of the service's; `None` until a response has a `Date`.
    pub(crate) skew: Cell<Option<time::Duration>>,
    pub(super) deadline: Deadline,
    /// Limit for each request.
    pub(super) max_attempts: u32,
}

impl Client {
    /// A client for one task. Responses are redacted with `redactor`.
    pub(crate) fn new(service: Arc<Service>, redactor: Redactor, deadline: Deadline) -> Self {
        let redactor = Arc::new(redactor);
        Self { service, redactor, skew: Cell::default(), deadline, max_attempts: u32::MAX }
    }

    /// Limits the attempts of each request, however much time is left; for interactive commands.
    pub(crate) fn with_max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// Removes the secrets of this client's task from a text that another one has received.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    /// Removes the secrets of this client's task from a site that another one has read.
    pub(crate) fn clean_site(&self, site: &Site) -> Site {
        Site {
            unreadable_cert_id: site.unreadable_cert_id.as_deref().map(|text| self.clean(text).into()),
            cname: site.cname.as_deref().map(|text| self.clean(text).into()),
            disabled_reason: site.disabled_reason.as_deref().map(|text| self.clean(text).into()),
            ..site.clone()
        }
    }

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
