//! The client of one task.

use std::cell::Cell;
use std::sync::Arc;

use super::transport::Service;
use super::wire::Site;
use crate::clock::Deadline;
use crate::secret::Redactor;

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

    /// How far this host's clock is ahead of the service's; `None` until a response has a `Date`.
    pub(crate) fn skew(&self) -> Option<time::Duration> {
        self.skew.get()
    }
}
