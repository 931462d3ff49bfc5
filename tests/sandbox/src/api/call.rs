//! An authenticated request as the endpoints see it.

use std::cell::RefCell;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::render::Renderer;
use crate::app::App;
use crate::response::{RequestError, Response};

pub(super) type ApiResult = Result<Response, RequestError>;

/// An authenticated request.
pub(super) struct Call<'a> {
    pub(super) app: &'a App,
    pub(super) account: i64,
    pub(super) now: Timestamp,
    head: &'a Parts,
    body: &'a Bytes,
    notices: RefCell<Vec<String>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(app: &'a App, account: i64, now: Timestamp, head: &'a Parts, body: &'a Bytes) -> Self {
        Self { app, account, now, head, body, notices: RefCell::default() }
    }

    pub(super) fn renderer(&self) -> Renderer<'a> {
        Renderer::new(&self.app.quirks)
    }

    /// Parses the body as a JSON object.
    pub(super) fn json_object(&self) -> Result<Map<String, Value>, RequestError> {
        let content_type = header_text(&self.head.headers, &header::CONTENT_TYPE);
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            let message = "the body must be sent with Content-Type: application/json";
            return Err(RequestError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(RequestError::bad_request("the body is not a JSON object")),
            Err(error) => Err(RequestError::bad_request(format!("the body is not JSON: {error}"))),
        }
    }

    /// Records a deviation from the documented request.
    pub(super) fn notice(&self, text: String) {
        self.notices.borrow_mut().push(text);
    }

    pub(super) fn into_notices(self) -> Vec<String> {
        self.notices.into_inner()
    }

    /// Returns the time of the request in Unix seconds.
    pub(super) fn now_seconds(&self) -> i64 {
        self.now.as_second()
    }

    /// Returns when a change made by this request is pushed to the edge, in milliseconds since 1970.
    pub(super) fn push_at(&self) -> i64 {
        self.app.push_at(self.now)
    }
}

/// Returns the text of a header; empty if it is missing or not text.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
