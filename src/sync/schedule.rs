//! Decides which deployments may run at the same time. Pure.

use std::collections::HashSet;

use super::scan::{Candidate, Reason};
use crate::leaf::Leaf;
use crate::plan::IndexedListing;

/// A lineage to deploy.
pub(super) struct Job<'a> {
    pub(super) lineage: Candidate<'a>,
    pub(super) reason: Reason,
}

/// The lineages of an account to deploy.
#[derive(Default)]
pub(super) struct Schedule<'a> {
    /// Share no site and no record, so they may run concurrently.
    pub(super) independent: Vec<Job<'a>>,
    /// May change what another job finds, so they run one by one after the independent ones.
    pub(super) conflicting: Vec<Job<'a>>,
}

impl<'a> Schedule<'a> {
    /// The lineage whose leaf was issued last comes first: it may supersede the others.
    pub(super) fn new(mut jobs: Vec<Job<'a>>, listing: &IndexedListing) -> Self {
        jobs.sort_by(|a, b| {
            b.lineage.leaf.as_ref().map(Leaf::rank).cmp(&a.lineage.leaf.as_ref().map(Leaf::rank))
        });
        let (mut schedule, mut taken) = (Self::default(), HashSet::new());
        for job in jobs {
            let resources = listing.resources(&job.lineage);
            let is_independent = resources.is_disjoint(&taken);
            taken.extend(resources);
            if is_independent { &mut schedule.independent } else { &mut schedule.conflicting }.push(job);
        }
        schedule
    }
}
