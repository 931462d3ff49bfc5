//! Shows what the edge serves and how often it was asked.

use serde_json::{Value, json};

use super::success;
use crate::app::App;

/// Lists what each name is served.
pub(super) fn list(app: &App) -> Value {
    json!(app.edge.list())
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
