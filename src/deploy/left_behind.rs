//! Finds sites that keep a certificate of this host although no lineage of it renews that any more: a name was dropped
//! from the lineage, and nobody else would notice before visitors see an expired certificate. Pure.

use time::{Duration, OffsetDateTime};

use crate::api::{Listing, Site};
use crate::names::Names;
use crate::state::{ServiceDeployments, StoredLeaf};
use crate::text::rfc3339;

/// A certificate that expires within this time, and that no lineage renews, is reported by every `sync`.
const DUE: Duration = Duration::days(14);

/// The sites with a certificate that a lineage deployed before its names changed to these.
pub(super) fn left_by_renewal(
    lineage: &str,
    names: &Names,
    listing: &Listing,
    deployments: &ServiceDeployments,
) -> Vec<String> {
    let is_left = |site: &Site, leaf: &StoredLeaf| {
        leaf.lineage == lineage && !names.cover(&site.domain) && !deployments.has_other(&site.domain, lineage)
    };
    messages(listing, deployments, is_left)
}

/// The sites with a certificate that expires soon and that no lineage renews.
pub(crate) fn left_behind(
    listing: &Listing,
    deployments: &ServiceDeployments,
    now: OffsetDateTime,
) -> Vec<String> {
    let is_due =
        |site: &Site, leaf: &StoredLeaf| leaf.rank.expires < now + DUE && !deployments.has_any(&site.domain);
    messages(listing, deployments, is_due)
}

fn messages(
    listing: &Listing,
    deployments: &ServiceDeployments,
    is_left: impl Fn(&Site, &StoredLeaf) -> bool,
) -> Vec<String> {
    let message = |site: &Site| {
        let mut stored = deployments.leaves_in(site.cert_id?).filter(|leaf| leaf.is_certain);
        // The names are parsed last, and rarely: that is the expensive part.
        let leaf = stored.find(|leaf| {
            is_left(site, leaf) && site.domain.is_covered_by_any(leaf.names.iter().map(String::as_str))
        })?;
        Some(format!(
            "{} keeps an earlier certificate of {}, which expires at {}; no lineage of this host covers it any more",
            site.domain,
            leaf.lineage,
            rfc3339(leaf.rank.expires)
        ))
    };
    listing.sites.iter().filter(|site| site.serves_https()).filter_map(message).collect()
}
