//! Lets the first request on a connection go alone until the connection is open: whether the others can share it, as in
//! HTTP/2, is not known before. Otherwise each of them would open one of its own.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::task::yield_now;
use tokio::time::timeout;
use tower_layer::Layer;
use tower_service::Service;

/// Requests do not wait longer than this for the first one.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Whether the connection to a service is open.
pub(super) struct Opening {
    /// Held by the first request.
    first: Mutex<()>,
    /// Wakes the requests that wait for the connection.
    opened: Notify,
    is_open: AtomicBool,
    /// Whether the version of HTTP is known.
    is_answered: AtomicBool,
    is_http2: AtomicBool,
}

impl Opening {
    /// Nobody has to wait unless HTTP/2 is offered.
    pub(super) fn new(offers_http2: bool) -> Self {
        Self {
            first: Mutex::default(),
            opened: Notify::new(),
            is_open: AtomicBool::new(!offers_http2),
            is_answered: AtomicBool::new(!offers_http2),
            is_http2: AtomicBool::new(false),
        }
    }

    /// Waits until the connection is open, or this request is the one to open it. That one keeps the guard until it has
    /// a response.
    pub(super) async fn wait(&self) -> Option<MutexGuard<'_, ()>> {
        if self.is_open() {
            return None;
        }
        let (first, opened) = (pin!(self.first.lock()), pin!(self.opened.notified()));
        match timeout(MAX_WAIT, select(first, opened)).await.ok()? {
            Either::Left((guard, _)) => (!self.is_open()).then_some(guard),
            Either::Right(_) => {
                // The HTTP client stores the connection first.
                yield_now().await;
                None
            }
        }
    }

    /// Notes that a connection has been opened.
    fn set_connected(&self) {
        self.is_open.store(true, Ordering::Relaxed);
        self.opened.notify_waiters();
    }

    /// Notes that a response has arrived.
    pub(super) fn set_answered(&self, is_http2: bool) {
        self.is_http2.store(is_http2, Ordering::Relaxed);
        self.is_answered.store(true, Ordering::Relaxed);
        self.set_connected();
    }

    /// Notes that a connection was closed. In HTTP/2 it was the only one.
    pub(super) fn set_closed(&self) {
        if self.may_be_shared() {
            self.is_open.store(false, Ordering::Relaxed);
        }
    }

    /// Whether requests may be on one connection: it speaks HTTP/2, or that is not known yet.
    pub(super) fn may_be_shared(&self) -> bool {
        !self.is_answered.load(Ordering::Relaxed) || self.is_http2.load(Ordering::Relaxed)
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}

/// Notes when the HTTP client has opened a connection.
#[derive(Clone)]
pub(super) struct OpeningLayer(pub(super) Arc<Opening>);

/// A connector of the HTTP client.
#[derive(Clone)]
pub(super) struct Connector<S> {
    inner: S,
    opening: Arc<Opening>,
}

impl<S> Layer<S> for OpeningLayer {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Connector { inner, opening: Arc::clone(&self.0) }
    }
}

impl<S, R> Service<R> for Connector<S>
where
    S: Service<R, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connect, opening) = (self.inner.call(request), Arc::clone(&self.opening));
        Box::pin(async move {
            let connection = connect.await?;
            opening.set_connected();
            Ok(connection)
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::runtime::Runtime;

    #[test]
    fn others_wait_until_the_connection_is_open() {
        let opening = Opening::new(true);
        let run = async {
            let first = opening.wait().await;
            assert!(first.is_some(), "it opens the connection");
            let mut second = pin!(opening.wait());
            assert!(second.as_mut().now_or_never().is_none());
            opening.set_connected();
            let second = (0..2).find_map(|_| second.as_mut().now_or_never());
            assert!(matches!(second, Some(None)), "it shares the connection before the first has a response");
            assert!(opening.may_be_shared());
            drop(first);
            opening.set_closed();
            assert!(opening.wait().await.is_some(), "it opens another connection");
        };
        Runtime::new().unwrap().block_on(run).unwrap();
    }

    #[test]
    fn connection_that_fails_is_opened_by_the_next_request() {
        let opening = Opening::new(true);
        let run = async {
            let first = opening.wait().await;
            let mut second = pin!(opening.wait());
            assert!(second.as_mut().now_or_never().is_none());
            drop(first);
            assert!(second.await.is_some());
            opening.set_answered(false);
            opening.set_closed();
            assert!(opening.wait().await.is_none(), "HTTP/1.1 uses several connections");
        };
        Runtime::new().unwrap().block_on(run).unwrap();
    }
}
