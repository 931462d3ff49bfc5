//! An address of the edge: what it serves, and how soon.

use std::sync::Arc;
use std::time::Duration;

use super::site::{EdgeSite, PreparedTls};
use super::table::EdgeTable;
use crate::app::App;

/// An additional address of the edge, opened while the sandbox runs.
#[derive(Debug, Clone)]
pub struct EdgeAddress {
    mode: EdgeMode,
    /// PEM of a chain and its key.
    serves: Option<[String; 2]>,
    /// One in this many connections gets that certificate.
    every: u64,
    delay: Duration,
}

/// What an additional address serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeMode {
    /// What the main address serves.
    Same,
    /// What the main address served when this one was opened.
    Stale,
    /// Nothing: handshakes get the alert `unrecognized_name`.
    Refuse,
    /// Nothing: connections are accepted and never get a response.
    Silent,
}

impl EdgeAddress {
    /// Describes an address that serves no certificate of its own.
    pub fn new(mode: EdgeMode) -> Self {
        Self { mode, serves: None, every: 1, delay: Duration::ZERO }
    }

    /// Describes an address that serves this certificate for every name. Only the edge's ability to do so is checked.
    pub fn serving(cert_pem: &str, key_pem: &str) -> Self {
        Self { serves: Some([cert_pem.to_owned(), key_pem.to_owned()]), ..Self::new(EdgeMode::Same) }
    }

    /// Serves the certificate on every `every`th connection, in the order of acceptance. The others get what the main
    /// address serves.
    #[must_use]
    pub fn every(self, every: u64) -> Self {
        Self { every, ..self }
    }

    /// Responds so many milliseconds after the client's first message.
    #[must_use]
    pub fn delay_ms(self, delay_ms: u64) -> Self {
        Self { delay: Duration::from_millis(delay_ms), ..self }
    }
}

/// What an open address of the edge serves.
pub(crate) struct Behavior {
    mode: EdgeMode,
    leaf: Option<PreparedTls>,
    /// One in this many connections gets `leaf`.
    every: u64,
    /// What the main address served when this one was opened, in the mode `Stale`.
    stale: Option<EdgeTable>,
    delay: Duration,
}

impl Behavior {
    /// Returns the behavior of the main address.
    pub(crate) fn main() -> Self {
        Self { mode: EdgeMode::Same, leaf: None, every: 1, stale: None, delay: Duration::ZERO }
    }

    /// Returns the behavior of an address that is opened now, or why the edge cannot serve its certificate.
    pub(super) fn new(app: &App, address: &EdgeAddress) -> Result<Self, String> {
        let serves = address.serves.as_ref();
        Ok(Self {
            mode: address.mode,
            leaf: serves.map(|[cert_pem, key_pem]| PreparedTls::usable(cert_pem, key_pem)).transpose()?,
            every: address.every,
            stale: (address.mode == EdgeMode::Stale).then(|| app.edge.snapshot()),
            delay: address.delay,
        })
    }

    /// Returns the time to wait before the response; `None` means that there is no response.
    pub(super) fn delay(&self) -> Option<Duration> {
        (self.mode != EdgeMode::Silent).then_some(self.delay)
    }

    /// Returns the response to a handshake on the connection with this number, counted from 1.
    pub(super) fn respond(&self, app: &App, connection: u64, name: Option<&str>) -> Option<Arc<EdgeSite>> {
        if let Some(leaf) = self.leaf.as_ref().filter(|_| connection.is_multiple_of(self.every)) {
            return Some(Arc::new(EdgeSite::overridden(None, name.unwrap_or_default(), leaf)));
        }
        match self.mode {
            EdgeMode::Refuse | EdgeMode::Silent => None,
            EdgeMode::Same | EdgeMode::Stale => self.stale.as_ref().unwrap_or(&app.edge).find(name?),
        }
    }
}
