//! The steps of a plan as `edgecert plan` reports them, with reasons.

use serde::Serialize;

use super::{Action, Plan, Target, Upload};
use crate::names::Domain;
use crate::text;

/// An upload, or what happens to a site that no upload reaches.
#[derive(Debug, Default, Serialize)]
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    #[default]
    Leave,
}

text::display_as_serialized!(StepAction);

impl StepAction {
    /// Whether the step sends something that changes the service.
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Self::Replace | Self::Create | Self::Upload | Self::Bind)
    }
}

impl Step {
    /// A step for a domain or a site; the summary says it in a few words.
    fn new(action: StepAction, domain: &Domain, reason: impl Into<String>, summary: String) -> Self {
        Self { action, domain: domain.to_string(), reason: reason.into(), summary, ..Self::default() }
    }

    /// The step of an upload without a listing.
    pub(crate) fn upload_only(domain: &Domain) -> Self {
        let reason = "--domain with --wait 0: no listing, no guards, no wait";
        Self::new(StepAction::Upload, domain, reason, format!("{domain}: {reason}"))
    }
}

impl Plan<'_> {
    /// The steps in the order in which they are carried out.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let uploads = self.uploads.iter().enumerate().map(|(at, upload)| self.upload_step(at, upload));
        let sites = self.targets.iter().filter_map(|target| self.site_step(target));
        uploads.chain(sites).collect()
    }

    fn upload_step(&self, at: usize, upload: &Upload<'_>) -> Step {
        let is_reached = |action: &Action| [Action::Replace(at), Action::Create(at)].contains(action);
        let reached = self.targets.iter().filter(|target| is_reached(&target.action));
        let sites: Vec<String> = reached.map(|target| target.site.domain.to_string()).collect();
        let (has, is) = if sites.len() == 1 { ("has", "is") } else { ("have", "are") };
        // Without a site, the sites are bound to the record afterwards.
        let subject = if sites.is_empty() { upload.domain.to_string() } else { text::list(&sites) };
        let (mut reason, summary) = match &*upload.replaces {
            [] if sites.is_empty() => ("there is no record to bind to".into(), None),
            [] => (format!("{subject} {has} no certificate"), Some(format!("{subject}: no certificate yet"))),
            [id] => {
                let stored = format!("certificate {id} is stored for it");
                let bound = format!("{subject} {is} bound to certificate {id}");
                let reason = if sites.is_empty() { stored } else { bound };
                (reason, Some(format!("{subject} (certificate {id})")))
            }
            ids => {
                let ids = text::list(ids);
                (format!("certificates {ids} are stored for it; one of them will be replaced"), None)
            }
        };
        let mut summary = summary.unwrap_or_else(|| format!("{subject}: {reason}"));
        if upload.may_create {
            const CREATED: &str = "; if the service creates a certificate instead, they are bound to that";
            reason.push_str(CREATED);
            summary.push_str(CREATED);
        }
        let cert_ids = upload.replaces.clone();
        let action = if cert_ids.is_empty() { StepAction::Create } else { StepAction::Replace };
        Step { cert_ids, sites, ..Step::new(action, upload.domain, reason, summary) }
    }

    fn site_step(&self, target: &Target<'_>) -> Option<Step> {
        let domain = &target.site.domain;
        let (action, reason, summary) = match &target.action {
            Action::Replace(_) | Action::Create(_) | Action::Current => return None,
            Action::Superseded(reason) => (StepAction::Leave, reason.clone(), None),
            Action::Bind(upload, blocker) => {
                let record = self.uploads.get(*upload).map(|upload| upload.domain.to_string());
                let why = blocker.as_ref().map_or("it has no certificate".to_owned(), ToString::to_string);
                let reason = format!("to the record uploaded for {}: {why}", record.unwrap_or_default());
                (StepAction::Bind, reason, None)
            }
            Action::Leave(blocker) => {
                let action = if blocker.is_guard() { StepAction::Guard } else { StepAction::Leave };
                (action, blocker.to_string(), Some(blocker.summary()))
            }
            Action::Ignore => (StepAction::Leave, "it was not requested".to_owned(), None),
        };
        let is_blocked = summary.is_some();
        let summary = format!("{domain}: {}", summary.as_ref().unwrap_or(&reason));
        let step = Step::new(action, domain, reason, summary);
        let sites = Vec::from_iter((action == StepAction::Bind).then(|| step.domain.clone()));
        Some(Step { cert_ids: Vec::from_iter(target.site.cert_id), sites, is_blocked, ..step })
    }
}
