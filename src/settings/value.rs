//! Types of settings, and how they are written in flags, environment variables and the configuration file.

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use super::address::{BaseUrl, EdgeAddresses, NotEdgeAddresses};
use super::value_error::ValueError;
use crate::text::{self, display_as_serialized};

/// Type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Url,
    Path,
    Seconds,
    PositiveSeconds,
    Verify,
    EdgeAddresses,
    TrustAnchors,
    Proxy,
    Switch,
}

impl Kind {
    /// Description of a valid value, for "expected …".
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Text => "text without control characters",
            Self::Url => "a URL in quotes",
            Self::Path => "a path in quotes",
            Self::Seconds => "a whole number of seconds",
            Self::PositiveSeconds => "a whole number of seconds above 0",
            Self::Verify => "auto, require or off",
            Self::EdgeAddresses => "HOST:PORT",
            Self::TrustAnchors => "a path, \"system\" or \"off\"",
            Self::Proxy => "http://HOST:PORT or https://HOST:PORT without credentials, or off",
            Self::Switch => "yes or no, true or false, on or off, 1 or 0",
        }
    }
}

/// A type of setting values. A value is written the same way in flags, variables and the
/// file.
pub(crate) trait Value: Clone + Send + Sync + 'static {
    const KIND: Kind;

    /// Reads text without surrounding whitespace.
    fn from_text(text: &str) -> Result<Self, ValueError>;

    /// Reads the value of a flag or a variable.
    fn from_os(value: &OsStr) -> Result<Self, ValueError> {
        Self::from_text(value.to_str().ok_or(ValueError::Not(Self::KIND))?.trim())
    }

    /// Reads a value of the configuration file; a path is relative to the file's directory.
    fn from_toml(value: &DeValue<'_>, _directory: &Path) -> Result<Self, ValueError> {
        Self::from_text(value.as_str().ok_or(ValueError::Not(Self::KIND))?.trim())
    }

    /// Writes the value as a variable would have it, safe to print.
    fn text(&self) -> String;
}

impl Value for BaseUrl {
    const KIND: Kind = Kind::Url;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(ValueError::Url)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for EdgeAddresses {
    const KIND: Kind = Kind::EdgeAddresses;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|NotEdgeAddresses| ValueError::Not(Self::KIND))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    const KIND: Kind = Kind::Path;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        Self::from_os(OsStr::new(text))
    }

    /// Reads the path as it is: it may be any bytes, with blanks at the ends.
    fn from_os(value: &OsStr) -> Result<Self, ValueError> {
        if value.is_empty() { Err(ValueError::Not(Self::KIND)) } else { Ok(value.into()) }
    }

    fn from_toml(value: &DeValue<'_>, directory: &Path) -> Result<Self, ValueError> {
        let path = value.as_str().ok_or(ValueError::Not(Self::KIND))?;
        Ok(directory.join(Self::from_text(path)?))
    }

    fn text(&self) -> String {
        text::path(self)
    }
}

impl Value for u64 {
    const KIND: Kind = Kind::Seconds;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::Not(Self::KIND))
    }

    /// Reads a TOML integer, or digits in quotes.
    fn from_toml(value: &DeValue<'_>, _: &Path) -> Result<Self, ValueError> {
        if let Some(text) = value.as_str() {
            return Self::from_text(text.trim());
        }
        let number = value.as_integer().ok_or(ValueError::Not(Self::KIND))?;
        Self::from_str_radix(number.as_str(), number.radix()).map_err(|_| ValueError::Not(Self::KIND))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroU64 {
    const KIND: Kind = Kind::PositiveSeconds;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::Not(Self::KIND))
    }

    fn from_toml(value: &DeValue<'_>, directory: &Path) -> Result<Self, ValueError> {
        let number = u64::from_toml(value, directory).ok().and_then(Self::new);
        number.ok_or(ValueError::Not(Self::KIND))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Switch;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(true),
            "0" | "false" | "no" | "off" => Ok(false),
            _ => Err(ValueError::Not(Self::KIND)),
        }
    }

    /// Reads a TOML boolean, or the words and numbers that variables may have.
    fn from_toml(value: &DeValue<'_>, _: &Path) -> Result<Self, ValueError> {
        match value {
            DeValue::Boolean(value) => Ok(*value),
            DeValue::Integer(number) => Self::from_text(number.as_str()),
            DeValue::String(text) => Self::from_text(text.trim()),
            _ => Err(ValueError::Not(Self::KIND)),
        }
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

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let mode = Self::ALL.into_iter().find(|mode| mode.to_string().eq_ignore_ascii_case(text));
        mode.ok_or(ValueError::Not(Self::KIND))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}
