//! How fast the service may be asked, by all who ask it together: so many requests at once, fewer after each 429 and
//! slowly more again, and none at all as long as it asked to be left alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::Error;
use crate::clock::Deadline;

/// Requests under way at once, at most.
pub(crate) const MOST: usize = 32;

const TOO_MANY_REQUESTS: u16 = 429;

/// Shared by everything that asks one service with one key.
pub(super) struct Limiter {
    permits: Semaphore,
    /// How many permits there are now.
    width: AtomicUsize,
    /// Answers since the last change that were no 429.
    successes: AtomicUsize,
    /// The service asked to be left alone until then.
    backoff: Mutex<Option<Deadline>>,
}

impl Limiter {
    pub(super) fn new() -> Self {
        Self {
            permits: Semaphore::new(MOST),
            width: AtomicUsize::new(MOST),
            successes: AtomicUsize::new(0),
            backoff: Mutex::new(None),
        }
    }

    /// Waits until one more request may be sent. The error is how long the service wants to be left alone, where that is
    /// beyond the deadline.
    pub(super) async fn enter(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Duration> {
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
            // Another one may have been sent away meanwhile.
            if self.backoff().is_zero() {
                return Ok(permit);
            }
        }
    }

    fn backoff(&self) -> Duration {
        let until = *self.backoff.lock().unwrap_or_else(PoisonError::into_inner);
        until.map(Deadline::left).unwrap_or_default()
    }

    /// Gives a permit back, and learns from how its request ended.
    pub(super) fn leave<T>(&self, permit: SemaphorePermit<'_>, ended: &Result<T, Error>) {
        if self.learn(ended) {
            // Others wait for it, so that none is ever free to be taken away.
            permit.forget();
        }
    }

    /// Whether the permit of the request has to go with it.
    fn learn<T>(&self, ended: &Result<T, Error>) -> bool {
        let error = ended.as_ref().err();
        if let Some(pause) = error.and_then(Error::retry_after) {
            let until = Deadline::after(pause);
            let mut backoff = self.backoff.lock().unwrap_or_else(PoisonError::into_inner);
            *backoff = Some(backoff.filter(|known| known.left() > pause).unwrap_or(until));
        }
        if matches!(error, Some(Error::Unavailable { status: TOO_MANY_REQUESTS, .. })) {
            return self.narrow();
        }
        if self.successes.fetch_add(1, Ordering::Relaxed) >= self.width.load(Ordering::Relaxed) {
            self.widen();
        }
        false
    }

    /// Half as many permits, as far as they are free; where too few are, the one that is given back has to go.
    fn narrow(&self) -> bool {
        self.successes.store(0, Ordering::Relaxed);
        let before =
            self.width.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |width| Some(width.div_ceil(2)));
        let wanted = before.map(|width| width - width.div_ceil(2)).unwrap_or_default();
        let taken = self.permits.forget_permits(wanted);
        let own = usize::from(taken < wanted);
        // The others in use count as still there.
        self.width.fetch_add(wanted - taken - own, Ordering::Relaxed);
        own == 1
    }

    /// One permit more, after a whole round without complaint.
    fn widen(&self) {
        self.successes.store(0, Ordering::Relaxed);
        if self.width.load(Ordering::Relaxed) < MOST {
            self.width.fetch_add(1, Ordering::Relaxed);
            self.permits.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> Result<(), Error> {
        let retry_after = retry_after.map(Duration::from_secs);
        Err(Error::Unavailable { status: TOO_MANY_REQUESTS, retry_after, message: String::new() })
    }

    #[test]
    fn each_complaint_halves_the_places_and_each_calm_round_adds_one() {
        let limiter = Limiter::new();
        for wanted in [16, 8, 4, 2, 1, 1] {
            limiter.learn(&busy(None));
            assert_eq!(
                (limiter.width.load(Ordering::Relaxed), limiter.permits.available_permits()),
                (wanted, wanted)
            );
        }
        for wanted in 2..=MOST {
            while limiter.permits.available_permits() < wanted {
                limiter.learn(&Ok(()));
            }
        }
        limiter.learn(&Ok(()));
        assert_eq!(limiter.permits.available_permits(), MOST);
    }

    #[test]
    fn nobody_asks_while_the_service_wants_to_be_left_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limiter = Limiter::new();
        limiter.learn(&busy(Some(3600)));
        limiter.learn(&busy(Some(1)));
        let soon = Deadline::after(Duration::from_secs(60));
        let refused = runtime.block_on(limiter.enter(soon)).err().unwrap();
        assert!(refused > Duration::from_secs(3000), "{refused:?}");
        let patient = Limiter::new();
        assert!(runtime.block_on(patient.enter(soon)).is_ok());
    }

    #[test]
    fn a_place_that_others_wait_for_goes_with_the_complaint() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limiter = Limiter::new();
        let soon = Deadline::after(Duration::from_secs(60));
        let mut used: Vec<_> =
            (0..MOST).map(|_| runtime.block_on(limiter.enter(soon)).ok().unwrap()).collect();
        for number in 1..=4 {
            limiter.leave(used.pop().unwrap(), &busy(None));
            assert_eq!(
                (limiter.width.load(Ordering::Relaxed), limiter.permits.available_permits()),
                (MOST - number, 0)
            );
        }
        drop(used);
        assert_eq!(limiter.permits.available_permits(), MOST - 4);
    }
}
