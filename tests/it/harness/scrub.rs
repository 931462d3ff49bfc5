//! Replaces what differs from run to run by placeholders: dates and durations as edgecert shows them to people.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const UNITS: [&str; 12] =
    ["s", "min", "h", "d", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days"];

/// Replaces dates by `DATE` and durations by `TIME`.
pub(crate) fn scrub_times(text: &str) -> String {
    text.split_inclusive('\n').map(scrub_line).collect()
}

fn scrub_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let (mut scrubbed, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        let rest = &words[at..];
        let (length, placeholder) = match (date_length(rest), is_duration(rest)) {
            (Some(length), _) => (length, "DATE"),
            (None, true) => (2, "TIME"),
            (None, false) => (1, ""),
        };
        if placeholder.is_empty() {
            scrubbed.push((*word).to_owned());
        } else {
            let last = rest[length - 1];
            let end = &last[last.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len()..];
            let start = &word[..word.len() - word.trim_start_matches('(').len()];
            scrubbed.push(format!("{start}{placeholder}{end}"));
        }
        at += length;
    }
    scrubbed.join(" ")
}

/// The number of words of a date at the start: `19 Feb 2027`, `21 Nov 23:34 UTC`, or as in RFC 3339.
fn date_length(words: &[&str]) -> Option<usize> {
    let bare =
        |at: usize| words.get(at).map_or("", |word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    let first = bare(0);
    if first.len() == 20 && first.ends_with('Z') && first.as_bytes()[10] == b'T' {
        return Some(1);
    }
    let is_number = |word: &str, length: usize| word.len() == length && word.parse::<u32>().is_ok();
    if !(is_number(first, 1) || is_number(first, 2)) || !MONTHS.contains(&bare(1)) {
        return None;
    }
    let year = usize::from(is_number(bare(2), 4));
    let is_minute = bare(2 + year).len() == 5 && bare(2 + year).contains(':');
    Some(2 + year + if is_minute { 2 } else { 0 })
}

fn is_duration(words: &[&str]) -> bool {
    let number = words[0].trim_start_matches('(');
    let unit = words.get(1).map_or("", |word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()));
    number.parse::<f64>().is_ok() && UNITS.contains(&unit)
}

#[test]
fn only_times_are_scrubbed() {
    let rows = [
        ("expires 19 Feb 2027 (89 days)\n", "expires DATE (TIME)\n"),
        ("(pending since 21 Nov 23:34 UTC (2 hours)): x", "(pending since DATE (TIME)): x"),
        ("at 11 Dec 2026 03:04 UTC (in 20 days), later", "at DATE (in TIME), later"),
        ("done in 2.1 s\n2 sites, 1/1; 2026-12-11T23:34:27Z", "done in TIME\n2 sites, 1/1; DATE"),
        ("a  served  59 d   blog\n", "a  served  TIME   blog\n"),
    ];
    for (text, scrubbed) in rows {
        assert_eq!(scrub_times(text), scrubbed);
    }
}
