//! The HTTP client, for the service and for other servers: no redirects, no proxy other than the configured one, TLS
//! with ring. Also tells failures of the connection apart: unreachable, too slow, closed, or TLS.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use rustls::{AlertDescription, CertificateError, RootCertStore};

use super::error::AttemptError;
use crate::clock::Deadline;
use crate::dns;
use crate::settings::{Proxy, Roots, SettingsError};
use crate::trust::TrustStores;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A response is stalled if it brings no byte for this long. Shorter than most deadlines, so that its connection is
/// replaced.
const READ_TIMEOUT: Duration = Duration::from_secs(25);

/// How often an HTTP/2 connection with requests in flight is probed, and how long the response may take.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a client.
pub(super) fn http_client(tls: rustls::ClientConfig, proxy: Option<&Proxy>) -> Result<Client, SettingsError> {
    let builder = Client::builder()
        .dns_resolver(Arc::new(dns::Resolver))
        .user_agent(concat!("edgecert/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        // Otherwise all requests on a connection that is silently dead would time out, and their repetitions, too.
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .tls_backend_preconfigured(tls);
    let failed = |error: reqwest::Error| no_client(innermost_reason(&error));
    let builder = match proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::https(proxy.url.clone()).map_err(failed)?),
        // Otherwise reqwest would read the variables itself, and ignore invalid ones.
        None => builder.no_proxy(),
    };
    builder.build().map_err(failed)
}

/// TLS with ring and the given roots. A plain HTTP connection does not need the system's.
pub(super) fn tls(
    roots: &Roots,
    is_plain: bool,
    stores: &TrustStores,
    deadline: Deadline,
) -> Result<rustls::ClientConfig, SettingsError> {
    let roots = match roots {
        Roots::System { .. } if is_plain => Arc::new(RootCertStore::empty()),
        roots => stores.load(roots, deadline)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(no_client)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

pub(super) fn no_client(reason: impl Display) -> SettingsError {
    SettingsError::new(format_args!("cannot set up the HTTP client: {reason}"))
}

/// Makes a client for a server other than the service. It does not have the API key.
pub(crate) fn anonymous_client(
    roots: &Roots,
    is_plain: bool,
    proxy: Option<&Proxy>,
    deadline: Deadline,
) -> Result<Client, SettingsError> {
    let tls = tls(roots, is_plain, &TrustStores::default(), deadline)?;
    http_client(tls, proxy)
}

/// Why a request to another server failed, without its URL and host, which may be secret.
pub(crate) fn failure_reason(error: reqwest::Error) -> String {
    match connection_error(error, "its server") {
        AttemptError::NoResponse { reason, .. } => reason,
        error => error.to_string(),
    }
}

/// The attempt's error for a failure of the HTTP client. The URL is dropped.
pub(super) fn connection_error(error: reqwest::Error, host: &str) -> AttemptError {
    let error = error.without_url();
    let tls_error = causes(&error).find_map(|error| error.downcast_ref());
    if let Some((message, hint)) = tls_error.and_then(|error| tls_fault(error, host)) {
        return AttemptError::Tls { message, hint };
    }
    if error.is_timeout() {
        return AttemptError::timed_out(host);
    }
    let (reason, is_sent) = (innermost_reason(&error), !error.is_connect());
    let message = if is_sent {
        format!("the connection to {host} was closed before the response was complete: {reason}")
    } else {
        format!("cannot reach the service at {host}: {reason}")
    };
    AttemptError::NoResponse { message, reason, is_sent }
}

/// An error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |&error| {
        // `source` of an I/O error skips the error that it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|wrapped| wrapped as _).or_else(|| error.source())
    })
}

/// The innermost cause of an error: it names the fault, where the outer ones say "error sending request".
fn innermost_reason(error: &reqwest::Error) -> String {
    let reason = causes(error).last().map(ToString::to_string).unwrap_or_default();
    // Error numbers and links to manuals are noise in the output of a hook.
    let reason = reason.split(" (os error").next().and_then(|reason| reason.split(": https://").next());
    crate::text::sanitize(reason.unwrap_or_default())
}

/// A fault of the server's TLS and what to do about it; `None` if the connection failed otherwise.
fn tls_fault(error: &rustls::Error, host: &str) -> Option<(String, &'static str)> {
    use AlertDescription::{HandshakeFailure, ProtocolVersion};
    let (fault, hint) = match error {
        rustls::Error::InvalidCertificate(error) => {
            let (fault, hint) = certificate_fault(error);
            return Some((format!("the TLS certificate of {host} is not trusted: {fault}"), hint));
        }
        rustls::Error::InvalidMessage(_) => {
            ("it does not speak TLS", "check scheme, host and port of the base URL")
        }
        rustls::Error::AlertReceived(ProtocolVersion | HandshakeFailure) => (
            "it shares no TLS version or cipher suite with edgecert",
            "check the base URL; the server must support TLS 1.2 or 1.3",
        ),
        _ => return None,
    };
    Some((format!("no TLS connection to {host}: {fault}"), hint))
}

const CLOCK_HINT: &str =
    "check the clock of this host; if it is right, the service needs another certificate";

/// Why a certificate is not trusted, a clause whose subject it is, and what to do about it. Only an unknown issuer is a
/// question of trust.
fn certificate_fault(error: &CertificateError) -> (&'static str, &'static str) {
    use CertificateError as E;
    let other = |fault| (fault, "the service has to install another certificate");
    match error {
        E::UnknownIssuer => (
            "its issuer is not in the trust store",
            "if the service uses a private CA, pass its certificate with --ca-file",
        ),
        E::Expired | E::ExpiredContext { .. } => ("it has expired", CLOCK_HINT),
        E::NotValidYet | E::NotValidYetContext { .. } => ("it is not valid yet", CLOCK_HINT),
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            ("it is for another name", "check the host in the base URL; the certificate has to name it")
        }
        E::Other(error) => {
            other(error.0.downcast_ref().map_or("it does not verify", crate::check::describe_path_error))
        }
        _ => other("it does not verify"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_an_unknown_issuer_suggests_a_ca_file() {
        use CertificateError as E;
        let is_ca = rustls::OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity));
        let other = rustls::OtherError(Arc::new(webpki::Error::BadDer));
        let others = [E::Expired, E::NotValidYet, E::NotValidForName, E::BadEncoding];
        for error in [E::UnknownIssuer, E::Other(is_ca), E::Other(other)].into_iter().chain(others) {
            let (fault, hint) = certificate_fault(&error);
            assert_eq!(hint.contains("--ca-file"), error == E::UnknownIssuer, "{fault}");
        }
    }
}
