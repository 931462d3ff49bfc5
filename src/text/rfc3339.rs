//! RFC 3339 times in UTC: formatting, parsing, and the serde adapters of reports and state files.

use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// Formats a time to the second.
pub fn rfc3339(at: OffsetDateTime) -> String {
    format(to_seconds(at))
}

/// Formats a time to the millisecond, for state files: two runs may end within the same second.
pub fn rfc3339_millis(at: OffsetDateTime) -> String {
    let at = at.to_offset(UtcOffset::UTC);
    format(at.replace_millisecond(at.millisecond()).unwrap_or(at))
}

/// Converts to UTC and drops the fraction of a second.
pub fn to_seconds(at: OffsetDateTime) -> OffsetDateTime {
    let at = at.to_offset(UtcOffset::UTC);
    at.replace_nanosecond(0).unwrap_or(at)
}

/// Converts a time from outside to UTC, where its year may be before 0 or after 9999; `None` if so.
pub fn to_utc(at: OffsetDateTime) -> Option<OffsetDateTime> {
    at.checked_to_offset(UtcOffset::UTC).filter(|at| (0..=9999).contains(&at.year()))
}

/// Parses a time of any precision and offset.
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok().and_then(to_utc)
}

fn format(at: OffsetDateTime) -> String {
    // RFC 3339 has four digits for the year.
    at.format(&Rfc3339).unwrap_or_else(|_| "a date beyond the year 9999".into())
}

/// The adapter for a time; whole seconds have no fraction: `#[serde(with = "crate::text::rfc3339::millis")]`.
pub mod millis {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{OffsetDateTime, parse, rfc3339_millis};

    const NOT_A_TIME: &str = "not an RFC 3339 time";

    /// Serializes a time, or an optional one, to the millisecond.
    pub fn serialize<T, S: Serializer>(at: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<Option<OffsetDateTime>>,
    {
        (*at).into().map(rfc3339_millis).serialize(serializer)
    }

    /// Deserializes a time of any precision.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OffsetDateTime, D::Error> {
        parse(&String::deserialize(deserializer)?).ok_or_else(|| D::Error::custom(NOT_A_TIME))
    }

    /// Deserializes a time of any precision, or `null`.
    pub fn deserialize_option<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<OffsetDateTime>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse(&text).ok_or_else(|| D::Error::custom(NOT_A_TIME))).transpose()
    }

    /// The adapter for an optional time.
    pub mod option {
        pub use super::{deserialize_option as deserialize, serialize};
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn times_are_formatted_in_utc() {
        let at = datetime!(2026-01-02 03:04:05.6789 +1);
        assert_eq!(rfc3339(at), "2026-01-02T02:04:05Z");
        assert_eq!(rfc3339_millis(at), "2026-01-02T02:04:05.678Z");
        assert_eq!(rfc3339_millis(to_seconds(at)), "2026-01-02T02:04:05Z");
    }

    #[test]
    fn parsed_times_keep_their_text() {
        for text in ["2026-01-02T02:04:05Z", "2026-01-02T02:04:05.6Z", "2026-01-02T02:04:05.678Z"] {
            assert_eq!(rfc3339_millis(parse(text).unwrap()), text);
        }
        for text in ["9999-12-31T18:59:59-05:00", "0000-01-01T05:00:00+05:00"] {
            assert!(
                ["9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z"].contains(&&*rfc3339(parse(text).unwrap()))
            );
        }
        for text in ["", "2026-01-02", "9999-12-31T23:59:59-05:00", "0000-01-01T00:00:00+05:00"] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
