//! Decides which deployments may run at the same time. Pure.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::scan::{Candidate, Reason};
use crate::leaf::Leaf;
use crate::plan::IndexedListing;
use crate::settings::Settings;

/// A lineage to deploy.
pub(super) struct Job<'j, 'a> {
    pub(super) lineage: &'j Candidate<'a>,
    pub(super) reason: Reason,
}

/// The lineages of an account to deploy.
#[derive(Default)]
pub(super) struct Schedule<'j, 'a> {
    /// Share no site and no record, so they may run concurrently.
    pub(super) independent: Vec<Job<'j, 'a>>,
    /// May change what another job finds, so they run one by one after the independent ones.
    pub(super) conflicting: Vec<Job<'j, 'a>>,
}

impl<'j, 'a> Schedule<'j, 'a> {
    /// The lineage whose leaf was issued last comes first: it may supersede the others.
    pub(super) fn new(mut lineages: Vec<(&'j Candidate<'a>, Reason)>, listing: &IndexedListing) -> Self {
        lineages.sort_by_key(|(lineage, _)| Reverse(lineage.leaf.as_ref().map(Leaf::rank)));
        let (mut schedule, mut taken) = (Self::default(), HashSet::new());
        for (lineage, reason) in lineages {
            let resources = listing.resources(lineage);
            let is_independent = resources.is_disjoint(&taken);
            taken.extend(resources);
            let jobs = if is_independent { &mut schedule.independent } else { &mut schedule.conflicting };
            jobs.push(Job { lineage, reason });
        }
        schedule
    }
}

/// Groups lineages by account.
pub(super) fn by_account<'c, 'a>(
    lineages: &'c [Candidate<'a>],
) -> Vec<(Arc<Settings>, Vec<&'c Candidate<'a>>)> {
    let mut accounts: Vec<(Arc<Settings>, Vec<&Candidate<'a>>)> = Vec::new();
    for lineage in lineages {
        let own = &lineage.settings;
        let is_same = |other: &Arc<Settings>| Arc::ptr_eq(other, own) || other.is_same_service(own);
        match accounts.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, members)) => members.push(lineage),
            None => accounts.push((Arc::clone(own), vec![lineage])),
        }
    }
    accounts
}
