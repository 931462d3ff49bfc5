//! Certificate endpoints (sections 4.1 to 4.3).

use http::StatusCode;
use rusqlite::Transaction;
use serde_json::{Map, Value, json};

use super::call::{ApiError, ApiResult, Call};
use crate::quirks::{CertDomain, UnavailableCert, UnownedDomain};
use crate::response::Response;
use crate::store::certs::{self, Cert, UploadContent};
use crate::store::sites::{self, Site};
use crate::validation::{self, Validated, Violation};

const UPLOAD_FIELDS: [&str; 4] = ["domain", "cert_pem", "key_pem", "name"];

pub(super) fn list(call: &Call<'_>) -> ApiResult {
    let certs = certs::list(call.app.store().read(), Some(call.account))?;
    Ok(call.renderer().cert_list(&certs))
}

pub(super) fn download(call: &Call<'_>, id: i64) -> ApiResult {
    let cert = certs::get(call.app.store().read(), id)?.filter(|cert| cert.account == call.account);
    let status = match call.app.quirks.unavailable_cert {
        UnavailableCert::NotFound => StatusCode::NOT_FOUND,
        UnavailableCert::Forbidden => StatusCode::FORBIDDEN,
    };
    let cert = cert.ok_or_else(|| ApiError::new(status, "no such certificate"))?;
    Ok(call.renderer().download(&cert))
}

/// Replaces the oldest record for the domain, or creates one and binds it to sites without a certificate.
pub(super) fn upload(call: &Call<'_>) -> ApiResult {
    let body = call.json_object()?;
    notice_unknown_fields(call, &body);
    let domain = required(&body, "domain")?;
    let (cert_pem, key_pem) = (required(&body, "cert_pem")?, required(&body, "key_pem")?);
    let name = optional(&body, "name")?;
    let mut store = call.app.store();
    let response = store.write(|t| {
        let site = sites::by_domain(t, domain)?.filter(|site| site.account == call.account);
        let site = site.ok_or_else(|| unowned_domain(call, domain))?;
        let validated = validation::validate(cert_pem, key_pem, Some(domain), call.now)?;
        let content = UploadContent { account: call.account, domain: &site.domain, name, cert_pem, key_pem };
        let stored = match existing_record(call, t, domain)? {
            Some(record) => replace(call, t, record.id, &content)?,
            None => create_and_bind(call, t, &content, &validated)?,
        };
        Ok::<_, ApiError>(upload_response(call, &site.domain, &stored, &validated))
    })?;
    call.app.pushes.wake();
    Ok(response)
}

/// Adds a record that is never bound, even if the domain has one: the endpoint that section 4.2 warns about.
pub(super) fn create(call: &Call<'_>) -> ApiResult {
    let body = call.json_object()?;
    notice_unknown_fields(call, &body);
    let (cert_pem, key_pem) = (required(&body, "cert_pem")?, required(&body, "key_pem")?);
    let (domain, name) = (optional(&body, "domain")?, optional(&body, "name")?);
    let validated = validation::validate(cert_pem, key_pem, domain, call.now)?;
    let first_name = validated.leaf.names.first().map(String::as_str);
    let domain =
        domain.or(first_name).ok_or_else(|| ApiError::bad_request("the certificate has no SAN entry"))?;
    let content = UploadContent { account: call.account, domain, name, cert_pem, key_pem };
    let mut store = call.app.store();
    let id = store.write(|t| certs::insert(t, &content))?;
    let cert = certs::get(store.read(), id)?.ok_or_else(ApiError::not_found)?;
    Ok(call.renderer().created_cert(&cert))
}

/// What an upload did.
enum Stored {
    Replaced { id: i64 },
    Created { id: i64, bound: Vec<Site> },
}

/// Returns the record that "already exists for the domain".
fn existing_record(call: &Call<'_>, t: &Transaction<'_>, domain: &str) -> rusqlite::Result<Option<Cert>> {
    match call.app.quirks.cert_domain {
        CertDomain::Declared => certs::oldest_for_domain(t, call.account, domain),
        CertDomain::Commas | CertDomain::Spaced => certs::oldest_with_name(t, call.account, domain),
    }
}

fn replace(
    call: &Call<'_>,
    t: &Transaction<'_>,
    id: i64,
    content: &UploadContent<'_>,
) -> rusqlite::Result<Stored> {
    certs::replace(t, id, content)?;
    sites::schedule_push_of_bound(t, id, call.push_at())?;
    Ok(Stored::Replaced { id })
}

fn create_and_bind(
    call: &Call<'_>,
    t: &Transaction<'_>,
    content: &UploadContent<'_>,
    validated: &Validated,
) -> rusqlite::Result<Stored> {
    let id = certs::insert(t, content)?;
    let mut bound = sites::list(t, Some(call.account))?;
    bound.retain(|site| site.cert_id.is_none() && validated.leaf.covers(&site.domain));
    for site in &mut bound {
        site.cert_id = Some(id);
        site.push_at = Some(call.push_at());
        site.updated_at = call.now_seconds();
        sites::save(t, site)?;
    }
    Ok(Stored::Created { id, bound })
}

fn upload_response(call: &Call<'_>, domain: &str, stored: &Stored, validated: &Validated) -> Response {
    let renderer = call.renderer();
    let (status, id, created, bound) = match stored {
        Stored::Replaced { id } => (StatusCode::OK, id, false, &[][..]),
        Stored::Created { id, bound } => (renderer.created_status(), id, true, bound.as_slice()),
    };
    let body = json!({
        "ok": true,
        "id": id.to_string(),
        "created": created,
        "domain": domain,
        "not_after": renderer.time(validated.leaf.not_after),
        "key_match": validated.key_match.as_str(),
        "bound_sites": bound.iter().map(|site| renderer.bound_site(site)).collect::<Vec<_>>(),
    });
    renderer.object(status, body)
}

impl From<Violation> for ApiError {
    fn from(violation: Violation) -> Self {
        Self::bad_request(violation.to_string())
    }
}

fn unowned_domain(call: &Call<'_>, domain: &str) -> ApiError {
    let status = match call.app.quirks.unowned_domain {
        UnownedDomain::Forbidden => StatusCode::FORBIDDEN,
        UnownedDomain::NotFound => StatusCode::NOT_FOUND,
        UnownedDomain::BadRequest => StatusCode::BAD_REQUEST,
        UnownedDomain::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
    };
    ApiError::new(status, format!("{domain} is not the domain of a site of this account"))
}

fn notice_unknown_fields(call: &Call<'_>, body: &Map<String, Value>) {
    for name in body.keys().filter(|name| !UPLOAD_FIELDS.contains(&name.as_str())) {
        call.notice(format!("unknown field {name}"));
    }
}

fn required<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, ApiError> {
    optional(body, name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| ApiError::bad_request(format!("{name} is required")))
}

fn optional<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ApiError> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::bad_request(format!("{name} must be a string"))),
    }
}
