//! The client of one run, and when it retries a request.

use std::time::Duration;

use backon::BackoffBuilder as _;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::body::{Body, TextBody};
use super::config::{ClientConfig, SetupError};
use super::error::{AttemptError, RequestError};
use super::response::Response;
use super::transport::{Request, Transport};
use super::wire::Site;
use crate::clock::Deadline;
use crate::secret::Redactor;
use crate::settings::BaseUrl;

/// Attempts of a request whose response cannot be parsed; the next one is unlikely to differ.
const MAX_INVALID_RESPONSES: u32 = 4;

/// Sends requests to the service until a deadline.
pub(crate) struct Client {
    transport: Transport,
    deadline: Deadline,
    /// Limit for each request.
    max_attempts: u32,
}

impl Client {
    /// Prepares the connection; sends nothing. Responses are redacted with `redactor`.
    pub(crate) fn new(
        config: &ClientConfig,
        redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Self, SetupError> {
        let transport = Transport::new(config, redactor)?;
        Ok(Self { transport, deadline, max_attempts: u32::MAX })
    }

    /// Limits the attempts of each request, however much time is left; for interactive commands.
    pub(crate) fn with_max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// A client for another task on the same connections.
    pub(crate) fn for_task(&self, redactor: Redactor, deadline: Deadline) -> Self {
        let transport = self.transport.with_redactor(redactor);
        Self { transport, deadline, max_attempts: self.max_attempts }
    }

    /// Waits until another request could be sent, or for as long as one would wait.
    pub(crate) async fn wait(&self, deadline: Deadline) {
        self.transport.wait(deadline).await;
    }

    /// Removes the secrets of this client's task from a text that another one has received.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.transport.clean(text)
    }

    /// Removes the secrets of this client's task from a site that another one has read.
    pub(crate) fn clean_site(&self, site: &Site) -> Site {
        let clean = |text: &_| self.clean(text).into();
        Site {
            unreadable_cert_id: site.unreadable_cert_id.as_deref().map(clean),
            cname: site.cname.as_deref().map(clean),
            disabled_reason: site.disabled_reason.as_deref().map(clean),
            ..site.clone()
        }
    }

    pub(super) fn base_url(&self) -> &BaseUrl {
        self.transport.base_url()
    }

    /// How far this host's clock is ahead of the service's; `None` until a response has a `Date`.
    pub(crate) fn skew(&self) -> Option<time::Duration> {
        self.transport.skew()
    }

    /// Sends a request, with retries, and reads the response.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        request: &Request,
        read: impl Fn(Response) -> Result<T, AttemptError> + Copy + Send + 'static,
    ) -> Result<T, RequestError> {
        let (value, _) = self.retry(request, async || self.attempt(request, read).await).await?;
        Ok(value)
    }

    /// Sends a request once and reads the response.
    pub(super) async fn attempt<T: Send + 'static>(
        &self,
        request: &Request,
        read: impl FnOnce(Response) -> Result<T, AttemptError> + Send + 'static,
    ) -> Result<T, AttemptError> {
        let response = self.receive::<TextBody>(request).await?;
        let result = read_until(self.deadline, response, read).await;
        result.unwrap_or_else(|| Err(AttemptError::TimedOut { host: self.transport.peer().to_owned() }))
    }

    /// Sends a request once and receives the response.
    pub(super) async fn receive<B: Body>(&self, request: &Request) -> Result<B::Response, AttemptError> {
        self.transport.send::<B>(request, self.deadline).await
    }

    /// Repeats `attempt` until it succeeds, fails for good, or no time is left for another one. Also returns the
    /// number of attempts.
    pub(super) async fn retry<T>(
        &self,
        request: &Request,
        attempt: impl AsyncFn() -> Result<T, AttemptError>,
    ) -> Result<(T, u32), RequestError> {
        let mut delays = delays();
        let (mut attempts, mut may_be_done) = (0, false);
        loop {
            attempts += 1;
            let error = match attempt().await {
                Ok(value) => {
                    if attempts > 1 {
                        log::warn!("{request} succeeded at attempt {attempts}");
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

/// Reads a response; `None` if the deadline passes first. A large response is read in a separate thread, which may
/// run until the process exits.
async fn read_until<T: Send + 'static>(
    deadline: Deadline,
    response: Response,
    read: impl FnOnce(Response) -> T + Send + 'static,
) -> Option<T> {
    if !response.is_large() {
        return Some(read(response));
    }
    timeout(deadline.left(), spawn_blocking(move || read(response))).await.ok()?.ok()
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;
    use crate::runtime::Runtime;

    #[test]
    fn reading_ends_at_deadline() {
        let runtime = Runtime::new().unwrap();
        let (keep_reading, end) = mpsc::channel::<()>();
        let response = Response::new(200, Ok("[]".repeat(1 << 20)), Arc::default());
        let read = move |_| end.recv();
        let deadline = Deadline::after(Duration::from_millis(10));
        assert_eq!(runtime.block_on(read_until(deadline, response, read)).unwrap(), None);
        drop(keep_reading);
    }
}
