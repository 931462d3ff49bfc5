//! Why a handshake failed, and what that says about the edge.

use std::io;
use std::time::Duration;

use rustls::Error;

use crate::text;

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandshakeError {
    pub(super) cause: Cause,
    /// Continues a sentence whose subject is the address.
    pub(super) reason: String,
}

/// Where the fault lies. Of several handshakes with an address, the last cause in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// The time limit was too short for a conclusion.
    TooLittleTime,
    /// This host has no route to the address.
    NoRoute,
    /// Nothing responds there.
    Unreachable,
    /// The edge responds, but fails the handshake, or this kind of client does.
    Edge,
    /// The connection broke during the handshake.
    Broken,
    /// The edge refuses the name: it answers with a TLS alert and shows no certificate. A connection that is closed without
    /// an alert is not a refusal: proxies do that for hosts that they cannot reach.
    Refused,
}

/// With a shorter time limit, silence says nothing about an edge.
const MIN_CONCLUSIVE_TIMEOUT: Duration = Duration::from_secs(1);

impl HandshakeError {
    fn new(cause: Cause, reason: impl Into<String>) -> Self {
        Self { cause, reason: reason.into() }
    }

    pub(super) fn timed_out(limit: Duration, reason: &str) -> Self {
        let is_conclusive = limit >= MIN_CONCLUSIVE_TIMEOUT;
        Self::new(if is_conclusive { Cause::Unreachable } else { Cause::TooLittleTime }, reason)
    }

    /// A handshake that had to wait for others until the deadline.
    pub(super) fn not_begun() -> Self {
        Self::new(Cause::TooLittleTime, "was not checked in time")
    }

    /// A handshake that succeeded without a certificate.
    pub(super) fn no_certificate() -> Self {
        Self::new(Cause::Edge, "serves no certificate")
    }

    /// An I/O error of the TCP connection.
    pub(super) fn from_connect(error: &io::Error) -> Self {
        use io::ErrorKind as K;
        match error.kind() {
            K::ConnectionRefused => Self::new(Cause::Unreachable, "refuses connections"),
            K::NetworkUnreachable | K::AddrNotAvailable => {
                Self::new(Cause::NoRoute, "cannot be reached: this host has no route to it")
            }
            _ => Self::new(Cause::Unreachable, format!("cannot be reached: {}", reason(error))),
        }
    }

    /// An I/O error of the TLS handshake.
    pub(super) fn from_handshake(error: &io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match tls {
            Some(Error::AlertReceived(alert)) => {
                let alert = alert_name(u8::from(*alert));
                Self::new(Cause::Refused, format!("rejects the handshake for this name (TLS alert {alert})"))
            }
            Some(Error::InvalidMessage(_)) => Self::new(Cause::Edge, "does not speak TLS"),
            Some(Error::InvalidCertificate(_)) => {
                Self::new(Cause::Edge, "signs the handshake with a key that does not match its certificate")
            }
            Some(_) => Self::new(Cause::Edge, "violates the TLS protocol in the handshake"),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::new(Cause::Edge, "closes the connection during the handshake")
            }
            None => Self::new(
                Cause::Broken,
                format!("breaks the connection during the handshake: {}", reason(error)),
            ),
        }
    }

    /// Whether the edge refused the name.
    pub(super) fn is_refusal(&self) -> bool {
        self.cause == Cause::Refused
    }

    /// The error of a handshake whose failure does not depend on the name.
    pub(super) fn without_refusal(self) -> Self {
        let cause = if self.is_refusal() { Cause::Edge } else { self.cause };
        Self { cause, ..self }
    }
}

/// The system's message without its error number.
fn reason(error: &io::Error) -> String {
    text::sanitize(error.to_string().split(" (os error").next().unwrap_or_default())
}

/// The name of an alert that an edge has reason to send (RFC 8446, section 6.2), or its number.
fn alert_name(number: u8) -> String {
    let name = match number {
        40 => "handshake_failure",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        112 => "unrecognized_name",
        other => return other.to_string(),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_names_or_numbers() {
        assert_eq!([112, 40, 255].map(alert_name), ["unrecognized_name", "handshake_failure", "255"]);
    }

    #[test]
    fn silence_is_conclusive_after_a_second() {
        for (limit, cause) in [(999, Cause::TooLittleTime), (1_000, Cause::Unreachable)] {
            assert_eq!(HandshakeError::timed_out(Duration::from_millis(limit), "").cause, cause);
        }
    }

    #[test]
    fn reason_is_that_of_the_system() {
        let error = HandshakeError::from_connect(&io::Error::from_raw_os_error(113));
        assert_eq!(error.reason, "cannot be reached: No route to host");
    }
}
