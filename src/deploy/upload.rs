//! Uploads the certificate, as planned or for given domains without a plan, and reports each upload.

use std::cell::OnceCell;

use futures_util::{StreamExt as _, stream};

use super::pending_site::StoredRecord;
use super::request::RolloutRequest;
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

/// Makes the planned uploads concurrently. The results are in the order of the plan.
pub(super) async fn upload_planned(
    request: &RolloutRequest<'_>,
    uploads: &[Upload<'_>],
    listing: &IndexedListing,
    report: &mut Report,
) -> Vec<UploadResult> {
    request.deployment.progress.enter(Phase::Uploading { uploads: uploads.len() });
    let body =
        UploadBody::new(request.vetted, request.deployment.settings.name.as_ref().map(RecordName::as_str));
    let sent = uploads.iter().map(|upload| request.client.upload(&body, upload.domain));
    let answers: Vec<_> = stream::iter(sent).buffered(MAX_CONCURRENT_REQUESTS).collect().await;
    let mut results = Vec::with_capacity(uploads.len());
    for (upload, answer) in uploads.iter().zip(answers) {
        let result = record(request, upload.domain, answer, Some(listing), report);
        results.push(try_alternatives(request, (upload, &body), listing, result, report).await);
    }
    results
}

/// Uploads for the alternative domains until the service accepts one, so that one refused site does not keep the
/// certificate from the others.
async fn try_alternatives(
    request: &RolloutRequest<'_>,
    (upload, body): (&Upload<'_>, &UploadBody),
    listing: &IndexedListing,
    mut result: UploadResult,
    report: &mut Report,
) -> UploadResult {
    for domain in &upload.alternatives {
        if !result.as_ref().is_err_and(|failed| failed.kind() == ErrorKind::Service) {
            break;
        }
        let answer = request.client.upload(body, domain).await;
        result = record(request, domain, answer, Some(listing), report);
    }
    result
}

/// Uploads for each domain and does nothing else: no listing, no guards, no waiting. The first upload goes alone: if the
/// service rejects it, the others would fail for the same reason, and the private key is not sent again.
pub(super) async fn upload_only(request: &RolloutRequest<'_>, report: &mut Report) {
    request.deployment.progress.enter(Phase::Uploading { uploads: request.deployment.domains.len() });
    let (body, rejected) = (
        UploadBody::new(request.vetted, request.deployment.settings.name.as_ref().map(RecordName::as_str)),
        OnceCell::new(),
    );
    let send = async |domain| {
        if rejected.get().is_some() {
            return None;
        }
        let answer = request.client.upload(&body, domain).await;
        if let Err(failed) = &answer
            && matches!(failed.kind(), ErrorKind::Denied | ErrorKind::Config)
        {
            let _ = rejected.set(failed.to_string());
        }
        Some(answer)
    };
    let mut domains = request.deployment.domains.iter();
    let mut answers = Vec::with_capacity(request.deployment.domains.len());
    if let Some(first) = domains.next() {
        answers.push(send(first).await);
    }
    answers
        .extend(stream::iter(domains.map(send)).buffered(MAX_CONCURRENT_REQUESTS).collect::<Vec<_>>().await);
    for (domain, answer) in request.deployment.domains.iter().zip(answers) {
        let site = if let Some(answer) = answer {
            report_upload(request, domain, answer, report)
        } else {
            let reason = rejected.get().map(String::as_str).unwrap_or_default();
            SiteReport::new(domain, Outcome::Refused, Some(format!("not tried: {reason}")))
        };
        report.deployed.sites.push(site);
    }
}

/// Reports a bare upload, and returns the report of its site.
fn report_upload(
    request: &RolloutRequest<'_>,
    domain: &Domain,
    answer: Answer,
    report: &mut Report,
) -> SiteReport {
    let is_unused = answer.as_ref().is_ok_and(|(response, ..)| is_unused(response, domain));
    let result = record(request, domain, answer, None, report);
    let mut site = match result {
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
    site.findings.is_void = request.deployment.settings.verify == Verify::Off && site.outcome.is_deployed();
    site
}

/// Adds the result of an upload to the report. `listing` is that of the plan, if there is one.
fn record(
    request: &RolloutRequest<'_>,
    domain: &Domain,
    answer: Answer,
    listing: Option<&IndexedListing>,
    report: &mut Report,
) -> UploadResult {
    match answer {
        Ok((response, attempts)) => {
            report.deployed.changed = true;
            let listed = listing.and_then(|listing| listing.record(response.id));
            let other = listed.filter(|listed| is_of_others(&response, domain, listed));
            let contradiction = contradiction(&response, domain, &request.vetted.chain().leaf, other);
            report.warnings.extend(contradiction.iter().map(|found| format!("{domain}: {found}")));
            report.deployed.uploads.push(UploadReport {
                service: None,
                domain: domain.spelled().to_owned(),
                ok: contradiction.is_none(),
                id: Some(response.id),
                created: response.created,
                not_after: response.not_after.and_then(|shown| shown.at()),
                key_match: response.key_match,
                bound_sites: response.bound_sites,
                attempts,
                error: contradiction.clone(),
            });
            let (id, is_new) = (response.id, response.created == Some(true));
            Ok(StoredRecord { id, is_new, is_of_others: other.is_some(), contradiction })
        }
        Err(failed) => {
            report.deployed.changed |= failed.may_be_done;
            report.deployed.uploads.push(UploadReport {
                service: None,
                domain: domain.spelled().to_owned(),
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
