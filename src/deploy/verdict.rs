//! Determines the outcome of a deployment for each site from the observations of the service and its edge.
//!
//! An upload that succeeded proves nothing: a site counts as `served` only after handshakes, and one whose edge keeps
//! another leaf is `stale`, a temporary failure that `sync` retries.

use std::fmt::Display;

use super::pending_site::{PendingSite, SiteReading, StoredRecord};
use super::scope::Scope;
use crate::api::{RequestError, Site};
use crate::error::{CommandError, Diagnostic as _, ErrorKind};
use crate::hint::{Hint, Override};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::{Action, Blocker, Plan, Target};
use crate::report::{Report, SiteReport};
use crate::settings::{Settings, Verify};
use crate::sightings::EdgeFindings;
use crate::text;
use crate::verify::{EdgeView, ServedOf};

const UNREAD: &str = "the site could not be read after the upload";
const UNPUSHED: &str = "the push to the edge is not confirmed yet";
const VERIFY_OFF: &str = "not verified because of --verify off";
const UNSENT: &str = "nothing was sent for it";
const REBIND: Override =
    Override { flag: "--rebind", purpose: "to bind the site to the uploaded certificate" };

/// The result for one site.
struct Verdict {
    outcome: Outcome,
    detail: Option<String>,
    error: Option<CommandError>,
    /// About the site.
    warnings: Vec<String>,
    /// Whether an error or a warning says the detail.
    is_explained: bool,
}

/// Reports the sites that the plan leaves as they are.
pub(super) fn report_untouched(plan: &Plan<'_>, scope: &Scope<'_, '_>, report: &mut Report) {
    for target in &plan.targets {
        let site = target.site;
        // Only a site that has the leaf is judged by its edge.
        let view = scope.survey.view(site.id).filter(|_| target.action == Action::Current);
        let verdict = match (&target.action, site.cert_id) {
            (Action::Leave(blocker), _) => Verdict::blocked(&site.domain, blocker, plan.can_rebind),
            (Action::Current, _) => Verdict::current(site, view, scope.settings.verify),
            (Action::Superseded(reason), _) => Verdict::new(Outcome::Superseded, reason),
            (Action::Ignore, Some(id)) => {
                Verdict::new(Outcome::Misbound, format!("not requested; bound to certificate {id}"))
            }
            (Action::Ignore, None) => Verdict::new(Outcome::Skipped, "not requested"),
            _ => continue,
        };
        let findings = scope.findings(site, None, &verdict.outcome);
        verdict.add_to(report, target, site, (view.map(EdgeView::served_of), findings));
    }
}

/// Reports a site that an upload was made for.
pub(super) fn report_pending(pending: &PendingSite<'_>, scope: &Scope<'_, '_>, report: &mut Report) {
    let edge = pending.is_edge_checked.then(|| pending.view.served_of());
    let verdict = Verdict::of(pending, scope.settings);
    let cert_id = match (pending.stored, &verdict.outcome) {
        // Even if the site could not be read: its edge shows the leaf.
        (Ok(StoredRecord { id, contradiction: None, .. }), Outcome::Served) => Some(*id),
        _ => pending.latest().cert_id,
    };
    let latest = Site { cert_id, ..pending.latest().clone() };
    let findings = scope.findings(&latest, Some(&pending.view), &verdict.outcome);
    verdict.add_to(report, pending.target, &latest, (edge, findings));
}

/// The outcome after a request that failed.
pub(super) fn failed_outcome(failed: &RequestError) -> Outcome {
    if failed.error.is_retryable() || failed.error.may_be_done() { Outcome::Queued } else { Outcome::Refused }
}

