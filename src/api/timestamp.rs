//! Times in responses: ISO 8601 with or without separators, seconds, fractions and offset, dates, and Unix times.

use serde_json::Value;
use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime, PrimitiveDateTime, UtcOffset};

use super::wire::text_or_json;
use crate::text::rfc3339;

/// A time as the service sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timestamp {
    /// To the second.
    At(OffsetDateTime),
    /// Without an offset: ISO 8601 calls it local, and the time zone is unknown. As if it were in UTC.
    Local(OffsetDateTime),
    /// A date in UTC: its midnight.
    On(OffsetDateTime),
    /// Untrusted text.
    Unreadable(String),
}

/// Local times differ from UTC by up to 14 hours, in steps of 15 minutes.
const MAX_OFFSET_SECONDS: i64 = 14 * 60 * 60;
const OFFSET_STEP_SECONDS: i64 = 15 * 60;

/// Unix times from here on are in milliseconds.
const FIRST_MILLISECONDS: i64 = 100_000_000_000;

impl Timestamp {
    /// Reads a field; `None` if it is absent, null or empty.
    pub(super) fn from_json(json: Option<&Value>) -> Option<Self> {
        let json = json?;
        let timestamp = match json {
            Value::Null => return None,
            Value::String(text) if text.trim().is_empty() => return None,
            Value::String(text) => parse(text.trim()),
            Value::Number(number) => number.as_i64().and_then(|number| {
                let seconds = if number < FIRST_MILLISECONDS { number } else { number / 1000 };
                utc(OffsetDateTime::from_unix_timestamp(seconds).ok()?)
            }),
            _ => None,
        };
        Some(timestamp.unwrap_or_else(|| Self::Unreadable(text_or_json(json))))
    }

    /// The time. A local time is taken as UTC, a date as its midnight in UTC.
    pub(crate) fn at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::At(at) | Self::Local(at) | Self::On(at) => Some(*at),
            Self::Unreadable(_) => None,
        }
    }

    /// Whether it may mean this time, which has no fraction of a second.
    pub(crate) fn may_be(&self, at: OffsetDateTime) -> bool {
        match self {
            Self::At(shown) => *shown == at,
            Self::Local(shown) => {
                let offset = (*shown - at).whole_seconds();
                offset.abs() <= MAX_OFFSET_SECONDS && offset % OFFSET_STEP_SECONDS == 0
            }
            Self::On(shown) => shown.date() == at.to_offset(UtcOffset::UTC).date(),
            Self::Unreadable(_) => false,
        }
    }
}

/// Reads ISO 8601, also with a space before the time and the offset, and with the zone as a word.
fn parse(text: &str) -> Option<Timestamp> {
    // Not with a sign before the year.
    text.strip_prefix(|c: char| c.is_ascii_digit())?;
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else {
        return Some(Timestamp::On(Date::parse(text, &Iso8601::PARSING).ok()?.midnight().assume_utc()));
    };
    let time = time.replace(' ', "").to_ascii_uppercase().replace("UTC", "Z").replace("GMT", "Z");
    let text = format!("{date}T{time}");
    if let Ok(at) = OffsetDateTime::parse(&text, &Iso8601::PARSING) {
        return utc(at);
    }
    let local = PrimitiveDateTime::parse(&text, &Iso8601::PARSING).ok()?.assume_utc();
    local.replace_nanosecond(0).ok().map(Timestamp::Local)
}

fn utc(at: OffsetDateTime) -> Option<Timestamp> {
    rfc3339::to_utc(at)?.replace_nanosecond(0).ok().map(Timestamp::At)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::macros::datetime;

    const EXPIRY: OffsetDateTime = datetime!(2030-01-01 00:00 UTC);

    fn may_be_expiry(shown: &Value) -> bool {
        Timestamp::from_json(Some(shown)).is_some_and(|shown| shown.may_be(EXPIRY))
    }

    #[test]
    fn one_time_has_many_forms() {
        for shown in [
            json!("2030-01-01T00:00:00Z"),
            json!("2030-01-01T00:00:00.000Z"),
            json!("2030-01-01T00:00:00,123456Z"),
            json!("2030-01-01T00:00Z"),
            json!("20300101T000000Z"),
            json!("2030-01-01 00:00:00 UTC"),
            json!("2030-01-01t08:00:00 +0800"),
            json!("2030-01-01T00:00:00+00:00"),
            json!("2030-01-01T08:00:00.000+0800"),
            json!("2029-12-31T19:00:00-05"),
            json!("2030-01-01T05:45:00+05:45"),
            json!("2030-01-01T00:00:00"),
            json!("2030-01-01 08:00:00"),
            json!("2029-12-31T19:00:00"),
            json!("2030-01-01"),
            json!("20300101"),
            json!(1_893_456_000),
            json!(1_893_456_000_000_i64),
        ] {
            assert!(may_be_expiry(&shown), "{shown}");
        }
    }

    #[test]
    fn other_times_differ() {
        for shown in [
            json!("2030-01-01T00:00:01Z"),
            json!("2030-01-01T08:00:00Z"),
            json!("2030-01-01T00:00:00+08:00"),
            json!("2030-01-01T00:07:00"),
            json!("2030-01-01T00:00:01"),
            json!("2030-01-01T15:00:00"),
            json!("2030-04-01T00:00:00"),
            json!("2030-01-02"),
            json!("0001-01-01T00:00:00Z"),
            json!("2030-13-01T00:00:00Z"),
            json!("2030-1-1"),
            json!("1 January 2030"),
            json!("+002030-01-01"),
            json!("2030-01-01T00:00:60"),
            json!("2030-01-01T00:00:00+8"),
            json!("T"),
            json!("\u{e9}2030-01-01T\u{e9}"),
            json!(0),
            json!(u64::MAX),
            json!(true),
            json!({}),
        ] {
            assert!(!may_be_expiry(&shown), "{shown}");
        }
    }

    #[test]
    fn hostile_times_are_unreadable() {
        let shown = |shown: &Value| Timestamp::from_json(Some(shown)).unwrap().at().map(rfc3339);
        for (json, expected) in [
            (json!("0001-01-01T00:00:00Z"), "0001-01-01T00:00:00Z"),
            (json!("0000-01-01"), "0000-01-01T00:00:00Z"),
            (json!("9999-12-31T23:59:59Z"), "9999-12-31T23:59:59Z"),
            (json!("9999-12-31T23:59:59"), "9999-12-31T23:59:59Z"),
            (json!("9999-12-31"), "9999-12-31T00:00:00Z"),
            (json!(0), "1970-01-01T00:00:00Z"),
            (json!(-1), "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(shown(&json).as_deref(), Some(expected), "{json}");
        }
        for json in [
            json!("9999-12-31T23:59:59-05:00"),
            json!("0000-01-01T00:00:00+05:00"),
            json!("2030-01-01T00:00:00+99:99"),
            json!(-99_999_999_999_i64),
            json!(9_007_199_254_740_993_i64),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(18_446_744_073_709_551_616.0),
            json!(1e308),
            json!(vec![0; 1_000_000]),
        ] {
            assert_eq!(shown(&json), None, "{:.40}", json.to_string());
        }
    }

    #[test]
    fn absent_time_has_several_forms() {
        for shown in [None, Some(json!(null)), Some(json!("")), Some(json!(" "))] {
            assert_eq!(Timestamp::from_json(shown.as_ref()), None, "{shown:?}");
        }
    }
}
