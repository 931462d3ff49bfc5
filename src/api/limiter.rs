//! Limits concurrent requests to one service: begins with few, allows one more after each success until the first 429,
//! halves the limit after each 429 and then raises it slowly, and pauses all requests for as long as `Retry-After` asks,
//! or up to a quarter longer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::error::AttemptError;
use crate::clock::Deadline;

/// Maximum number of requests in flight to one service.
pub(crate) const MAX_CONCURRENT_REQUESTS: usize = 100;

/// Requests in flight at first, and at most if each of them takes a connection of its own, as in HTTP/1.1.
const MAX_CONNECTIONS: usize = 32;

/// Upper limit of `Limiter::spread`.
const MAX_SPREAD: f64 = 0.25;

const TOO_MANY_REQUESTS: u16 = 429;

/// Shared by all clients that use one service with one API key.
pub(super) struct Limiter {
    permits: Semaphore,
    /// Permits that exist now, free or held.
    limit: AtomicUsize,
    /// Requests without a 429 since the limit last changed.
    successes: AtomicUsize,
    /// Whether any request was answered with 429.
    is_narrowed: AtomicBool,
    /// Whether requests share a connection.
    is_http2: AtomicBool,
    /// How much longer than `Retry-After` asks a pause lasts, as a share of it: each run has its own, so that hosts that
    /// were refused at the same time do not come back at the same time.
    spread: f64,
    /// No request is sent before this instant.
    backoff_until: Mutex<Option<Deadline>>,
}

impl Limiter {
    pub(super) fn new() -> Self {
        Self {
            permits: Semaphore::new(MAX_CONNECTIONS),
            limit: AtomicUsize::new(MAX_CONNECTIONS),
            successes: AtomicUsize::new(0),
            is_narrowed: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            spread: fastrand::f64() * MAX_SPREAD,
            backoff_until: Mutex::new(None),
        }
    }

    /// Waits until another request may be sent. If that is after `deadline`, fails at once with the pause that the
    /// service asked for, or after the deadline with zero.
    pub(super) async fn acquire(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Duration> {
        loop {
            let backoff = self.backoff();
            if backoff >= deadline.left() {
                return Err(backoff);
            }
            if !backoff.is_zero() {
                sleep(backoff).await;
            }
            let permit = tokio::time::timeout(deadline.left(), self.permits.acquire()).await;
            let Ok(Ok(permit)) = permit else { return Err(Duration::ZERO) };
            // Another request may have been answered with `Retry-After` in the meantime.
            if self.backoff().is_zero() {
                return Ok(permit);
            }
        }
    }

    /// Waits until another request could be sent, or for as long as one would wait.
    pub(super) async fn wait(&self, deadline: Deadline) {
        drop(self.acquire(deadline).await);
    }

    /// Sets whether requests share a connection, as in HTTP/2.
    pub(super) fn set_http2(&self, is_http2: bool) {
        self.is_http2.store(is_http2, Ordering::Relaxed);
    }

    /// Returns the permit of a request, and adapts the limit to how the request ended.
    pub(super) fn release<T>(&self, permit: SemaphorePermit<'_>, result: &Result<T, AttemptError>) {
        if self.adapt(result) {
            // While requests are queued no permit is ever free to be removed, so this one is.
            permit.forget();
        }
    }

    fn backoff(&self) -> Duration {
        let until = *self.backoff_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.map(Deadline::left).unwrap_or_default()
    }

    /// Adapts limit and back-off. Returns whether the permit of the request must be removed.
    fn adapt<T>(&self, result: &Result<T, AttemptError>) -> bool {
        let error = result.as_ref().err();
        if let Some(pause) = error.and_then(AttemptError::retry_after) {
            let pause = pause + pause.mul_f64(self.spread);
            let mut until = self.backoff_until.lock().unwrap_or_else(PoisonError::into_inner);
            let is_longer = until.is_none_or(|known| known.left() <= pause);
            *until = if is_longer { Some(Deadline::after(pause)) } else { *until };
        }
        if matches!(error, Some(AttemptError::Unavailable { status: TOO_MANY_REQUESTS, .. })) {
            return self.halve();
        }
        let successes = self.successes.fetch_add(1, Ordering::Relaxed);
        let is_narrowed = self.is_narrowed.load(Ordering::Relaxed);
        if !is_narrowed || successes >= self.limit.load(Ordering::Relaxed) {
            self.grow();
        }
        false
    }

    /// Removes half of the permits, as far as they are free. Returns whether the caller must remove its own, too.
    fn halve(&self) -> bool {
        self.successes.store(0, Ordering::Relaxed);
        self.is_narrowed.store(true, Ordering::Relaxed);
        let before =
            self.limit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |limit| Some(limit.div_ceil(2)));
        let surplus = before.map(|limit| limit - limit.div_ceil(2)).unwrap_or_default();
        let removed = self.permits.forget_permits(surplus);
        let own = usize::from(removed < surplus);
        // Permits that other requests hold still exist.
        self.limit.fetch_add(surplus - removed - own, Ordering::Relaxed);
        own == 1
    }

