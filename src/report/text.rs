//! The blocks that the text of a report consists of, and its lines of errors and warnings.

use clap::builder::styling::AnsiColor;
use unicode_width::UnicodeWidthStr as _;

use super::style::{Sign, Style};
use super::table::Table;
use crate::check::Status;
use crate::error::CommandError;
use crate::text::tally;

/// A part of a report's text.
#[derive(Debug)]
pub(crate) enum Block {
    /// Lines with their words aligned.
    Lines(Vec<Line>),
    /// A line that begins with a sign.
    Signed(Sign, String),
    Table(Table),
    /// Text; a missing line feed at its end is added.
    Text(String),
}

/// An indented line: sign, word and text.
#[derive(Debug)]
pub(crate) struct Line {
    pub(super) sign: Sign,
    pub(super) word: String,
    pub(super) text: String,
    /// Lines below it.
    pub(super) notes: Vec<String>,
}

/// Fewest columns of the word of a line.
const MIN_WORD: usize = 8;
const INDENT: &str = "  ";

impl Line {
    pub(super) fn new(sign: Sign, word: &impl ToString, text: String) -> Self {
        Self { sign, word: word.to_string(), text, notes: Vec::new() }
    }

    fn format(&self, width: usize, style: Style) -> String {
        let prefix = format!("{INDENT}{} {:<width$}{INDENT}", style.sign(self.sign), self.word);
        let columns = width + 2 * INDENT.len() + 2;
        let mut text = format!("{prefix}{}", self.text).trim_end().to_owned() + "\n";
        text.extend(self.notes.iter().map(|note| format!("{:columns$}{note}\n", "")));
        text
    }
}

impl Block {
    pub(super) fn to_text(&self, style: Style) -> String {
        match self {
            Self::Lines(lines) => {
                let width = lines.iter().map(|line| line.word.width()).max().unwrap_or_default();
                lines.iter().map(|line| line.format(width.max(MIN_WORD), style)).collect()
            }
            Self::Signed(sign, text) => format!("{} {text}\n", style.sign(*sign)),
            Self::Table(table) => table.to_text(style),
            Self::Text(text) if text.is_empty() || text.ends_with('\n') => text.clone(),
            Self::Text(text) => format!("{text}\n"),
        }
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl<T: Into<String>> From<T> for Block {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// The line of a finding: sign, subject and detail, with what to do about it on a line of its own.
pub(crate) fn finding_line(word: String, status: Status, detail: &str, remedy: Option<&str>) -> Line {
    let sign = match status {
        Status::Ok => Sign::Ok,
        Status::Warn => Sign::Warning,
        Status::Fail => Sign::Failed,
        Status::Skipped => Sign::Skipped,
    };
    let notes = remedy.map(|remedy| format!("hint: {remedy}")).into_iter().collect();
    Line { sign, word, text: detail.to_owned(), notes }
}

/// Counts findings: `1 failed, 1 warning, 5 passed`.
pub(crate) fn finding_counts(statuses: impl Iterator<Item = Status>) -> String {
    let statuses: Vec<Status> = statuses.collect();
    let number = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    let (failed, warnings) = (number(Status::Fail), number(Status::Warn));
    let warned = if warnings == 1 { "warning" } else { "warnings" };
    let (passed, skipped) = (number(Status::Ok), number(Status::Skipped));
    tally([(failed, "failed"), (warnings, warned), (passed, "passed"), (skipped, "skipped")])
}

/// Formats errors as `edgecert: error: …`, each followed by a line `edgecert: hint: …` if it has a hint. A hint that
/// the next error has, too, is left out. Failures of many sites that are alike are one.
pub(crate) fn error_lines(errors: &[CommandError], style: Style) -> String {
    let errors = CommandError::merge(errors);
    let mut lines = String::new();
    for (at, error) in errors.iter().enumerate() {
        lines.push_str(&diagnostic("error", error.message(), AnsiColor::Red, style));
        let next = errors.get(at + 1).and_then(CommandError::advice);
        let hint = error.advice().filter(|hint| Some(hint) != next.as_ref());
        lines.extend(hint.map(|hint| diagnostic("hint", &hint, AnsiColor::Cyan, style)));
    }
    lines
}

/// Formats a warning as `edgecert: warning: …`.
pub(crate) fn warning_line(warning: &str, style: Style) -> String {
    diagnostic("warning", warning, AnsiColor::Yellow, style)
}

fn diagnostic(word: &str, text: &str, colour: AnsiColor, style: Style) -> String {
    format!("edgecert: {}: {text}\n", style.paint(word, colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_of_several_errors_is_given_once() {
        let lost = || CommandError::from(anyhow::anyhow!("x"));
        let text = error_lines(&[lost(), lost()], Style::PLAIN);
        assert_eq!(text.matches("hint: ").count(), 1, "{text}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("edgecert: hint: ")), "{text}");
    }

    #[test]
    fn colour_follows_the_style() {
        assert_eq!(warning_line("x", Style::PLAIN), "edgecert: warning: x\n");
        assert!(warning_line("x", Style { colour: true, ..Style::PLAIN }).contains('\u{1b}'));
    }
}
