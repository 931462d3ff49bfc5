//! Uploads the certificate, as planned or for given domains without a plan, and reports each upload.

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::pending_site::StoredRecord;
use super::rollout::Rollout;
use super::site_error;
use super::upload_response::{contradiction, is_of_others, is_unused};
use super::verdict::failed_outcome;
use crate::api::{MAX_CONCURRENT_REQUESTS, RequestError, UploadBody, Uploaded};
use crate::error::{Diagnostic as _, ErrorKind};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::{IndexedListing, Upload};
use crate::progress::Phase;
use crate::report::{Report, SiteReport, UploadReport};
use crate::settings::{RecordName, Verify};

pub(super) type UploadResult = Result<StoredRecord, RequestError>;

/// A response, and the number of attempts.
type Answer = Result<(Uploaded, u32), RequestError>;

impl Rollout<'_> {
    /// Makes the planned uploads concurrently. The results are in the order of the plan.
    pub(super) async fn upload_planned(
        &self,
        uploads: &[Upload<'_>],
        listing: &IndexedListing,
        report: &mut Report,
    ) -> Vec<UploadResult> {
        self.deployment.progress.enter(Phase::Uploading { uploads: uploads.len() });
        let body = self.upload_body();
        let sent = uploads.iter().map(|upload| self.client.upload(&body, upload.domain));
        let answers: Vec<_> = stream::iter(sent).buffered(MAX_CONCURRENT_REQUESTS).collect().await;
        let mut results = Vec::with_capacity(uploads.len());
        for (upload, answer) in uploads.iter().zip(answers) {
            let mut result = self.record(upload.domain, answer, Some(listing), report);
            // One site that the service refuses must not keep the certificate from the others.
            for domain in &upload.alternatives {
                if !result.as_ref().is_err_and(|failed| failed.kind() == ErrorKind::Service) {
                    break;
                }
                let answer = self.client.upload(&body, domain).await;
                result = self.record(domain, answer, Some(listing), report);
            }
            results.push(result);
        }
        results
    }

    /// Uploads for each domain and does nothing else: no listing, no guards, no waiting. The first upload goes alone: if
    /// the service rejects it, the others would fail for the same reason, and the private key is not sent again.
    pub(super) async fn upload_only(&self, report: &mut Report) {
        let domains = self.deployment.domains;
        self.deployment.progress.enter(Phase::Uploading { uploads: domains.len() });
        let Some((first, rest)) = domains.split_first() else { return };
        let body = self.upload_body();
        let answer = self.client.upload(&body, first).await;
        let rejected = answer.as_ref().err();
        let rejected =
            rejected.filter(|failed| matches!(failed.kind(), ErrorKind::Denied | ErrorKind::Config));
        let rejected = rejected.map(ToString::to_string);
        let mut sites = vec![self.report_upload(first, answer, report)];
        if let Some(reason) = rejected {
            let detail = Some(format!("not tried: {reason}"));
            sites.extend(rest.iter().map(|domain| SiteReport::new(domain, Outcome::Refused, detail.clone())));
        } else {
            let sent = rest.iter().map(|domain| self.client.upload(&body, domain));
            let answers: Vec<_> = stream::iter(sent).buffered(MAX_CONCURRENT_REQUESTS).collect().await;
            let answers = rest.iter().zip(answers);
            sites.extend(answers.map(|(domain, answer)| self.report_upload(domain, answer, report)));
        }
        report.deployed.sites.extend(sites);
    }

    /// Reports a bare upload, and returns the report of its site.
    fn report_upload(&self, domain: &Domain, answer: Answer, report: &mut Report) -> SiteReport {
        let is_unused = answer.as_ref().is_ok_and(|(response, ..)| is_unused(response, domain));
        let mut site = match self.record(domain, answer, None, report) {
            Ok(StoredRecord { contradiction: Some(detail), .. }) => {
                report.deployed.records.is_any_possible = true;
                report.fail(site_error::unconfirmed(domain, &detail));
                SiteReport::new(domain, Outcome::Queued, Some(detail))
            }
            Ok(StoredRecord { id, .. }) => {
                report.deployed.records.stored.push(id);
                if is_unused {
                    let detail = format!("certificate {id} was created, and the site is not bound to it");
                    report.fail(site_error::unused(domain, id));
                    SiteReport::new(domain, Outcome::Misbound, Some(detail))
                } else {
                    SiteReport { cert_id: Some(id), ..SiteReport::new(domain, Outcome::Uploaded, None) }
                }
            }
            Err(failed) => {
                report.deployed.records.is_any_possible |= failed.may_be_done;
                report.fail(site_error::upload(domain, &failed));
                SiteReport::new(domain, failed_outcome(&failed), Some(failed.to_string()))
            }
        };
        // The error says it.
        site.is_explained = site.detail.is_some();
        site.findings.is_void = self.settings.verify == Verify::Off && site.outcome.is_deployed();
        site
    }

    /// Adds the result of an upload to the report. `listing` is that of the plan, if there is one.
    fn record(
        &self,
        domain: &Domain,
        answer: Answer,
        listing: Option<&IndexedListing>,
        report: &mut Report,
    ) -> UploadResult {
        let spelled = domain.spelled().to_owned();
        let (response, attempts) = match answer {
            Ok(answer) => answer,
            Err(failed) => {
                report.deployed.changed |= failed.may_be_done;
                report.deployed.uploads.push(UploadReport {
                    domain: spelled,
                    bound_sites: Value::Array(Vec::new()),
                    attempts: failed.attempts,
                    error: Some(failed.to_string()),
                    ..UploadReport::default()
                });
                return Err(failed);
            }
        };
        report.deployed.changed = true;
        let listed = listing.and_then(|listing| listing.record(response.id));
        let other = listed.filter(|listed| is_of_others(&response, domain, listed));
        let contradiction = contradiction(&response, domain, &self.vetted.chain().leaf, other);
        report.warnings.extend(contradiction.iter().map(|found| format!("{domain}: {found}")));
        let (id, is_new) = (response.id, response.created == Some(true));
        report.deployed.uploads.push(UploadReport {
            domain: spelled,
            ok: contradiction.is_none(),
            id: Some(id),
            created: response.created,
            not_after: response.not_after.and_then(|shown| shown.at()),
            key_match: response.key_match,
            bound_sites: response.bound_sites,
            attempts,
            error: contradiction.clone(),
            service: None,
        });
        Ok(StoredRecord { id, is_new, is_of_others: other.is_some(), contradiction })
    }

    fn upload_body(&self) -> UploadBody {
        UploadBody::new(self.vetted, self.settings.name.as_ref().map(RecordName::as_str))
    }
}
