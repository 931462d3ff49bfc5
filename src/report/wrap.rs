//! Wraps text at the width of the terminal. Words are never broken, because users paste them.

use unicode_width::UnicodeWidthStr as _;

use super::Style;

/// Fewest columns for text beside its indentation; on narrower terminals, lines are indented less.
const MIN_TEXT: usize = 24;
/// Indentation on narrow terminals.
const NARROW_INDENT: usize = 4;

/// Lines being built.
pub(crate) struct Wrapped {
    text: String,
    width: Option<usize>,
    /// Columns of the last line.
    column: usize,
    /// Indentation of the lines that follow the first.
    indent: usize,
}

impl Wrapped {
    /// Starts with a prefix of this many columns, which is not wrapped. Later lines are indented by `indent` columns.
    pub(crate) fn new(prefix: &str, columns: usize, indent: usize, style: Style) -> Self {
        let is_narrow = style.width.is_some_and(|width| width < indent + MIN_TEXT);
        let indent = if is_narrow { indent.min(NARROW_INDENT) } else { indent };
        Self { text: prefix.to_owned(), width: style.width, column: columns, indent }
    }

    /// Starts with a line that is indented like the later ones.
    pub(crate) fn indented(indent: usize, style: Style) -> Self {
        let empty = Self::new("", 0, indent, style);
        Self { text: " ".repeat(empty.indent), column: empty.indent, ..empty }
    }

    /// Adds words. Spaces between them are kept on a line; dates and durations stay on one line.
    pub(crate) fn words(mut self, text: &str) -> Self {
        let (mut gap, mut unit) = (0, String::new());
        let mut words = text.split(' ').peekable();
        while let Some(word) = words.next() {
            if word.is_empty() {
                gap += 1;
                continue;
            }
            unit.push_str(word);
            if words.peek().is_some_and(|next| belong_together(word, next)) {
                unit.push(' ');
                continue;
            }
            self.word(&unit, gap);
            unit.clear();
            gap = 1;
        }
        self
    }

    /// Adds text that stays on one line if it fits there.
    pub(crate) fn unbroken(mut self, text: &str, gap: usize) -> Self {
        let is_longer = self.width.is_some_and(|width| text.width() + self.indent > width);
        if is_longer {
            return self.words(&format!("{:gap$}{text}", ""));
        }
        self.word(text, gap);
        self
    }

    /// The lines, each with its line feed.
    pub(crate) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
        self.text
    }

    fn word(&mut self, word: &str, gap: usize) {
        let end = self.column + gap + word.width();
        if self.width.is_some_and(|width| end > width) && self.column > self.indent {
            self.text.truncate(self.text.trim_end().len());
            self.text.push('\n');
            self.text.push_str(&" ".repeat(self.indent));
            self.column = self.indent + word.width();
        } else {
            self.text.push_str(&" ".repeat(gap));
            self.column = end;
        }
        self.text.push_str(word);
    }
}

/// Whether two words are of one date or duration: `19 Feb 2027 23:34 UTC (in 89 days)`.
fn belong_together(word: &str, next: &str) -> bool {
    let is_number = |word: &str| word.parse::<u32>().is_ok();
    let bare = word.trim_start_matches('(');
    let is_unit = next.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_time = next.len() == 5 && next.as_bytes().get(2) == Some(&b':');
    let is_month = word.len() == 3 && word.starts_with(char::is_uppercase);
    is_time
        || next.starts_with("UTC")
        || is_number(bare) && is_unit
        || is_number(next) && (is_month || word == "(in")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> String {
        Wrapped::new("  * key  ", 9, 9, Style { width: Some(width), ..Style::PLAIN }).words(text).finish()
    }

    #[test]
    fn later_lines_are_indented() {
        assert_eq!(
            wrapped("one two three four five six", 33),
            "  * key  one two three four five\n         six\n"
        );
        assert_eq!(wrapped("one two three four", 20), "  * key  one two\n    three four\n");
        let piped = Wrapped::new("* ", 2, 2, Style::PLAIN).words(&"word ".repeat(99)).finish();
        assert_eq!(piped.lines().count(), 1);
    }

    #[test]
    fn dates_stay_on_one_line() {
        let text = wrapped("it expires on 19 Feb 2027 23:34 UTC (in 89 days), not later", 40);
        assert_eq!(
            text,
            "  * key  it expires on\n         19 Feb 2027 23:34 UTC\n         (in 89 days), not later\n"
        );
    }

    #[test]
    fn words_are_never_broken() {
        let word = "a".repeat(60);
        for width in [1, 20, 40, 80] {
            let text = wrapped(&format!("{word} and {word}"), width);
            assert_eq!(text.matches(&word).count(), 2, "{width}: {text}");
        }
    }
}
