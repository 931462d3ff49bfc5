//! What became of each upload and each site: outcomes, whose turn it is, and the words for it.

use super::polling::{Now, PendingSite};
use super::rollout::{Rollout, Stored, UploadResult};
use crate::api::{self, RequestError, Site, Uploaded};
use crate::error::{AdHocError, Diagnostic as _, ErrorKind, RETRY_HINT};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::{Action, Blocker, Plan, Target};
use crate::report::{EdgeReport, SiteReport, UploadReport};
use crate::settings::Verify;
use crate::text;

pub(crate) const NO_SITE: &str = "the account has no such site";
const UNREAD: &str = "the site could not be read after the upload";
const UNPUSHED: &str = "the push to the edge is not confirmed yet";
const REBIND: &str = "pass --rebind to bind the site to the uploaded record, or bind it in the service";

/// What is to be said of one site.
struct Verdict {
    outcome: Outcome,
    detail: Option<String>,
    /// What to tell beside it, where it is not what was asked for.
    error: Option<AdHocError>,
    warnings: Vec<String>,
}

impl Verdict {
    fn new(outcome: Outcome, detail: Option<String>) -> Self {
        Self { outcome, detail, error: None, warnings: Vec::new() }
    }

    fn failing(mut self, kind: ErrorKind, message: String, hint: Option<String>) -> Self {
        self.error = Some(AdHocError { kind, message, hint });
        self
    }
}

