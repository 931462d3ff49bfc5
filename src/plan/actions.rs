//! The output of a plan: uploads, and an action for each covered site.

use super::blocker::Blocker;
use super::request::NotNeeded;
use crate::api::Site;
use crate::names::Domain;

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
    /// Nothing is done because the site needs no deployment.
    NotNeeded(NotNeeded),
    /// Nothing is done because the site is not wanted.
    Ignore,
}

impl Action {
    /// The upload whose record the site gets.
    pub(crate) fn upload(&self) -> Option<usize> {
        match self {
            Self::Replace(upload) | Self::Create(upload) | Self::Bind(upload, _) => Some(*upload),
            Self::Leave(_) | Self::NotNeeded(_) | Self::Ignore => None,
        }
    }
}
