//! Observes what the edge serves before anything is sent: which sites already have the leaf, and which leaves are in
//! the records that may be replaced.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use super::scope::{Scope, SurveyGroup};
use super::{Deployment, Rollout};
use crate::api::Site;
use crate::clock::Deadline;
use crate::leaf::Leaf;
use crate::verify::{Edge, EdgeView};

/// Sites whose edges are observed at once.
pub(super) const MAX_OBSERVED_SITES: usize = 32;

/// The survey ends if no leaf has been seen for this long, because an unresponsive edge must not fail the deployment.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Number of sites of a record that are tried until the edge serves a leaf for one of them.
pub(super) const MAX_TRIED_SITES: usize = 3;

/// What the edge served before anything was sent.
#[derive(Default)]
pub(super) struct Survey {
    /// By site.
    views: HashMap<u64, EdgeView>,
    /// The other leaf that the edge serves for a record; if there are several, the one that was issued last.
    leaves: HashMap<u64, Leaf>,
}

impl Survey {
    /// Observes the edges of the sites that may already have the leaf, and the edge of one site of each record that may
    /// be replaced. If that site does not have the leaf, the record is replaced in any case, and its other sites are
    /// observed only for a plan.
    pub(super) async fn run(rollout: &Rollout<'_>, edge: &Edge<'_>, scope: &Scope<'_, '_>) -> Self {
        let (mut survey, groups) = (Self::default(), scope.survey_groups());
        let Deployment { dry_run, force, deadline, .. } = *rollout.deployment;
        let surveyor = Surveyor { edge, scope, end: Deadline::after(deadline.left() / 4) };
        let first = groups.iter().map(|group| surveyor.observe_first(tried(group)));
        surveyor.observe_all(first, &mut survey).await;
        let rest = survey.due(&groups, |group| dry_run || !force && survey.may_be_current(group, scope));
        let rest = rest.into_iter().map(|site| surveyor.observe_first(std::iter::once(site)));
        surveyor.observe_all(rest, &mut survey).await;
        survey
    }

    /// The wanted sites of the groups that are due, without those that were observed before.
    pub(super) fn due<'s>(
        &self,
        groups: &[SurveyGroup<'s>],
        is_due: impl Fn(&SurveyGroup<'_>) -> bool,
    ) -> Vec<&'s Site> {
        let due = groups.iter().filter(|group| is_due(group)).flat_map(|group| &group.wanted);
        due.copied().filter(|site| !self.views.contains_key(&site.id)).collect()
    }

    pub(super) fn add<'s>(&mut self, observed: impl Iterator<Item = (&'s Site, EdgeView)>) {
        for (site, view) in observed {
            if let (Some(record), Some(leaf)) = (site.cert_id, &view.latest_other) {
                let known = self.leaves.entry(record).or_insert_with(|| leaf.clone());
                if leaf.not_before > known.not_before {
                    *known = leaf.clone();
                }
            }
            self.views.insert(site.id, view);
        }
    }

    /// Whether the first site of a record that serves a leaf serves the expected one. If none does, an earlier run may
    /// have deployed it.
    pub(super) fn may_be_current(&self, group: &SurveyGroup<'_>, scope: &Scope<'_, '_>) -> bool {
        let mut views = group.wanted.iter().filter_map(|site| self.views.get(&site.id));
        if let Some(first) = views.find(|view| view.has_leaf()) {
            return !first.has_other_leaf();
        }
        let mut records = group.wanted.iter().filter_map(|site| site.cert_id);
        records.any(|record| scope.holds_leaf(record))
    }

    /// What the edge of a site serves; `None` if it was not observed.
    pub(super) fn view(&self, site: u64) -> Option<&EdgeView> {
        self.views.get(&site)
    }

    /// The other leaf that the edge serves for a record, if it covers the site.
    pub(super) fn leaf_of(&self, record: u64) -> Option<&Leaf> {
        self.leaves.get(&record)
    }
}

/// The sites of a record to observe, in this order, until the edge serves a leaf for one of them.
pub(super) fn tried<'s>(group: &SurveyGroup<'s>) -> impl Iterator<Item = &'s Site> {
    group.wanted.iter().chain(&group.others).copied().take(MAX_TRIED_SITES)
}

/// Observes edges.
pub(super) struct Surveyor<'a> {
    pub(super) edge: &'a Edge<'a>,
    pub(super) scope: &'a Scope<'a, 'a>,
    pub(super) end: Deadline,
}

pub(super) type Observed<'s> = Vec<(&'s Site, EdgeView)>;

impl Surveyor<'_> {
    /// Runs observations concurrently until they are done or no leaf has been seen for a while.
    async fn observe_all<'s, F>(&self, observations: impl Iterator<Item = F>, survey: &mut Survey)
    where
        F: Future<Output = Observed<'s>>,
    {
        let mut results = stream::iter(observations).buffer_unordered(MAX_OBSERVED_SITES);
        let mut deadline = self.idle_deadline();
        while let Ok(Some(result)) = timeout(deadline.left(), results.next()).await {
            if result.iter().any(|(_, view)| view.has_leaf()) {
                deadline = self.idle_deadline();
            }
            survey.add(result.into_iter());
        }
    }

    fn idle_deadline(&self) -> Deadline {
        Deadline::after(IDLE_TIMEOUT).or_sooner(self.end)
    }

    /// Observes sites until the edge serves a leaf for one of them.
    pub(super) async fn observe_first<'s>(&self, sites: impl Iterator<Item = &'s Site>) -> Observed<'s> {
        let mut observed = Vec::new();
        for site in sites {
            let (mut view, deadline) = (self.scope.new_view(), self.idle_deadline());
            self.edge.observe_retrying((&site.domain, site.cname.as_deref()), &mut view, deadline).await;
            let has_leaf = view.has_leaf();
            observed.push((site, view));
            if has_leaf {
                break;
            }
        }
        observed
    }
}
