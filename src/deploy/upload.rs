//! Uploads the certificate, as planned or for given domains without a plan, compares each response with what was
//! uploaded, and reports it.
//!
//! A field that a response omits is not a contradiction, except `ok`, which says that the upload was carried out.

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::pending_site::{StoredRecord, is_service_unusable};
use super::verdict::{failed_outcome, failed_upload, unconfirmed, unused};
use super::{Deployment, Rollout};
use crate::api::{MAX_CONCURRENT_REQUESTS, Record, RequestError, Timestamp, UploadBody, Uploaded};
use crate::cert::Certificate;
use crate::error::{Diagnostic as _, ErrorKind};
use crate::names::{Domain, Names, distinct};
use crate::outcome::Outcome;
use crate::plan::{IndexedListing, Upload};
use crate::progress::Phase;
use crate::report::{Report, SiteReport, UploadReport};
use crate::settings::{RecordName, Verify};
use crate::sightings::EdgeFindings;
use crate::text::{list, rfc3339, sanitize};

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
        (self.deployment.progress)(Phase::Uploading { uploads: uploads.len() });
        let body = self.upload_body();
        let sent = uploads.iter().map(|upload| self.client.upload(&body, upload.domain));
        let answers: Vec<_> = stream::iter(sent).buffered(MAX_CONCURRENT_REQUESTS).collect().await;
        let mut results = Vec::with_capacity(uploads.len());
        for (upload, answer) in uploads.iter().zip(answers) {
            let mut result = self.record(upload.domain, answer, Some(listing), report);
            // One site that the service refuses must not keep the certificate from the others.
            for domain in &upload.alternatives {
                if !result.as_ref().is_err_and(|failed| failed.diagnose().kind() == ErrorKind::Service) {
                    break;
                }
                let answer = self.client.upload(&body, domain).await;
                result = self.record(domain, answer, Some(listing), report);
            }
            results.push(result);
        }
        results
    }

    /// Claims the sites, uploads for each domain, and does nothing else: no listing, no guards, no waiting. The first upload
    /// goes alone: if the service rejects it, the others would fail for the same reason, and the private key is not sent
    /// again.
    pub(super) async fn upload_only(&self, report: &mut Report) {
        let Deployment { domains, settings, .. } = *self.deployment;
        self.journal.claim(&settings.base_url.to_string(), domains.iter().map(Domain::host), report);
        (self.deployment.progress)(Phase::Uploading { uploads: domains.len() });
        let Some((first, rest)) = domains.split_first() else { return };
        let body = self.upload_body();
        let answer = self.client.upload(&body, first).await;
        let unusable = answer.as_ref().err().filter(|failed| is_service_unusable(failed));
        let not_tried = unusable.map(|reason| format!("not tried: {reason}"));
        self.report_upload(first, answer, report);
        if not_tried.is_some() {
            let refused = |domain| SiteReport::new(domain, Outcome::Refused, not_tried.clone());
            report.deployed.sites.extend(rest.iter().map(refused));
        } else {
            let sent = rest.iter().map(|domain| self.client.upload(&body, domain));
            let answers: Vec<_> = stream::iter(sent).buffered(MAX_CONCURRENT_REQUESTS).collect().await;
            for (domain, answer) in rest.iter().zip(answers) {
                self.report_upload(domain, answer, report);
            }
        }
    }

    /// Reports a bare upload and its site.
    fn report_upload(&self, domain: &Domain, answer: Answer, report: &mut Report) {
        let is_unused = answer.as_ref().is_ok_and(|(response, ..)| is_unused(response, domain));
        let result = self.record(domain, answer, None, report);
        let records = &mut report.deployed.records;
        let (outcome, detail, cert_id) = match result {
            Ok(StoredRecord { contradiction: Some(detail), .. }) => {
                records.is_any_possible = true;
                report.fail(unconfirmed(domain, &detail));
                (Outcome::Queued, Some(detail), None)
            }
            Ok(StoredRecord { id, .. }) if is_unused => {
                records.stored.insert(id);
                report.fail(unused(domain, id));
                let detail = format!("certificate {id} was created, and the site is not bound to it");
                (Outcome::Misbound, Some(detail), None)
            }
            Ok(StoredRecord { id, .. }) => {
                records.stored.insert(id);
                (Outcome::Uploaded, None, Some(id))
            }
            Err(failed) => {
                records.is_any_possible |= failed.may_be_done;
                report.fail(failed_upload(domain, &failed));
                (failed_outcome(&failed), Some(failed.to_string()), None)
            }
        };
        report.deployed.sites.push(SiteReport {
            cert_id,
            // The error says the detail.
            is_explained: detail.is_some(),
            findings: unverified_findings(self.deployment.settings.verify, &outcome),
            ..SiteReport::new(domain, outcome, detail)
        });
    }

    /// Adds the result of an upload to the report. `listing` is that of the plan, if there is one.
    fn record(
        &self,
        domain: &Domain,
        answer: Answer,
        listing: Option<&IndexedListing>,
        report: &mut Report,
    ) -> UploadResult {
        let upload = UploadReport {
            domain: domain.spelled().to_owned(),
            bound_sites: Value::Array(Vec::new()),
            ..UploadReport::default()
        };
        let (response, attempts) = match answer {
            Ok(answer) => answer,
            Err(failed) => {
                let (attempts, error) = (failed.attempts, Some(failed.to_string()));
                report.deployed.changed |= failed.may_be_done;
                report.deployed.uploads.push(UploadReport { attempts, error, ..upload });
                return Err(failed);
            }
        };
        report.deployed.changed = true;
        let listed = listing.and_then(|listing| listing.record(response.id));
        let other = listed.filter(|listed| is_of_others(&response, domain, listed));
        let contradiction = contradiction(&response, domain, &self.vetted.chain().leaf, other);
        report.warnings.extend(contradiction.iter().map(|found| format!("{domain}: {found}")));
        let id = response.id;
        // If the response to an upload is lost, the response to its retry says that a record was replaced.
        let is_new = response.is_new() || listing.is_some_and(|listing| listing.is_deleted(id));
        report.deployed.uploads.push(UploadReport {
            ok: contradiction.is_none(),
            id: Some(id),
            created: response.created,
            not_after: response.not_after.and_then(|shown| shown.at()),
            key_match: response.key_match,
            bound_sites: response.bound_sites,
            attempts,
            error: contradiction.clone(),
            ..upload
        });
        Ok(StoredRecord { id, is_new, is_of_others: other.is_some(), contradiction })
    }

    fn upload_body(&self) -> UploadBody {
        UploadBody::new(self.vetted, self.deployment.settings.name.as_ref().map(RecordName::as_str))
    }
}

