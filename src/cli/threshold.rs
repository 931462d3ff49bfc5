//! Values of the threshold flags of `status --check`: `14` (days), `36h`, `25%`, `off`.

use time::Duration;

/// A limit on a duration, fixed or relative to the lifetime of a certificate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Threshold {
    Off,
    Fixed(Duration),
    /// A share of the certificate's lifetime, from 0 to 1.
    Share(f64),
    /// The lower of both, as the defaults are; the fixed one if the lifetime is unknown.
    Lower(Duration, f64),
}

/// Time left of a deployed certificate: warning, critical.
pub(crate) const TIME_LEFT: [Threshold; 2] =
    [Threshold::Lower(Duration::days(14), 1.0 / 4.0), Threshold::Lower(Duration::days(3), 1.0 / 10.0)];
/// How long a deployment has been pending: warning, critical.
pub(crate) const LAG: [Threshold; 2] =
    [Threshold::Lower(Duration::hours(6), 1.0 / 40.0), Threshold::Lower(Duration::days(1), 1.0 / 20.0)];
/// Time since the last `sync`: warning, critical.
pub(crate) const SYNC_AGE: [Duration; 2] = [Duration::hours(3), Duration::days(1)];

/// Units and their seconds.
const UNITS: [(&str, i64); 5] = [("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
const DAY: i64 = 86_400;
/// Higher values are mistakes: nothing lasts that long.
const MAX_DAYS: f64 = 36_500.0;
/// Higher values without a unit were meant as seconds.
const MAX_BARE_DAYS: f64 = 400.0;

impl Threshold {
    /// The limit for a certificate; `None` if it is off, or relative to an unknown lifetime.
    pub(crate) fn of(self, lifetime: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::Fixed(duration) => Some(duration),
            Self::Share(share) => lifetime.map(|lifetime| lifetime * share),
            Self::Lower(fixed, share) => Some(lifetime.map_or(fixed, |lifetime| fixed.min(lifetime * share))),
        }
    }

    /// Parses the value of `--warning` and `--critical`.
    pub(super) fn time_left(text: &str) -> Result<Self, String> {
        let (number, unit) = number_and_unit(text)?;
        let seconds = match unit {
            "%" if number <= 100.0 => return Ok(Self::Share(number / 100.0)),
            "%" => return Err("a certificate has at most 100% of its lifetime left".into()),
            _ => UNITS.iter().find(|(name, _)| *name == unit).map_or(DAY, |(_, seconds)| *seconds),
        };
        let unit = Duration::seconds(seconds);
        if number * unit.as_seconds_f64() > MAX_DAYS * Duration::DAY.as_seconds_f64() {
            return Err(format!("at most {MAX_DAYS} days"));
        }
        Ok(Self::Fixed(unit * number))
    }

    /// Parses the value of `--lag-warning` and `--lag-critical`.
    pub(super) fn lag(text: &str) -> Result<Self, String> {
        let (number, unit) = number_and_unit(text)?;
        if unit.is_empty() && number > MAX_BARE_DAYS {
            let text = text.trim();
            return Err(format!("{text} without a unit means days; write {text}s for seconds"));
        }
        Self::time_left(text)
    }

    /// Parses the value of `--sync-warning` and `--sync-critical`.
    pub(super) fn sync_age(text: &str) -> Result<Self, String> {
        if text.trim().eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        match Self::lag(text)? {
            Self::Share(_) => {
                Err("expected a duration or off; a share of a lifetime does not apply to sync".into())
            }
            fixed => Ok(fixed),
        }
    }
}

/// Splits a number, of digits and at most one point, from its unit, which may be missing.
fn number_and_unit(text: &str) -> Result<(f64, &str), String> {
    const EXPECTED: &str =
        "expected days (14), a duration (36h, 90m, 45s, 2d, 1w) or a share of the lifetime (25%)";
    let text = text.trim();
    let (number, unit) =
        text.split_at(text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len()));
    let is_unit = unit.is_empty() || unit == "%" || UNITS.iter().any(|(name, _)| *name == unit);
    number.parse().ok().filter(|_| is_unit).map(|number| (number, unit)).ok_or_else(|| EXPECTED.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn fixed(seconds: i64) -> Threshold {
        Threshold::Fixed(Duration::seconds(seconds))
    }

    #[test]
    fn units_are_understood() {
        let rows = [
            ("14", fixed(14 * DAY)),
            ("1.5", fixed(36 * 3_600)),
            (".5d", fixed(12 * 3_600)),
            ("0", fixed(0)),
            (" 36h ", fixed(36 * 3_600)),
            ("90m", fixed(5_400)),
            ("45s", fixed(45)),
            ("2d", fixed(2 * DAY)),
            ("1w", fixed(7 * DAY)),
            ("36500", fixed(36_500 * DAY)),
            ("25%", Threshold::Share(0.25)),
            ("0%", Threshold::Share(0.0)),
            ("100%", Threshold::Share(1.0)),
        ];
        for (text, expected) in rows {
            assert_eq!(Threshold::time_left(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let rows = [
            "", " ", "h", "%", "-1", "+1", "-1h", "1e3", "1e999", "inf", "NaN", "nan%", "1.2.3", ".", "1,5",
            "0x10", "14:", "@1:2", "1 h", "1h30m", "1H", "1M", "5min", "off", "10²", "१",
        ];
        for text in rows {
            let reason = Threshold::time_left(text).expect_err(text);
            assert!(reason.starts_with("expected days (14), a duration"), "{text}: {reason}");
        }
        for text in
            ["36501", "36500.1d", "5215w", "100.1%", &"9".repeat(400), &format!("{}s", "9".repeat(400))]
        {
            let reason = Threshold::time_left(text).expect_err(text);
            assert!(reason.contains("at most"), "{text}: {reason}");
        }
    }

    #[test]
    fn seconds_need_their_unit() {
        for (text, expected) in
            [("400", fixed(400 * DAY)), ("7200s", fixed(7_200)), ("5%", Threshold::Share(0.05))]
        {
            assert_eq!(Threshold::lag(text), Ok(expected), "{text}");
        }
        let reason = "7200 without a unit means days; write 7200s for seconds";
        assert_eq!(Threshold::lag("7200").unwrap_err(), reason);
        assert_eq!(Threshold::sync_age("7200").unwrap_err(), reason);
    }

    #[test]
    fn sync_threshold_is_a_duration_or_off() {
        assert_eq!(Threshold::sync_age("off"), Ok(Threshold::Off));
        assert_eq!(Threshold::sync_age("3h"), Ok(Threshold::Fixed(Duration::hours(3))));
        assert!(Threshold::sync_age("5%").unwrap_err().contains("off"));
        assert!(Threshold::sync_age("never").is_err());
    }

    #[test]
    fn share_follows_the_lifetime() {
        let quarter = Threshold::Share(0.25);
        assert_eq!(quarter.of(Some(Duration::days(6))), Some(Duration::hours(36)));
        assert_eq!(quarter.of(None), None);
        assert_eq!(Threshold::Fixed(Duration::DAY).of(None), Some(Duration::DAY));
    }
}
