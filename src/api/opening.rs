//! Lets the first request on a connection go alone: whether the others can share the connection, as in HTTP/2, is known
//! once it is open. Otherwise each of them would open one of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

/// Requests do not wait longer than this for the first one.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Whether the connection to a service is open.
pub(super) struct Opening {
    /// Held by the first request.
    first: Mutex<()>,
    is_open: AtomicBool,
    is_http2: AtomicBool,
}

impl Opening {
    /// Nobody has to wait unless HTTP/2 is offered.
    pub(super) fn new(offers_http2: bool) -> Self {
        Self {
            first: Mutex::default(),
            is_open: AtomicBool::new(!offers_http2),
            is_http2: AtomicBool::new(false),
        }
    }

    /// Waits until the connection is open, or this request is the one to open it. That one keeps the guard until it has
    /// a response.
    pub(super) async fn wait(&self) -> Option<MutexGuard<'_, ()>> {
        if self.is_open() {
            return None;
        }
        let guard = timeout(MAX_WAIT, self.first.lock()).await.ok()?;
        (!self.is_open()).then_some(guard)
    }

    /// Notes that a response has arrived.
    pub(super) fn set_open(&self, is_http2: bool) {
        self.is_http2.store(is_http2, Ordering::Relaxed);
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Notes that a connection was closed. In HTTP/2 it was the only one.
    pub(super) fn set_closed(&self) {
        if self.is_http2.load(Ordering::Relaxed) {
            self.is_open.store(false, Ordering::Relaxed);
        }
    }

    /// Whether requests may be on one connection: it speaks HTTP/2, or that is not known yet.
    pub(super) fn may_be_shared(&self) -> bool {
        !self.is_open() || self.is_http2.load(Ordering::Relaxed)
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }
}
