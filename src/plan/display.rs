//! The steps of a plan as `edgecert plan` reports them, with reasons.

use serde::Serialize;
use time::OffsetDateTime;

use super::actions::{Action, Plan, Target, Upload};
use super::request::NotNeeded;
use crate::names::Domain;
use crate::text;

/// An upload, or what happens to a site that no upload reaches.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// The account, if the run plans for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    #[serde(rename = "step")]
    pub(crate) action: StepAction,
    /// The domain of the upload, or the site.
    pub(crate) domain: String,
    /// The records one of which the upload replaces, or the record that the site is bound to.
    pub(crate) cert_ids: Vec<u64>,
    /// The sites that get the new certificate by this step.
    pub(crate) sites: Vec<String>,
    pub(crate) reason: String,
    /// The site, or sites, and the reason in a few words, for the text.
    #[serde(skip)]
    pub(crate) summary: String,
    /// Whether a requested site does not get the certificate.
    #[serde(skip)]
    pub(crate) is_blocked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StepAction {
    /// An upload that replaces a record in place.
    Replace,
    /// An upload that creates a record.
    Create,
    /// An upload without a listing, so that its effect is unknown.
    Upload,
    /// An update of a site's `cert_id`.
    Bind,
    /// Nothing: a guard refuses.
    Guard,
    /// Nothing: it is impossible, or not wanted.
    Leave,
}

text::display_as_serialized!(StepAction);

impl StepAction {
    fn is_upload(self) -> bool {
        matches!(self, Self::Replace | Self::Create | Self::Upload)
    }

    /// Whether the step sends something that changes the service.
    pub(crate) fn is_change(self) -> bool {
        self.is_upload() || self == Self::Bind
    }
}

impl Step {
    /// The step of an upload without a listing.
    pub(crate) fn upload_only(domain: &Domain) -> Self {
        let reason = "--domain with --wait 0: no listing, no guards, no wait".to_owned();
        let domain = domain.to_string();
        let summary = format!("{domain}: {reason}");
        let (cert_ids, sites) = (Vec::new(), Vec::new());
        let service = None;
        Self {
            service,
            action: StepAction::Upload,
            domain,
            cert_ids,
            sites,
            reason,
            summary,
            is_blocked: false,
        }
    }
}

/// Says which lineage supersedes another on a site.
pub(crate) fn superseded_reason(lineage: &str, issued: OffsetDateTime) -> String {
    format!("the certificate of lineage {lineage} was issued later, at {}", text::rfc3339(issued))
}

impl Plan<'_> {
    /// The steps in the order in which they are carried out.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let uploads = self.uploads.iter().enumerate().map(|(at, upload)| self.upload_step(at, upload));
        let sites = self.targets.iter().filter_map(|target| self.site_step(target));
        let mut steps: Vec<Step> = uploads.chain(sites).collect();
        steps.sort_by_key(|step| !step.action.is_upload());
        steps
    }

    fn upload_step(&self, at: usize, upload: &Upload<'_>) -> Step {
        let targets = self.targets_of(at).filter(|target| !matches!(target.action, Action::Bind(..)));
        let sites: Vec<String> = targets.map(|target| target.site.domain.to_string()).collect();
        let (list, is_one) = (text::list(&sites), sites.len() == 1);
        let (action, reason) = match upload.replaces.as_slice() {
            [] if sites.is_empty() => (StepAction::Create, "there is no record to bind to".to_owned()),
            [] => {
                (StepAction::Create, format!("{list} {} no certificate", if is_one { "has" } else { "have" }))
            }
            [id] if sites.is_empty() => (StepAction::Replace, format!("certificate {id} is stored for it")),
            [id] => {
                let are = if is_one { "is" } else { "are" };
                (StepAction::Replace, format!("{list} {are} bound to certificate {id}"))
            }
            ids => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                let reason = format!(
                    "certificates {} are stored for it; one of them will be replaced",
                    text::list(&ids)
                );
                (StepAction::Replace, reason)
            }
        };
        let (domain, cert_ids) = (upload.domain.to_string(), upload.replaces.clone());
        let subject = if sites.is_empty() { &domain } else { &list };
        let mut summary = match cert_ids.as_slice() {
            [] if sites.is_empty() => format!("{subject}: {reason}"),
            [] => format!("{subject}: no certificate yet"),
            [id] => format!("{subject} (certificate {id})"),
            _ => format!("{subject}: {reason}"),
        };
        let mut reason = reason;
        if upload.may_create {
            const CREATED: &str = "; if the service creates a certificate instead, they are bound to that";
            reason.push_str(CREATED);
            summary.push_str(CREATED);
        }
        Step { service: None, action, domain, cert_ids, sites, reason, summary, is_blocked: false }
    }

    fn site_step(&self, target: &Target<'_>) -> Option<Step> {
        let (action, reason) = match &target.action {
            Action::Replace(_) | Action::Create(_) | Action::NotNeeded(NotNeeded::Current) => return None,
            Action::NotNeeded(NotNeeded::Superseded { lineage, issued }) => {
                (StepAction::Leave, superseded_reason(lineage, *issued))
            }
            Action::Bind(upload, blocker) => {
                let record = self.uploads.get(*upload).map(|upload| upload.domain.to_string());
                let why = blocker.as_ref().map_or("it has no certificate".to_owned(), ToString::to_string);
                let reason = format!("to the record uploaded for {}: {why}", record.unwrap_or_default());
                (StepAction::Bind, reason)
            }
            Action::Leave(blocker) if blocker.is_guard() => (StepAction::Guard, blocker.to_string()),
            Action::Leave(blocker) => (StepAction::Leave, blocker.to_string()),
            Action::Ignore => (StepAction::Leave, "it was not requested".to_owned()),
        };
        let domain = target.site.domain.to_string();
        let sites = if action == StepAction::Bind { vec![domain.clone()] } else { Vec::new() };
        let blocker = match &target.action {
            Action::Leave(blocker) => Some(blocker),
            _ => None,
        };
        let summary = match blocker {
            Some(blocker) => format!("{domain}: {}", blocker.summary()),
            None => format!("{domain}: {reason}"),
        };
        let cert_ids = target.site.cert_id.into_iter().collect();
        let is_blocked = blocker.is_some() && target.wanted;
        Some(Step { service: None, action, domain, cert_ids, sites, reason, summary, is_blocked })
    }
}