impl Rollout<'_> {
    pub(crate) fn push_bare(
        &mut self,
        domain: &Domain,
        cert_id: Option<u64>,
        outcome: Outcome,
        detail: Option<String>,
    ) {
        let domain = domain.spelled().to_owned();
        let (id, cert_id_before, edge, cname) = (None, None, None, None);
        self.report.body.sites.push(SiteReport {
            id,
            domain,
            cert_id_before,
            cert_id,
            outcome,
            detail,
            edge,
            cname,
        });
    }

    /// Names of a certificate for which there are no sites, where that is fine.
    pub(crate) fn skip(&mut self, names: Vec<String>) {
        self.report.body.sites.extend(names.into_iter().map(|domain| SiteReport {
            id: None,
            domain,
            cert_id_before: None,
            cert_id: None,
            outcome: Outcome::Skipped,
            detail: Some(NO_SITE.into()),
            edge: None,
            cname: None,
        }));
    }

    pub(crate) fn record_upload(
        &mut self,
        domain: &Domain,
        answer: Result<(Uploaded, u32), RequestError>,
    ) -> UploadResult {
        let domain = domain.spelled().to_owned();
        match answer {
            Ok((value, attempts)) => {
                let stored = Stored { id: value.id, created: value.created == Some(true) };
                self.report.body.uploads.push(UploadReport {
                    domain,
                    ok: true,
                    id: Some(value.id),
                    created: value.created,
                    not_after: value.not_after,
                    key_match: value.key_match,
                    bound_sites: value.bound_sites,
                    attempts,
                    error: None,
                });
                Ok(stored)
            }
            Err(failed) => {
                self.report.body.uploads.push(UploadReport {
                    domain,
                    ok: false,
                    id: None,
                    created: None,
                    not_after: None,
                    key_match: None,
                    bound_sites: serde_json::json!([]),
                    attempts: failed.attempts,
                    error: Some(failed.to_string()),
                });
                Err(failed)
            }
        }
    }

    /// Reports the sites that the plan leaves as they are.
    pub(crate) fn report_what_is_left(&mut self, plan: &Plan<'_>) {
        for target in &plan.targets {
            let verdict = match (&target.action, target.site.cert_id) {
                (Action::Leave(blocker), _) => left(target.site, blocker),
                (Action::Ignore, Some(id)) => {
                    Verdict::new(Outcome::Misbound, Some(format!("not asked for; certificate {id} feeds it")))
                }
                (Action::Ignore, None) => Verdict::new(Outcome::Skipped, Some("not asked for".into())),
                _ => continue,
            };
            self.push(target, None, verdict, None);
        }
    }

    /// Reports a site for which something was uploaded.
    pub(crate) fn report_arrival(&mut self, pending: &PendingSite<'_>) {
        let verdict = match (pending.stored, &pending.now) {
            (Err(failed), _) => {
                let outcome = self.upload_failed(pending.upload.domain, failed);
                Verdict::new(outcome, Some(failed.to_string()))
            }
            (Ok(_), Now::Unread) if pending.view.is_served() => self.proof(pending, pending.target.site),
            (Ok(stored), Now::Unread) => self.unread(pending, stored),
            (Ok(_), Now::Gone) => gone(pending),
            (Ok(stored), Now::Site(now)) if !pending.is_fed() => misbound(pending, stored, now),
            (Ok(_), Now::Site(now)) => self.proof(pending, now),
        };
        let now = match &pending.now {
            Now::Site(site) => Some(site),
            Now::Unread | Now::Gone => None,
        };
        let (served, addresses) = pending.view.served_of();
        let edge = pending.looked.then_some(EdgeReport { served, addresses });
        self.push(pending.target, now, verdict, edge);
    }

    /// What the edge shows of a site that the service says is bound.
    fn proof(&self, pending: &PendingSite<'_>, now: &Site) -> Verdict {
        let (domain, view) = (&now.domain, &pending.view);
        let stale = view.stale();
        if view.is_served() {
            let warnings = view.warnings().into_iter().map(|note| format!("{domain}: {note}")).collect();
            return Verdict { warnings, ..Verdict::new(Outcome::Served, None) };
        }
        if !stale.is_empty() {
            let detail = text::list(&stale);
            let hint = "`edgecert sync` will look again and finish it; if it stays so, ask the service";
            return Verdict::new(Outcome::Stale, Some(detail.clone())).failing(
                ErrorKind::Temporary,
                format!("{domain} is stale: {detail}"),
                Some(hint.into()),
            );
        }
        let outcome = if now.config_synced { Outcome::Synced } else { Outcome::Uploaded };
        let unpushed = (!now.config_synced).then(|| UNPUSHED.to_owned());
        let verify = self.order.settings.verify;
        if verify == Verify::Off {
            let warnings = unpushed.iter().map(|reason| format!("{domain}: {reason}")).collect();
            let detail = unpushed.or_else(|| Some("not proven, as --verify off asks".into()));
            return Verdict { warnings, ..Verdict::new(outcome, detail) };
        }
        let unproven = unproven(pending, now, self.order.settings.wait.is_zero());
        let detail = unpushed.into_iter().chain([unproven.clone()]).collect::<Vec<_>>().join("; ");
        let mut verdict = Verdict::new(outcome, Some(detail.clone()));
        if verify == Verify::Require {
            let hint = "let this machine reach the edge and give it a --wait, or pass --verify auto";
            let message = format!("{domain} is not proven: {unproven}");
            return verdict.failing(ErrorKind::Temporary, message, Some(hint.into()));
        }
        verdict.warnings.push(format!("{domain}: {detail}"));
        verdict
    }

    fn unread(&self, pending: &PendingSite<'_>, stored: Stored) -> Verdict {
        let domain = &pending.target.site.domain;
        let was_fed = pending.target.site.cert_id == Some(stored.id);
        if was_fed && self.order.settings.verify != Verify::Require {
            let warnings = vec![format!("{domain}: {UNREAD}")];
            return Verdict { warnings, ..Verdict::new(Outcome::Uploaded, Some(UNREAD.into())) };
        }
        let outcome = if was_fed { Outcome::Uploaded } else { Outcome::Queued };
        let message = format!("{domain}: whether it is bound is not known; {UNREAD}");
        Verdict::new(outcome, Some(UNREAD.into())).failing(
            ErrorKind::Temporary,
            message,
            Some(RETRY_HINT.into()),
        )
    }

    fn push(&mut self, target: &Target<'_>, now: Option<&Site>, verdict: Verdict, edge: Option<EdgeReport>) {
        let Verdict { outcome, detail, error, warnings } = verdict;
        self.report.warnings.extend(warnings);
        match error {
            Some(error) if target.wanted => self.report.fail_once(error),
            Some(error) => self.report.warnings.push(error.message),
            None => {}
        }
        self.report.body.sites.push(SiteReport {
            id: Some(target.site.id),
            domain: target.site.domain.spelled().to_owned(),
            cert_id_before: target.site.cert_id,
            cert_id: now.unwrap_or(target.site).cert_id,
            outcome,
            detail,
            edge,
            cname: now.unwrap_or(target.site).cname.clone(),
        });
    }

    /// Records a failed upload once for each of its sites and tells their outcome.
    pub(crate) fn upload_failed(&mut self, domain: &Domain, failed: &RequestError) -> Outcome {
        let kind = failed.kind();
        let state = if may_be_done(failed) { "; it may have been stored all the same" } else { "" };
        let tried = text::count(failed.attempts as usize, "attempt");
        let message = format!("the upload for {domain} failed: {failed} ({tried}){state}");
        self.report.fail_once(AdHocError { kind, message, hint: failed.hint() });
        if failed.is_retryable() { Outcome::Queued } else { Outcome::Refused }
    }
}