    /// Adds one permit.
    fn grow(&self) {
        self.successes.store(0, Ordering::Relaxed);
        let is_http2 = self.is_http2.load(Ordering::Relaxed);
        let max = if is_http2 { MAX_CONCURRENT_REQUESTS } else { MAX_CONNECTIONS };
        if self.limit.load(Ordering::Relaxed) < max {
            self.limit.fetch_add(1, Ordering::Relaxed);
            self.permits.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn too_many_requests(retry_after: Option<u64>) -> Result<(), AttemptError> {
        let retry_after = retry_after.map(Duration::from_secs);
        Err(AttemptError::Unavailable { status: TOO_MANY_REQUESTS, retry_after, message: String::new() })
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    fn permits(limiter: &Limiter) -> (usize, usize) {
        (limiter.limit.load(Ordering::Relaxed), limiter.permits.available_permits())
    }

    /// The number of successes after which the limit has grown to this.
    fn successes_until(limiter: &Limiter, limit: usize) -> usize {
        let mut successes = 0;
        while permits(limiter).0 != limit {
            limiter.adapt(&Ok(()));
            successes += 1;
        }
        successes
    }

    #[test]
    fn limit_halves_and_recovers_slowly() {
        let limiter = Limiter::new();
        for limit in [16, 8, 4, 2, 1, 1] {
            limiter.adapt(&too_many_requests(None));
            assert_eq!(permits(&limiter), (limit, limit));
        }
        // After as many successes as there are permits, and one more, there is another permit.
        assert_eq!(successes_until(&limiter, MAX_CONNECTIONS), (2..=MAX_CONNECTIONS).sum::<usize>());
        limiter.adapt(&Ok(()));
        assert_eq!(permits(&limiter), (MAX_CONNECTIONS, MAX_CONNECTIONS));
    }

    #[test]
    fn only_http2_widens_the_limit() {
        let limiter = Limiter::new();
        (0..1_000).for_each(|_| _ = limiter.adapt(&Ok(())));
        assert_eq!(permits(&limiter).0, MAX_CONNECTIONS);
        limiter.set_http2(true);
        assert_eq!(successes_until(&limiter, 100), 100 - MAX_CONNECTIONS);
        (0..1_000).for_each(|_| _ = limiter.adapt(&Ok(())));
        assert_eq!(permits(&limiter), (100, 100));
        limiter.adapt(&too_many_requests(None));
        assert_eq!(permits(&limiter), (50, 50));
        assert!(successes_until(&limiter, 100) > 1_000, "slowly");
    }

    #[test]
    fn longest_retry_after_pauses_all_requests() {
        let limiter = Limiter::new();
        limiter.adapt(&too_many_requests(Some(3600)));
        limiter.adapt(&too_many_requests(Some(1)));
        let soon = Deadline::after(Duration::from_secs(60));
        let pause = runtime().block_on(limiter.acquire(soon)).err().unwrap();
        assert!(pause > Duration::from_secs(3000), "{pause:?}");
        assert!(runtime().block_on(Limiter::new().acquire(soon)).is_ok());
    }

    #[test]
    fn pauses_of_hosts_differ() {
        let pause = |_| {
            let limiter = Limiter::new();
            limiter.adapt(&too_many_requests(Some(4000)));
            limiter.backoff().as_secs()
        };
        let pauses: BTreeSet<u64> = (0..100).map(pause).collect();
        assert!(pauses.len() > 50, "{pauses:?}");
        // A minute for the test itself.
        assert!(pauses.iter().all(|pause| (3940..=5000).contains(pause)), "{pauses:?}");
    }

    #[test]
    fn held_permits_are_removed_on_release() {
        let limiter = Limiter::new();
        let soon = Deadline::after(Duration::from_secs(60));
        let acquire = |_| runtime().block_on(limiter.acquire(soon)).ok().unwrap();
        let mut held: Vec<_> = (0..MAX_CONNECTIONS).map(acquire).collect();
        for removed in 1..=4 {
            limiter.release(held.pop().unwrap(), &too_many_requests(None));
            assert_eq!(permits(&limiter), (MAX_CONNECTIONS - removed, 0));
        }
        drop(held);
        assert_eq!(limiter.permits.available_permits(), MAX_CONNECTIONS - 4);
    }
}
