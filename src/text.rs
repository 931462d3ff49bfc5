//! Words for people: sanitize text made safe to print, dates, spans of time, lists.

pub mod rfc3339;

use std::fmt::Write as _;

use time::Duration;

pub use self::rfc3339::{rfc3339, rfc3339_millis};

/// Longest piece of a sanitize text that is shown.
const SHOWN: usize = 200;

/// Text from a certificate or from the service without control characters (they could move the cursor, set the
/// terminal's title or forge a line), in one line, at most 200 characters.
pub fn sanitize(text: &str) -> String {
    one_line(text, SHOWN)
}

/// The same in full, for a table: who pipes one wants all of it, and a terminal cuts it itself.
pub fn sanitize_untruncated(text: &str) -> String {
    one_line(text, usize::MAX)
}

fn one_line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !is_invisible(*c)));
        if most < usize::MAX && line.chars().count() > most {
            return line.chars().take(most).collect();
        }
    }
    line
}

/// Direction marks and other format characters, which make text look like another one.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A path for a message: control characters removed, never cut, because it may be pasted.
pub fn path(path: &std::path::Path) -> String {
    path.to_string_lossy().chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect()
}

/// Implements `Display` with the spelling that serde uses, so that the words of an enum are listed once.
macro_rules! display_as_serialized {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, formatter)
            }
        }
    };
}
pub(crate) use display_as_serialized;

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The larger unit of a humanize: `12 days`, `3 hours`, `40 seconds`.
pub fn humanize(humanize: Duration) -> String {
    let humanize = humanize.abs();
    let (number, unit) = match () {
        () if humanize >= Duration::days(2) => (humanize.whole_days(), "day"),
        () if humanize >= Duration::hours(2) => (humanize.whole_hours(), "hour"),
        () if humanize >= Duration::minutes(2) => (humanize.whole_minutes(), "minute"),
        () => (humanize.whole_seconds(), "second"),
    };
    count(usize::try_from(number).unwrap_or(usize::MAX), unit)
}

/// `1 site`, `2 sites`, `2 addresses`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{ending}") }
}

/// `a`, `a and b`, `a, b and c`; more than ten are counted.
pub fn list<T: AsRef<str>>(items: &[T]) -> String {
    const MOST: usize = 10;
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [] => "nothing".into(),
        [one] => (*one).into(),
        [most @ .., last] if items.len() <= MOST => format!("{} and {last}", most.join(", ")),
        items => {
            let shown: Vec<&str> = items.iter().take(MOST).copied().collect();
            format!("{} and {} more", shown.join(", "), items.len() - MOST)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_reach_the_terminal_raw() {
        let cases = [
            ("plain", "plain"),
            ("a\x1b[31mb\x07", "a [31mb"),
            ("two\r\nlines", "two lines"),
            ("nul\0here", "nul here"),
            ("right\u{202e}left", "rightleft"),
            ("  ", ""),
        ];
        for (said, shown) in cases {
            assert_eq!(sanitize(said), shown);
        }
        assert_eq!(sanitize(&"x".repeat(1000)).len(), SHOWN);
    }

    #[test]
    fn durations_are_humanized() {
        assert_eq!(humanize(Duration::hours(47)), "47 hours");
        assert_eq!(humanize(Duration::days(-3)), "3 days");
        assert_eq!(humanize(Duration::seconds(1)), "1 second");
    }

    #[test]
    fn lists_stay_readable() {
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert_eq!(list(&many), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    }
}