/// Whether a request that failed may have been carried out.
fn may_be_done(failed: &RequestError) -> bool {
    matches!(
        failed.error,
        api::AttemptError::TimedOut { .. }
            | api::AttemptError::ConnectionClosed { .. }
            | api::AttemptError::InvalidResponse { .. }
            | api::AttemptError::Unavailable { status: 500.., .. }
    )
}

fn left(site: &Site, blocker: &Blocker) -> Verdict {
    let outcome = if blocker.is_guard() { Outcome::Guarded } else { Outcome::Misbound };
    let kind = if blocker.is_guard() { ErrorKind::Refused } else { ErrorKind::Service };
    let detail = blocker.to_string();
    let message = format!("{} is {outcome}: {detail}; nothing was sent for it", site.domain);
    Verdict::new(outcome, Some(detail)).failing(kind, message, Some(blocker.hint().into()))
}

fn gone(pending: &PendingSite<'_>) -> Verdict {
    const GONE: &str = "it is not among the account's sites any more";
    let message = format!("{}: {GONE}", pending.target.site.domain);
    Verdict::new(Outcome::Misbound, Some(GONE.into())).failing(ErrorKind::Service, message, None)
}

fn misbound(pending: &PendingSite<'_>, Stored { id, created }: Stored, site: &Site) -> Verdict {
    let feeds = site
        .cert_id
        .map_or("no certificate is bound".into(), |other| format!("certificate {other} still feeds it"));
    // Between the listing and the upload the record may have been deleted.
    let unused = created && !pending.upload.replaces.is_empty();
    let unused =
        if unused { ", which was created although one was to be replaced, and may be unused" } else { "" };
    let detail = format!("{feeds}, not the uploaded {id}{unused}");
    match &pending.binding {
        Some(Err(failed)) => {
            let outcome = if failed.is_retryable() { Outcome::Queued } else { Outcome::Refused };
            let message = format!("{} could not be bound to certificate {id}: {failed}", site.domain);
            Verdict::new(outcome, Some(format!("{detail}: {failed}"))).failing(
                failed.kind(),
                message,
                failed.hint(),
            )
        }
        Some(Ok(updated)) if !updated.ignored_fields.is_empty() => {
            let ignored: Vec<String> =
                updated.ignored_fields.iter().map(|name| text::sanitize(name)).collect();
            let message = format!(
                "{} could not be bound to certificate {id}: the service ignores {}",
                site.domain,
                text::list(&ignored)
            );
            Verdict::new(Outcome::Refused, Some(detail)).failing(ErrorKind::Service, message, None)
        }
        _ => {
            let message = format!("{} is misbound: {detail}", site.domain);
            Verdict::new(Outcome::Misbound, Some(detail)).failing(
                ErrorKind::Service,
                message,
                Some(REBIND.into()),
            )
        }
    }
}

/// Why there is no proof for a site that shows no other leaf either.
fn unproven(pending: &PendingSite<'_>, now: &Site, without_wait: bool) -> String {
    if !now.enabled {
        let reason = now.disabled_reason.as_deref().map(text::sanitize);
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        return format!("the site is disabled{reason}, so no edge shows its certificate");
    }
    if without_wait {
        return "its edge was not asked, as --wait 0 leaves no time".into();
    }
    let unseen = pending.view.unverified();
    if unseen.is_empty() { "its edge was not asked in time".into() } else { text::list(&unseen) }
}
