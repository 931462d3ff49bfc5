//! A log of all API requests, for tests and `GET /requests`. Key material is replaced by its SHA-256, and the
//! API key is left out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Value, json};

use crate::digest;

/// One API request.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRequest {
    /// Method in upper case.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query; empty if there is none.
    pub query: String,
    /// Body as JSON with `key_pem` redacted; null if empty, `{"sha256":…,"bytes":…}` if it is not JSON.
    pub body: Value,
    /// Account of the API key; `None` if the key is missing or invalid.
    pub account: Option<i64>,
    /// `User-Agent` header; empty if there is none.
    pub user_agent: String,
    /// Status of the response; `None` if none has been sent (yet).
    pub status: Option<u16>,
    /// Injected fault, as the JSON value of its `do`.
    pub fault: Option<String>,
    /// Deviations from the documented request, such as unknown fields.
    pub notices: Vec<String>,
    /// Number of the TCP connection, counted from 1.
    pub connection: u64,
    /// HTTP version, `1.1` or `2`.
    pub http: String,
}

/// The log, in order of arrival.
#[derive(Default)]
pub(crate) struct RequestLog {
    requests: Mutex<Vec<RecordedRequest>>,
}

impl RequestLog {
    /// Appends a request. The entry is for adding what is known later.
    pub(crate) fn add(&self, request: RecordedRequest) -> LogEntry<'_> {
        let mut requests = self.lock();
        requests.push(request);
        LogEntry { log: self, index: requests.len() - 1 }
    }

    pub(crate) fn list(&self) -> Vec<RecordedRequest> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in the log.
#[derive(Clone, Copy)]
pub(crate) struct LogEntry<'a> {
    log: &'a RequestLog,
    index: usize,
}

impl LogEntry<'_> {
    pub(crate) fn update(&self, change: impl FnOnce(&mut RecordedRequest)) {
        if let Some(request) = self.log.lock().get_mut(self.index) {
            change(request);
        }
    }
}

/// Returns a request body in the form that the log may hold.
pub(crate) fn redacted_body(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            redact(&mut value);
            value
        }
        Err(_) => json!({ "sha256": digest::sha256_hex(body), "bytes": body.len() }),
    }
}

/// Redacts `key_pem` at any depth, and any other string that looks like a private key.
fn redact(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map.iter_mut() {
                match inner {
                    Value::String(text) if name == "key_pem" => *text = digest::redacted(text),
                    _ => redact(inner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) if text.contains("PRIVATE KEY") => *text = digest::redacted(text),
        _ => {}
    }
}
