//! Limits the requests to one service: how many are sent at once, and that none is sent during a pause it asked for.

use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

use crate::clock::Deadline;

/// Maximum number of requests in flight to one service.
pub(crate) const MAX_CONCURRENT_REQUESTS: usize = 100;

/// The same while each request takes a connection of its own, as in HTTP/1.1.
const MAX_CONNECTIONS: usize = 32;

/// Upper limit of `Limits::spread`.
const MAX_SPREAD: f64 = 0.25;

/// Shared by all clients that use one service with one API key.
pub(super) struct Limits {
    permits: Semaphore,
    widened: Once,
    /// How much longer than `Retry-After` asks a pause lasts, as a share of it. Each run has its own, so that hosts that
    /// were refused at the same time do not come back at the same time.
    spread: f64,
    /// No request is sent before this instant.
    paused_until: Mutex<Option<Deadline>>,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self {
            permits: Semaphore::new(MAX_CONNECTIONS),
            widened: Once::new(),
            spread: fastrand::f64() * MAX_SPREAD,
            paused_until: Mutex::new(None),
        }
    }

    /// Waits until another request may be sent. If that is after `deadline`, fails at once with the pause that the
    /// service asked for, or after the deadline with zero.
    pub(super) async fn acquire(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Duration> {
        loop {
            let pause = self.paused_for();
            if pause >= deadline.left() {
                return Err(pause);
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let permit = timeout(deadline.left(), self.permits.acquire()).await;
            let Ok(Ok(permit)) = permit else { return Err(Duration::ZERO) };
            // Another request may have been answered with `Retry-After` in the meantime.
            if self.paused_for().is_zero() {
                return Ok(permit);
            }
        }
    }

    /// Sends no further request before `retry_after` has passed; the longest pause counts.
    pub(super) fn pause(&self, retry_after: Duration) {
        let end = Deadline::after(retry_after.saturating_add(retry_after.mul_f64(self.spread)));
        let mut until = self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Some(end));
    }

    /// Permits more requests at once, because they share a connection.
    pub(super) fn widen(&self) {
        self.widened.call_once(|| self.permits.add_permits(MAX_CONCURRENT_REQUESTS - MAX_CONNECTIONS));
    }

    fn paused_for(&self) -> Duration {
        let until = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.map(Deadline::left).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::runtime::Runtime;

    #[test]
    fn longest_retry_after_pauses_all_requests() {
        let acquire = |limits: &Limits| {
            let soon = Deadline::after(Duration::from_secs(60));
            Runtime::new().unwrap().block_on(async { limits.acquire(soon).await.map(drop) })
        };
        let limits = Limits::new();
        assert_eq!(acquire(&limits), Ok(()));
        limits.pause(Duration::from_secs(3600));
        limits.pause(Duration::from_secs(1));
        let pause = acquire(&limits).unwrap_err();
        assert!(pause > Duration::from_secs(3000), "{pause:?}");
    }

    #[test]
    fn pauses_of_hosts_differ() {
        let pause = |_| {
            let limits = Limits::new();
            limits.pause(Duration::from_secs(4000));
            limits.paused_for().as_secs()
        };
        let pauses: BTreeSet<u64> = (0..100).map(pause).collect();
        assert!(pauses.len() > 50, "{pauses:?}");
        // A minute for the test itself.
        assert!(pauses.iter().all(|pause| (3940..=5000).contains(pause)), "{pauses:?}");
    }

    #[test]
    fn http2_permits_a_hundred_requests() {
        let limits = Limits::new();
        assert_eq!(limits.permits.available_permits(), MAX_CONNECTIONS);
        limits.widen();
        limits.widen();
        assert_eq!(limits.permits.available_permits(), MAX_CONCURRENT_REQUESTS);
    }
}
