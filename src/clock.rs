//! The only file that reads a clock: wall-clock time for checks and records, monotonic time for deadlines. The latter is
//! the runtime's, so that a simulation can pass it faster.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;

/// The current time in UTC.
#[expect(clippy::disallowed_methods, reason = "the only file that reads a clock")]
pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// The start of a run or of a push. Measures elapsed time by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start(Instant);

impl Default for Start {
    fn default() -> Self {
        Self::now()
    }
}

impl Start {
    #[expect(clippy::disallowed_methods, reason = "the only file that reads a clock")]
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The deadline this long after the start, but at most a year.
    pub(crate) fn deadline(self, timeout: Duration) -> Deadline {
        Deadline(self.0 + timeout.min(MAX_DURATION))
    }
}

/// No new work starts after this instant. Time during which the machine is suspended may not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline(Instant);

/// Longest time to a deadline, so that it stays within the clock's range.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Deadline {
    /// A deadline this long from now, but at most a year.
    pub(crate) fn after(duration: Duration) -> Self {
        Start::now().deadline(duration)
    }

    /// The time left; zero once the deadline has passed.
    #[expect(clippy::disallowed_methods, reason = "the only file that reads a clock")]
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The earlier of two deadlines.
    pub(crate) fn or_sooner(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}
