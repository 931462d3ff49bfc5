//! The wait between the upload and the verdict: reads the sites, binds those that are not bound, and checks the edge
//! until it serves the new leaf for every site or the wait is over.
//!
//! Nothing here fails. The observations are kept in each `PendingSite`; `verdict` evaluates them.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{sleep, timeout};

use super::pending_site::{PendingSite, SiteReading};
use super::survey::MAX_OBSERVED_SITES;
use super::{Deployment, Rollout};
use crate::api::{MAX_CONCURRENT_REQUESTS, RequestError, Site};
use crate::clock::Deadline;
use crate::progress::Phase;
use crate::settings::Verify;
use crate::verify::Edge;

/// Time limit for reading the sites without `--wait`.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for each of the steps after the wait: reading the sites that were not read, and a last round of handshakes.
const LAST_STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// The inputs of the wait besides the sites.
pub(super) struct Polling<'a> {
    pub(super) rollout: &'a Rollout<'a>,
    pub(super) edge: &'a Edge<'a>,
    /// The number of sites in the account.
    pub(super) account_sites: usize,
}

impl Polling<'_> {
    /// Reads the sites at least once, then until the edge serves the new leaf for each of them or the wait is over.
    pub(super) async fn wait_until_served(&self, sites: &mut [PendingSite<'_>]) {
        if !sites.iter().any(PendingSite::is_worth_reading) {
            return;
        }
        let Deployment { settings, deadline, .. } = *self.rollout.deployment;
        if settings.wait.is_zero() {
            return self.read_and_bind(sites, || READ_TIMEOUT).await;
        }
        let end = Deadline::after(settings.wait).or_sooner(deadline);
        let mut pauses = Pauses { span: end.left(), is_last: false };
        // A request that stalls must leave time for the handshakes.
        let read_timeout = || end.left() / 2;
        self.show(sites);
        self.read_and_bind(sites, read_timeout).await;
        loop {
            self.check_edge(sites, pauses.is_last, end).await;
            if sites.iter().all(|site| site.is_settled(settings.verify)) {
                return;
            }
            self.show(sites);
            let Some(pause) = pauses.next(end.left()) else { break };
            log::info!("waiting for the edge");
            sleep(pause).await;
            if sites.iter().any(|site| site.stored.is_ok() && !site.is_pushed()) {
                self.read_and_bind(sites, read_timeout).await;
            }
        }
        if sites.iter().any(PendingSite::is_unknown) {
            self.read_and_bind(sites, || LAST_STEP_TIMEOUT).await;
        }
        if sites.iter().any(|site| site.is_handshake_due(true) && !site.is_edge_checked) {
            let end = Deadline::after(LAST_STEP_TIMEOUT).or_sooner(deadline);
            self.check_edge(sites, true, end).await;
        }
    }

    /// Shows what the wait is for: the push, or the edge afterwards.
    fn show(&self, sites: &[PendingSite<'_>]) {
        let limit = self.rollout.deployment.settings.wait;
        let is_pushed = sites.iter().all(|site| site.stored.is_err() || site.is_pushed());
        (self.rollout.deployment.progress)(if is_pushed {
            let served = sites.iter().filter(|site| site.view.is_served()).count();
            Phase::Verifying { served, sites: sites.len(), limit }
        } else {
            Phase::Pushing { limit }
        });
    }

    /// Reads the sites, binds those that are not bound, and reads them again if there are any.
    async fn read_and_bind(&self, sites: &mut [PendingSite<'_>], limit: impl Fn() -> Duration) {
        self.read(sites, limit()).await;
        let rebind = self.rollout.deployment.settings.rebind;
        if self.rollout.bind(sites, |site| site.is_binding_missing(rebind)).await {
            self.read(sites, limit()).await;
        }
    }

    /// Reads the sites with one listing, or one by one if they are a small part of a large account.
    async fn read(&self, sites: &mut [PendingSite<'_>], limit: Duration) {
        let Rollout { clients, client, .. } = self.rollout;
        let attempt = async {
            // A quarter of the time may pass while others join.
            let listed = clients.read_sites(client, sites.len(), self.account_sites, limit / 4).await;
            let Some(listed) = listed else { return self.read_each(sites).await };
            // The listing may have been requested by another deployment, which does not know the secrets of this one.
            for gap in &listed.gaps {
                log::warn!("cannot read the sites after the upload: {}", client.clean(gap));
            }
            for pending in sites {
                match listed.by_id.get(&pending.target.site.id) {
                    Some(site) => pending.reading = reading(client.clean_site(site)),
                    None if listed.gaps.is_empty() => pending.reading = SiteReading::Missing,
                    None => {}
                }
            }
        };
        if timeout(limit, attempt).await.is_err() {
            log::warn!("cannot read the sites after the upload: no response in time");
        }
    }

    async fn read_each(&self, sites: &mut [PendingSite<'_>]) {
        let readings = sites.iter_mut().map(|pending| async {
            let read = self.rollout.client.site(pending.target.site.id).await;
            if let Some(reading) = reading_of(read.map(|site| site.known)) {
                pending.reading = reading;
            }
        });
        stream::iter(readings).buffer_unordered(MAX_CONCURRENT_REQUESTS).for_each(std::future::ready).await;
    }

    /// Handshakes with the edges of the sites that are pushed or could not be read; in the last round, of every bound
    /// site.
    async fn check_edge(&self, sites: &mut [PendingSite<'_>], is_last: bool, end: Deadline) {
        if self.rollout.deployment.settings.verify == Verify::Off {
            return;
        }
        let due = sites.iter_mut().filter(|site| site.is_handshake_due(is_last));
        let handshakes = due.map(|pending| async {
            pending.is_edge_checked = true;
            let Site { domain, cname, .. } = pending.latest().clone();
            self.edge.observe((&domain, cname.as_deref()), &mut pending.view, end).await;
        });
        stream::iter(handshakes).buffer_unordered(MAX_OBSERVED_SITES).for_each(std::future::ready).await;
    }
}

/// What the response to reading a site shows; `None` if nothing.
fn reading_of(read: Result<Site, RequestError>) -> Option<SiteReading> {
    match read {
        Ok(site) => Some(reading(site)),
        Err(failed) if failed.refused_status() == Some(404) => Some(SiteReading::Missing),
        Err(failed) => {
            log::warn!("cannot read the site after the upload: {failed}");
            None
        }
    }
}

/// A site whose binding cannot be read proves nothing.
fn reading(site: Site) -> SiteReading {
    if site.unreadable_cert_id.is_some() { SiteReading::Unread } else { SiteReading::Site(site) }
}

/// Growing pauses over a span of time, of which some is kept for one more round of handshakes after the last pause.
struct Pauses {
    span: Duration,
    /// Whether the last pause has been returned.
    is_last: bool,
}

const MIN_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(1);
const MAX_RESERVE: Duration = Duration::from_secs(1);

impl Pauses {
    /// Returns an eighth of the elapsed time, so that a slow edge is checked less and less often; `None` after the
    /// last.
    fn next(&mut self, left: Duration) -> Option<Duration> {
        let reserve = (self.span / 4).min(MAX_RESERVE);
        if self.is_last || left <= reserve {
            return None;
        }
        let pause = (self.span.saturating_sub(left) / 8).clamp(MIN_PAUSE, MAX_PAUSE);
        self.is_last = pause + reserve >= left;
        Some(pause.min(left.saturating_sub(reserve)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::AttemptError;

    #[test]
    fn response_shows_whether_a_site_is_there() {
        let site = || Site::example(1, "a.example", None);
        let refused = |status| {
            let error = AttemptError::Refused { status, message: String::new() };
            RequestError { attempts: 1, may_be_done: false, error }
        };
        assert!(matches!(reading_of(Ok(site())), Some(SiteReading::Site(_))));
        let unreadable = Site { unreadable_cert_id: Some("x".into()), ..site() };
        assert!(matches!(reading_of(Ok(unreadable)), Some(SiteReading::Unread)));
        assert!(matches!(reading_of(Err(refused(404))), Some(SiteReading::Missing)));
        assert!(reading_of(Err(refused(403))).is_none());
    }

    #[test]
    fn pauses_grow_and_leave_time_for_a_last_round() {
        let ms = Duration::from_millis;
        for (span, left, pause, is_last) in [
            (20_000, 20_000, Some(250), false),
            (20_000, 16_000, Some(500), false),
            (20_000, 8_000, Some(1_000), false),
            (20_000, 2_001, Some(1_000), false),
            (20_000, 2_000, Some(1_000), true),
            (20_000, 1_900, Some(900), true),
            (20_000, 1_000, None, false),
            (2_000, 2_000, Some(250), false),
            (2_000, 600, Some(100), true),
            (2_000, 500, None, false),
        ] {
            let mut pauses = Pauses { span: ms(span), is_last: false };
            let found = (pauses.next(ms(left)), pauses.is_last);
            assert_eq!(found, (pause.map(ms), is_last), "{left} of {span} ms are left");
            assert!(!is_last || pauses.next(ms(span)).is_none());
        }
    }
}
