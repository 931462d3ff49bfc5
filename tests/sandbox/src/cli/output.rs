//! Prints; nothing else in this program does. Colours are used on terminals only, and a closed pipe is not
//! an error.

use std::io::{IsTerminal, Write, stderr, stdout};

/// An ANSI text style.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        }
    }

    /// Styles a text for standard output.
    pub(crate) fn paint(self, text: &str) -> String {
        self.paint_if(stdout().is_terminal(), text)
    }

    fn paint_if(self, is_terminal: bool, text: &str) -> String {
        if is_terminal { format!("\x1b[{}m{text}\x1b[0m", self.code()) } else { text.to_owned() }
    }
}

/// Prints a line to standard output.
pub(crate) fn line(text: &str) {
    drop(writeln!(stdout(), "{text}"));
}

/// Prints an error to standard error.
pub(crate) fn error(message: &str) {
    labelled(Style::Red, "error", message);
}

/// Prints a hint on what to do about an error.
pub(crate) fn hint(advice: &str) {
    labelled(Style::Cyan, "hint", advice);
}

/// Prints a warning to standard error.
pub(crate) fn warning(message: &str) {
    labelled(Style::Yellow, "warning", message);
}

/// Prints a notice to standard error.
pub(crate) fn notice(message: &str) {
    labelled(Style::Yellow, "notice", message);
}

fn labelled(style: Style, label: &str, message: &str) {
    let label = style.paint_if(stderr().is_terminal(), &format!("{label}:"));
    drop(writeln!(stderr(), "edgecert-sandbox: {label} {message}"));
}
