//! An address of the edge: what it serves, and how soon.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::site::{EdgeSite, PreparedTls};
use super::table::EdgeTable;
use crate::app::App;

/// An additional address of the edge, opened while the sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeAddress {
    /// What the address serves.
    pub mode: EdgeMode,
    /// The certificate of the modes `other` and `alternate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<ServedCert>,
    /// In the mode `alternate`, one in this many connections gets the certificate; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<NonZeroU64>,
    /// Loopback address to listen on; a free port of 127.0.0.1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Time in milliseconds from the client's first message to the response.
    #[serde(default)]
    pub delay_ms: u64,
}

/// What an additional address serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeMode {
    /// What the main address serves.
    Same,
    /// What the main address served when this one was opened.
    Stale,
    /// The given certificate, for every name.
    Other,
    /// The given certificate on every second connection, or on every `every`th in the order of acceptance;
    /// otherwise what the main address serves.
    Alternate,
    /// Nothing: handshakes get the alert `unrecognized_name`.
    Refuse,
    /// Nothing: connections are accepted and never get a response.
    Silent,
}

/// A certificate for an additional address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedCert {
    /// PEM of the chain, which is not validated.
    pub cert_pem: String,
    /// PEM of the private key.
    pub key_pem: String,
}

impl EdgeAddress {
    /// Describes an address that serves no certificate of its own.
    pub fn new(mode: EdgeMode) -> Self {
        Self { mode, serves: None, every: None, listen: None, delay_ms: 0 }
    }

    /// Describes an address with a certificate, for the modes `other` and `alternate`.
    pub fn serving(mode: EdgeMode, cert_pem: &str, key_pem: &str) -> Self {
        let serves = ServedCert { cert_pem: cert_pem.to_owned(), key_pem: key_pem.to_owned() };
        Self { serves: Some(serves), ..Self::new(mode) }
    }

    /// Serves the certificate of the mode `alternate` on every `every`th connection.
    #[must_use]
    pub fn every(self, every: NonZeroU64) -> Self {
        Self { every: Some(every), ..self }
    }

    /// Responds after this many milliseconds.
    #[must_use]
    pub fn delay_ms(self, delay_ms: u64) -> Self {
        Self { delay_ms, ..self }
    }

    /// Returns what the address serves, or why that is impossible.
    pub(crate) fn behavior(&self) -> Result<Behavior, String> {
        let leaf = match (&self.serves, self.mode) {
            (Some(serves), EdgeMode::Other | EdgeMode::Alternate) => {
                Some(PreparedTls::usable(&serves.cert_pem, &serves.key_pem)?)
            }
            (None, EdgeMode::Other | EdgeMode::Alternate) => {
                return Err("`serves` is missing, which the modes other and alternate need".to_owned());
            }
            (Some(_), _) => return Err("`serves` is for the modes other and alternate only".to_owned()),
            (None, _) => None,
        };
        let every = match (self.mode, self.every) {
            (EdgeMode::Alternate, every) => every.map_or(2, NonZeroU64::get),
            (_, None) => 1,
            (_, Some(_)) => return Err("`every` is for the mode alternate only".to_owned()),
        };
        let delay = Duration::from_millis(self.delay_ms);
        Ok(Behavior { mode: self.mode, leaf, every, stale: None, delay })
    }
}

/// What an address of the edge serves.
pub(crate) struct Behavior {
    mode: EdgeMode,
    leaf: Option<PreparedTls>,
    /// One in this many connections gets `leaf`.
    every: u64,
    /// What the main address served when this one was opened, in the mode `stale`.
    stale: Option<EdgeTable>,
    delay: Duration,
}

impl Behavior {
    /// Returns the behavior of the main address.
    pub(crate) fn main() -> Self {
        Self { mode: EdgeMode::Same, leaf: None, every: 1, stale: None, delay: Duration::ZERO }
    }

    /// In the mode `stale`, copies what the main address serves now.
    pub(super) fn with_snapshot(mut self, app: &App) -> Self {
        self.stale = (self.mode == EdgeMode::Stale).then(|| app.edge.snapshot());
        self
    }

    /// Returns the time to wait before the response; `None` means that there is no response.
    pub(super) fn delay(&self) -> Option<Duration> {
        (self.mode != EdgeMode::Silent).then_some(self.delay)
    }

    /// Returns what a name is served over plain HTTP.
    pub(super) fn find(&self, app: &App, name: &str) -> Option<Arc<EdgeSite>> {
        match self.mode {
            EdgeMode::Refuse | EdgeMode::Silent => None,
            _ => self.stale.as_ref().unwrap_or(&app.edge).find(name),
        }
    }

    /// Returns the response to a handshake on the connection with this number, counted from 1.
    pub(super) fn respond(&self, app: &App, connection: u64, name: Option<&str>) -> Option<Arc<EdgeSite>> {
        match self.leaf.as_ref().filter(|_| connection.is_multiple_of(self.every)) {
            Some(leaf) => Some(Arc::new(EdgeSite::overridden(None, name.unwrap_or_default(), leaf))),
            None => self.find(app, name?),
        }
    }
}
