//! HTTP connections that can be aborted at a chosen moment, which no HTTP library offers. Knows nothing about
//! the service.

mod body;
mod stream;

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

pub(crate) use body::ResponseBody;
pub(crate) use stream::Stream;

/// A response as hyper sends it.
pub(crate) type HttpResponse = http::Response<ResponseBody>;

/// How long to wait for the client to close an aborted connection.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves HTTP/1.1 or HTTP/2 on `io` until either side closes the connection or a handler aborts it.
pub(crate) async fn serve<IO, F>(
    io: IO,
    socket: SocketHandle,
    handler: impl Fn(Request<Incoming>, AbortHandle) -> F,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = HttpResponse> + Send + 'static,
{
    let abort = AbortHandle::default();
    let io = TokioIo::new(Stream::abortable(io, abort.clone()));
    let service = service_fn(|request| {
        let response = handler(request, abort.clone());
        async move { Ok::<_, Infallible>(response.await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(io, service);
    // Errors of the connection are the client's doing or an injected fault, which the request log shows.
    tokio::select! {
        _ = connection => {}
        () = abort.0.now.notified() => socket.close().await,
    }
}

/// A second handle on a connection's socket, for closing it below TLS and HTTP.
pub(crate) struct SocketHandle(Option<TcpStream>);

impl SocketHandle {
    pub(crate) fn new(tcp: &TcpStream) -> Self {
        let duplicate = tcp.as_fd().try_clone_to_owned().map(std::net::TcpStream::from);
        Self(duplicate.and_then(TcpStream::from_std).ok())
    }

    /// Shuts down the sending direction and discards what still arrives. Closing a socket with unread bytes
    /// would reset the connection (RFC 9293, section 3.6.1), and the client would see a different error
    /// depending on timing.
    pub(crate) async fn close(self) {
        let Some(mut tcp) = self.0 else { return };
        if tcp.shutdown().await.is_ok() {
            let _ =
                tokio::time::timeout(LINGER_TIMEOUT, tokio::io::copy(&mut tcp, &mut tokio::io::sink())).await;
        }
    }
}

/// Aborts a connection without a TLS or HTTP closing handshake.
#[derive(Clone, Default)]
pub(crate) struct AbortHandle(Arc<AbortState>);

#[derive(Default)]
struct AbortState {
    now: Notify,
    after_flush: AtomicBool,
}

impl AbortHandle {
    /// Aborts the connection. Never returns, because there is no response.
    pub(crate) async fn abort<T>(&self) -> T {
        self.notify();
        std::future::pending().await
    }

    fn notify(&self) {
        self.0.now.notify_one();
    }

    /// Aborts the connection once everything written so far has reached the socket.
    fn abort_after_flush(&self) {
        self.0.after_flush.store(true, Ordering::Release);
    }

    fn is_due_after_flush(&self) -> bool {
        self.0.after_flush.load(Ordering::Acquire)
    }
}
