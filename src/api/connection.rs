//! Classifies failures of the connection: unreachable, too slow, closed, or TLS.

use std::error::Error as _;
use std::io;

use rustls::{AlertDescription, CertificateError};

use super::error::AttemptError;

/// The phase in which an attempt failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestPhase {
    Request,
    Response,
}

/// The attempt's error for a failure of the HTTP client. The URL is dropped.
pub(super) fn connection_error(error: reqwest::Error, host: &str, phase: RequestPhase) -> AttemptError {
    let error = error.without_url();
    let host = host.to_owned();
    match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(error)) => {
            return AttemptError::Untrusted { host, reason: certificate_error(error) };
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            return AttemptError::TlsFailed { host, reason: "it does not speak TLS".into() };
        }
        Some(rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure,
        )) => {
            let reason = "it shares no TLS version or cipher suite with edgecert".into();
            return AttemptError::TlsFailed { host, reason };
        }
        _ => {}
    }
    if error.is_timeout() {
        return AttemptError::TimedOut { host };
    }
    let reason = innermost_reason(&error);
    if error.is_connect() && phase == RequestPhase::Request {
        AttemptError::Unreachable { host, reason }
    } else {
        AttemptError::ConnectionClosed { host, reason }
    }
}

/// The innermost source of an error: it names the fault, where the outer ones say "error sending request".
pub(super) fn innermost_reason(error: &reqwest::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    // Error numbers and links to manuals are noise in the output of a hook.
    let reason = reason.split(" (os error").next().and_then(|reason| reason.split(": https://").next());
    crate::text::sanitize(reason.unwrap_or_default())
}

/// The TLS error inside an error of the HTTP client.
fn tls_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(error) = error.downcast_ref() {
        return Some(error);
    }
    // `source` of an I/O error skips the error that it wraps.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => tls_error(inner),
        None => tls_error(error.source()?),
    }
}

fn certificate_error(error: &CertificateError) -> String {
    use CertificateError as E;
    match error {
        E::UnknownIssuer => "its issuer is not in the trust store".into(),
        E::Expired | E::ExpiredContext { .. } => "it has expired".into(),
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet".into(),
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another name".into(),
        E::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "it is a CA certificate, which a server must not present; issue a server certificate from that CA"
                    .into()
            }
            Some(error) => crate::check::describe_path_error(error).into(),
            None => "it does not verify".into(),
        },
        _ => "it does not verify".into(),
    }
}
