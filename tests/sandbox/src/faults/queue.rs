//! The faults that wait for a request. The first queued fault that matches a request applies to it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Fault;

/// The faults that still apply to requests.
#[derive(Default)]
pub(crate) struct Faults {
    queue: Mutex<Vec<Fault>>,
    random: Mutex<Option<RandomFaults>>,
}

impl Faults {
    pub(crate) fn add(&self, faults: impl IntoIterator<Item = Fault>) {
        self.queue().extend(faults);
    }

    /// Applies a random one of these faults to every other request, on average and without end. The choice
    /// depends on the seed and the order of requests only. Queued faults take precedence.
    pub(crate) fn set_random(&self, seed: u64, faults: impl IntoIterator<Item = Fault>) {
        let random =
            RandomFaults { rng: fastrand::Rng::with_seed(seed), faults: faults.into_iter().collect() };
        *self.random.lock().unwrap_or_else(PoisonError::into_inner) = Some(random);
    }

    /// Returns the queued faults.
    pub(crate) fn list(&self) -> Vec<Fault> {
        self.queue().clone()
    }

    /// Removes the queued faults.
    pub(crate) fn clear(&self) {
        self.queue().clear();
    }

    /// Returns the fault for this request, if any, and counts it as applied.
    pub(crate) fn take(&self, method: &str, path: &str) -> Option<Fault> {
        let mut queue = self.queue();
        queue.retain(|fault| fault.times > 0);
        let Some(fault) = queue.iter_mut().find(|fault| fault.matches(method, path)) else {
            let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
            return random.as_mut().and_then(|random| random.draw(method, path));
        };
        fault.times -= 1;
        Some(fault.clone())
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Faults that apply at random.
struct RandomFaults {
    rng: fastrand::Rng,
    faults: Vec<Fault>,
}

impl RandomFaults {
    fn draw(&mut self, method: &str, path: &str) -> Option<Fault> {
        let matching: Vec<&Fault> = self.faults.iter().filter(|fault| fault.matches(method, path)).collect();
        let applies = self.rng.bool();
        self.rng.choice(matching).filter(|_| applies).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::FaultAction;
    use super::*;

    #[test]
    fn random_faults_apply_to_half() {
        let faults = Faults::default();
        faults.set_random(7, [Fault::status("GET /a", 503), Fault::close_before("GET /a")]);
        let drawn: Vec<_> = (0..1000).map(|_| faults.take("GET", "/a").map(|fault| fault.action)).collect();
        let count = |action| drawn.iter().filter(|drawn| **drawn == action).count();
        assert!((400..600).contains(&count(None)), "{}", count(None));
        assert!(count(Some(FaultAction::Status)) > 150 && count(Some(FaultAction::CloseBefore)) > 150);
        assert_eq!(faults.take("GET", "/b"), None);
    }

    #[test]
    fn queued_faults_apply_in_order() {
        let faults = Faults::default();
        faults.add([Fault::status("GET /a", 503).times(2), Fault::close_before("GET /a")]);
        let drawn: Vec<_> = (0..4).map(|_| faults.take("GET", "/a").map(|fault| fault.action)).collect();
        assert_eq!(
            drawn,
            [Some(FaultAction::Status), Some(FaultAction::Status), Some(FaultAction::CloseBefore), None]
        );
    }
}
