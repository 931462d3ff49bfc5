//! Classifies failures of the connection: unreachable, too slow, closed, or TLS.

use std::error::Error as _;
use std::io;

use rustls::{AlertDescription, CertificateError};

use super::error::{AttemptError, CertificateFault};

/// The attempt's error for a failure of the HTTP client. The URL is dropped.
pub(super) fn connection_error(error: reqwest::Error, host: &str) -> AttemptError {
    let error = error.without_url();
    let host = host.to_owned();
    match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(error)) => {
            return AttemptError::Untrusted { host, fault: certificate_fault(error) };
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            return AttemptError::NotTls { host };
        }
        Some(rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure,
        )) => return AttemptError::NoCommonTls { host },
        _ => {}
    }
    if error.is_timeout() {
        return AttemptError::TimedOut { host };
    }
    let reason = innermost_reason(&error);
    if error.is_connect() {
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

fn certificate_fault(error: &CertificateError) -> CertificateFault {
    use CertificateError as E;
    match error {
        E::UnknownIssuer => CertificateFault::UnknownIssuer,
        E::Expired | E::ExpiredContext { .. } => CertificateFault::Expired,
        E::NotValidYet | E::NotValidYetContext { .. } => CertificateFault::NotValidYet,
        E::NotValidForName | E::NotValidForNameContext { .. } => CertificateFault::OtherName,
        E::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => CertificateFault::IsCa,
            Some(error) => CertificateFault::Other(crate::check::describe_path_error(error)),
            None => CertificateFault::Other("it does not verify"),
        },
        _ => CertificateFault::Other("it does not verify"),
    }
}
