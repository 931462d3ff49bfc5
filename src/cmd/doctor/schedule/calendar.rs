//! The schedules of systemd timers: `OnCalendar=` and time spans (`systemd.time(7)`), in their common forms.

use super::runs::{Field, Notation, Runs};

const HOURS: Notation = time_of_day(23);
const MINUTES: Notation = time_of_day(59);
/// Monday is 1, Sunday 7.
const WEEKDAYS: Notation = Notation {
    min: 1,
    max: 7,
    names: &["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    ranges: &["..", "-"],
    repeats_values: false,
};

const fn time_of_day(max: u32) -> Notation {
    Notation { min: 0, max, names: &[], ranges: &[".."], repeats_values: true }
}

/// The runs of an `OnCalendar=` expression; none if it cannot be parsed.
pub(super) fn runs(text: &str) -> Runs {
    match text.trim().to_ascii_lowercase().as_str() {
        "minutely" => Runs::daily(24 * 60),
        "hourly" => Runs::daily(24),
        "daily" => Runs::daily(1),
        text => parse(text).unwrap_or_default(),
    }
}

/// Parses `[WEEKDAYS] [DATE] [TIME] [ZONE]`.
fn parse(text: &str) -> Option<Runs> {
    let mut words = text.split_whitespace().peekable();
    let first = words.peek()?;
    let weekdays = Field::parse(first.trim_end_matches(','), &WEEKDAYS)
        .filter(|_| !first.starts_with(|c: char| c.is_ascii_digit()));
    if weekdays.is_some() {
        words.next();
    }
    let has_date = words.peek().is_some_and(|word| word.contains(['-', '~']) && !word.contains(':'));
    let is_any_date = match words.next_if(|_| has_date) {
        // Year, month and day, or month and day.
        Some(date) => date.split('-').all(|part| part == "*") && [2, 3].contains(&date.split('-').count()),
        None => true,
    };
    let times = match words.next_if(|word| word.contains(':')) {
        Some(time) => times_of_day(time)?,
        // Midnight. A schedule has at least one of its parts.
        None if has_date || weekdays.is_some() => 1,
        None => return None,
    };
    // What remains is a time zone.
    if words.count() > 1 || !is_any_date {
        return None;
    }
    Some(match weekdays {
        // Sunday is 0 for `Runs`.
        Some(days) => Runs::on_days(times, |day| days.contains(if day == 0 { 7 } else { day })),
        None => Runs::daily(times),
    })
}

/// The number of hours and minutes in `HOURS:MINUTES[:SECONDS]`.
fn times_of_day(text: &str) -> Option<u32> {
    let mut fields = text.split(':');
    let hours = Field::parse(fields.next()?, &HOURS)?;
    let minutes = Field::parse(fields.next()?, &MINUTES)?;
    Some(hours.len() * minutes.len())
}

/// The seconds of a time span such as `1h 30min`; `None` if it is invalid.
pub(super) fn span(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        seconds += number.parse::<f64>().ok()? * seconds_of(unit)?;
        rest = after.trim_start();
    }
    Some(seconds)
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "us" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        "M" | "month" | "months" => 2_629_800.0,
        "y" | "year" | "years" => 31_557_600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::Command;

    use super::*;

    const EXPRESSIONS: [(&str, bool); 27] = [
        ("minutely", true),
        ("hourly", true),
        ("daily", false),
        ("weekly", false),
        ("monthly", false),
        ("*-*-* *:00:00", true),
        ("*:17", true),
        ("*:0/15", true),
        ("0/6:00", true),
        ("00/12:30:00", true),
        ("*-*-* 00/4:00:00", true),
        ("03:30", false),
        ("03,15:30", true),
        ("08..18:00", true),
        ("*-*-* 04:00,30:00", true),
        ("*-*-* 03:30:00 UTC", false),
        ("*:05 Europe/Berlin", true),
        ("Mon..Sun 03,15:00", true),
        ("Mon..Fri *:00", false),
        ("Sat,Sun *:00", false),
        ("Mon *-*-* 00:00:00", false),
        ("*-*-01 *:00:00", false),
        ("*-01-* *:00", false),
        ("2026-*-* *:00", false),
        ("*-*-*", false),
        ("*-*-1,15 12:00", false),
        ("Mon", false),
    ];

    #[test]
    fn frequent_expressions_are_recognised() {
        for (text, expected) in EXPRESSIONS {
            assert_eq!(runs(text).is_frequent(), expected, "{text}");
        }
        for text in ["", "soon", "25:00", "*:60", "@0", "*:0/0", ":", "*-*-* *-*-*", "a b c d"] {
            assert!(!runs(text).is_frequent(), "{text}");
        }
        let days = runs("Mon..Fri *:00").and(runs("Sat,Sun *:30"));
        assert!(days.is_frequent() && runs("03:00").and(runs("15:00")).is_frequent());
    }

    /// Whether systemd would fire at least twice on each day of a week in February.
    fn is_frequent_for_systemd(text: &str) -> bool {
        let mut command = Command::new("systemd-analyze");
        command.env_clear().env("PATH", "/usr/bin:/bin").env("TZ", "UTC").env("LC_ALL", "C");
        // A run at the base time itself is not listed.
        let output = command
            .args(["calendar", "--base-time=2027-01-31 23:59:59", "--iterations=800", text])
            .output()
            .expect("cannot run here: systemd-analyze is not installed (Debian package systemd)");
        let listed = String::from_utf8(output.stdout).unwrap();
        let mut days: BTreeMap<String, u32> = BTreeMap::new();
        for line in listed.lines().filter(|line| line.contains(" UTC") && !line.contains("(in UTC)")) {
            let date = line.split_whitespace().find(|word| word.starts_with("2027-02-0"));
            *days.entry(date.unwrap_or_default().to_owned()).or_default() += 1;
        }
        (1..=7).all(|day| days.get(&format!("2027-02-0{day}")).is_some_and(|runs| *runs > 1))
    }

    #[test]
    fn expressions_are_read_as_by_systemd() {
        // The list of runs every minute would be too short for a week.
        for (text, expected) in EXPRESSIONS.iter().filter(|(text, _)| *text != "minutely") {
            assert_eq!(is_frequent_for_systemd(text), *expected, "{text}");
        }
    }

    #[test]
    fn spans_are_added_up() {
        for (text, expected) in [
            ("3600", Some(3_600.0)),
            ("1h", Some(3_600.0)),
            ("1h 30min", Some(5_400.0)),
            ("1h30min", Some(5_400.0)),
            ("1.5 hours", Some(5_400.0)),
            ("1d", Some(86_400.0)),
            ("2M", Some(5_259_600.0)),
            ("", None),
            ("soon", None),
            ("1 fortnight", None),
        ] {
            assert_eq!(span(text), expected, "{text}");
        }
    }
}
