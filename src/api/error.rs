//! Why requests to the service fail, and which failures are worth a retry.

use std::time::Duration;

use crate::settings::BaseUrl;
use crate::text::sanitize;

/// A request that failed after all its attempts.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct RequestError {
    pub(crate) attempts: u32,
    /// Whether the service may have carried out any of them.
    pub(crate) may_be_done: bool,
    /// Why the last attempt failed.
    pub(crate) error: AttemptError,
}

/// Why one attempt failed. The `message` after a status is the service's own: untrusted, but free of secrets.
///
/// Retryable are `NoResponse`, `Unavailable` (408, 425, 429 and 5xx) and, a few times, `InvalidResponse` that is not final:
/// it may have been truncated or garbled in transit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// No connection, no response in time, or a connection that was closed before the whole response arrived. `is_sent`:
    /// the service may have received the request.
    #[error("{message}")]
    NoResponse { message: String, reason: String, is_sent: bool },
    /// No TLS, or a server whose certificate does not verify. Not retryable: the peer is not authenticated.
    #[error("{message}")]
    Tls { message: String, hint: &'static str },
    /// 3xx. Never followed: the request carries a private key.
    #[error("the service redirects to {location} ({status}); redirects are never followed")]
    Redirected { status: u16, location: String },
    /// 401
    #[error("the service rejected the API key (401){}", quote(.message))]
    Unauthorized { message: String },
    /// 408, 425, 429 and 5xx
    #[error("the service is unavailable ({status}){}", quote(.message))]
    Unavailable { status: u16, retry_after: Option<Duration>, message: String },
    /// Any other status that is not a success, such as 400, 403 and 404.
    #[error("the service refused the request ({status}){}", quote(.message))]
    Refused { status: u16, message: String },
    /// 404, or a web page, which is not quoted, in place of a list that every account has: the base URL is wrong.
    #[error("there is no {path} at {base_url} ({status}){}", quote(.message))]
    NoList { base_url: Box<BaseUrl>, path: &'static str, status: u16, message: String },
    /// A success whose body says `ok: false`.
    #[error("the service answered ok:false{}", quote(.message))]
    NotOk { message: String },
    /// A success whose body is not what the endpoint returns. `is_final`: the next one would be alike.
    #[error("the service sent a response ({status}) that cannot be understood{}", quote(.message))]
    InvalidResponse { status: u16, message: String, is_final: bool },
    /// A list that is too large. Not retryable: the next one would be as large. Nothing more of it was received.
    #[error("the service sent a list that is too large")]
    TooLarge,
}

impl RequestError {
    /// The status with which the service refused the request.
    pub(crate) fn refused_status(&self) -> Option<u16> {
        match self.error {
            AttemptError::Refused { status, .. } => Some(status),
            _ => None,
        }
    }
}

impl AttemptError {
    pub(super) fn timed_out(host: &str) -> Self {
        let reason = format!("{host} did not respond in time");
        Self::NoResponse { message: format!("the service at {reason}"), reason, is_sent: true }
    }

    /// Whether the same request may succeed later; the type's documentation lists the retryable errors.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NoResponse { .. }
                | Self::Unavailable { .. }
                | Self::NoList { status: ..400, .. }
                | Self::InvalidResponse { is_final: false, .. }
        )
    }

    /// Whether the service may have carried out the request.
    pub(crate) fn may_be_done(&self) -> bool {
        matches!(
            self,
            Self::NoResponse { is_sent: true, .. }
                | Self::InvalidResponse { .. }
                | Self::Unavailable { status: 500.., .. }
        )
    }

    /// The pause that the service asks for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The error of a request for a list, which may be due to a wrong base URL.
    pub(super) fn of_list(self, base_url: &BaseUrl, path: &'static str) -> Self {
        let is_web_page = |message: &str| message.trim_start().starts_with('<');
        let (status, message) = match self {
            Self::Refused { status: 404, message } if !is_web_page(&message) => (404, message),
            Self::Refused { status: 404, .. } => (404, String::new()),
            Self::InvalidResponse { status, message, .. } if is_web_page(&message) => (status, String::new()),
            error => return error,
        };
        Self::NoList { base_url: Box::new(base_url.clone()), path, status, message }
    }
}

/// The service's message after a colon; empty if there is none.
fn quote(message: &str) -> String {
    match sanitize(message) {
        message if message.is_empty() => String::new(),
        message => format!(": {message}"),
    }
}
