//! The style of an output stream: colour and signs.

use clap::builder::styling::{AnsiColor, Style as Ansi};

/// What an output stream can display.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether escape sequences may be used.
    pub(crate) colour: bool,
    /// Whether signs may be outside ASCII.
    pub(crate) unicode: bool,
}

/// A sign at the start of a line, in the order of the lines: what needs attention comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    Ok,
    /// Left alone on purpose.
    Skipped,
    Unchanged,
    Create,
    Replace,
    Warning,
    Failed,
}

impl Style {
    /// The style of a pipe or file.
    pub(crate) const PLAIN: Self = Self { colour: false, unicode: false };

    pub(crate) fn paint(self, text: &str, colour: AnsiColor) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = Ansi::new().fg_color(Some(colour.into())).bold();
        format!("{style}{text}{style:#}")
    }

    pub(crate) fn sign(self, sign: Sign) -> String {
        let (ascii, unicode, colour) = sign.look();
        self.paint(if self.unicode { unicode } else { ascii }, colour)
    }
}

impl Sign {
    /// The ASCII sign, the Unicode sign and the colour.
    fn look(self) -> (&'static str, &'static str, AnsiColor) {
        match self {
            Self::Ok => ("*", "✓", AnsiColor::Green),
            Self::Skipped => ("-", "-", AnsiColor::Cyan),
            Self::Unchanged => ("=", "=", AnsiColor::Cyan),
            Self::Create => ("+", "+", AnsiColor::Green),
            Self::Replace => ("~", "~", AnsiColor::Yellow),
            Self::Warning => ("!", "!", AnsiColor::Yellow),
            Self::Failed => ("x", "✗", AnsiColor::Red),
        }
    }

    pub(crate) fn colour(self) -> AnsiColor {
        self.look().2
    }
}
