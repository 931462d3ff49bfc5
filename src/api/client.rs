//! The client of one run.

use super::config::{ClientConfig, SetupError};
use super::error::{AttemptError, RequestError};
use super::listing::Element;
use super::response::Response;
use super::transport::{Request, Transport};
use super::wire::Site;
use crate::clock::Deadline;
use crate::secret::Redactor;
use crate::settings::BaseUrl;

/// Sends requests to the service until a deadline.
pub(crate) struct Client {
    transport: Transport,
    pub(super) deadline: Deadline,
    /// Limit for each request.
    pub(super) max_attempts: u32,
}

impl Client {
    /// Prepares the connection; sends nothing. Responses are redacted with `redactor`.
    pub(crate) fn new(
        config: ClientConfig,
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
    pub(super) async fn call<T>(
        &self,
        request: &Request,
        read: impl Fn(Response) -> Result<T, AttemptError>,
    ) -> Result<T, RequestError> {
        let (value, _) = self.retry(request, async || self.attempt(request, &read).await).await?;
        Ok(value)
    }

    /// Sends a request once and reads the response.
    pub(super) async fn attempt<E: Element, T>(
        &self,
        request: &Request,
        read: impl FnOnce(Response<E>) -> Result<T, AttemptError>,
    ) -> Result<T, AttemptError> {
        read(self.transport.send(request, self.deadline).await?)
    }
}
