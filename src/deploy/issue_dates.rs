//! Issue dates of the leaves in the account's records, for the guard against replacing a newer certificate.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use time::OffsetDateTime;
use tokio::time::sleep;

use super::request::{MAX_HANDSHAKES, RolloutRequest};
use super::scope::Scope;
use crate::api::{Listing, Site};
use crate::settings::Verify;
use crate::verify::Edge;

/// Time limit for probing the edge before anything is changed.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Completes the recorded issue dates with those of the leaves that the edge serves for replaceable records; the later
/// date counts. The time limit is short, because an unresponsive edge must not fail the deployment.
pub(super) async fn complete_from_edge(
    request: &RolloutRequest<'_>,
    edge: &Edge<'_>,
    scope: &Scope<'_>,
    listing: &Listing,
) -> HashMap<u64, OffsetDateTime> {
    let mut dates = request.issue_dates.clone();
    if request.settings.verify == Verify::Off || request.allow.older {
        return dates;
    }
    let limit = TIMEOUT.min(request.deadline.left() / 4);
    let records = scope.replaceable_records(&listing.sites, &listing.records);
    let lookups = records
        .into_iter()
        .map(|(id, sites)| async move { Some((id, first_issue_date(edge, &sites, limit).await?)) });
    let lookups = stream::iter(lookups).buffer_unordered(MAX_HANDSHAKES).take_until(Box::pin(sleep(limit)));
    let found: Vec<(u64, OffsetDateTime)> = lookups.filter_map(std::future::ready).collect().await;
    for (id, issued) in found {
        let date = dates.entry(id).or_insert(issued);
        *date = issued.max(*date);
    }
    dates
}

/// Issue date of the leaf of the first site for which the edge serves one.
async fn first_issue_date(edge: &Edge<'_>, sites: &[&Site], limit: Duration) -> Option<OffsetDateTime> {
    for site in sites {
        if let Some(issued) = edge.latest_issued(site, limit).await {
            return Some(issued);
        }
    }
    None
}
