//! Adds what the edges serve now, by a TLS handshake with every address of every site.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};

use super::fleet::{DiskStatus, EdgeOutcome, EdgeStatus, LineageStatus, SiteStatus};
use crate::clock::{self, Deadline};
use crate::error::Result;
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use crate::settings::{EdgeAddresses, Layers};
use crate::verify::{Edge, EdgeView, Handshakes, MAX_HANDSHAKES};

/// Maximum number of sites that are checked at once.
const MAX_CONCURRENT: usize = 32;
/// Time limit for one site.
const SITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Fills in the edge status of the sites that should serve a leaf of their lineage: the one on disk, or else the one
/// deployed last; if the lineage only reached a site, the one that reached it.
pub(super) fn verify(lineages: &mut [LineageStatus], layers: &Layers<'_>) -> Result<()> {
    let (given, file) = (&layers.given.local.edge_address, &layers.file.layer.local.edge_address);
    let edges = |lineage: &LineageStatus| {
        let edges = given.as_ref().or(lineage.edge_address.as_ref()).or(file.as_ref());
        edges.map(EdgeAddresses::to_vec).unwrap_or_default()
    };
    let edges: Vec<Vec<String>> = lineages.iter().map(edges).collect();
    let handshakes = Handshakes::new(MAX_HANDSHAKES).context("cannot set up TLS")?;
    let mut checks = Vec::new();
    for (LineageStatus { disk, deployed, sites, .. }, edges) in lineages.iter_mut().zip(&edges) {
        let Some(leaf) = disk.leaf().or(deployed.as_ref()) else { continue };
        let key_type = if let DiskStatus::Leaf { key_type, .. } = &*disk { Some(key_type) } else { None };
        let is_ours =
            |site: &&mut SiteStatus| !site.is_left_to_others() && site.state.outcome != Outcome::Misbound;
        for site in sites.iter_mut().filter(is_ours) {
            let expected = site.reached_with.as_ref().unwrap_or(leaf);
            let key_type = key_type.filter(|_| expected == leaf).cloned();
            let edge = Edge::for_leaf(&expected.fingerprint, key_type, edges, &handshakes);
            checks.push(check(edge, leaf, site));
        }
    }
    let checks = stream::iter(checks).buffer_unordered(MAX_CONCURRENT);
    Runtime::new()?.block_on(checks.for_each(std::future::ready));
    Ok(())
}

/// Fills in what the addresses of a site serve.
async fn check(edge: Edge<'_>, own: &Leaf, site: &mut SiteStatus) {
    let expected = site.reached_with.as_ref().unwrap_or(own);
    let (mut view, deadline) = (EdgeView::new(false), Deadline::after(SITE_TIMEOUT));
    edge.observe_retrying((&site.state.domain, site.state.cname.as_deref()), &mut view, deadline).await;
    // The edge of a site that was never served may have a reason to refuse its name: the site may be disabled.
    let (was_served, now) = (site.state.outcome == Outcome::Served, clock::now());
    let mut sightings = view.sightings(expected, now);
    if !was_served && site.state.edge.is_empty() && !view.has_other_leaf() {
        sightings.ignore_refusals();
    }
    site.state.edge.see(&sightings);
    let mut stale = view.others("still serves");
    // Where it was served, a refusal is as bad as another leaf.
    if was_served {
        stale.extend(view.refusals());
    }
    let outcome = match () {
        () if view.is_served() => EdgeOutcome::Served,
        () if !stale.is_empty() => EdgeOutcome::Stale,
        () => EdgeOutcome::Unreachable,
    };
    if outcome == EdgeOutcome::Served {
        site.leaf = Some(expected.clone());
    }
    let (score, stale_leaf) = (view.served_of(), view.earliest_other(now).cloned());
    site.edge = Some(EdgeStatus { outcome, score, stale, stale_leaf, unreachable: view.unverified() });
}
