//! What can go wrong between edgecert and the service, told apart by what a caller should do.

use std::time::Duration;

use crate::text::sanitize;

/// A request that did not succeed, after all attempts.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct RequestError {
    /// Method and path.
    pub(crate) request: String,
    pub(crate) attempts: u32,
    pub(crate) error: Error,
}

/// Why one attempt failed. Texts of the service are printable and free of secrets already.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No connection: refused, no route, no such host.
    #[error("the service at {host} cannot be reached: {reason}")]
    Unreachable { host: String, reason: String },
    /// The connection stood, but no answer came in time.
    #[error("the service at {host} did not answer in time")]
    TimedOut { host: String },
    /// The connection ended before the whole answer was there.
    #[error("the connection to {host} ended before the answer was complete: {reason}")]
    ConnectionClosed { host: String, reason: String },
    /// The server's TLS certificate does not verify. Never repeated: nobody knows who is listening.
    #[error("the TLS certificate of {host} is not trusted: {reason}")]
    Untrusted { host: String, reason: String },
    /// The other side speaks no TLS that we could speak. Does not pass by itself.
    #[error("no TLS connection with {host}: {reason}")]
    NoTls { host: String, reason: String },
    /// 3xx. Never followed: the request carries a private key.
    #[error("the service redirects to {location} ({status}); redirects are never followed")]
    Redirected { status: u16, location: String },
    /// 401
    #[error("the service does not accept the API key (401){}", quoted(.message))]
    Denied { message: String },
    /// 408, 425, 429 and 5xx
    #[error("the service answers {status}{}", quoted(.message))]
    Unavailable { status: u16, retry_after: Option<Duration>, message: String },
    /// Any other status that is no success.
    #[error("the service refused with {status}{}", quoted(.message))]
    Refused { status: u16, message: String },
    /// A success that says `ok: false`.
    #[error("the service answered ok:false{}", quoted(.message))]
    NotOk { message: String },
    /// A success that cannot be understood.
    #[error("the service answered {status} with something that cannot be understood{}", quoted(.message))]
    Unreadable { status: u16, message: String },
}

impl Error {
    /// Whether the same request may succeed later: connection, time-out, 408, 425, 429, 5xx, and an answer that was cut
    /// or garbled on its way.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        self.is_temporary() || matches!(self, Self::Unreadable { .. })
    }

    /// Whether the fault passes by itself.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::TimedOut { .. }
                | Self::ConnectionClosed { .. }
                | Self::Unavailable { .. }
        )
    }

    /// The same without what the service message.
    pub(super) fn without_words(mut self) -> Self {
        match &mut self {
            Self::Denied { message }
            | Self::Unavailable { message, .. }
            | Self::Refused { message, .. }
            | Self::NotOk { message }
            | Self::Unreadable { message, .. } => message.clear(),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::ConnectionClosed { .. }
            | Self::Untrusted { .. }
            | Self::NoTls { .. }
            | Self::Redirected { .. } => {}
        }
        self
    }

    /// The status with which the service refused.
    pub(crate) fn refused_with(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// How long the service asks to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// What the service message, behind a colon, where it message anything.
fn quoted(message: &str) -> String {
    match sanitize(message) {
        message if message.is_empty() => String::new(),
        message => format!(": {message}"),
    }
}
