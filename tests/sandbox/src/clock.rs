//! The one place that reads the clock, and the one way a time is written.

use jiff::Timestamp;

/// This moment.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// ISO 8601 in UTC to the second: how the service writes a time at seed 0.
pub(crate) fn iso(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string())
}