impl Verdict {
    fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: Some(detail.into()), error: None, warnings: Vec::new(), is_explained: false }
    }

    /// Adds an error that says the detail.
    fn with_error(self, error: CommandError) -> Self {
        Self { error: Some(error), is_explained: true, ..self }
    }

    fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self.is_explained |= !self.warnings.is_empty();
        self
    }

    /// The verdict on a site that an upload was made for.
    fn of(pending: &PendingSite<'_>, settings: &Settings) -> Self {
        let verdict = Self::of_observations(pending, settings);
        let is_unproven = |stored: &&StoredRecord| match verdict.outcome {
            Outcome::Synced | Outcome::Uploaded => true,
            Outcome::Served => false,
            _ => stored.is_of_others,
        };
        let unproven = pending.stored.ok().filter(is_unproven);
        match unproven.and_then(|stored| stored.contradiction.as_deref()) {
            // Only handshakes prove an upload that its response contradicts.
            Some(detail) => Self::new(Outcome::Queued, detail)
                .with_error(unconfirmed(&pending.target.site.domain, detail))
                .with_warnings(verdict.warnings),
            None => verdict,
        }
    }

    /// The verdict according to what the service and the edge show.
    fn of_observations(pending: &PendingSite<'_>, settings: &Settings) -> Self {
        match (pending.stored, &pending.reading) {
            // The error is reported once for the upload, which may be for several sites.
            (Err(failed), _) => {
                Self { is_explained: true, ..Self::new(failed_outcome(failed), failed.to_string()) }
            }
            (Ok(stored), SiteReading::Unread) => {
                let site = pending.target.site;
                Self::shown(site, &pending.view).unwrap_or_else(|| Self::unread(site, stored, settings))
            }
            (Ok(_), SiteReading::Missing) => Self::missing(&pending.target.site.domain),
            (Ok(stored), SiteReading::Site(site)) if !pending.is_bound() => {
                Self::misbound(pending, stored, site)
            }
            (Ok(_), SiteReading::Site(site)) => {
                Self::shown(site, &pending.view).unwrap_or_else(|| Self::unverified(pending, site, settings))
            }
        }
    }

    /// The edge decides, if it shows anything.
    fn shown(site: &Site, view: &EdgeView) -> Option<Self> {
        if view.is_served() {
            return Some(Self::served(view));
        }
        let (stale, refusals) = (view.others("still serves"), view.refusals());
        let class = if stale.is_empty() { "refused by the edge" } else { "stale" };
        let observations = [stale, refusals].concat();
        if observations.is_empty() {
            return None;
        }
        let (domain, detail) = (&site.domain, text::list(&observations));
        let message = format_args!("{domain} is stale: {detail}");
        let error = of_site(ErrorKind::Temporary, domain, class, message)
            .hint(Hint::Retry("; if it stays stale, contact the service"));
        Some(Self::new(Outcome::Stale, detail).with_error(error))
    }

    /// Every address of the edge shows the new leaf.
    fn served(view: &EdgeView) -> Self {
        Self { detail: None, ..Self::new(Outcome::Served, "") }.with_warnings(view.warnings())
    }

    /// The site already has the leaf, so nothing was sent for it. Without a view, the state file says so.
    fn current(site: &Site, view: Option<&EdgeView>, verify: Verify) -> Self {
        match (view, verify) {
            (Some(view), _) if view.is_served() => Self::served(view),
            (Some(view), _) => Self::unproven(Outcome::Synced, site, text::list(view.unverified()), verify),
            // The run that deployed the leaf has already warned.
            (None, Verify::Off) => Self::new(Outcome::Synced, VERIFY_OFF),
            (None, Verify::Auto) => Self::new(Outcome::Synced, without_https(site)),
            (None, Verify::Require) => Self::unproven(Outcome::Synced, site, without_https(site), verify),
        }
    }

    /// Not every address showed the new leaf, which is a failure only if verification is required.
    fn unproven(outcome: Outcome, site: &Site, detail: String, verify: Verify) -> Self {
        let verdict = Self::new(outcome, detail.clone());
        if verify != Verify::Require {
            return verdict.with_warnings([detail]);
        }
        let domain = &site.domain;
        let message = format_args!("{domain} is not verified: {detail}");
        let class = if site.serves_https() { "unverified" } else { "without HTTPS" };
        verdict.with_error(
            of_site(ErrorKind::Temporary, domain, class, message)
                .hint("check that this host can reach the edge, raise --wait, or pass --verify auto"),
        )
    }

    /// No address shows another leaf or refuses the name, but not every address showed the new one, so only the
    /// service's own report remains.
    fn unverified(pending: &PendingSite<'_>, site: &Site, settings: &Settings) -> Self {
        let outcome = if site.config_synced { Outcome::Synced } else { Outcome::Uploaded };
        let unpushed = (!site.config_synced).then(|| UNPUSHED.to_owned());
        if settings.verify == Verify::Off {
            let detail = unpushed.clone().unwrap_or_else(|| VERIFY_OFF.into());
            return Self::new(outcome, detail).with_warnings(unpushed);
        }
        let reasons = pending.view.unverified();
        let reason = if !site.serves_https() {
            without_https(site)
        } else if settings.wait.is_zero() {
            "the edge was not checked because of --wait 0".into()
        } else if reasons.is_empty() {
            "the edge was not checked in time".into()
        } else {
            text::list(&reasons)
        };
        let detail = unpushed.into_iter().chain([reason]).collect::<Vec<_>>().join("; ");
        Self::unproven(outcome, site, detail, settings.verify)
    }

    /// The site could not be read since the upload. If the upload replaced the record it was bound to, it still is.
    fn unread(site: &Site, stored: &StoredRecord, settings: &Settings) -> Self {
        let was_bound = site.cert_id == Some(stored.id);
        if was_bound && settings.verify != Verify::Require {
            return Self::new(Outcome::Uploaded, UNREAD).with_warnings([UNREAD.to_owned()]);
        }
        let domain = &site.domain;
        let message = format_args!("{domain} might not be bound: it could not be read after the upload");
        let error = of_site(ErrorKind::Temporary, domain, "unread", message).hint(Hint::RETRY);
        let outcome = if was_bound { Outcome::Uploaded } else { Outcome::Queued };
        Self::new(outcome, UNREAD).with_error(error)
    }

    /// The account had the site before the upload and no longer has it.
    fn missing(domain: &Domain) -> Self {
        let detail = "the account no longer has this site";
        let error = of_site(ErrorKind::Service, domain, "missing", format_args!("{domain}: {detail}"));
        Self::new(Outcome::Misbound, detail).with_error(error)
    }

    /// The plan leaves the site alone.
    fn blocked(domain: &Domain, blocker: &Blocker, can_rebind: bool) -> Self {
        let (outcome, kind) = if blocker.is_guard() {
            (Outcome::Guarded, ErrorKind::Refused)
        } else {
            (Outcome::Misbound, ErrorKind::Service)
        };
        let class = format!("{:?}", std::mem::discriminant(blocker));
        let message = format!("{domain} is {outcome}: {blocker}");
        let error = of_site(kind, domain, &class, message).hint(blocker.hint(can_rebind)).unsent(UNSENT);
        Self::new(outcome, blocker.to_string()).with_error(error)
    }

    /// The upload succeeded, but the site is bound to another record or to none.
    fn misbound(pending: &PendingSite<'_>, stored: &StoredRecord, site: &Site) -> Self {
        let (id, domain) = (stored.id, &site.domain);
        let mut detail = match site.cert_id {
            Some(other) => format!("bound to certificate {other} instead of the uploaded {id}"),
            None => format!("not bound to a certificate, although {id} was uploaded"),
        };
        // The record to replace may have been deleted between the listing and the upload.
        if stored.is_new && !pending.upload.replaces.is_empty() {
            detail.push_str(", which the service created instead of replacing one and which may be unused");
        }
        let unbound = format!("{domain} could not be bound to certificate {id}");
        match &pending.binding {
            Some(Err(failed)) => Self {
                error: Some(of_request(domain, "bind", failed, format!("{unbound}: {failed}"))),
                ..Self::new(failed_outcome(failed), format!("{detail}: {failed}"))
            },
            Some(Ok(updated)) if !updated.ignored_fields.is_empty() => {
                let fields = text::sanitize(&text::list(&updated.ignored_fields));
                let message = format!("{unbound}: the service ignored {fields}");
                Self {
                    error: Some(of_site(ErrorKind::Service, domain, "ignored fields", message)),
                    ..Self::new(Outcome::Refused, detail)
                }
            }
            _ => {
                let message = format_args!("{domain} is misbound: {detail}");
                let error = of_site(ErrorKind::Service, domain, "misbound", message)
                    .hint(Hint::Override { instead: "bind it in the service", flags: vec![REBIND] });
                Self::new(Outcome::Misbound, detail).with_error(error)
            }
        }
    }

    /// Adds the verdict to the report. The error of a site that was not requested is only a warning.
    fn add_to(
        self,
        report: &mut Report,
        target: &Target<'_>,
        latest: &Site,
        (edge, findings): (Option<ServedOf>, EdgeFindings),
    ) {
        let domain = &target.site.domain;
        report.warnings.extend(self.warnings.iter().map(|warning| format!("{domain}: {warning}")));
        let is_required = target.wanted || matches!(target.action, Action::Current | Action::Superseded(_));
        match self.error {
            Some(error) if is_required => report.fail(error),
            Some(error) => report.warnings.push(error.to_string()),
            None => {}
        }
        report.deployed.sites.push(SiteReport {
            id: Some(target.site.id),
            cert_id_before: target.site.cert_id,
            cert_id: latest.cert_id,
            edge,
            is_required,
            is_explained: self.is_explained,
            cname: latest.cname.as_deref().map(str::to_owned),
            findings,
            ..SiteReport::new(domain, self.outcome, self.detail)
        });
    }
}

