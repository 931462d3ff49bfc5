//! Certificate endpoints (sections 4.1 to 4.3).

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::call::{ApiResult, Call};
use crate::quirks::UnavailableCert;
use crate::records::{self, Uploaded};
use crate::response::{RequestError, Response};
use crate::store::certs::{self, UPLOADED, UploadContent};
use crate::validation;

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
    let cert = cert.ok_or_else(|| RequestError::new(status, "no such certificate"))?;
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
    Ok(upload_response(call, &records::upload(call.app, &content, call.now)?))
}

/// Adds a record that is never bound, even if the domain has one: the endpoint that section 4.2 warns about.
pub(super) fn create(call: &Call<'_>) -> ApiResult {
    let body = call.json_object()?;
    notice_unknown_fields(call, &body);
    let (cert_pem, key_pem) = (required(&body, "cert_pem")?, required(&body, "key_pem")?);
    let (domain, name) = (optional(&body, "domain")?, optional(&body, "name")?);
    let validated =
        validation::validate(cert_pem, key_pem, domain, call.now).map_err(RequestError::bad_request)?;
    let first_name = validated.leaf.names.first().map(String::as_str);
    let domain =
        domain.or(first_name).ok_or_else(|| RequestError::bad_request("the certificate has no SAN entry"))?;
    let content = UploadContent { account: call.account, domain, name, cert_pem, key_pem };
    let mut store = call.app.store();
    let id = store.write(|t| certs::insert(t, None, UPLOADED, &content))?;
    let cert = certs::get(store.read(), id)?.ok_or_else(|| RequestError::not_found("not found"))?;
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
        "key_match": uploaded.validated.key_match,
        "bound_sites": uploaded.bound_sites.iter().map(|site| renderer.bound_site(site)).collect::<Vec<_>>(),
    });
    renderer.object(status, body)
}

fn notice_unknown_fields(call: &Call<'_>, body: &Map<String, Value>) {
    for name in body.keys().filter(|name| !UPLOAD_FIELDS.contains(&name.as_str())) {
        call.notice(format!("unknown field {name}"));
    }
}

fn required<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, RequestError> {
    optional(body, name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| RequestError::bad_request(format!("{name} is required")))
}

fn optional<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, RequestError> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(RequestError::bad_request(format!("{name} must be a string"))),
    }
}
