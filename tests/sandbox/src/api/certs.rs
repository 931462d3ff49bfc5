//! Certificate endpoints (sections 4.1 to 4.3).

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::call::{ApiError, ApiResult, Call};
use crate::quirks::{UnavailableCert, UnownedDomain};
use crate::records::{self, UploadError, Uploaded};
use crate::response::Response;
use crate::store::certs::{self, UploadContent};
use crate::validation::{self, Violation};

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

pub(super) fn upload(call: &Call<'_>) -> ApiResult {
    let body = call.json_object()?;
    notice_unknown_fields(call, &body);
    let content = UploadContent {
        account: call.account,
        domain: required(&body, "domain")?,
        cert_pem: required(&body, "cert_pem")?,
        key_pem: required(&body, "key_pem")?,
        name: optional(&body, "name")?,
    };
    match records::upload(call.app, &content, call.now) {
        Ok(uploaded) => Ok(upload_response(call, &uploaded)),
        Err(error) => Err(refused_upload(call, &error)),
    }
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

fn upload_response(call: &Call<'_>, uploaded: &Uploaded) -> Response {
    let renderer = call.renderer();
    let status = if uploaded.created { renderer.created_status() } else { StatusCode::OK };
    let body = json!({
        "ok": true,
        "id": uploaded.id.to_string(),
        "created": uploaded.created,
        "domain": uploaded.domain,
        "not_after": renderer.time(uploaded.validated.leaf.not_after),
        "key_match": uploaded.validated.key_match.as_str(),
        "bound_sites": uploaded.bound_sites.iter().map(|site| renderer.bound_site(site)).collect::<Vec<_>>(),
    });
    renderer.object(status, body)
}

impl From<Violation> for ApiError {
    fn from(violation: Violation) -> Self {
        Self::bad_request(violation.to_string())
    }
}

fn refused_upload(call: &Call<'_>, error: &UploadError) -> ApiError {
    let status = match error {
        UploadError::UnownedDomain(_) => unowned_domain_status(call),
        UploadError::Violation(_) => StatusCode::BAD_REQUEST,
        UploadError::Database(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    ApiError::new(status, error.to_string())
}

fn unowned_domain_status(call: &Call<'_>) -> StatusCode {
    match call.app.quirks.unowned_domain {
        UnownedDomain::Forbidden => StatusCode::FORBIDDEN,
        UnownedDomain::NotFound => StatusCode::NOT_FOUND,
        UnownedDomain::BadRequest => StatusCode::BAD_REQUEST,
        UnownedDomain::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
    }
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
