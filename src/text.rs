//! Formats values for terminals: sanitizes untrusted text, and writes times, durations, counts and lists.

pub mod people;
pub mod rfc3339;

use std::borrow::Cow;
use std::fmt::Display;

use time::Duration;

pub use self::rfc3339::{rfc3339, rfc3339_millis};

/// Longest untrusted text that is shown, in characters.
const MAX_LENGTH: usize = 200;

/// Makes text from a certificate or from the service safe to print: one line of at most 200 characters, without the
/// control characters that could move the cursor, set the terminal's title or forge a line.
pub fn sanitize(text: &str) -> String {
    sanitize_untruncated(text).chars().take(MAX_LENGTH).collect()
}

/// Sanitizes without truncating.
pub fn sanitize_untruncated(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let visible = |word: &str| word.chars().filter(|c| !is_invisible(*c)).collect::<String>();
    words.map(visible).collect::<Vec<_>>().join(" ")
}

/// Whether a character is invisible: direction marks and other format characters can disguise text.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Escapes what is not ASCII, as in `b\u00fccher.example`, for output whose reader may expect another encoding. This
/// does not change the values in JSON.
pub fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let escape = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => char::from(byte).into(),
        _ => format!("\\u{unit:04x}"),
    };
    text.encode_utf16().map(escape).collect::<String>().into()
}

/// Formats a path for a message. It is never truncated, because users paste it.
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

/// Formats bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let mut hex = String::with_capacity(2 * bytes.len());
    hex.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
    hex
}

/// Formats the length of a duration in its largest fitting unit: `12 days`, `3 hours`, `40 seconds`.
pub fn humanize(duration: Duration) -> String {
    let (number, unit, _) = largest_unit(duration);
    count(usize::try_from(number).unwrap_or(usize::MAX), unit)
}

/// The length of a duration in its largest fitting unit, with the name of the unit and its symbol.
fn largest_unit(duration: Duration) -> (i64, &'static str, &'static str) {
    let duration = duration.abs();
    match () {
        () if duration >= Duration::days(2) => (duration.whole_days(), "day", "d"),
        () if duration >= Duration::hours(2) => (duration.whole_hours(), "hour", "h"),
        () if duration >= Duration::minutes(2) => (duration.whole_minutes(), "minute", "min"),
        () => (duration.whole_seconds(), "second", "s"),
    }
}

/// Formats a count with its noun: `1 site`, `2 sites`, `2 addresses`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if noun.ends_with('s') { "es" } else { "s" };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{ending}") }
}

/// A message and what to do about it, on one line.
pub(crate) fn sentence(message: impl Display, hint: Option<impl Display>) -> String {
    hint.map_or_else(|| message.to_string(), |hint| format!("{message}; {hint}"))
}

/// Lists numbers with their words, without zeros: `1 failed, 5 passed`.
pub fn tally<T: Display>(numbers: impl IntoIterator<Item = (usize, T)>) -> String {
    let numbers = numbers.into_iter().filter(|(number, _)| *number > 0);
    numbers.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
}

/// Joins items: `a`, `a and b`, `a, b and c`. Items beyond the tenth are only counted.
pub fn list(items: impl IntoIterator<Item: ToString>) -> String {
    const MAX_ITEMS: usize = 10;
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    match items.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [others @ .., last] if items.len() <= MAX_ITEMS => format!("{} and {last}", others.join(", ")),
        items => list_first(items, MAX_ITEMS),
    }
}

/// Joins the first items and counts the others: `a, b and 3 more`.
pub fn list_first(items: impl IntoIterator<Item: ToString>, max: usize) -> String {
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(max).map(|item| item.to_string()).collect();
    match items.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Quotes a word for pasting into a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_sanitized() {
        let cases = [
            ("plain", "plain"),
            ("a\x1b[31mb\x07", "a [31mb"),
            ("two\r\nlines", "two lines"),
            ("nul\0here", "nul here"),
            ("right\u{202e}left", "rightleft"),
            ("  ", ""),
        ];
        for (text, shown) in cases {
            assert_eq!(sanitize(text), shown);
        }
        assert_eq!(sanitize(&"x".repeat(1000)).len(), MAX_LENGTH);
    }

    #[test]
    fn other_than_ascii_is_escaped() {
        assert_eq!(ascii("plain\t~\n"), "plain\t~\n");
        let json = r#"{"name":"bücher 😀 \\ü"}"#;
        let escaped = ascii(json);
        assert_eq!(escaped, r#"{"name":"b\u00fccher \ud83d\ude00 \\\u00fc"}"#);
        let [one, other] =
            [json, &escaped].map(|json| serde_json::from_str::<serde_json::Value>(json).unwrap());
        assert_eq!(one, other);
    }

    #[test]
    fn durations_are_humanized() {
        assert_eq!(humanize(Duration::hours(47)), "47 hours");
        assert_eq!(humanize(Duration::days(-3)), "3 days");
        assert_eq!(humanize(Duration::seconds(1)), "1 second");
    }

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(list(["a"]), "a");
        assert_eq!(list(["a", "b", "c"]), "a, b and c");
        assert_eq!(list(0..12), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    }

    #[test]
    fn shell_word_is_quoted_when_needed() {
        assert_eq!(shell_word("/etc/edgecert/key"), "/etc/edgecert/key");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
    }
}
