//! The lowest layer: accepts connections, speaks HTTP on them, and can cut one short at a chosen moment, which
//! no HTTP library offers. It knows nothing of the service.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// How long a client may take to notice that it was cut off.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves one connection until either side ends it or it is cut; then `hangup` ends it.
pub(crate) async fn serve<IO, F>(io: IO, hangup: Hangup, answer: impl Fn(Request<Incoming>, Cut) -> F)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Response<OutBody>> + Send + 'static,
{
    let cut = Cut::default();
    let wire = TokioIo::new(Wire { io, cut: cut.clone() });
    let service = service_fn(|request| {
        let answered = answer(request, cut.clone());
        async { Ok::<_, Infallible>(answered.await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(wire, service);
    // A connection that fails is the client's loss or a fault that was asked for; both are in the journal.
    tokio::select! {
        _ = connection => {}
        () = cut.0.now.notified() => hangup.end().await,
    }
}

/// A second handle on a connection's socket, to end it below TLS.
pub(crate) struct Hangup(Option<TcpStream>);

impl Hangup {
    pub(crate) fn of(tcp: &TcpStream) -> Self {
        let twin = tcp.as_fd().try_clone_to_owned().map(std::net::TcpStream::from);
        Self(twin.and_then(TcpStream::from_std).ok())
    }

    /// Closes our direction and reads what still comes: closing with unread bytes would reset the connection, and
    /// whether any are there is a matter of luck, so a client would see now this error, now that.
    async fn end(self) {
        let Some(mut tcp) = self.0 else { return };
        if tcp.shutdown().await.is_ok() {
            let _ = tokio::time::timeout(LAST_WORDS, tokio::io::copy(&mut tcp, &mut tokio::io::sink())).await;
        }
    }
}

/// The means to end a connection without a goodbye.
#[derive(Clone, Default)]
pub(crate) struct Cut(Arc<CutState>);

#[derive(Default)]
struct CutState {
    now: Notify,
    after_flush: AtomicBool,
}

impl Cut {
    /// Ends the connection; never returns, because nothing is answered any more.
    pub(crate) async fn now<T>(&self) -> T {
        self.0.now.notify_one();
        std::future::pending().await
    }
}

/// A body that is sent whole, or up to a point where the connection ends.
pub(crate) struct OutBody {
    data: Option<Bytes>,
    announced: u64,
    cut: Option<Cut>,
}

impl OutBody {
    pub(crate) fn whole(data: Bytes) -> Self {
        let announced = data.len() as u64;
        Self { data: Some(data).filter(|data| !data.is_empty()), announced, cut: None }
    }

    /// Announces all of `data`, sends the first `bytes` of it, and cuts.
    pub(crate) fn truncated(data: &Bytes, bytes: usize, cut: Cut) -> Self {
        let part = data.slice(..bytes.min(data.len()));
        let announced = data.len() as u64;
        Self { data: Some(part).filter(|part| !part.is_empty()), announced, cut: Some(cut) }
    }
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &self.cut {
            None => Poll::Ready(None),
            Some(cut) => {
                cut.0.after_flush.store(true, Ordering::Release);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.cut.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}

/// A stream that breaks after its next flush when it is to be cut then.
struct Wire<IO> {
    io: IO,
    cut: Cut,
}

impl<IO: AsyncRead + Unpin> AsyncRead for Wire<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Wire<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        if self.cut.0.after_flush.load(Ordering::Acquire) {
            self.cut.0.now.notify_one();
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// A stream of which the beginning was read already.
pub(crate) struct Rewound<IO> {
    head: Bytes,
    io: IO,
}

impl<IO> Rewound<IO> {
    pub(crate) fn new(head: Vec<u8>, io: IO) -> Self {
        Self { head: head.into(), io }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Rewound<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.head.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let length = self.head.len().min(buf.remaining());
        buf.put_slice(&self.head.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Rewound<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
