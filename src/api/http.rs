//! The HTTP client, for the service and for other servers: no redirects, no proxy other than the configured one, TLS
//! with ring.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use rustls::RootCertStore;

use super::connection::{connection_error, innermost_reason};
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
