//! The client of one run.

use std::cell::Cell;
use std::sync::Arc;

use super::transport::Service;
use super::wire::Site;
use crate::clock::Deadline;
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::trust::{SetupError, TrustStores};

/// Sends requests to the service until a deadline.
pub(crate) struct Client {
    pub(super) service: Arc<Service>,
    /// The secrets that responses must not repeat.
    pub(super) redactor: Arc<Redactor>,
    pub(super) skew: Cell<Option<time::Duration>>,
    pub(super) deadline: Deadline,
    /// Limit for each request.
    pub(super) max_attempts: u32,
}

impl Client {
    /// Prepares the connection; sends nothing. Responses are redacted with `redactor`. HTTP/2 is worth offering to the
    /// service for several requests: for a single one it would only cost time.
    pub(crate) fn new(
        settings: &Settings,
        stores: &TrustStores,
        is_http2_offered: bool,
        redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Self, SetupError> {
        let service = Service::new(settings, stores, is_http2_offered, deadline)?;
        let (service, redactor) = (Arc::new(service), Arc::new(redactor));
        Ok(Self { service, redactor, skew: Cell::default(), deadline, max_attempts: u32::MAX })
    }

    /// Limits the attempts of each request, however much time is left; for interactive commands.
    pub(crate) fn with_max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// A client for another task on the same connections.
    pub(crate) fn for_task(&self, redactor: Redactor, deadline: Deadline) -> Self {
        let (service, redactor) = (Arc::clone(&self.service), Arc::new(redactor));
        Self { service, redactor, skew: Cell::default(), deadline, max_attempts: self.max_attempts }
    }

    /// Waits until another request could be sent, or for as long as one would wait.
    pub(crate) async fn wait(&self, deadline: Deadline) {
        drop(self.service.limits.acquire(deadline).await);
    }

    /// Removes the secrets of this client's task from a text that another one has received.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
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

    /// How far this host's clock is ahead of the service's; `None` until a response has a `Date`.
    pub(crate) fn skew(&self) -> Option<time::Duration> {
        self.skew.get()
    }
}
