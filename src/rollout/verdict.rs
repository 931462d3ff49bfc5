//! What became of each upload and each site: outcomes, whose turn it is, and the words for it.

use super::{Result, Rollout};
use crate::api::{self, Answer, Failed, Site, Uploaded};
use crate::failure::{AGAIN, Kind, Problem, api_hint, api_kind};
use crate::names::Domain;
use crate::plan::{Left, Obstacle};
use crate::report::{Outcome, SiteReport, UploadReport};
use crate::text;

pub(super) const NO_SITE: &str = "the account has no such site";
const UNREAD: &str = "the site could not be read after the upload";
const REBIND: &str = "bind the site to the certificate of its own domain in the service, then deploy again";

impl Rollout<'_> {
    pub(super) fn push_bare(
        &mut self,
        domain: &Domain,
        cert_id: Option<u64>,
        outcome: Outcome,
        detail: Option<String>,
    ) {
        let domain = domain.spelled().to_owned();
        self.report.sites.push(SiteReport {
            id: None,
            domain,
            cert_id_before: None,
            cert_id,
            outcome,
            detail,
        });
    }

    pub(super) fn record_upload(
        &mut self,
        domain: &Domain,
        answer: std::result::Result<Answer<Uploaded>, Failed>,
    ) -> Result {
        let domain = domain.spelled().to_owned();
        match answer {
            Ok(Answer { value, attempts }) => {
                self.report.uploads.push(UploadReport {
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
                Ok(value.id)
            }
            Err(failed) => {
                self.report.uploads.push(UploadReport {
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

    pub(super) fn report_site(&mut self, site: &Site, result: &Result, now: Option<&Site>) {
        let (outcome, detail) = match (result, now) {
            (Err(failed), _) => (self.upload_failed(&site.domain, failed), Some(failed.to_string())),
            (Ok(id), None) if site.cert_id == Some(*id) => {
                self.report.warnings.push(format!("{}: {UNREAD}", site.domain));
                (Outcome::Uploaded, Some(UNREAD.into()))
            }
            (Ok(_), None) => {
                let problem = Problem::new(
                    format!("{}: whether it is bound is not known; {UNREAD}", site.domain),
                    AGAIN,
                );
                self.fail(Kind::Temporary, problem);
                (Outcome::Queued, Some(UNREAD.into()))
            }
            (Ok(id), Some(now)) if now.cert_id != Some(*id) => {
                let fed_by = now.cert_id.map_or("no certificate is bound".into(), |id| {
                    format!("certificate {id} still feeds it")
                });
                let detail = format!("{fed_by}, not the uploaded {id}");
                self.fail(
                    Kind::Service,
                    Problem::new(format!("{} is misbound: {detail}", site.domain), REBIND),
                );
                (Outcome::Misbound, Some(detail))
            }
            (Ok(_), Some(now)) if now.config_synced => (Outcome::Synced, None),
            (Ok(_), Some(_)) => {
                self.report
                    .warnings
                    .push(format!("{}: the push to the edge is not confirmed yet", site.domain));
                (Outcome::Uploaded, Some("the push to the edge is not confirmed yet".into()))
            }
        };
        self.push_site(site, now.map_or(site.cert_id, |now| now.cert_id), outcome, detail);
    }

    pub(super) fn report_left(&mut self, left: &Left<'_>) {
        let (outcome, hint) = match &left.obstacle {
            Obstacle::System(_) => {
                (Outcome::Guarded, "let the system renew it, or bind the site to another certificate first")
            }
            _ => (Outcome::Misbound, REBIND),
        };
        let (site, detail) = (left.site, left.obstacle.to_string());
        let problem = Problem::new(format!("{} is {}: {detail}", site.domain, outcome.word()), hint);
        self.fail(outcome.kind().unwrap_or(Kind::Fault), problem);
        self.push_site(site, site.cert_id, outcome, Some(detail));
    }

    fn push_site(&mut self, site: &Site, cert_id: Option<u64>, outcome: Outcome, detail: Option<String>) {
        self.report.sites.push(SiteReport {
            id: Some(site.id),
            domain: site.domain.spelled().to_owned(),
            cert_id_before: site.cert_id,
            cert_id,
            outcome,
            detail,
        });
    }

    /// Records a failed upload once for each of its sites and tells their outcome.
    pub(super) fn upload_failed(&mut self, domain: &Domain, failed: &Failed) -> Outcome {
        let kind = api_kind(&failed.error);
        let may_be_stored = matches!(
            failed.error,
            api::Error::TimedOut { .. }
                | api::Error::Cut { .. }
                | api::Error::Unreadable { .. }
                | api::Error::Busy { status: 500.., .. }
        );
        let state = if may_be_stored { "; it may have been stored all the same" } else { "" };
        let tried = text::count(failed.attempts as usize, "attempt");
        let message = format!("the upload for {domain} failed: {failed} ({tried}){state}");
        self.fail(kind, Problem { message, hint: api_hint(&failed.error) });
        if failed.error.is_worth_repeating() { Outcome::Queued } else { Outcome::Refused }
    }

    pub(super) fn fail(&mut self, kind: Kind, problem: Problem) {
        self.kinds.push(kind);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}
