//! What the deployments of an account share: the service's connections and the handshake limit, each created on first
//! use, and one listing for all that read their sites at about the same time.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{self, Mutex, Semaphore};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::api::{Client, List, Listing, Service, Site};
use crate::clock::Deadline;
use crate::error::Result;
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

/// Sites are read one by one if the account has more than this many sites for each of them.
const LISTING_FACTOR: usize = 30;

/// How long a reading waits at least for other deployments to join it. They pause as long between two readings.
const JOIN_PAUSE: Duration = Duration::from_millis(150);

/// The connections of one account.
pub(crate) struct ClientCache {
    service: OnceCell<Arc<Service>>,
    handshakes: OnceCell<Handshakes>,
    max_handshakes: usize,
    /// Whether there are several deployments at a time.
    pub(crate) has_several: Cell<bool>,
    /// The reading of sites that deployments can still join.
    next_reading: RefCell<Option<Rc<Reading>>>,
    /// Whether there may be several requests.
    is_http2_offered: bool,
    /// Held by the next lineage to begin.
    turn: Mutex<()>,
    /// A permit for each lineage whose files are being checked.
    pub(super) loads: Semaphore,
    /// A permit for each result that is being written.
    pub(crate) writes: Semaphore,
    /// The trust stores that this run has loaded.
    pub(super) stores: Arc<TrustStores>,
}

/// A reading of sites by several deployments.
#[derive(Default)]
struct Reading {
    sites: Cell<usize>,
    listed: sync::OnceCell<Option<Rc<ListedSites>>>,
}

/// What a reading has shown.
pub(super) struct ListedSites {
    pub(super) by_id: HashMap<u64, Site>,
    /// Why sites may be missing.
    pub(super) gaps: Vec<String>,
}

impl ClientCache {
    /// Creates a cache that takes its configuration from the settings of the first request. HTTP/2 is offered if there may
    /// be several requests: for a single one it would only cost time.
    pub(crate) fn new(stores: Arc<TrustStores>, is_http2_offered: bool) -> Self {
        Self {
            service: OnceCell::new(),
            handshakes: OnceCell::new(),
            max_handshakes: MAX_HANDSHAKES,
            has_several: Cell::default(),
            next_reading: RefCell::default(),
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
    pub(crate) async fn listing(&self, settings: &Settings, deadline: Deadline) -> Result<Listing> {
        let client = self.client(settings, Redactor::default(), deadline)?;
        Ok(client.listing().await?)
    }

    /// Waits until the limits admit a request of another lineage. Lineages begin one at a time, after those in
    /// progress have sent theirs, so that the time limit of none runs out while it waits for others.
    pub(crate) async fn wait_for_turn(&self, deadline: Deadline) {
        let _turn = self.turn.lock().await;
        yield_now().await;
        if let Some(service) = self.service.get() {
            service.wait(deadline).await;
        }
    }

    /// Returns a client that removes the API key and what the redactor knows from all responses.
    pub(crate) fn client(
        &self,
        settings: &Settings,
        mut redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Client> {
        redactor.hide(settings.api_key.expose());
        let service = if let Some(service) = self.service.get() {
            service
        } else {
            let service = Service::new(settings, &self.stores, self.is_http2_offered, deadline)?;
            self.service.get_or_init(|| Arc::new(service))
        };
        Ok(Client::new(Arc::clone(service), redactor, deadline))
    }

    /// Handshakes with the edge, with one limit for all deployments.
    pub(crate) fn handshakes(&self) -> Result<&Handshakes> {
        if let Some(handshakes) = self.handshakes.get() {
            return Ok(handshakes);
        }
        let handshakes = Handshakes::new(self.max_handshakes)
            .context("cannot set up TLS for the handshakes with the edge")?;
        Ok(self.handshakes.get_or_init(|| handshakes))
    }

    /// Reads `sites` sites of an account, in one listing shared with the deployments that are about to read theirs. It is
    /// requested after all of them have joined, so it shows what each of them has changed. `None`: the sites are to be
    /// read one by one.
    pub(super) async fn read_sites(
        &self,
        client: &Client,
        sites: usize,
        account_sites: usize,
        max_pause: Duration,
    ) -> Option<Rc<ListedSites>> {
        let reading = Rc::clone(self.next_reading.borrow_mut().get_or_insert_default());
        reading.sites.set(reading.sites.get() + sites);
        // If the deployment that lists runs out of time, another one takes over.
        let listed = reading.listed.get_or_init(|| async {
            if self.has_several.get() {
                let _ = timeout(max_pause, self.wait_for_others()).await;
            }
            self.next_reading.borrow_mut().take_if(|next| Rc::ptr_eq(next, &reading));
            if reading.sites.get() * LISTING_FACTOR < account_sites {
                return None;
            }
            let (sites, gaps) = match client.sites::<Site>().await {
                Ok(List { items, gaps, .. }) => (items, gaps.iter().map(ToString::to_string).collect()),
                Err(failed) => (Vec::new(), vec![failed.to_string()]),
            };
            let by_id = sites.into_iter().map(|site| (site.id, site)).collect();
            Some(Rc::new(ListedSites { by_id, gaps }))
        });
        listed.await.clone()
    }

    /// Waits for deployments that may join a reading: a moment, and until those that wait for their turn have begun. On a
    /// slow host few would come in any fixed time, and the cost of a listing for each few would grow with the account.
    async fn wait_for_others(&self) {
        sleep(JOIN_PAUSE).await;
        drop(self.turn.lock().await);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;

    use super::*;
    use crate::runtime::Runtime;

    #[test]
    fn readings_wait_for_lineages_that_have_not_begun() {
        let clients = ClientCache::for_many(Arc::default());
        let has_begun = Cell::new(false);
        let run = async {
            let turn = clients.turn.lock().await;
            let lineage = async {
                sleep(2 * JOIN_PAUSE).await;
                has_begun.set(true);
                drop(turn);
            };
            join(lineage, async {
                clients.wait_for_others().await;
                assert!(has_begun.get());
            })
            .await;
        };
        Runtime::new().unwrap().block_on(run);
    }
}
