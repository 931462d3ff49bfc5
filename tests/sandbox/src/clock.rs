//! The only reader of the system's clocks, and the service's default time format.

use std::time::Instant;

use jiff::Timestamp;

/// Returns the current time.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns the current time of a clock that is never set.
#[expect(clippy::disallowed_methods, reason = "the only file that reads a clock")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// Formats Unix seconds as ISO 8601 in UTC, for example `2030-01-01T00:00:00Z`.
pub(crate) fn iso8601(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string())
}
