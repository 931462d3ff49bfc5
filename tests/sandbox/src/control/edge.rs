//! Changes what the edge serves.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{parse, success};
use crate::app::App;
use crate::edge::address::EdgeAddress;
use crate::edge::listeners;
use crate::response::RequestError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideRequest {
    name: String,
    cert_pem: String,
    key_pem: String,
}

/// Serves another certificate for one name.
pub(super) fn override_name(app: &App, body: &[u8]) -> Result<Value, RequestError> {
    let request: OverrideRequest = parse(body)?;
    let result = app.edge.override_name(&request.name, &request.cert_pem, &request.key_pem);
    result.map_err(RequestError::bad_request)?;
    Ok(success())
}

/// Opens an additional address.
pub(super) fn open(app: &Arc<App>, body: &[u8]) -> Result<Value, RequestError> {
    let address: EdgeAddress = parse(body)?;
    let opened = listeners::open(app, &address, &Handle::current());
    let opened = opened.map_err(|error| RequestError::bad_request(error.to_string()))?;
    Ok(json!({ "ok": true, "address": opened.to_string() }))
}
