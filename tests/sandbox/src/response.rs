//! Responses and errors as plain values, before a fault touches them.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use crate::transport::{HttpResponse, ResponseBody};

/// Why a request to the API or the control port fails. Status 200 means that only the body shows the error.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl RequestError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }
}

impl From<rusqlite::Error> for RequestError {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("database error: {error}"))
    }
}

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Response {
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        Self::typed(status, "application/json", value.to_string())
    }

    pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::typed(status, "text/plain; charset=utf-8", text.into())
    }

    pub(crate) fn typed(status: StatusCode, content_type: &'static str, body: String) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self::empty(status).with_header(header::CONTENT_TYPE, content_type).with_body(body)
    }

    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// Sets a header, replacing one of the same name.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(present, _)| *present != name);
        self.headers.push((name, value));
        self
    }

    pub(crate) fn with_body(mut self, body: String) -> Self {
        self.body = body.into();
        self
    }

    /// Converts the response for sending it in full.
    pub(crate) fn into_http(self) -> HttpResponse {
        self.into_http_with(ResponseBody::full)
    }

    /// Converts the response with a body made from its own.
    pub(crate) fn into_http_with(self, body: impl FnOnce(Bytes) -> ResponseBody) -> HttpResponse {
        let mut response = http::Response::new(body(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}