/// What a bare upload learned about the edge of its site.
pub(super) fn unverified_findings(verify: Verify, outcome: &Outcome) -> EdgeFindings {
    (verify != Verify::Off || !outcome.is_deployed()).then(Vec::new)
}

/// Values of `key_match` with which the service accepts a key: it cannot verify every type (section 4.2).
const KEY_MATCHES: [&str; 2] = ["ok", "unverified"];

/// Why a response does not confirm the upload of a leaf for a domain; `None` if it does. `other` is the record that it
/// names if that was listed for other domains.
pub(super) fn contradiction(
    response: &Uploaded,
    domain: &Domain,
    leaf: &Certificate,
    other: Option<&Record>,
) -> Option<String> {
    let mut found = Vec::new();
    if !response.is_ok {
        found.push("`ok` is not true".to_owned());
    }
    if let Some(listed) = other {
        let domains: Vec<Domain> = listed.all_domains().cloned().collect();
        let (id, domains) = (listed.id, list(distinct(&domains)));
        found.push(format!("`created` is true for `id` {id}, which was listed before for {domains}"));
    }
    // A record may be stored for several domains, or for a wildcard of the leaf that covers this one.
    let shown = &response.domains;
    let names: Vec<Domain> = shown.iter().filter_map(|text| text.parse().ok()).collect();
    let is_of_leaf =
        |name: &&Domain| leaf.dns_names().any(|own| own.parse().is_ok_and(|own: Domain| own == **name));
    let covering = Names::of(names.iter().filter(is_of_leaf).map(Domain::host));
    if !shown.is_empty() && !names.contains(domain) && !covering.cover(domain) {
        found.push(format!("`domain` is {}", list(shown.iter().map(|text| sanitize(text)))));
    }
    if let Some(shown) = response.not_after.as_ref().filter(|shown| !shown.may_be(leaf.not_after)) {
        let shown = match shown {
            Timestamp::Unreadable(text) => sanitize(text),
            shown => shown.at().map(rfc3339).unwrap_or_default(),
        };
        found.push(format!("`not_after` is {shown}, not {}", rfc3339(leaf.not_after)));
    }
    let is_known = |shown: &str| KEY_MATCHES.iter().any(|known| shown.trim().eq_ignore_ascii_case(known));
    if let Some(shown) = response.key_match.as_deref().filter(|shown| !is_known(shown)) {
        found.push(format!("`key_match` is {}", sanitize(shown)));
    }
    (!found.is_empty()).then(|| format!("the response contradicts the upload: {}", list(&found)))
}

