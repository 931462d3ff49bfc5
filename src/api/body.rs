//! Receives the body of a response in chunks.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::json::JsonError;
use super::response::Response;
use crate::secret::Redactor;

/// Maximum size of a body that is received as a whole.
const MAX_BYTES: usize = 32 << 20;

/// Reads a body while it arrives.
pub(super) trait Body: Sized {
    type Response;

    /// Prepares for a body of about this length; zero if it is unknown. The redactor's secrets
    /// may be in it.
    fn begin(length: usize, redactor: Arc<Redactor>) -> Self;

    /// Reads another chunk. `Break` if no more is needed.
    fn push(&mut self, chunk: &[u8]) -> ControlFlow<()>;

    /// Ends the body of a response with this status.
    fn end(self, status: u16) -> Self::Response;
}

/// A body that is received as a whole.
pub(super) struct TextBody {
    bytes: Vec<u8>,
    is_too_large: bool,
    redactor: Arc<Redactor>,
}

impl Body for TextBody {
    type Response = Response;

    fn begin(length: usize, redactor: Arc<Redactor>) -> Self {
        // If the length is known, the buffer never has to grow.
        Self { bytes: Vec::with_capacity(length.min(MAX_BYTES)), is_too_large: false, redactor }
    }

    fn push(&mut self, chunk: &[u8]) -> ControlFlow<()> {
        self.is_too_large = self.bytes.len() + chunk.len() > MAX_BYTES;
        if self.is_too_large {
            return ControlFlow::Break(());
        }
        self.bytes.extend_from_slice(chunk);
        ControlFlow::Continue(())
    }

    fn end(self, status: u16) -> Response {
        let lossy =
            |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        let body = if self.is_too_large {
            Err(JsonError::TooLarge("32 MiB"))
        } else {
            Ok(String::from_utf8(self.bytes).unwrap_or_else(lossy))
        };
        Response::new(status, body, self.redactor)
    }
}
