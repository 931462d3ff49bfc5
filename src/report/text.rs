//! The lines that reports consist of: steps, findings, errors and warnings.

use std::time::Duration;

use anstyle::AnsiColor;
use time::OffsetDateTime;
use unicode_width::UnicodeWidthStr as _;

use super::style::{Sign, Style};
use crate::check::Status;
use crate::error::CommandError;
use crate::text::count;

/// What the text of a report's body depends on besides the body.
pub(crate) struct Frame<'a> {
    pub(crate) command: &'a str,
    pub(crate) style: Style,
    pub(crate) now: OffsetDateTime,
    /// How long the run took.
    pub(crate) elapsed: Duration,
    pub(crate) errors: &'a [CommandError],
}

impl Frame<'_> {
    /// Whether an error has this hint.
    pub(super) fn has_hint(&self, hint: &str) -> bool {
        self.errors.iter().any(|error| error.advice() == Some(hint))
    }
}

/// A line of a report: sign, word and text.
pub(super) struct Line {
    pub(super) sign: Sign,
    word: String,
    pub(super) text: String,
    /// Lines below it.
    pub(super) notes: Vec<String>,
}

impl Line {
    pub(super) fn new(sign: Sign, word: &str, text: String) -> Self {
        Self { sign, word: word.to_owned(), text, notes: Vec::new() }
    }
}

/// Fewest columns of the word of a line.
const MIN_WORD: usize = 8;
const INDENT: &str = "  ";

/// Formats lines with their words aligned.
pub(super) fn lines(lines: &[Line], style: Style) -> String {
    let width = lines.iter().map(|line| line.word.width()).max().unwrap_or_default().max(MIN_WORD);
    lines.iter().map(|line| format_line(line, width, style)).collect()
}

fn format_line(line: &Line, width: usize, style: Style) -> String {
    let prefix = format!("{INDENT}{} {:<width$}{INDENT}", style.sign(line.sign), line.word);
    let columns = width + 2 * INDENT.len() + 2;
    let mut text = format!("{prefix}{}", line.text).trim_end().to_owned() + "\n";
    text.extend(line.notes.iter().map(|note| format!("{:columns$}{note}\n", "")));
    text
}

/// Formats a finding: sign, subject and detail, with what to do about it on a line of its own.
pub(crate) fn finding_lines(
    subject: &str,
    status: Status,
    detail: &str,
    remedy: Option<&str>,
    style: Style,
) -> String {
    let sign = match status {
        Status::Ok => Sign::Ok,
        Status::Warn => Sign::Warning,
        Status::Fail => Sign::Failed,
        Status::Skipped => Sign::Skipped,
    };
    let notes = remedy.map(|remedy| format!("hint: {remedy}")).into_iter().collect();
    let line = Line { sign, word: subject.to_owned(), text: detail.to_owned(), notes };
    format_line(&line, MIN_WORD, style)
}

/// Counts findings: `1 failed, 1 warning, 5 passed`.
pub(crate) fn finding_counts(statuses: impl Iterator<Item = Status>) -> String {
    let (mut failed, mut warnings, mut passed, mut skipped) = (0, 0, 0, 0);
    for status in statuses {
        match status {
            Status::Fail => failed += 1,
            Status::Warn => warnings += 1,
            Status::Ok => passed += 1,
            Status::Skipped => skipped += 1,
        }
    }
    let parts = [
        (failed, format!("{failed} failed")),
        (warnings, count(warnings, "warning")),
        (passed, format!("{passed} passed")),
        (skipped, format!("{skipped} skipped")),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter(|(number, _)| *number > 0).map(|(_, part)| part).collect();
    if parts.is_empty() { String::new() } else { format!("{}\n", parts.join(", ")) }
}

/// Formats errors as `edgecert: error: …`, each followed by a line `edgecert: hint: …` if it has a hint. A hint that
/// the next error has, too, is left out. Failures of many sites that are alike are one.
pub(crate) fn error_lines(errors: &[CommandError], style: Style) -> String {
    let errors = CommandError::merge(errors);
    let mut lines = String::new();
    for (at, error) in errors.iter().enumerate() {
        lines.push_str(&diagnostic("error", error.message(), AnsiColor::Red, style));
        let next = errors.get(at + 1).and_then(CommandError::advice);
        let hint = error.advice().filter(|hint| Some(*hint) != next);
        lines.extend(hint.map(|hint| diagnostic("hint", hint, AnsiColor::Cyan, style)));
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