/// Whether a response says that the upload for a domain created this record, which was listed before for other domains. If
/// it says that the record was replaced, the certificate in it may have covered the domain.
pub(super) fn is_of_others(response: &Uploaded, domain: &Domain, listed: &Record) -> bool {
    let mut domains = listed.all_domains().peekable();
    let has_others = domains.peek().is_some() && !Names::of(domains.map(Domain::host)).cover(domain);
    response.is_new() && has_others
}

/// Whether the response says that the service created a record and did not bind the site of this domain to it. Numbers
/// among the bound sites may stand for any site.
pub(super) fn is_unused(response: &Uploaded, domain: &Domain) -> bool {
    let may_be_site = |bound: &Value| {
        let named = bound.get("domain").or_else(|| bound.get("name")).unwrap_or(bound);
        let name = named.as_str().filter(|text| text.contains('.'));
        !bound.is_null() && name.is_none_or(|name| name.parse::<Domain>().is_ok_and(|name| name == *domain))
    };
    let is_bound = match &response.bound_sites {
        Value::Array(items) => items.iter().any(may_be_site),
        Value::Null | Value::Bool(false) => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.trim().is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    };
    response.is_new() && !is_bound
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;
    use crate::api::List;

    /// A leaf for `a.example` and `*.b.example` that expires on 2030-01-01.
    const LEAF: &str = "MIH0MIGnoAMCAQICAQEwBQYDK2VwMA0xCzAJBgNVBAMMAkNBMB4XDTI5MDEwMTAwMDAwMFoXDTMwMDEwMTAw\
        MDAwMFowFDESMBAGA1UEAwwJYS5leGFtcGxlMCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAACjJTAjMCEGA1UdEQQaMBiCCWEuZXhhbXBsZYILKi5iLmV4YW1wbGUwBQYDK2VwA0EAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

    /// The response to an upload, with these fields in place of its own.
    fn response(edits: &Value) -> Uploaded {
        let mut response = json!({
            "ok": true, "id": "5", "created": false, "domain": "a.example", "not_after": "2030-01-01T00:00:00Z",
            "key_match": "unverified", "bound_sites": [],
        });
        for (field, value) in edits.as_object().unwrap() {
            response[field] = value.clone();
        }
        Uploaded::from_json(&response).unwrap()
    }

    #[test]
    fn bare_upload_forgets_the_edge_if_verification_is_off() {
        for (verify, outcome, is_forgotten) in [
            (Verify::Off, Outcome::Uploaded, true),
            (Verify::Off, Outcome::Queued, false),
            (Verify::Auto, Outcome::Uploaded, false),
        ] {
            assert_eq!(unverified_findings(verify, &outcome).is_none(), is_forgotten, "{verify:?} {outcome}");
        }
    }

    fn contradiction_of(response: &Uploaded, domain: &str) -> Option<String> {
        let leaf = Certificate::from_der(&STANDARD.decode(LEAF).unwrap()).unwrap();
        contradiction(response, &domain.parse().unwrap(), &leaf, None)
    }

    #[test]
    fn contradictions_name_the_fields() {
        for (edits, found) in [
            (json!({"ok": null}), "`ok` is not true"),
            (json!({"ok": "no"}), "`ok` is not true"),
            (json!({"domain": "other.example"}), "`domain` is other.example"),
            (json!({"domain": "b.example, c.example"}), "`domain` is b.example and c.example"),
            (json!({"domain": ["*.example"]}), "`domain` is *.example"),
            (json!({"domain": ["*.b.example"]}), "`domain` is *.b.example"),
            (json!({"domain": {"name": "\u{1b}"}}), "`domain` is {\"name\":\"\\u001b\"}"),
            (
                json!({"not_after": "2020-01-01T00:00:00Z"}),
                "`not_after` is 2020-01-01T00:00:00Z, not 2030-01-01T00:00:00Z",
            ),
            (
                json!({"not_after": "2020-01-01"}),
                "`not_after` is 2020-01-01T00:00:00Z, not 2030-01-01T00:00:00Z",
            ),
            (json!({"not_after": "so\u{1b}on"}), "`not_after` is so on, not 2030-01-01T00:00:00Z"),
            (json!({"key_match": "mismatch"}), "`key_match` is mismatch"),
            (json!({"key_match": false}), "`key_match` is false"),
            (
                json!({"domain": "other.example", "key_match": "no"}),
                "`domain` is other.example and `key_match` is no",
            ),
        ] {
            let found = format!("the response contradicts the upload: {found}");
            assert_eq!(contradiction_of(&response(&edits), "a.example"), Some(found), "{edits}");
        }
        // Of all fields, only `ok` is required.
        let bare = Uploaded::from_json(&json!({"id": "5"})).unwrap();
        let found = "the response contradicts the upload: `ok` is not true";
        assert_eq!(contradiction_of(&bare, "a.example").as_deref(), Some(found));
    }

    /// Forms of times are tested in `Timestamp`.
    #[test]
    fn sensible_responses_confirm_the_upload() {
        for (edits, domain) in [
            (json!({}), "a.example"),
            (json!({"domain": "A.Example."}), "a.example"),
            (json!({"domain": "b.example,a.example"}), "a.example"),
            (json!({"domain": ["b.example", "a.example"]}), "a.example"),
            (json!({"domain": "xn--bcher-kva.example"}), "B\u{fc}cher.Example"),
            (json!({"domain": "*.b.example"}), "x.b.example"),
            (json!({"domain": null, "not_after": null, "key_match": null, "created": null}), "a.example"),
            (json!({"domain": "", "not_after": "", "key_match": ""}), "a.example"),
            (json!({"key_match": "OK"}), "a.example"),
            (json!({"not_after": "2030-01-01T00:00:00.5+00:00"}), "a.example"),
            (json!({"not_after": "2030-01-01"}), "a.example"),
        ] {
            assert_eq!(contradiction_of(&response(&edits), domain), None, "{edits}");
        }
    }

    #[test]
    fn created_record_must_be_used() {
        let domain = "a.example".parse().unwrap();
        for (bound_sites, expected) in [
            (json!([]), true),
            (json!(null), true),
            (json!(0), true),
            (json!(false), true),
            (json!(" "), true),
            (json!({}), true),
            (json!([null]), true),
            (json!([{"id": 11, "domain": "b.example"}]), true),
            (json!([{"id": 11, "name": "b.example"}]), true),
            (json!(["b.example"]), true),
            (json!([10]), false),
            (json!(["10"]), false),
            (json!([{"site_id": 10}]), false),
            (json!(["A.Example."]), false),
            (json!([{"id": 11, "domain": "b.example"}, {"id": 10, "domain": "a.example"}]), false),
            (json!(true), false),
            (json!(1), false),
            (json!("a.example"), false),
            (json!({"a.example": 10}), false),
        ] {
            let created = json!({"created": true, "bound_sites": bound_sites});
            assert_eq!(is_unused(&response(&created), &domain), expected, "{bound_sites}");
            let replaced = json!({"created": false, "bound_sites": bound_sites});
            assert!(!is_unused(&response(&replaced), &domain), "{bound_sites}");
        }
    }

    #[test]
    fn record_of_other_domains_is_recognised() {
        for (created, listed, expected) in [
            (json!(true), json!({"domain": "b.example"}), true),
            (json!(true), json!({"name": "b.example"}), true),
            (json!(true), json!({"domain": "*.a.example"}), true),
            (json!(true), json!({"domain": "*.example"}), false),
            (json!(true), json!({"domain": ["b.example", "a.example"]}), false),
            (json!(true), json!({"domain": "b.example", "name": "a.example"}), false),
            (json!(true), json!({"domain": "A.Example."}), false),
            (json!(true), json!({"name": "my certificate"}), false),
            (json!(false), json!({"domain": "b.example"}), false),
            (json!(null), json!({"domain": "b.example"}), false),
        ] {
            let mut record = listed.clone();
            record["id"] = json!(5);
            let records: List<Record> = List::of(&json!([record])).unwrap();
            let response = Uploaded::from_json(&json!({"id": 5, "created": created})).unwrap();
            let is_of_others = is_of_others(&response, &"a.example".parse().unwrap(), &records.items[0]);
            assert_eq!(is_of_others, expected, "{created} {listed}");
        }
    }
}
