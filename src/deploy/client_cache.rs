//! The API client of a run and the runtime it needs, reused from one lineage to the next.

use std::sync::Arc;

use super::error::DeployError;
use crate::api::{Client, ClientConfig, Listing};
use crate::clock::Deadline;
use crate::runtime::Runtime;
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::trust::TrustStores;

/// A connection to one account, opened on first use.
pub(crate) struct ClientCache {
    runtime: Runtime,
    config: Option<Arc<ClientConfig>>,
    client: Option<Client>,
    stores: Arc<TrustStores>,
}

impl ClientCache {
    /// Creates a cache that takes its configuration from the settings of the first request.
    pub(crate) fn new(stores: Arc<TrustStores>) -> Result<Self, DeployError> {
        Ok(Self { runtime: Runtime::new()?, config: None, client: None, stores })
    }

    /// Creates a cache that shares a configuration, and with it the rate limit, with others.
    pub(crate) fn with_config(
        config: Arc<ClientConfig>,
        stores: Arc<TrustStores>,
    ) -> Result<Self, DeployError> {
        Ok(Self { config: Some(config), ..Self::new(stores)? })
    }

    /// Lists the sites and records of the account.
    pub(crate) fn listing(
        &mut self,
        settings: &Settings,
        deadline: Deadline,
    ) -> Result<Listing, DeployError> {
        let client = self.client(settings, Redactor::default(), deadline)?;
        Ok(self.runtime.block_on(client.listing())??)
    }

    /// Returns a client that removes the API key and what the redactor knows from all responses.
    pub(super) fn client(
        &mut self,
        settings: &Settings,
        mut redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Client, DeployError> {
        redactor.hide(&settings.api_key);
        if let Some(client) = &self.client {
            return Ok(client.for_task(redactor, deadline));
        }
        let config = match &self.config {
            Some(config) => Arc::clone(config),
            None => Arc::new(ClientConfig::new(settings, &self.stores, deadline)?),
        };
        let client = Client::new(&config, redactor, deadline)?;
        // The cache keeps no secret of a lineage.
        self.client = Some(client.for_task(Redactor::default(), deadline));
        Ok(client)
    }

    /// The trust stores that this run has loaded.
    pub(super) fn trust_stores(&self) -> &TrustStores {
        &self.stores
    }

    pub(super) fn block_on<F: Future>(&self, work: F) -> Result<F::Output, DeployError> {
        Ok(self.runtime.block_on(work)?)
    }
}
