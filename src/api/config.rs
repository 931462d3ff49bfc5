//! What a client needs to reach a service: its URL, the API key, TLS and the shared limiter.

use std::sync::Arc;

use rustls::RootCertStore;

use super::limiter::Limiter;
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
    pub(super) limiter: Arc<Limiter>,
}

impl ClientConfig {
    /// Loads the trust store unless that has been done; sends nothing.
    pub(crate) fn new(settings: &Settings, stores: &TrustStores) -> Result<Self, SetupError> {
        Ok(Self {
            base_url: settings.base_url.clone(),
            api_key: settings.api_key.clone(),
            tls: tls(&settings.roots, settings.base_url.is_plain(), stores)?,
            proxy: settings.proxy.clone(),
            limiter: Arc::new(Limiter::new()),
        })
    }
}

/// TLS with ring and the given roots. A plain connection does not load those of the system.
fn tls(roots: &Roots, is_plain: bool, stores: &TrustStores) -> Result<rustls::ClientConfig, SetupError> {
    let roots = match roots {
        Roots::System { .. } if is_plain => Arc::new(RootCertStore::empty()),
        roots => stores.load(roots)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SetupError::Client(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
