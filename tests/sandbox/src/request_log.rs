//! What was asked of the API, for tests to look at. Key material is in it as a SHA-256 only.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use crate::cert::sha256_hex;

/// One request, from its arrival on.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRequest {
    /// Method, in capitals.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query; empty when there is none.
    pub query: String,
    /// Body as JSON, `key_pem` replaced by its SHA-256; null when there is none; `{"sha256":…}` when it is no JSON.
    pub body: Value,
    /// Account that the key acts for; `None` without a valid key.
    pub account: Option<i64>,
    /// `User-Agent`; empty when there is none.
    pub user_agent: String,
    /// Status that was sent; `None` while it is being answered and when the answer was withheld.
    pub status: Option<u16>,
    /// The fault that was applied, as its `do`.
    pub fault: Option<String>,
    /// What a strict reader would have wondered about, such as unknown fields.
    pub notices: Vec<String>,
    /// Requests with the same number came over the same connection.
    pub connection: u64,
    /// `1.1` or `2`.
    pub http: String,
}

/// The list of requests.
#[derive(Default)]
pub(crate) struct Journal {
    entries: Mutex<Vec<RecordedRequest>>,
}

impl Journal {
    /// Notes a request; the index is for [`Journal::amend`].
    pub(crate) fn note(&self, request: RecordedRequest) -> usize {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(request);
        entries.len() - 1
    }

    pub(crate) fn amend(&self, index: usize, change: impl FnOnce(&mut RecordedRequest)) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get_mut(index) {
            change(entry);
        }
    }

    pub(crate) fn list(&self) -> Vec<RecordedRequest> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A body as the journal may show it.
pub(crate) fn redacted(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            redact(&mut value);
            value
        }
        Err(_) => serde_json::json!({ "sha256": sha256_hex(body), "bytes": body.len() }),
    }
}

/// Replaces `key_pem` at any depth, and any other string that looks like a private key.
fn redact(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map.iter_mut() {
                match inner {
                    Value::String(text) if name == "key_pem" => *text = fingerprint(text),
                    _ => redact(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) if text.contains("PRIVATE KEY") => *text = fingerprint(text),
        _ => {}
    }
}

/// `sha256:` and the digest of the text as it was sent.
pub(crate) fn fingerprint(text: &str) -> String {
    format!("sha256:{}", sha256_hex(text.as_bytes()))
}
