//! Formats times for reading: dates, to the minute at most, with the time that is left or has passed, and durations.

use time::{Duration, OffsetDateTime, UtcOffset};

use super::{humanize, largest_unit};

/// Formats when something expires or has expired: `expires 19 Feb 2027 (89 days)`.
pub fn expiry(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let (verb, ago) = if at < now { ("expired", " ago") } else { ("expires", "") };
    let utc = at.to_offset(UtcOffset::UTC);
    format!("{verb} {} {:04} ({}{ago})", day_and_month(utc), utc.year(), humanize(at - now))
}

/// Formats the time since which a state lasts, without the year if that is the current one: `21 Nov 23:34 UTC (2 hours)`.
pub fn since(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let [utc, today] = [at, now].map(|at| at.to_offset(UtcOffset::UTC));
    let year = if utc.year() == today.year() { String::new() } else { format!(" {:04}", utc.year()) };
    let time = format!("{:02}:{:02} UTC", utc.hour(), utc.minute());
    format!("{}{year} {time} ({})", day_and_month(utc), humanize(now - at))
}

/// Formats a duration in its largest fitting unit, for tables: `12 d`, `3 h`, `9 min`, `40 s`.
pub fn short(duration: Duration) -> String {
    let (number, _, unit) = largest_unit(duration);
    format!("{number} {unit}")
}

/// Formats how long a run took: `2.1 s`, `92 s`, `5 min 3 s`.
pub fn elapsed(duration: std::time::Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64().max(0.1)),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// `2 Nov`
fn day_and_month(utc: OffsetDateTime) -> String {
    format!("{} {:.3}", utc.day(), utc.month())
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-11-22 02:00 UTC);

    #[test]
    fn times_say_what_they_mean() {
        let at = datetime!(2026-11-21 23:34:56.789 UTC);
        assert_eq!(since(at, NOW), "21 Nov 23:34 UTC (2 hours)");
        assert_eq!(since(datetime!(2026-01-01 00:05 +1), NOW), "31 Dec 2025 23:05 UTC (325 days)");
        assert_eq!(expiry(datetime!(2027-02-19 23:34:27 UTC), NOW), "expires 19 Feb 2027 (89 days)");
        assert_eq!(expiry(datetime!(2026-11-02 02:00 +1), NOW), "expired 2 Nov 2026 (20 days ago)");
    }

    #[test]
    fn durations_have_one_unit() {
        use std::time::Duration as Elapsed;
        let rows = [
            (0, "0.1 s"),
            (40, "0.1 s"),
            (2_149, "2.1 s"),
            (9_999, "10.0 s"),
            (10_400, "10 s"),
            (92_000, "92 s"),
        ];
        for (millis, shown) in rows {
            assert_eq!(elapsed(Elapsed::from_millis(millis)), shown);
        }
        assert_eq!(elapsed(Elapsed::from_secs(303)), "5 min 3 s");
        for (seconds, shown) in
            [(40, "40 s"), (600, "10 min"), (7_200, "2 h"), (200_000, "2 d"), (-86_400, "24 h")]
        {
            assert_eq!(short(Duration::seconds(seconds)), shown);
        }
    }
}
