//! A stream that wraps a socket: it replays bytes read earlier, and breaks on demand.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::AbortHandle;

/// A stream that fails after its next flush once [`AbortHandle::abort_after_flush`] was called.
pub(crate) struct Stream<IO> {
    /// Bytes that were read earlier and are still to be replayed.
    replay: Bytes,
    io: IO,
    abort: AbortHandle,
}

impl<IO> Stream<IO> {
    /// Returns a stream that first replays bytes that were read from `io` earlier, and does not break.
    pub(crate) fn replaying(replay: Vec<u8>, io: IO) -> Self {
        Self { replay: replay.into(), io, abort: AbortHandle::default() }
    }

    pub(super) fn abortable(io: IO, abort: AbortHandle) -> Self {
        Self { replay: Bytes::new(), io, abort }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Stream<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.replay.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let length = self.replay.len().min(buf.remaining());
        buf.put_slice(&self.replay.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Stream<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        if self.abort.is_due_after_flush() {
            self.abort.notify();
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
