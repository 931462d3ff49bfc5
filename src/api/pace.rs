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
pub(super) struct Pace {
    places: Semaphore,
    /// How many places there are now.
    width: AtomicUsize,
    /// Answers since the last change that were no 429.
    calm: AtomicUsize,
    /// The service asked to be left alone until then.
    quiet: Mutex<Option<Deadline>>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            places: Semaphore::new(MOST),
            width: AtomicUsize::new(MOST),
            calm: AtomicUsize::new(0),
            quiet: Mutex::new(None),
        }
    }

    /// Waits until one more request may be sent. The error is how long the service wants to be left alone, where that is
    /// beyond the deadline.
    pub(super) async fn enter(&self, deadline: Deadline) -> Result<SemaphorePermit<'_>, Duration> {
        loop {
            let quiet = self.quiet();
            if quiet >= deadline.left() {
                return Err(quiet);
            }
            if !quiet.is_zero() {
                sleep(quiet).await;
            }
            let place = tokio::time::timeout(deadline.left(), self.places.acquire()).await;
            let Ok(Ok(place)) = place else { return Err(Duration::ZERO) };
            // Another one may have been sent away meanwhile.
            if self.quiet().is_zero() {
                return Ok(place);
            }
        }
    }

    fn quiet(&self) -> Duration {
        let until = *self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        until.map(Deadline::left).unwrap_or_default()
    }

    /// Gives a place back, and learns from how its request ended.
    pub(super) fn leave<T>(&self, place: SemaphorePermit<'_>, ended: &Result<T, Error>) {
        if self.learn(ended) {
            // Others wait for it, so that none is ever free to be taken away.
            place.forget();
        }
    }

    /// Whether the place of the request has to go with it.
    fn learn<T>(&self, ended: &Result<T, Error>) -> bool {
        let error = ended.as_ref().err();
        if let Some(pause) = error.and_then(Error::retry_after) {
            let until = Deadline::after(pause);
            let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
            *quiet = Some(quiet.filter(|known| known.left() > pause).unwrap_or(until));
        }
        if matches!(error, Some(Error::Busy { status: TOO_MANY_REQUESTS, .. })) {
            return self.narrow();
        }
        if self.calm.fetch_add(1, Ordering::Relaxed) >= self.width.load(Ordering::Relaxed) {
            self.widen();
        }
        false
    }

    /// Half as many places, as far as they are free; where too few are, the one that is given back has to go.
    fn narrow(&self) -> bool {
        self.calm.store(0, Ordering::Relaxed);
        let before =
            self.width.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |width| Some(width.div_ceil(2)));
        let wanted = before.map(|width| width - width.div_ceil(2)).unwrap_or_default();
        let taken = self.places.forget_permits(wanted);
        let own = usize::from(taken < wanted);
        // The others in use count as still there.
        self.width.fetch_add(wanted - taken - own, Ordering::Relaxed);
        own == 1
    }

    /// One place more, after a whole round without complaint.
    fn widen(&self) {
        self.calm.store(0, Ordering::Relaxed);
        if self.width.load(Ordering::Relaxed) < MOST {
            self.width.fetch_add(1, Ordering::Relaxed);
            self.places.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> Result<(), Error> {
        let retry_after = retry_after.map(Duration::from_secs);
        Err(Error::Busy { status: TOO_MANY_REQUESTS, retry_after, said: String::new() })
    }

    #[test]
    fn each_complaint_halves_the_places_and_each_calm_round_adds_one() {
        let pace = Pace::new();
        for wanted in [16, 8, 4, 2, 1, 1] {
            pace.learn(&busy(None));
            assert_eq!(
                (pace.width.load(Ordering::Relaxed), pace.places.available_permits()),
                (wanted, wanted)
            );
        }
        for wanted in 2..=MOST {
            while pace.places.available_permits() < wanted {
                pace.learn(&Ok(()));
            }
        }
        pace.learn(&Ok(()));
        assert_eq!(pace.places.available_permits(), MOST);
    }

    #[test]
    fn nobody_asks_while_the_service_wants_to_be_left_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let pace = Pace::new();
        pace.learn(&busy(Some(3600)));
        pace.learn(&busy(Some(1)));
        let soon = Deadline::after(Duration::from_secs(60));
        let refused = runtime.block_on(pace.enter(soon)).err().unwrap();
        assert!(refused > Duration::from_secs(3000), "{refused:?}");
        let patient = Pace::new();
        assert!(runtime.block_on(patient.enter(soon)).is_ok());
    }

    #[test]
    fn a_place_that_others_wait_for_goes_with_the_complaint() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let pace = Pace::new();
        let soon = Deadline::after(Duration::from_secs(60));
        let mut used: Vec<_> = (0..MOST).map(|_| runtime.block_on(pace.enter(soon)).ok().unwrap()).collect();
        for number in 1..=4 {
            pace.leave(used.pop().unwrap(), &busy(None));
            assert_eq!(
                (pace.width.load(Ordering::Relaxed), pace.places.available_permits()),
                (MOST - number, 0)
            );
        }
        drop(used);
        assert_eq!(pace.places.available_permits(), MOST - 4);
    }
}
