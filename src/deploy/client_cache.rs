//! The API client of a run and the runtime it needs, reused from one lineage to the next.

use std::sync::Arc;

use super::error::DeployError;
use crate::api::{Client, ClientConfig, Listing};
use crate::clock::Deadline;
use crate::runtime::Runtime;
use crate::secret::{Redactor, Secret};
use crate::settings::Settings;

/// A connection to one account, opened when it is needed first.
pub(crate) struct ClientCache {
    runtime: Runtime,
    config: Option<Arc<ClientConfig>>,
    client: Option<Client>,
}

impl ClientCache {
    /// A cache that takes its configuration from the settings of the first request.
    pub(crate) fn new() -> Result<Self, DeployError> {
        Ok(Self { runtime: Runtime::new()?, config: None, client: None })
    }

    /// A cache with a configuration that it shares with others, and with it their rate limit.
    pub(crate) fn with_config(config: Arc<ClientConfig>) -> Result<Self, DeployError> {
        Ok(Self { config: Some(config), ..Self::new()? })
    }

    /// Lists the sites and records of the account.
    pub(crate) fn listing(
        &mut self,
        settings: &Settings,
        deadline: Deadline,
    ) -> Result<Listing, DeployError> {
        let client = self.client(settings, &[], deadline)?;
        Ok(self.runtime.block_on(client.listing())??)
    }

    /// A client that removes the API key and these secrets from everything it returns.
    pub(super) fn client(
        &mut self,
        settings: &Settings,
        secrets: &[&Secret],
        deadline: Deadline,
    ) -> Result<Client, DeployError> {
        let mut redactor = Redactor::default();
        redactor.hide(&settings.api_key);
        for secret in secrets {
            redactor.hide(secret);
        }
        if let Some(client) = &self.client {
            return Ok(client.for_task(redactor, deadline));
        }
        let config = match &self.config {
            Some(config) => Arc::clone(config),
            None => Arc::new(ClientConfig::new(settings)?),
        };
        let client = Client::new(&config, redactor, deadline)?;
        // The cache keeps no secret of a lineage.
        self.client = Some(client.for_task(Redactor::default(), deadline));
        Ok(client)
    }

    pub(super) fn block_on<F: Future>(&self, work: F) -> Result<F::Output, DeployError> {
        Ok(self.runtime.block_on(work)?)
    }
}
