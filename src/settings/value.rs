//! Types of settings, and how they are written in environment variables and in the configuration file.

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use crate::text::{self, display_as_serialized, sanitize};

/// Type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Path,
    Seconds,
    PositiveSeconds,
    Verify,
    TrustAnchors,
    Switch,
}

impl Kind {
    /// Description of a valid value, for "expected …".
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Text => "text in quotes",
            Self::Path => "a path in quotes",
            Self::Seconds => "a whole number of seconds",
            Self::PositiveSeconds => "a whole number of seconds above 0",
            Self::Verify => "auto, require or off",
            Self::TrustAnchors => "a path, \"system\" or \"off\"",
            Self::Switch => "true or false",
        }
    }
}

/// A type of setting values.
pub(crate) trait Value: Clone + Send + Sync + 'static {
    const KIND: Kind;

    /// Reads the value of an environment variable.
    fn from_variable(value: &OsStr) -> Option<Self> {
        Self::from_text(value.to_str()?.trim())
    }

    /// Reads text without surrounding whitespace.
    fn from_text(text: &str) -> Option<Self>;

    /// Reads a value of the configuration file; a path is relative to the file's directory.
    fn from_toml(value: &DeValue<'_>, directory: &Path) -> Option<Self>;

    /// Writes the value as a variable would have it, safe to print.
    fn text(&self) -> String;
}

impl Value for String {
    const KIND: Kind = Kind::Text;

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn from_toml(value: &DeValue<'_>, _: &Path) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }

    fn text(&self) -> String {
        sanitize(self)
    }
}

impl Value for PathBuf {
    const KIND: Kind = Kind::Path;

    fn from_variable(value: &OsStr) -> Option<Self> {
        Some(value.into())
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    fn from_toml(value: &DeValue<'_>, directory: &Path) -> Option<Self> {
        value.as_str().map(|path| directory.join(path))
    }

    fn text(&self) -> String {
        text::path(self)
    }
}

impl Value for u64 {
    const KIND: Kind = Kind::Seconds;

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn from_toml(value: &DeValue<'_>, _: &Path) -> Option<Self> {
        let number = value.as_integer()?;
        Self::from_str_radix(number.as_str(), number.radix()).ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroU64 {
    const KIND: Kind = Kind::PositiveSeconds;

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn from_toml(value: &DeValue<'_>, directory: &Path) -> Option<Self> {
        Self::new(u64::from_toml(value, directory)?)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Switch;

    fn from_text(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(true),
            "0" | "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    fn from_toml(value: &DeValue<'_>, _: &Path) -> Option<Self> {
        value.as_bool()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Whether TLS handshakes verify the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verify {
    /// An unreachable edge is a warning.
    Auto,
    /// An unreachable edge is a failure.
    Require,
    /// Make no handshakes.
    Off,
}

impl Verify {
    pub(crate) const ALL: [Self; 3] = [Self::Auto, Self::Require, Self::Off];
}

display_as_serialized!(Verify);

impl Value for Verify {
    const KIND: Kind = Kind::Verify;

    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.to_string().eq_ignore_ascii_case(text))
    }

    /// Parses the exact word: unlike variables, the file is case-sensitive, as TOML is.
    fn from_toml(value: &DeValue<'_>, _: &Path) -> Option<Self> {
        let text = value.as_str()?;
        Self::ALL.into_iter().find(|mode| mode.to_string() == text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}