/// Why the edge of a site serves no certificate.
fn without_https(site: &Site) -> String {
    if site.enabled {
        return "HTTPS is off for the site (https_enabled is false), so the edge serves no certificate"
            .into();
    }
    let reason = site.disabled_reason.as_deref().map(text::sanitize);
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("the site is disabled{reason}, so the edge does not serve it")
}

pub(super) fn no_such_site(domain: &Domain) -> CommandError {
    let hint = Hint::OmitDomain { instead: "create the site".into(), domain: domain.to_string() };
    let message = format_args!("the account has no site {domain}");
    let error = of_site(ErrorKind::Service, domain, "no such site", message);
    error.hint(hint).unsent(UNSENT).misuse(true)
}

pub(super) fn failed_upload(domain: &Domain, failed: &RequestError) -> CommandError {
    let attempts = text::count(failed.attempts as usize, "attempt");
    let stored = if failed.may_be_done { "; the service may have stored it" } else { "" };
    let message = format!("the upload for {domain} failed: {failed} ({attempts}){stored}");
    of_request(domain, "upload", failed, message)
}

/// The response to the upload contradicts it.
pub(super) fn unconfirmed(domain: &Domain, detail: &str) -> CommandError {
    let message = format_args!("{domain} is not verified: {detail}");
    of_site(ErrorKind::Protocol, domain, "unconfirmed", message)
        .hint("report the response to the service's support")
}

fn of_request(domain: &Domain, action: &str, failed: &RequestError, message: String) -> CommandError {
    let cause = failed.diagnose();
    let class = format!("{action} {}", cause.class_or_message());
    cause.saying(message).class(class).of_site(domain)
}

fn of_site(kind: ErrorKind, domain: &Domain, class: &str, message: impl Display) -> CommandError {
    CommandError::new(kind, message).class(class).of_site(domain)
}

pub(super) fn unused(domain: &Domain, id: u64) -> CommandError {
    let message =
        format_args!("{domain} is misbound: certificate {id} was created, and the site is not bound to it");
    of_site(ErrorKind::Service, domain, "unused", message).hint(format!(
        "omit --wait 0 to deploy to the record that the site is bound to, or run `edgecert sites bind {domain} {id}`"
    ))
}

#[cfg(test)]
mod tests;
