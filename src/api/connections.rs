//! The connections to a service. Over HTTP/2 all requests share one, so that the repetition of a request that got no
//! response would share its fate; the connections are therefore replaced.

use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Client;
use reqwest::header::HeaderMap;

use super::config::{ClientConfig, SetupError};
use super::http::http_client;
use super::opening::Opening;
use crate::settings::Proxy;

/// Connections that can be replaced.
pub(super) struct Connections {
    tls: rustls::ClientConfig,
    proxy: Option<Proxy>,
    headers: HeaderMap,
    /// `None` if HTTP/2 is not offered.
    opening: Option<Arc<Opening>>,
    current: Mutex<Pool>,
}

/// The connections that are used now.
#[derive(Clone)]
pub(super) struct Pool {
    pub(super) client: Client,
    /// How often connections were replaced before.
    number: u32,
}

impl Connections {
    /// Opens none yet. `headers` are sent with each request.
    pub(super) fn new(
        config: &ClientConfig,
        headers: HeaderMap,
        opening: &Arc<Opening>,
    ) -> Result<Self, SetupError> {
        let (tls, proxy) = (config.tls.clone(), config.proxy.clone());
        let opening = config.offers_http2().then(|| Arc::clone(opening));
        let client = http_client(tls.clone(), proxy.as_ref(), headers.clone(), opening.clone())?;
        Ok(Self { tls, proxy, headers, opening, current: Mutex::new(Pool { client, number: 0 }) })
    }

    pub(super) fn pool(&self) -> Pool {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends further requests on new connections, unless these have been replaced since. Requests in flight are not
    /// affected.
    pub(super) fn replace(&self, used: &Pool) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.number != used.number {
            return;
        }
        match http_client(self.tls.clone(), self.proxy.as_ref(), self.headers.clone(), self.opening.clone()) {
            Ok(client) => *current = Pool { client, number: used.number + 1 },
            Err(error) => log::info!("the connection is not replaced: {error}"),
        }
    }
}
