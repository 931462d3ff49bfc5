//! The only file that asks what time it is: the date for the checks, the deadline for the run.

use std::time::{Duration, Instant};

use time::OffsetDateTime;

/// The date and time now, in UTC.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// A moment after which nothing is begun any more. Time that the machine sleeps may not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

/// Longer is for ever, and more than a clock can count.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Deadline {
    /// So far from now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub(crate) fn after(span: Duration) -> Self {
        Self(Instant::now() + span.min(LONGEST))
    }

    /// What is left; nothing when it has passed.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The earlier of the two.
    pub(crate) fn or_sooner(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}
