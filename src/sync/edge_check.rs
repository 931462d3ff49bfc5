//! Makes handshakes with the edges of unchanged lineages, to notice leaves that were replaced without a change of IDs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use time::OffsetDateTime;

use super::decision::EdgeCheck;
use super::scan::{Candidate, Reason};
use crate::api::Site;
use crate::bundle;
use crate::cert::KeyType;
use crate::clock::Deadline;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::settings::Verify;
use crate::state::SiteState;
use crate::text;
use crate::verify::{Edge, EdgeView, Handshakes, MAX_HANDSHAKES};

/// A lineage whose edges are checked.
pub(super) struct CheckedLineage<'a> {
    pub(super) lineage: &'a Candidate,
    pub(super) check: EdgeCheck<'a>,
    /// What the edges serve, by site. A site whose edge was not observed in time is absent.
    views: BTreeMap<u64, EdgeView>,
}

/// Time limit for one site.
const SITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sites whose edges are observed at once. The handshakes themselves have a limit of their own.
const MAX_CONCURRENT: usize = 32;

impl<'a> CheckedLineage<'a> {
    pub(super) fn new(lineage: &'a Candidate, check: EdgeCheck<'a>) -> Self {
        Self { lineage, check, views: BTreeMap::new() }
    }

    /// Adds what the edge of a site serves.
    pub(super) fn add(&mut self, site: u64, view: EdgeView) {
        self.views.insert(site, view);
    }

    /// Why the lineage has to be deployed: an edge serves another leaf, or refuses the name, or cannot be reached
    /// although it has to be.
    pub(super) fn drift(&self) -> Option<Reason> {
        self.check.sites.iter().find_map(|site| {
            let view = self.views.get(&site.id)?;
            let unverified = self.is_strict().then(|| view.unverified()).into_iter().flatten();
            let first = view.others().into_iter().chain(view.refusals()).chain(unverified).next()?;
            Some(Reason::Drifted(format!("{}: {first}", site.domain)))
        })
    }

    /// Returns `now` if all sites of the lineage were checked.
    pub(super) fn checked_at(&self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        let is_observed = |site: &Site| self.views.contains_key(&site.id);
        (self.check.is_complete && self.check.sites.iter().all(|site| is_observed(site))).then_some(now)
    }

    /// Records what the edge of a site serves.
    pub(super) fn update(&self, known: &mut SiteState, now: OffsetDateTime) {
        let mut sites = self.check.sites.iter();
        let has_domain =
            |site: &Site| known.domain.parse::<Domain>().is_ok_and(|domain| domain == site.domain);
        let site = sites.find(|site| known.id.map_or_else(|| has_domain(site), |id| site.id == id));
        let Some(view) = site.and_then(|site| self.views.get(&site.id)) else { return };
        if let Some(leaf) = &self.lineage.leaf {
            known.edge.see(&view.sightings(leaf, now));
        }
        if view.is_served() {
            (known.outcome, known.detail) = (Outcome::Served, None);
        } else if known.outcome.is_bound() {
            (known.outcome, known.detail) = (Outcome::Synced, Some(text::list(&view.unverified())));
        }
    }

    /// Whether there is anything to record.
    pub(super) fn has_changes(&self, now: OffsetDateTime) -> bool {
        let has_changed = |site: &SiteState| {
            let mut updated = site.clone();
            self.update(&mut updated, now);
            // The addresses of an edge may change in every run; only what they serve matters.
            let is_same_edge = updated.edge.is_equivalent(&site.edge);
            !is_same_edge || SiteState { edge: site.edge.clone(), ..updated } != *site
        };
        self.checked_at(now).is_some() || self.lineage.sites.iter().any(has_changed)
    }

    fn is_strict(&self) -> bool {
        self.lineage.settings.verify == Verify::Require
    }

    /// The leaf that the edges should serve, and the type of its key, which saves handshakes if it is known.
    fn leaf(&self) -> Option<(&'a Leaf, Option<KeyType>)> {
        let leaf = self.lineage.leaf.as_ref()?;
        let chain = bundle::load_chain(&self.lineage.source.files).ok().and_then(|bundle| bundle.chain.ok());
        let on_disk = chain.map(|chain| chain.leaf).filter(|found| found.fingerprint() == leaf.fingerprint);
        Some((leaf, on_disk.map(|found| found.public_key.key_type())))
    }
}

/// Observes the edges of all lineages until the deadline. The order is random, so that edges which do not respond
/// cannot keep the same lineages from being checked in every run.
pub(super) async fn observe(lineages: &mut [CheckedLineage<'_>], deadline: Deadline) -> anyhow::Result<()> {
    if lineages.is_empty() {
        return Ok(());
    }
    let handshakes = Arc::new(Handshakes::new(MAX_HANDSHAKES).context("cannot set up TLS")?);
    let leaves: Vec<_> = lineages.iter().map(CheckedLineage::leaf).collect();
    let sites = lineages.iter().enumerate();
    let mut sites: Vec<(usize, &Site)> =
        sites.flat_map(|(at, lineage)| lineage.check.sites.iter().map(move |site| (at, *site))).collect();
    fastrand::shuffle(&mut sites);
    let observations = sites.into_iter().filter_map(|(at, site)| {
        let lineage = lineages.get(at)?;
        let (leaf, key_type) = leaves.get(at)?.clone()?;
        let (is_strict, edges) = (lineage.is_strict(), &lineage.lineage.settings.edge_addresses);
        let edge = Edge::for_leaf(&leaf.fingerprint, key_type, edges, &handshakes);
        Some(async move {
            let view = observe_site(&edge, site, is_strict, deadline).await;
            (at, site.id, view)
        })
    });
    let views: Vec<_> = stream::iter(observations).buffer_unordered(MAX_CONCURRENT).collect().await;
    for (at, site, view) in views {
        if let (Some(lineage), Some(view)) = (lineages.get_mut(at), view) {
            lineage.add(site, view);
        }
    }
    Ok(())
}

/// Observes one site; `None` if no time is left.
async fn observe_site(edge: &Edge<'_>, site: &Site, is_strict: bool, deadline: Deadline) -> Option<EdgeView> {
    if deadline.left().is_zero() {
        return None;
    }
    let mut view = EdgeView::new(is_strict);
    let deadline = Deadline::after(SITE_TIMEOUT).or_sooner(deadline);
    edge.observe_with_retries(&site.domain, site.cname.as_deref(), &mut view, deadline).await;
    Some(view)
}
