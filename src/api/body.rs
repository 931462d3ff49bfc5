//! Receives the body of a response in chunks.

use std::sync::Arc;

use bytes::Bytes;

use super::connection::{RequestPhase, connection_error};
use super::error::AttemptError;
use super::json::JsonError;
use super::response::Response;
use crate::secret::Redactor;

/// Maximum size of a body that is received as a whole.
const MAX_BYTES: usize = 32 << 20;

/// The body of a response that is being received.
pub(super) struct Body<'t> {
    pub(super) response: reqwest::Response,
    /// The service's host and port.
    pub(super) peer: &'t str,
    /// Its secrets may be in the body.
    pub(super) redactor: &'t Arc<Redactor>,
}

impl Body<'_> {
    /// The next chunk; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, AttemptError> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| connection_error(error, self.peer, RequestPhase::Response))
    }

    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Receives the whole body.
    pub(super) async fn text(mut self) -> Result<Response, AttemptError> {
        let length = self.response.content_length().and_then(|length| usize::try_from(length).ok());
        // If the length is known, the buffer never has to grow.
        let mut bytes = Vec::with_capacity(length.unwrap_or_default().min(MAX_BYTES));
        let mut is_too_large = false;
        while !is_too_large && let Some(chunk) = self.chunk().await? {
            is_too_large = bytes.len() + chunk.len() > MAX_BYTES;
            bytes.extend_from_slice(&chunk);
        }
        let lossy =
            |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        let body = if is_too_large {
            Err(JsonError::TooLarge("32 MiB"))
        } else {
            Ok(String::from_utf8(bytes).unwrap_or_else(lossy))
        };
        Ok(Response::new(self.status(), body, Arc::clone(self.redactor)))
    }
}
