//! The input of a rollout: what to send, where to, and how far it may go.

use std::collections::HashMap;

use time::OffsetDateTime;

use crate::api::{Client, Listing};
use crate::check::Vetted;
use crate::clock::Deadline;
use crate::names::Domain;
use crate::plan::Allow;
use crate::settings::Settings;

/// Requests in flight at once.
pub(super) const MAX_REQUESTS: usize = 16;
/// Handshakes in progress at once.
pub(super) const MAX_HANDSHAKES: usize = 32;

/// A vetted certificate and the options for its rollout.
pub(super) struct RolloutRequest<'a> {
    pub(super) client: &'a Client,
    pub(super) vetted: &'a Vetted<'a>,
    /// The sites that must get the certificate, each once; empty means every covered site.
    pub(super) domains: &'a [Domain],
    pub(super) settings: &'a Settings,
    pub(super) allow: Allow,
    /// When the leaf in each record was issued, by record; may be incomplete.
    pub(super) issue_dates: &'a HashMap<u64, OffsetDateTime>,
    /// The account as listed earlier; `None` lists it.
    pub(super) listing: Option<&'a Listing>,
    /// Upload for `domains` and do nothing else.
    pub(super) upload_only: bool,
    /// Plan, and change nothing.
    pub(super) dry_run: bool,
    pub(super) deadline: Deadline,
}

/// An account as it was listed once for many deployments.
pub(crate) struct AccountSnapshot {
    pub(crate) listing: Listing,
    /// When the leaf in each record was issued, as far as the state records it.
    pub(crate) issue_dates: HashMap<u64, OffsetDateTime>,
}
