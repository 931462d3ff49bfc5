//! Changes certificate records as other clients of the account do, or behind the API.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{parse, success_if};
use crate::app::App;
use crate::clock;
use crate::records::{self, Push, Uploaded};
use crate::response::RequestError;
use crate::store::certs::UploadContent;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadRequest {
    /// The first account if absent.
    account: Option<i64>,
    domain: String,
    name: Option<String>,
    cert_pem: String,
    key_pem: String,
}

/// Uploads a certificate like `POST /api/certs/upload`, but without an entry in the request log.
pub(super) fn upload(app: &App, body: &[u8]) -> Result<Value, RequestError> {
    let request: UploadRequest = parse(body)?;
    let account = match request.account {
        Some(account) => account,
        None => app.store().first_account()?,
    };
    let content = UploadContent {
        account,
        domain: &request.domain,
        name: request.name.as_deref(),
        cert_pem: &request.cert_pem,
        key_pem: &request.key_pem,
    };
    let uploaded = records::upload(app, &content, clock::now());
    // Whichever status a quirk gives the refusal on the API.
    Ok(uploaded_json(&uploaded.map_err(|error| RequestError::bad_request(error.message))?))
}

fn uploaded_json(uploaded: &Uploaded) -> Value {
    json!({
        "ok": true, "id": uploaded.id, "created": uploaded.created,
        "fingerprint": uploaded.validated.leaf.fingerprint,
        "bound_sites": uploaded.bound_sites.iter().map(|site| site.id).collect::<Vec<_>>(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaceRequest {
    cert_pem: String,
    key_pem: String,
    #[serde(default)]
    push: Push,
}

/// Replaces the content of a record without validation.
pub(super) fn replace(app: &App, id: &str, body: &[u8]) -> Result<Value, RequestError> {
    let ReplaceRequest { cert_pem, key_pem, push } = parse(body)?;
    let id = id.parse().ok();
    let is_found =
        id.map(|id| records::replace_unvalidated(app, id, &cert_pem, &key_pem, push)).transpose()?;
    success_if(is_found == Some(true), "no such certificate")
}
