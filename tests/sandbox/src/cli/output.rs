//! Prints; nothing else in this program does. Colours are used where the terminal and its user permit them, signs
//! beyond ASCII where the locale does, and a closed pipe is not an error.

use std::io::Write;

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

    /// Styles a text; the stream that prints it removes the style if it must not be used.
    pub(crate) fn paint(self, text: &str) -> String {
        format!("\x1b[{}m{text}\x1b[0m", self.code())
    }
}

/// Prints a line to standard output.
pub(crate) fn line(text: &str) {
    drop(writeln!(anstream::stdout(), "{text}"));
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
    let label = style.paint(&format!("{label}:"));
    drop(writeln!(anstream::stderr(), "edgecert-sandbox: {label} {message}"));
}

/// Signs in front of lines.
pub(crate) struct Signs {
    pub(crate) passed: &'static str,
    pub(crate) failed: &'static str,
    pub(crate) bar: &'static str,
}

impl Signs {
    /// Picks signs that the locale can show.
    pub(crate) fn new(is_utf8: bool) -> Self {
        if is_utf8 {
            Self { passed: "✓", failed: "✗", bar: "│" }
        } else {
            Self { passed: "ok", failed: "FAILED", bar: "|" }
        }
    }
}

/// Returns whether the locale of the user is one with UTF-8. The first variable that is set decides.
#[expect(clippy::disallowed_methods, reason = "the one place where this program reads the locale")]
pub(crate) fn is_utf8_locale() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let locale = variables.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_string_lossy().to_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8")
}
