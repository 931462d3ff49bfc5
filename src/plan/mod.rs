//! Plans how every wanted site gets the new certificate. Pure: no I/O, no clock.
//!
//! An upload replaces a record by domain, while sites are bound to records by id: a site may be bound to the record of
//! another domain. An upload for its own domain would then create a record that nothing uses and no documented endpoint
//! can delete. So the record that a site is bound to is replaced, and a record is created only where it will be bound.

mod blocker;
mod display;
mod indexed_listing;
#[cfg(test)]
mod model_test;
mod planner;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub(crate) use self::blocker::Blocker;
pub(crate) use self::display::{Step, StepAction};
pub(crate) use self::indexed_listing::{Account, IndexedListing};
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

/// What to deploy, and what is permitted.
pub(crate) struct PlanRequest<'a> {
    /// Whether the new certificate covers a domain.
    pub(crate) covers: &'a dyn Fn(&Domain) -> bool,
    /// `None` if a covered site must get the certificate; else `Current`, `Superseded` or `Ignore`.
    pub(crate) unwanted: &'a dyn Fn(&Site) -> Option<Action>,
    /// Returns the leaf in a record if the new one is not to replace it, because it was issued later.
    pub(crate) later_leaf: &'a dyn Fn(u64) -> Option<RecordLeaf>,
    /// Whether the new certificate covers all names of what a record is known to hold. Another client may have replaced that
    /// if no listed site is bound to the record.
    pub(crate) keeps_names: &'a dyn Fn(u64) -> bool,
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

/// The minimal uploads that bring the certificate to every wanted site, and the action for each covered site.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    pub(crate) uploads: Vec<Upload<'a>>,
    pub(crate) targets: Vec<Target<'a>>,
    /// Whether the sites that are left alone would be bound with `Allow::rebind`. It creates no record for a site whose
    /// own domain has one that a guard protects.
    pub(crate) can_rebind: bool,
}

/// An upload to make.
#[derive(Debug)]
pub(crate) struct Upload<'a> {
    /// The domain as its site spells it.
    pub(crate) domain: &'a Domain,
    /// The records that it may replace; the service replaces one of them in place. If empty, the upload creates a record,
    /// which the service binds to every covered site without a certificate.
    pub(crate) replaces: Vec<u64>,
    /// Whether the records that it may replace are only named after the domain and stored for others. If the service
    /// creates a record instead, the sites are bound to that.
    pub(crate) may_create: bool,
    /// Other domains for which the record may be created if the service refuses this one.
    pub(crate) alternatives: Vec<&'a Domain>,
}

/// A covered site.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) site: &'a Site,
    /// Whether it must get the certificate, or only happens to be covered.
    pub(crate) wanted: bool,
    pub(crate) action: Action,
}

/// How a site gets the certificate, or why it does not. Numbers are indices into `Plan::uploads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An upload replaces the record that it is bound to.
    Replace(usize),
    /// It has no certificate; the service binds it to the record that an upload creates.
    Create(usize),
    /// Its `cert_id` is set to the record of an upload. If it is bound to another record, the blocker says why that one
    /// is not replaced.
    Bind(usize, Option<Blocker>),
    /// Nothing is done because of a blocker.
    Leave(Blocker),
    /// Nothing is done because the site has the certificate already.
    Current,
    /// Nothing is done because another lineage of this host provides the certificate; the text says which.
    Superseded(String),
    /// Nothing is done because the site is not wanted.
    Ignore,
}

impl Action {
    /// The upload whose record the site gets.
    pub(crate) fn upload(&self) -> Option<usize> {
        match self {
            Self::Replace(upload) | Self::Create(upload) | Self::Bind(upload, _) => Some(*upload),
            Self::Leave(_) | Self::Current | Self::Superseded(_) | Self::Ignore => None,
        }
    }
}
