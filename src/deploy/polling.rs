//! The time between an upload and the proof: the sites are read again, bound where that is missing, and looked at until
//! every one shows the new leaf or the wait is over.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{sleep, timeout};

use super::rollout::{AT_ONCE, HANDSHAKES_AT_ONCE, Rollout, Stored};
use crate::api::{List, RequestError, SavedSite, Site};
use crate::clock::Deadline;
use crate::error::{Diagnostic as _, ErrorKind};
use crate::plan::{Target, Upload};
use crate::settings::Verify;
use crate::verify::{Edge, EdgeView};

/// A site for which something was uploaded, on its way to the edge.
pub(crate) struct PendingSite<'p> {
    pub(crate) target: &'p Target<'p>,
    pub(crate) upload: &'p Upload<'p>,
    pub(crate) stored: Result<Stored, &'p RequestError>,
    pub(crate) now: Now,
    /// What became of setting its `cert_id`, where that was tried.
    pub(crate) binding: Option<Result<SavedSite, RequestError>>,
    pub(crate) view: EdgeView,
    /// Whether its edge was looked at.
    pub(crate) looked: bool,
}

/// A site as it was last read.
pub(crate) enum Now {
    /// It was not read since.
    Unread,
    /// It is not among the account's sites any more.
    Gone,
    Site(Site),
}

/// So long a single reading may take at least.
const WITHOUT_WAIT: Duration = Duration::from_secs(5);
const WITH_WAIT: Duration = Duration::from_secs(2);

/// One of so many sites is few: it is read alone, as a listing of all of them would be longer.
const FEW_AMONG: usize = 30;

impl<'p> PendingSite<'p> {
    pub(crate) fn new(
        target: &'p Target<'p>,
        upload: &'p Upload<'p>,
        stored: Result<Stored, &'p RequestError>,
        verify: Verify,
    ) -> Self {
        let view = EdgeView::new(verify == Verify::Require);
        Self { target, upload, stored, now: Now::Unread, binding: None, view, looked: false }
    }

    /// The site as it was read last, before or after the upload.
    fn latest(&self) -> &Site {
        match &self.now {
            Now::Site(site) => site,
            Now::Unread | Now::Gone => self.target.site,
        }
    }

    fn is_read(&self) -> bool {
        !matches!(self.now, Now::Unread)
    }

    /// Whether the record that was uploaded feeds the site, as far as is known.
    pub(crate) fn is_fed(&self) -> bool {
        let bound = self.latest().cert_id.filter(|_| !matches!(self.now, Now::Gone));
        self.stored.is_ok_and(|stored| bound == Some(stored.id))
    }

    /// Whether the service has bound it by itself.
    pub(crate) fn is_bound_by_creation(&self) -> bool {
        self.stored.is_ok_and(|stored| stored.created) && self.target.site.cert_id.is_none()
    }

    pub(crate) fn is_pushed(&self) -> bool {
        self.is_read() && self.is_fed() && self.latest().config_synced
    }

    /// Whether the service, asked for the site, would say anything: after an upload that failed it may have been done
    /// all the same, unless the service was never met or knows nobody of that key.
    fn is_worth_reading(&self) -> bool {
        !self.stored.is_err_and(|failed| matches!(failed.kind(), ErrorKind::Denied | ErrorKind::Config))
    }

    /// Whether nothing more will come of waiting.
    fn is_settled(&self, verify: Verify) -> bool {
        let proven = match verify {
            Verify::Off => true,
            Verify::Auto | Verify::Require => !self.latest().enabled,
        };
        self.stored.is_err()
            || self.is_read() && !self.is_fed()
            || self.view.is_served()
            || self.is_pushed() && proven
    }
}

