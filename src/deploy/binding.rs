//! Binds sites to uploaded records by setting their `cert_id`.

use futures_util::{StreamExt as _, stream};
use serde_json::{Map, json};

use super::pending_site::PendingSite;
use super::request::RolloutRequest;
use crate::api::MAX_CONCURRENT_REQUESTS;

/// Binds the sites that the plan binds.
pub(super) async fn bind_planned(request: &RolloutRequest<'_>, sites: &mut [PendingSite<'_>]) {
    bind(request, sites, |site: &PendingSite<'_>| site.is_binding_planned()).await;
}

/// Binds the sites that should be bound to the uploaded record and, as just read, are not. Returns whether there were
/// any.
pub(super) async fn bind_missing(request: &RolloutRequest<'_>, sites: &mut [PendingSite<'_>]) -> bool {
    let is_missing = |site: &PendingSite<'_>| site.is_binding_missing(request.deployment.settings.rebind);
    let any = sites.iter().any(is_missing);
    bind(request, sites, is_missing).await;
    any
}

async fn bind(
    request: &RolloutRequest<'_>,
    sites: &mut [PendingSite<'_>],
    is_due: impl Fn(&PendingSite<'_>) -> bool,
) {
    let due = sites.iter_mut().filter(|site| is_due(site) && !site.is_bound());
    let stored = due.filter_map(|site| Some((site.record_to_bind()?, site)));
    let updates = stored.map(|(id, site)| async move {
        log::info!("binding {} to certificate {id}", site.target.site.domain);
        let fields = Map::from_iter([("cert_id".to_owned(), json!(id))]);
        site.binding = Some(request.client.update_site(site.target.site.id, &fields).await);
    });
    stream::iter(updates).buffer_unordered(MAX_CONCURRENT_REQUESTS).for_each(std::future::ready).await;
}
