//! Uploads the certificate, as planned or for given domains without a plan, and reports each upload.

use futures_util::{StreamExt as _, stream};

use super::pending_site::StoredRecord;
use super::request::{MAX_REQUESTS, RolloutRequest};
use super::site_error::SiteError;
use super::verdict::{failed_outcome, unlisted_site};
use crate::api::{RequestError, Uploaded};
use crate::error::{Diagnostic as _, ErrorKind};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::Upload;
use crate::report::{DeployReport, UploadReport};

pub(super) type UploadResult = Result<StoredRecord, RequestError>;

/// Makes the planned uploads concurrently. The results are in the order of the plan.
pub(super) async fn upload_planned(
    request: &RolloutRequest<'_>,
    uploads: &[Upload<'_>],
    report: &mut DeployReport,
) -> Vec<UploadResult> {
    let sent = uploads.iter().map(|upload| request.client.upload(request.vetted, upload.domain));
    let answers: Vec<_> = stream::iter(sent).buffered(MAX_REQUESTS).collect().await;
    let mut results = Vec::with_capacity(uploads.len());
    for (upload, answer) in uploads.iter().zip(answers) {
        let result = record(upload.domain, answer, report);
        results.push(try_alternatives(request, upload, result, report).await);
    }
    results
}

/// Uploads for the alternative domains until the service accepts one, so that one refused site does not keep the
/// certificate from the others.
async fn try_alternatives(
    request: &RolloutRequest<'_>,
    upload: &Upload<'_>,
    mut result: UploadResult,
    report: &mut DeployReport,
) -> UploadResult {
    for domain in &upload.alternatives {
        if !result.as_ref().is_err_and(|failed| failed.kind() == ErrorKind::Service) {
            break;
        }
        result = record(domain, request.client.upload(request.vetted, domain).await, report);
    }
    result
}

/// Uploads for each domain and does nothing else: no listing, no guards, no waiting.
pub(super) async fn upload_only(request: &RolloutRequest<'_>, report: &mut DeployReport) {
    let mut rejected = None;
    for domain in request.domains {
        // The other uploads would fail for the same reason; do not send the private key again.
        if let Some(reason) = &rejected {
            let detail = Some(format!("not tried: {reason}"));
            report.body.sites.push(unlisted_site(domain.spelled(), None, Outcome::Refused, detail));
            continue;
        }
        let answer = request.client.upload(request.vetted, domain).await;
        let site = match record(domain, answer, report) {
            Ok(stored) => {
                report.body.records.stored.push(stored.id);
                unlisted_site(domain.spelled(), Some(stored.id), Outcome::Uploaded, None)
            }
            Err(failed) => {
                report.body.records.is_any_possible |= failed.may_be_done;
                report.fail(SiteError::Upload { domain, failed: &failed });
                if matches!(failed.kind(), ErrorKind::Denied | ErrorKind::Config) {
                    rejected = Some(failed.to_string());
                }
                unlisted_site(domain.spelled(), None, failed_outcome(&failed), Some(failed.to_string()))
            }
        };
        report.body.sites.push(site);
    }
}

/// Adds the result of an upload to the report.
fn record(
    domain: &Domain,
    answer: Result<(Uploaded, u32), RequestError>,
    report: &mut DeployReport,
) -> UploadResult {
    let domain = domain.spelled().to_owned();
    match answer {
        Ok((value, attempts)) => {
            report.body.changed = true;
            let stored = StoredRecord { id: value.id, is_new: value.created == Some(true) };
            report.body.uploads.push(UploadReport {
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
            report.body.changed |= failed.may_be_done;
            report.body.uploads.push(UploadReport {
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
