//! The API client and the handshake limit that the deployments of an account share, each created on first use.

use std::cell::OnceCell;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::task::yield_now;

use super::shared_listing::SharedListing;
use crate::api::{Client, ClientConfig, Listing};
use crate::clock::Deadline;
use crate::error::CommandError;
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::trust::TrustStores;
use crate::verify::{Handshakes, MAX_HANDSHAKES};

/// Maximum number of handshakes in progress for many lineages: enough that a few unresponsive edges do not hold up the
/// others, and far below the usual limit on open files.
const MAX_HANDSHAKES_OF_MANY: usize = 256;

/// Maximum number of lineages whose files are checked in other threads at a time: the checks use a processor, and the
/// requests need one, too.
const MAX_LOADS: usize = 2;

/// Maximum number of results that are written in other threads at a time: they mostly wait for the disk.
const MAX_WRITES: usize = 16;

/// The connections of one account.
pub(crate) struct ClientCache {
    client: OnceCell<Client>,
    handshakes: OnceCell<Arc<Handshakes>>,
    max_handshakes: usize,
    shared_listing: SharedListing,
    /// Whether there may be several requests.
    is_http2_offered: bool,
    /// Held by the next lineage to begin.
    turn: Mutex<()>,
    loads: Semaphore,
    writes: Semaphore,
    stores: Arc<TrustStores>,
}

impl ClientCache {
    /// Creates a cache that takes its configuration from the settings of the first request. HTTP/2 is offered if there may
    /// be several requests: for a single one it would only cost time.
    pub(crate) fn new(stores: Arc<TrustStores>, is_http2_offered: bool) -> Self {
        Self {
            client: OnceCell::new(),
            handshakes: OnceCell::new(),
            max_handshakes: MAX_HANDSHAKES,
            shared_listing: SharedListing::default(),
            is_http2_offered,
            turn: Mutex::default(),
            loads: Semaphore::new(MAX_LOADS),
            writes: Semaphore::new(MAX_WRITES),
            stores,
        }
    }

    /// Creates a cache for many lineages at once.
    pub(crate) fn for_many(stores: Arc<TrustStores>) -> Self {
        Self { max_handshakes: MAX_HANDSHAKES_OF_MANY, ..Self::new(stores, true) }
    }

    /// Lists the sites and records of the account.
    pub(crate) async fn listing(
        &self,
        settings: &Settings,
        deadline: Deadline,
    ) -> Result<Listing, CommandError> {
        let client = self.client(settings, Redactor::default(), deadline)?;
        Ok(client.listing().await?)
    }

    /// Waits until the limits admit a request of another lineage. Lineages begin one at a time, after those in
    /// progress have sent theirs, so that the time limit of none runs out while it waits for others.
    pub(crate) async fn wait_for_turn(&self, deadline: Deadline) {
        let _turn = self.turn.lock().await;
        yield_now().await;
        if let Some(client) = self.client.get() {
            client.wait(deadline).await;
        }
    }

    /// Waits until the files of another lineage may be checked.
    pub(super) async fn load_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.loads.acquire().await.ok()
    }

    /// Waits until the result of another lineage may be written.
    pub(crate) async fn write_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.writes.acquire().await.ok()
    }

    /// The listings that deployments share.
    pub(crate) fn shared_listing(&self) -> &SharedListing {
        &self.shared_listing
    }

    /// Returns a client that removes the API key and what the redactor knows from all responses.
    pub(super) fn client(
        &self,
        settings: &Settings,
        mut redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Client, CommandError> {
        redactor.hide(settings.api_key.expose());
        if let Some(client) = self.client.get() {
            return Ok(client.for_task(redactor, deadline));
        }
        let config = ClientConfig::new(settings, &self.stores, deadline)?;
        let config = if self.is_http2_offered { config.with_http2() } else { config };
        let client = Client::new(config, redactor, deadline)?;
        // The cache keeps no secret of a lineage.
        let _ = self.client.set(client.for_task(Redactor::default(), deadline));
        Ok(client)
    }

    /// Handshakes with the edge, with one limit for all deployments.
    pub(crate) fn handshakes(&self) -> Result<&Arc<Handshakes>, CommandError> {
        if let Some(handshakes) = self.handshakes.get() {
            return Ok(handshakes);
        }
        let handshakes = Handshakes::new(self.max_handshakes)
            .context("cannot set up TLS for the handshakes with the edge")?;
        Ok(self.handshakes.get_or_init(|| Arc::new(handshakes)))
    }

    /// The trust stores that this run has loaded.
    pub(super) fn trust_stores(&self) -> &TrustStores {
        &self.stores
    }
}
