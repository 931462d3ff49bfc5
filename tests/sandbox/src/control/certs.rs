//! Changes certificate records as other clients of the account do, or behind the API.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{ControlError, parse, success};
use crate::app::App;
use crate::clock;
use crate::records::{self, Replacement, UploadError, Uploaded};
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

impl From<UploadError> for ControlError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Database(error) => Self::Database(error),
            UploadError::UnownedDomain(_) | UploadError::Violation(_) => Self::BadRequest(error.to_string()),
        }
    }
}

/// Uploads a certificate like `POST /api/certs/upload`, but without an entry in the request log.
pub(super) fn upload(app: &App, body: &[u8]) -> Result<Value, ControlError> {
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
    Ok(uploaded_json(&records::upload(app, &content, clock::now())?))
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

/// When a replaced certificate reaches the edge.
#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Push {
    #[default]
    Normal,
    Silent,
}

/// Replaces the content of a record without validation.
pub(super) fn replace(app: &App, id: &str, body: &[u8]) -> Result<Value, ControlError> {
    let request: ReplaceRequest = parse(body)?;
    let replacement = Replacement {
        cert_pem: &request.cert_pem,
        key_pem: &request.key_pem,
        is_silent: request.push == Push::Silent,
    };
    let id = id.parse().ok();
    let is_found = id.map(|id| records::replace_unvalidated(app, id, &replacement)).transpose()?;
    match is_found {
        Some(true) => Ok(success()),
        _ => Err(ControlError::NotFound("no such certificate")),
    }
}
