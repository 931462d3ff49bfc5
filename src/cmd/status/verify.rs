//! Adds what the edges serve now, by a TLS handshake with every address of every site.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use time::OffsetDateTime;

use super::fleet::{DiskStatus, EdgeOutcome, EdgeStatus, LineageStatus, SiteStatus};
use crate::clock::{self, Deadline};
use crate::error::CommandError;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use crate::verify::{Edge, EdgeView, Handshakes, MAX_HANDSHAKES};

/// Maximum number of sites that are checked at once.
const MAX_CONCURRENT: usize = 32;
/// Time limit for one site.
const SITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Fills in the edge status of the sites that should serve the leaf of their lineage: the one on disk, or else the one
/// deployed last. `edges_of` returns the edges to connect to instead of those of the sites.
pub(super) fn verify(
    lineages: &mut [LineageStatus],
    edges_of: impl Fn(&LineageStatus) -> Vec<String>,
) -> Result<(), CommandError> {
    let edges: Vec<Vec<String>> = lineages.iter().map(edges_of).collect();
    let handshakes = Arc::new(Handshakes::new(MAX_HANDSHAKES).context("cannot set up TLS")?);
    let mut checks = Vec::new();
    for (LineageStatus { disk, deployed, sites, .. }, edges) in lineages.iter_mut().zip(&edges) {
        let (leaf, key_type) = match disk {
            DiskStatus::Leaf { leaf, key_type, .. } => (&*leaf, Some(&*key_type)),
            DiskStatus::Missing | DiskStatus::Unreadable(_) => match deployed {
                Some(leaf) => (&*leaf, None),
                None => continue,
            },
        };
        let is_ours = |site: &&mut SiteStatus| {
            !matches!(site.outcome, Outcome::Skipped | Outcome::Misbound | Outcome::Superseded)
        };
        for site in sites.iter_mut().filter(is_ours) {
            let edge = Edge::for_leaf(&leaf.fingerprint, key_type.cloned(), edges, &handshakes);
            checks.push(check(edge, leaf, site));
        }
    }
    let checks = stream::iter(checks).buffer_unordered(MAX_CONCURRENT);
    Runtime::new()?.block_on(checks.for_each(std::future::ready));
    Ok(())
}

async fn check(edge: Edge<'_>, leaf: &Leaf, site: &mut SiteStatus) {
    let status = observe(&edge, leaf, site).await;
    if status.outcome == EdgeOutcome::Served {
        site.leaf = Some(leaf.clone());
    }
    site.edge = Some(status);
}

async fn observe(edge: &Edge<'_>, expected: &Leaf, site: &mut SiteStatus) -> EdgeStatus {
    let Ok(domain) = site.domain.parse::<Domain>() else {
        let reason = "its domain is not a domain name".to_owned();
        return EdgeStatus { unreachable: vec![reason], ..EdgeStatus::default() };
    };
    let (mut view, deadline) = (EdgeView::new(false), Deadline::after(SITE_TIMEOUT));
    edge.observe_with_retries(&domain, site.cname.as_deref(), &mut view, deadline).await;
    // The edge of a site that was never served may have a reason to refuse its name: the site may be disabled.
    let (was_served, now) = (site.outcome == Outcome::Served, clock::now());
    let mut sightings = view.sightings(expected, now);
    if !was_served && !site.seen.has_sightings() && !view.has_other_leaf() {
        sightings.ignore_refusals();
    }
    site.seen.see(&sightings);
    EdgeStatus::new(&view, was_served, now)
}

impl EdgeStatus {
    /// If the site `was_served`, a refusal of the name is as bad as another leaf.
    fn new(view: &EdgeView, was_served: bool, now: OffsetDateTime) -> Self {
        let ((served, addresses), mut stale) = (view.served_of(), view.stale());
        if was_served {
            stale.extend(view.refusals());
        }
        let outcome = match () {
            () if view.is_served() => EdgeOutcome::Served,
            () if !stale.is_empty() => EdgeOutcome::Stale,
            () => EdgeOutcome::Unreachable,
        };
        let stale_leaf = view.earliest_other(now).cloned();
        Self { outcome, served, addresses, stale, stale_leaf, unreachable: view.unverified() }
    }
}
