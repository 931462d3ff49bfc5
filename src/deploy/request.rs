//! The input of a rollout: what to send, and where to.

use super::Deployment;
use super::client_cache::ClientCache;
use super::journal::{Journal, Memory};
use crate::api::Client;
use crate::check::Vetted;
use crate::plan::IndexedListing;
use crate::state::ServiceDeployments;

/// Sites whose edges are observed at once.
pub(super) const MAX_OBSERVED_SITES: usize = 32;

/// A vetted certificate, and what its deployment needs.
pub(super) struct RolloutRequest<'a> {
    pub(super) deployment: &'a Deployment<'a>,
    pub(super) client: &'a Client,
    pub(super) clients: &'a ClientCache,
    pub(super) vetted: &'a Vetted<'a>,
    pub(super) journal: &'a Journal,
    pub(super) memory: &'a Memory,
}

/// An account as it was listed once for many deployments.
pub(crate) struct AccountSnapshot {
    pub(crate) listing: IndexedListing,
    /// What this host deployed to the service.
    pub(crate) deployments: ServiceDeployments,
}
