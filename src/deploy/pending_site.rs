//! A site between its upload and its verdict.

use crate::api::{RequestError, SavedSite, Site};
use crate::error::{Diagnostic as _, ErrorKind};
use crate::plan::{Action, Target, Upload};
use crate::settings::Verify;
use crate::verify::EdgeView;

/// The record that an upload replaced or created.
#[derive(Clone, Debug)]
pub(super) struct StoredRecord {
    pub(super) id: u64,
    pub(super) is_new: bool,
    /// Whether it was listed before for other domains, although the service says that it is new: it may hold another
    /// certificate.
    pub(super) is_of_others: bool,
    /// Why the response does not confirm the upload; `None` if it does.
    pub(super) contradiction: Option<String>,
}

/// A site that an upload is for, with everything observed since.
pub(super) struct PendingSite<'p> {
    pub(super) target: &'p Target<'p>,
    pub(super) upload: &'p Upload<'p>,
    pub(super) stored: Result<&'p StoredRecord, &'p RequestError>,
    pub(super) reading: SiteReading,
    /// The result of setting `cert_id`; `None` if that was not tried.
    pub(super) binding: Option<Result<SavedSite, RequestError>>,
    pub(super) view: EdgeView,
    /// Whether a handshake with its edge was tried.
    pub(super) is_edge_checked: bool,
}

/// A site as last read since the upload.
pub(super) enum SiteReading {
    Unread,
    /// The account no longer has it.
    Missing,
    Site(Site),
}

impl PendingSite<'_> {
    /// The site as last read: since the upload, or else before it.
    pub(super) fn latest(&self) -> &Site {
        match &self.reading {
            SiteReading::Site(site) => site,
            SiteReading::Unread | SiteReading::Missing => self.target.site,
        }
    }

    pub(super) fn is_read(&self) -> bool {
        !matches!(self.reading, SiteReading::Unread)
    }

    /// Whether the site is bound to the uploaded record, as last read.
    pub(super) fn is_bound(&self) -> bool {
        let bound = self.latest().cert_id.filter(|_| !matches!(self.reading, SiteReading::Missing));
        self.stored.is_ok_and(|stored| bound == Some(stored.id))
    }

    /// The record to bind the site to; `None`: the upload failed, or the record may hold another certificate.
    pub(super) fn record_to_bind(&self) -> Option<u64> {
        self.stored.ok().filter(|stored| !stored.is_of_others).map(|stored| stored.id)
    }

    /// Whether to bind the site before reading it: because the plan says so and the service did not bind it when it
    /// created the record, or because the service created a record instead of replacing one, which nothing else would
    /// use.
    pub(super) fn is_binding_planned(&self) -> bool {
        let is_new = self.stored.is_ok_and(|stored| stored.is_new);
        let is_due = match self.target.action {
            Action::Bind(..) => !(is_new && self.target.site.is_unbound()),
            Action::Replace(_) => self.target.wanted && is_new,
            _ => false,
        };
        is_due && !self.is_bound()
    }

    /// Whether the service may have carried out an update of its `cert_id`.
    pub(super) fn may_have_been_changed(&self) -> bool {
        matches!(&self.binding, Some(Ok(_) | Err(RequestError { may_be_done: true, .. })))
    }

    /// Whether the site has to be bound after the rollout has read it: it was requested and is bound to no record, or
    /// with `rebind` to another one. A binding is tried once.
    pub(super) fn is_binding_missing(&self, rebind: bool) -> bool {
        let SiteReading::Site(site) = &self.reading else { return false };
        let may_be_bound = self.record_to_bind().is_some() && (site.is_unbound() || rebind);
        self.target.wanted && self.binding.is_none() && !self.is_bound() && may_be_bound
    }

    /// Whether the service reports the binding as pushed to the edge.
    pub(super) fn is_pushed(&self) -> bool {
        self.is_read() && self.is_bound() && self.latest().config_synced
    }

    /// Whether reading the site may show anything new. A failed upload may have been stored all the same, unless the
    /// service was not reached or rejected the API key.
    pub(super) fn is_worth_reading(&self) -> bool {
        !self.stored.is_err_and(is_service_unusable)
    }

    /// Whether waiting longer cannot change the verdict.
    pub(super) fn is_settled(&self, verify: Verify) -> bool {
        let needs_no_handshake = verify == Verify::Off || !self.latest().serves_https();
        self.stored.is_err()
            || self.is_read() && !self.is_bound()
            || self.view.is_served()
            || self.is_pushed() && needs_no_handshake
    }

    /// Whether to handshake with the edge of the site: it serves HTTPS, is bound and not yet served, and is pushed or
    /// this is the last round. If it could not be read, only the edge can show the result.
    pub(super) fn is_handshake_due(&self, is_last: bool) -> bool {
        let is_due = if self.is_read() {
            self.is_bound() && (self.is_pushed() || is_last)
        } else {
            self.stored.is_ok()
        };
        is_due && self.latest().serves_https() && !self.view.is_served()
    }

    /// Whether neither the service nor its edge has shown what became of the upload.
    pub(super) fn is_unknown(&self) -> bool {
        self.stored.is_ok() && !self.is_read() && !self.view.is_served() && !self.view.has_other_leaf()
    }
}

/// Whether an upload failed before the service looked at the certificate: any other would fail for the same reason.
pub(super) fn is_service_unusable(failed: &RequestError) -> bool {
    matches!(failed.diagnose().kind(), ErrorKind::Denied | ErrorKind::Config)
}
