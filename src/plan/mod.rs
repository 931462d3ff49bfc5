//! What has to be done so that every wanted site is fed by the new certificate. Pure: no I/O, no clock.
//!
//! Replacement is per domain and binding is per site: a site may be fed by the record of another domain. An upload for
//! its own domain would then create a record that nothing uses and no documented call can delete, so the record that
//! feeds a site is the one to replace, and a record is created only where it will be bound.

mod blocker;
mod display;
#[cfg(test)]
mod model_test;
mod planner;

use std::collections::HashMap;

use time::OffsetDateTime;

pub(crate) use self::blocker::Blocker;
pub(crate) use self::display::Step;
use crate::api::{Record, Site};
use crate::names::Domain;

/// What the account has, as far as it is known.
pub(crate) struct Account<'a> {
    pub(crate) sites: &'a [Site],
    pub(crate) records: &'a [Record],
    /// Records to which sites are bound that cannot be read.
    pub(crate) unreadable: &'a [u64],
    /// When the leaf in a record was issued, for the records of which that is known.
    pub(crate) issued: &'a HashMap<u64, OffsetDateTime>,
}

/// What is to be deployed and how far that may go.
pub(crate) struct PlanRequest<'a> {
    /// Whether the new certificate covers a domain.
    pub(crate) covers: &'a dyn Fn(&Domain) -> bool,
    /// When the new leaf was issued.
    pub(crate) issued: OffsetDateTime,
    /// The sites that must get it; empty: every covered one.
    pub(crate) domains: &'a [Domain],
    pub(crate) allow: Allow,
}

/// What only a person may decide; all off unless asked for.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four separate permissions")]
pub(crate) struct Allow {
    /// Setting `cert_id` of a site that another record feeds.
    pub(crate) rebind: bool,
    /// Taking a record's old names away from other sites that are bound to it.
    pub(crate) shrink: bool,
    /// Replacing a certificate that was issued later than the new one.
    pub(crate) older: bool,
    /// Replacing a certificate that the system issues and renews itself.
    pub(crate) lets: bool,
}

/// The smallest list of uploads, and what becomes of each covered site.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    pub(crate) uploads: Vec<Upload<'a>>,
    pub(crate) targets: Vec<Target<'a>>,
}

/// One upload.
#[derive(Debug)]
pub(crate) struct Upload<'a> {
    /// The domain as its site spells it.
    pub(crate) domain: &'a Domain,
    /// The records of which it replaces one in place. None: it creates one, which the service binds to every covered
    /// site without a certificate.
    pub(crate) replaces: Vec<u64>,
    /// Domains that a creation may be for as well, should the service refuse this one.
    pub(crate) or: Vec<&'a Domain>,
}

/// A covered site and what the plan does for it.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) site: &'a Site,
    /// Whether it has to get the certificate, or only happens to be covered.
    pub(crate) wanted: bool,
    pub(crate) action: Action,
}

/// How a site gets the certificate, or why it does not. Numbers are places in `Plan::uploads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The record that feeds it is replaced.
    Replaced(usize),
    /// It has no certificate; the service binds it to the record that is created.
    Created(usize),
    /// Its `cert_id` is set to the record that the upload answers; of a site that is fed by another one, because of the
    /// blocker.
    Bound(usize, Option<Blocker>),
    /// It stays as it is.
    Left(Blocker),
    /// It stays as it is, because it was not asked for.
    Untouched,
}

impl Action {
    /// The upload whose record is to feed the site.
    pub(crate) fn upload(&self) -> Option<usize> {
        match self {
            Self::Replaced(upload) | Self::Created(upload) | Self::Bound(upload, _) => Some(*upload),
            Self::Left(_) | Self::Untouched => None,
        }
    }
}

impl<'a> Plan<'a> {
    /// Plans for an account.
    pub(crate) fn make(account: &Account<'a>, request: &PlanRequest<'_>) -> Self {
        planner::make(account, request)
    }

    /// The sites that an upload is for.
    pub(crate) fn fed_by(&self, upload: usize) -> impl Iterator<Item = &Target<'a>> {
        self.targets.iter().filter(move |target| target.action.upload() == Some(upload))
    }
}
