//! The OpenAPI description of what is implemented.

use serde_json::{Value, json};

use crate::whims::Whims;

/// The description for one set of whims.
pub(crate) fn describe(_whims: &Whims) -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "edgecert-sandbox", "version": "1" }, "paths": {} })
}
