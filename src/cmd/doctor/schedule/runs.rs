//! How often a schedule of cron or systemd fires: on each day of the week.

/// The number of runs on each day of the week, Sunday first. Days that a schedule may skip have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cmd::doctor) struct Runs([u32; 7]);

impl Runs {
    /// The same number of runs every day.
    pub(super) fn daily(number: u32) -> Self {
        Self([number; 7])
    }

    /// The same number of runs on each of these days of the week.
    pub(super) fn on_days(number: u32, is_on: impl Fn(u32) -> bool) -> Self {
        let mut days = 0..7;
        Self([(); 7].map(|()| if days.next().is_some_and(&is_on) { number } else { 0 }))
    }

    /// The runs of both schedules.
    pub(in crate::cmd::doctor) fn and(self, other: Self) -> Self {
        let mut others = other.0.into_iter();
        Self(self.0.map(|number| number.saturating_add(others.next().unwrap_or_default())))
    }

    /// Whether it fires more often than once a day.
    pub(in crate::cmd::doctor) fn is_frequent(self) -> bool {
        self.0.into_iter().all(|number| number > 1)
    }
}

/// A set of values of one field of a schedule, such as hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    values: Vec<u32>,
    size: u32,
}

/// The notation of a field.
pub(super) struct Notation {
    pub(super) min: u32,
    pub(super) max: u32,
    /// Names of the values, from `min` on, compared by their first three letters.
    pub(super) names: &'static [&'static str],
    /// Separator between the ends of a range.
    pub(super) ranges: &'static [&'static str],
    /// Whether `3/4` means 3 and every fourth value after it.
    pub(super) repeats_values: bool,
}

impl Field {
    /// Parses a list of values, ranges and steps; `None` if it is invalid.
    pub(super) fn parse(text: &str, notation: &Notation) -> Option<Self> {
        let mut values = Vec::new();
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step.parse().ok().filter(|step| *step > 0)?)),
                None => (part, None),
            };
            let (first, last) = notation.range(range, step.is_some())?;
            values.extend((first..=last).step_by(step.unwrap_or(1)));
        }
        values.sort_unstable();
        values.dedup();
        Some(Self { values, size: notation.max - notation.min + 1 })
    }

    pub(super) fn contains(&self, value: u32) -> bool {
        self.values.contains(&value)
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.values.len()).unwrap_or(u32::MAX)
    }

    /// Whether it has every value.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.size
    }
}

impl Notation {
    /// The ends of a range, of a single value or of `*`.
    fn range(&self, text: &str, has_step: bool) -> Option<(u32, u32)> {
        if text == "*" {
            return Some((self.min, self.max));
        }
        if let Some((first, last)) = self.ranges.iter().find_map(|separator| text.split_once(separator)) {
            return Some((self.value(first)?, self.value(last)?)).filter(|(first, last)| first <= last);
        }
        let value = self.value(text)?;
        Some((value, if has_step && self.repeats_values { self.max } else { value }))
    }

    fn value(&self, text: &str) -> Option<u32> {
        if let Ok(number) = text.parse::<u32>() {
            return (self.min..=self.max).contains(&number).then_some(number);
        }
        let name = text.get(..3)?.to_ascii_lowercase();
        let at = self.names.iter().position(|known| *known == name)?;
        Some(self.min + u32::try_from(at).ok()?)
    }
}
