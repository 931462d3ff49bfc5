//! Finds sites that keep a certificate of this host although none of its lineages renews it. Pure.

use time::{Duration, OffsetDateTime};

use super::scope::Scope;
use crate::api::{Listing, Site};
use crate::state::{ServiceDeployments, StoredLeaf};
use crate::text::rfc3339;

/// A certificate that expires within this time, and that no lineage renews, is reported by every `sync`.
const DUE: Duration = Duration::days(14);

/// Warns of sites that still have an earlier certificate of the lineage although its new names no longer cover them. No
/// other check would notice before visitors see an expired certificate.
pub(super) fn left_by_renewal(scope: &Scope<'_, '_>) -> Vec<String> {
    let Scope { lineage, names, account, deployments, .. } = scope;
    let is_left = |site: &Site, leaf: &StoredLeaf| {
        let mut known = deployments.on(&site.domain).iter();
        leaf.lineage == *lineage && !names.cover(&site.domain) && known.all(|known| known.lineage == *lineage)
    };
    messages(account.sites.iter().copied(), deployments, is_left)
}

/// The sites with a certificate that expires soon and that no lineage renews.
pub(crate) fn left_behind(
    listing: &Listing,
    deployments: &ServiceDeployments,
    now: OffsetDateTime,
) -> Vec<String> {
    let is_due = |site: &Site, leaf: &StoredLeaf| {
        leaf.leaf.not_after < now + DUE && deployments.on(&site.domain).is_empty()
    };
    messages(listing.sites.items.iter(), deployments, is_due)
}

fn messages<'a>(
    sites: impl Iterator<Item = &'a Site>,
    deployments: &ServiceDeployments,
    is_left: impl Fn(&Site, &StoredLeaf) -> bool,
) -> Vec<String> {
    let message = |site: &Site| {
        let stored = deployments.stored_in(site.cert_id?)?;
        // The names are parsed last, and rarely: that is the expensive part.
        let is_left = is_left(site, stored)
            && site.domain.is_covered_by_any(stored.leaf.names.iter().map(String::as_str));
        is_left.then(|| format!(
            "{} keeps an earlier certificate of {}, which expires at {}; no lineage of this host covers it any more",
            site.domain,
            stored.lineage,
            rfc3339(stored.leaf.not_after)
        ))
    };
    sites.filter(|site| site.serves_https()).filter_map(message).collect()
}
