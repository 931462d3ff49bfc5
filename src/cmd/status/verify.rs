//! Shakes hands with the edge of every site, and adds what it shows to the facts.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use tokio::time::sleep;

use super::facts::{Disk, Lineage, Shown, Site};
use crate::clock::Deadline;
use crate::error::CommandError;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use crate::verify::{Edge, EdgeView};

/// So many sites are looked at together, and so long each may take.
const AT_ONCE: usize = 32;
const LIMIT: Duration = Duration::from_secs(10);
/// An edge that refuses a handshake may break the connection before its reason arrives; so soon it is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks at the sites of all lineages; `instead` are the edges to ask in place of a lineage's own.
pub(super) fn verify(
    lineages: &mut [Lineage],
    instead: impl Fn(&Lineage) -> Result<Vec<String>, CommandError>,
) -> Result<(), CommandError> {
    let instead: Vec<Vec<String>> = lineages.iter().map(instead).collect::<Result<_, _>>()?;
    let mut looks = Vec::new();
    for (lineage, instead) in lineages.iter_mut().zip(&instead) {
        let Lineage { disk, deployed, sites, .. } = lineage;
        // Visitors should get what is on disk; where nothing is, what was deployed last.
        let (leaf, key_type) = match disk {
            Disk::Leaf { leaf, key_type, .. } => (leaf, Some(&*key_type)),
            Disk::Gone | Disk::ReadError(_) => match deployed {
                Some(leaf) => (leaf, None),
                None => continue,
            },
        };
        for site in sites.iter_mut().filter(|site| is_ours(site)) {
            looks.push((&*leaf, key_type, instead.as_slice(), site));
        }
    }
    let looks = looks.into_iter().map(|(leaf, key_type, instead, site)| async move {
        let edge = Edge::for_leaf(&leaf.fingerprint, key_type.cloned(), instead)?;
        let served = look(&edge, site).await;
        site.not_after = if served.is_proven { Some(leaf.not_after) } else { site.not_after };
        site.served = Some(served);
        Ok::<_, rustls::Error>(())
    });
    let looks = stream::iter(looks).buffer_unordered(AT_ONCE).collect::<Vec<_>>();
    let looked = Runtime::new()?.block_on(looks)?;
    Ok(looked.into_iter().collect::<Result<(), _>>().context("cannot set up TLS")?)
}

/// Whether the lineage should be served there.
fn is_ours(site: &Site) -> bool {
    !matches!(site.outcome, Outcome::Skipped | Outcome::Misbound)
}

async fn look(edge: &Edge<'_>, site: &Site) -> Shown {
    let Ok(domain) = site.domain.parse::<Domain>() else {
        return Shown { unseen: vec!["its domain is no domain name".into()], ..Shown::default() };
    };
    let (mut view, end, mut pause) = (EdgeView::new(false), Deadline::after(LIMIT), PAUSE);
    loop {
        edge.observe(&domain, site.cname.as_deref(), &mut view, end).await;
        if !view.has_broken_connection() || end.left() <= pause {
            break;
        }
        sleep(pause).await;
        pause *= 2;
    }
    let (served, addresses) = view.served_of();
    Shown {
        served,
        addresses,
        is_proven: view.is_served(),
        stale: view.stale(),
        stale_until: view.stale_until(),
        unseen: view.unverified(),
    }
}
