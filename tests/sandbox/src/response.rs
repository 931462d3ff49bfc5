//! Answers as values, and the one way they become bytes.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::transport::OutBody;

/// What is answered, before any fault touches it.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(status: StatusCode, value: &Value) -> Self {
        Self::typed(status, "application/json", value.to_string())
    }

    pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self::typed(status, "text/plain; charset=utf-8", text.into())
    }

    pub(crate) fn typed(status: StatusCode, kind: &'static str, body: String) -> Self {
        Self::empty(status).with(header::CONTENT_TYPE, HeaderValue::from_static(kind)).having(body.into())
    }

    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// Sets a header; one of the same name goes.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(present, _)| *present != name);
        self.headers.push((name, value));
        self
    }

    pub(crate) fn having(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// The answer as it is.
    pub(crate) fn whole(self) -> Response<OutBody> {
        let body = OutBody::whole(self.body.clone());
        self.around(body)
    }

    /// The answer with this body in place of its own.
    pub(crate) fn around(self, body: OutBody) -> Response<OutBody> {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}
