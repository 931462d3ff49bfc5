//! The request for a plan: what to deploy to an account, and what is permitted.

use std::collections::HashMap;

use time::OffsetDateTime;

use crate::api::Site;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::settings::Guards;

/// The leaf in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordLeaf {
    pub(crate) leaf: Leaf,
    /// Whether the record holds it for certain: it was seen at the edge, or the service confirmed an upload.
    pub(crate) is_certain: bool,
    /// Whether it must stay, even with `Guards::allow_older`: it replaced what this run repeats, and the two would take
    /// turns.
    pub(crate) must_stay: bool,
}

/// Why a covered site that was requested needs no deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotNeeded {
    /// It has the certificate already.
    Current,
    /// Another lineage of this host provides the certificate.
    Superseded { lineage: String, issued: OffsetDateTime },
}

/// What to deploy, and what is permitted.
pub(crate) struct PlanRequest<'a> {
    /// Whether the new certificate covers a domain.
    pub(crate) covers: &'a dyn Fn(&Domain) -> bool,
    /// The sites that must get it; empty means every covered one.
    pub(crate) domains: &'a [Domain],
    /// Returns the leaf in a record if the new one is not to replace it, because it was issued later.
    pub(crate) later_leaf: &'a dyn Fn(u64) -> Option<RecordLeaf>,
    /// Whether the new certificate covers all names of what a record is known to hold. Another client may have replaced that
    /// if no listed site is bound to the record.
    pub(crate) keeps_names: &'a dyn Fn(u64) -> bool,
    /// The sites that need no deployment, by id.
    pub(crate) not_needed: &'a HashMap<u64, NotNeeded>,
    /// The record of each site that an earlier upload of the leaf did not reach, by site.
    pub(crate) missed: &'a HashMap<u64, u64>,
    pub(crate) allow: Allow,
}

/// Permissions that only the user can give. By default none is given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allow {
    /// To set `cert_id` of a site that is bound to another record.
    pub(crate) rebind: bool,
    pub(crate) guards: Guards,
}

impl PlanRequest<'_> {
    /// Whether a covered site was requested and needs the deployment.
    pub(super) fn is_wanted(&self, site: &Site) -> bool {
        self.is_requested(site) && !self.not_needed.contains_key(&site.id)
    }

    fn is_requested(&self, site: &Site) -> bool {
        self.domains.is_empty() || self.domains.contains(&site.domain)
    }

    /// Why a site that was requested needs no deployment.
    pub(super) fn why_not_needed(&self, site: &Site) -> Option<&NotNeeded> {
        self.not_needed.get(&site.id).filter(|_| self.is_requested(site))
    }
}
