//! What a client needs to reach a service: its URL, the API key, TLS and proxy.

use std::sync::Arc;

use rustls::RootCertStore;

use crate::clock::Deadline;
use crate::secret::Secret;
use crate::settings::{BaseUrl, Proxy, Roots, Settings};
use crate::trust::{TrustStoreError, TrustStores};

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    TrustStore(#[from] TrustStoreError),
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
}

/// Configuration for the clients of one service and API key.
pub(crate) struct ClientConfig {
    pub(super) base_url: BaseUrl,
    pub(super) api_key: Secret,
    pub(super) tls: rustls::ClientConfig,
    pub(super) proxy: Option<Proxy>,
}

impl ClientConfig {
    /// Loads the trust store within the deadline unless it is already loaded; sends nothing.
    pub(crate) fn new(
        settings: &Settings,
        stores: &TrustStores,
        deadline: Deadline,
    ) -> Result<Self, SetupError> {
        let is_plain = settings.base_url.is_plain();
        Ok(Self {
            base_url: settings.base_url.clone(),
            api_key: settings.api_key.clone(),
            tls: tls(&settings.roots, is_plain, stores, deadline)?,
            proxy: settings.proxy.clone(),
        })
    }

    /// Offers HTTP/2 to the service. For a single request that would only cost time.
    pub(crate) fn with_http2(mut self) -> Self {
        self.tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        self
    }

    pub(super) fn offers_http2(&self) -> bool {
        !self.base_url.is_plain() && !self.tls.alpn_protocols.is_empty()
    }
}

/// TLS with ring and the given roots. A plain HTTP connection does not need the system's.
pub(super) fn tls(
    roots: &Roots,
    is_plain: bool,
    stores: &TrustStores,
    deadline: Deadline,
) -> Result<rustls::ClientConfig, SetupError> {
    let roots = match roots {
        Roots::System { .. } if is_plain => Arc::new(RootCertStore::empty()),
        roots => stores.load(roots, deadline)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SetupError::Client(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
