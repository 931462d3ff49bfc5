//! Shows and changes what the edge serves, and shows how often it was asked.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{ControlError, parse, success};
use crate::app::App;
use crate::edge::address::EdgeAddress;
use crate::edge::listeners;

/// Lists what each name is served.
pub(super) fn list(app: &App) -> Value {
    json!(app.edge.list())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideRequest {
    name: String,
    cert_pem: String,
    key_pem: String,
}

/// Serves another certificate for one name.
pub(super) fn override_name(app: &App, body: &[u8]) -> Result<Value, ControlError> {
    let request: OverrideRequest = parse(body)?;
    let result = app.edge.override_name(&request.name, &request.cert_pem, &request.key_pem);
    result.map_err(ControlError::BadRequest)?;
    Ok(success())
}

/// Removes the override of a name.
pub(super) fn remove_override(app: &App, name: &str) -> Result<Value, ControlError> {
    if app.edge.remove_override(name) {
        Ok(success())
    } else {
        Err(ControlError::NotFound("no override for this name"))
    }
}

/// Opens an additional address.
pub(super) fn open(app: &Arc<App>, body: &[u8]) -> Result<Value, ControlError> {
    let address: EdgeAddress = parse(body)?;
    let opened = listeners::open(app, &address, &Handle::current());
    let opened = opened.map_err(|error| ControlError::BadRequest(error.to_string()))?;
    Ok(json!({ "ok": true, "address": opened.to_string() }))
}

/// Closes an additional address.
pub(super) async fn close(app: &App, address: &str) -> Result<Value, ControlError> {
    if app.edge_listeners.close(address).await {
        Ok(success())
    } else {
        Err(ControlError::NotFound("no such address"))
    }
}

/// Shows the connections and handshakes of each address.
pub(super) fn handshakes(app: &App) -> Value {
    json!(app.handshakes.counts())
}

/// Counts connections and handshakes from zero.
pub(super) fn reset_handshakes(app: &App) -> Value {
    app.handshakes.reset();
    success()
}
