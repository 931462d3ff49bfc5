//! A log of the last API requests, for tests and `GET /requests`. Key material is replaced by its SHA-256, and the
//! API key is left out. Its size is limited, because a sandbox may run for weeks.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Value, json};

use crate::digest;

/// Maximum number of requests; the oldest are dropped.
const MAX_REQUESTS: usize = 10_000;

/// Maximum size of a body; a larger one is replaced by its SHA-256.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Maximum length of other text that the client has sent.
const MAX_TEXT_CHARS: usize = 1024;

/// Maximum number of notices of a request.
const MAX_NOTICES: usize = 10;

/// One API request.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRequest {
    /// Number of the request, counted from 1. The log holds the last 10,000 requests.
    pub number: u64,
    /// Method in upper case.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query; empty if there is none.
    pub query: String,
    /// Body as JSON with `key_pem` redacted; null if empty, `{"sha256":…,"bytes":…}` if it is not JSON or larger than
    /// 64 KB.
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
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    last: VecDeque<RecordedRequest>,
    /// Number of the newest.
    count: u64,
}

impl RequestLog {
    /// Appends and numbers a request. The entry is for adding what is known later.
    pub(crate) fn add(&self, request: RecordedRequest) -> LogEntry<'_> {
        let mut requests = self.lock();
        requests.count += 1;
        let number = requests.count;
        if requests.last.len() == MAX_REQUESTS {
            requests.last.pop_front();
        }
        requests.last.push_back(RecordedRequest { number, ..request });
        LogEntry { log: self, number }
    }

    pub(crate) fn list(&self) -> Vec<RecordedRequest> {
        self.lock().last.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that was added to the log.
#[derive(Clone, Copy)]
pub(crate) struct LogEntry<'a> {
    log: &'a RequestLog,
    number: u64,
}

impl LogEntry<'_> {
    /// Changes the request if the log still holds it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut RecordedRequest)) {
        let mut requests = self.log.lock();
        if let Ok(index) = requests.last.binary_search_by_key(&self.number, |request| request.number)
            && let Some(request) = requests.last.get_mut(index)
        {
            change(request);
        }
    }
}

/// Returns text of a request in the form in which it may be logged.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the notices on a request in the form in which they may be logged.
pub(crate) fn shortened_notices(notices: Vec<String>) -> Vec<String> {
    let more = notices.len().saturating_sub(MAX_NOTICES);
    let summary = (more > 0).then(|| format!("and {more} more notices"));
    notices.into_iter().take(MAX_NOTICES).map(|notice| shortened(&notice)).chain(summary).collect()
}

/// Returns a request body in the form that the log may hold.
pub(crate) fn redacted_body(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let is_small = body.len() <= MAX_BODY_BYTES;
    match is_small.then(|| serde_json::from_slice::<Value>(body)) {
        Some(Ok(mut value)) => {
            redact(&mut value);
            value
        }
        _ => json!({ "sha256": digest::sha256_hex(body), "bytes": body.len() }),
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
