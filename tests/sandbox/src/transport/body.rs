//! Response bodies: complete, or cut off at a chosen byte.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::AbortHandle;

/// A response body that is sent in full, or up to a byte at which the connection is aborted.
pub(crate) struct ResponseBody {
    /// The rest, which is still to be sent; `None` when everything was handed to hyper.
    data: Option<Bytes>,
    content_length: u64,
    abort_at_end: Option<AbortHandle>,
}

impl ResponseBody {
    pub(crate) fn full(data: Bytes) -> Self {
        let content_length = data.len() as u64;
        Self { data: non_empty(data), content_length, abort_at_end: None }
    }

    /// Announces the length of `data`, sends its first `bytes` bytes and aborts the connection.
    pub(crate) fn truncated(data: &Bytes, bytes: usize, abort: AbortHandle) -> Self {
        let sent = data.slice(..bytes.min(data.len()));
        Self { data: non_empty(sent), content_length: data.len() as u64, abort_at_end: Some(abort) }
    }
}

fn non_empty(data: Bytes) -> Option<Bytes> {
    Some(data).filter(|data| !data.is_empty())
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &self.abort_at_end {
            None => Poll::Ready(None),
            Some(abort) => {
                // hyper may still hold the data in its buffer: abort once it has reached the socket.
                abort.abort_after_flush();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.abort_at_end.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content_length)
    }
}