impl Rollout<'_> {
    /// Reads the sites at least once, then until each of them is proven, or the wait is over.
    pub(crate) async fn settle(&mut self, edge: &Edge<'_>, pending_sites: &mut [PendingSite<'_>]) {
        if !pending_sites.iter().any(PendingSite::is_worth_reading) {
            return;
        }
        let settings = self.order.settings;
        let mut pauses = Pauses::until(Deadline::after(settings.wait).or_sooner(self.order.deadline));
        self.read(pending_sites, pauses.end).await;
        if self.mend(pending_sites).await {
            self.read(pending_sites, pauses.end).await;
        }
        loop {
            if settings.verify != Verify::Off && !settings.wait.is_zero() {
                look(edge, pending_sites, &pauses).await;
            }
            let settled = pending_sites.iter().all(|pending| pending.is_settled(settings.verify));
            let Some(pause) = pauses.next().filter(|_| !settled) else { return };
            log::info!("waiting for the edge");
            sleep(pause).await;
            if pending_sites.iter().any(|pending| pending.stored.is_ok() && !pending.is_pushed()) {
                self.read(pending_sites, pauses.end).await;
            }
        }
    }

    /// One request for all sites, or one for each of a few sites of a large account.
    async fn read(&self, pending_sites: &mut [PendingSite<'_>], end: Deadline) {
        // A reading that stalls leaves time for the edge.
        let least = if self.order.settings.wait.is_zero() { WITHOUT_WAIT } else { WITH_WAIT };
        let limit = (end.left() / 2).max(least);
        if pending_sites.len() * FEW_AMONG < self.sites {
            if timeout(limit, self.read_each(pending_sites)).await.is_err() {
                log::warn!("cannot read the sites after the upload: no answer in time");
            }
            return;
        }
        match timeout(limit, self.client.sites::<Site>()).await {
            Ok(Ok(List { items, .. })) => {
                let mut sites: HashMap<u64, Site> = items.into_iter().map(|site| (site.id, site)).collect();
                for pending in pending_sites {
                    pending.now = sites.remove(&pending.target.site.id).map_or(Now::Gone, Now::Site);
                }
            }
            Ok(Err(failed)) => log::warn!("cannot read the sites after the upload: {failed}"),
            Err(_) => log::warn!("cannot read the sites after the upload: no answer in time"),
        }
    }

    async fn read_each(&self, pending_sites: &mut [PendingSite<'_>]) {
        let readings = pending_sites.iter_mut().map(|pending| async {
            match self.client.site(pending.target.site.id).await {
                Ok(site) => pending.now = Now::Site(site.known),
                Err(failed) if failed.refused_status() == Some(404) => pending.now = Now::Gone,
                Err(failed) => log::warn!("cannot read the site after the upload: {failed}"),
            }
        });
        stream::iter(readings).buffer_unordered(AT_ONCE).for_each(std::future::ready).await;
    }

    /// Binds wanted sites that are not fed although they should be: those without any certificate, and with `--rebind`
    /// the others too. Tells whether there were any.
    async fn mend(&self, pending_sites: &mut [PendingSite<'_>]) -> bool {
        let rebind = self.order.allow.rebind;
        let is_stray = move |pending: &PendingSite<'_>| {
            let unbound = pending.latest().cert_id.is_none();
            let there = matches!(pending.now, Now::Site(_));
            let known = there && pending.binding.is_none() && pending.target.wanted;
            known && !pending.is_fed() && (unbound || rebind)
        };
        let any = pending_sites.iter().any(is_stray);
        self.bind(pending_sites, is_stray).await;
        any
    }
}

/// Asks the edge for the sites that are pushed, and in the last look for all.
async fn look(edge: &Edge<'_>, pending_sites: &mut [PendingSite<'_>], pauses: &Pauses) {
    let is_due = |pending: &PendingSite<'_>| {
        let may_show_it = pending.is_pushed() || pauses.is_last;
        let bound = pending.is_fed() || !pending.is_read() && pending.stored.is_ok();
        bound && pending.latest().enabled && may_show_it && !pending.view.is_served()
    };
    let looks = pending_sites.iter_mut().filter(|pending| is_due(pending)).map(|pending| async {
        pending.looked = true;
        let site = match &pending.now {
            Now::Site(site) => site,
            Now::Unread | Now::Gone => pending.target.site,
        };
        edge.observe(&site.domain, site.cname.as_deref(), &mut pending.view, pauses.end).await;
    });
    stream::iter(looks).buffer_unordered(HANDSHAKES_AT_ONCE).for_each(std::future::ready).await;
}

/// Growing pauses up to a moment, the last of them short enough for one more look.
struct Pauses {
    end: Deadline,
    span: Duration,
    is_last: bool,
}

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(1);

impl Pauses {
    fn until(end: Deadline) -> Self {
        Self { end, span: end.left(), is_last: false }
    }

    /// An eighth of the time that has passed, so that a slow edge is asked less and less; `None` after the last look.
    fn next(&mut self) -> Option<Duration> {
        let left = self.end.left();
        // So much is kept for the last look.
        let reserve = (self.span / 4).min(Duration::from_secs(1));
        if self.is_last || left <= reserve {
            return None;
        }
        let pause = (self.span.saturating_sub(left) / 8).clamp(FIRST, LONGEST);
        self.is_last = pause + reserve >= left;
        Some(pause.min(left.saturating_sub(reserve)))
    }
}
