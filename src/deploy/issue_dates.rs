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

/// Time for asking the edge before anything is changed.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Adds to the known dates those of the leaves that the edge shows for the records that may be replaced. The later date
/// counts. An edge that does not answer must not cost the deployment, so the time for this is short.
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
    let asked = records
        .into_iter()
        .map(|(id, sites)| async move { Some((id, first_issue_date(edge, &sites, limit).await?)) });
    let asked = stream::iter(asked).buffer_unordered(MAX_HANDSHAKES).take_until(Box::pin(sleep(limit)));
    let shown: Vec<(u64, OffsetDateTime)> = asked.filter_map(std::future::ready).collect().await;
    for (id, issued) in shown {
        let date = dates.entry(id).or_insert(issued);
        *date = issued.max(*date);
    }
    dates
}

/// When the leaf was issued that the edge shows for the first of the sites that it shows one for.
async fn first_issue_date(edge: &Edge<'_>, sites: &[&Site], limit: Duration) -> Option<OffsetDateTime> {
    for site in sites {
        if let Some(issued) = edge.latest_issued(site, limit).await {
            return Some(issued);
        }
    }
    None
}
