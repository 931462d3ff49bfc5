//! The input of a rollout: what to send, where to, and how far it may go.

use super::client_cache::ClientCache;
use super::journal::{Journal, Memory};
use crate::api::Client;
use crate::check::Vetted;
use crate::clock::Deadline;
use crate::names::Domain;
use crate::plan::{Allow, IndexedListing};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::state::ServiceDeployments;

/// Sites whose edges are observed at once.
pub(super) const MAX_OBSERVED_SITES: usize = 32;

/// A vetted certificate and the options for its rollout.
pub(super) struct RolloutRequest<'a> {
    pub(super) client: &'a Client,
    pub(super) clients: &'a ClientCache,
    pub(super) vetted: &'a Vetted<'a>,
    /// The sites that must get the certificate, each once; empty means every covered site.
    pub(super) domains: &'a [Domain],
    pub(super) settings: &'a Settings,
    pub(super) allow: Allow,
    pub(super) journal: &'a Journal,
    pub(super) memory: &'a Memory,
    /// The account as listed earlier; `None` lists it.
    pub(super) account: Option<&'a AccountSnapshot>,
    /// Upload for `domains` and do nothing else.
    pub(super) upload_only: bool,
    /// Upload even for sites that have the leaf.
    pub(super) force: bool,
    /// Plan, and change nothing.
    pub(super) dry_run: bool,
    pub(super) deadline: Deadline,
    pub(super) progress: &'a dyn Progress,
}

/// An account as it was listed once for many deployments.
pub(crate) struct AccountSnapshot {
    pub(crate) listing: IndexedListing,
    /// What this host deployed to the service.
    pub(crate) deployments: ServiceDeployments,
}
