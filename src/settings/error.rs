//! Errors of settings. Messages never repeat a value: a secret may be in its place by mistake.

use std::path::PathBuf;

use crate::env::NotUnicode;
use crate::file::ReadError;
use crate::text;

/// A setting that is missing or cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("no base URL is set")]
    NoBaseUrl,
    #[error("no API key is set")]
    NoApiKey,
    /// `name` is a setting, a variable or a file.
    #[error("{name}: {reason}")]
    Invalid { name: String, reason: String },
    #[error(transparent)]
    NotUnicode(#[from] NotUnicode),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}:{line}: {fault}", text::path(path))]
    File { path: PathBuf, line: usize, fault: FileFault },
    #[error("others can read the API key file {}", text::path(path))]
    OpenToOthers { path: PathBuf },
    #[error(
        "last deployed to {url} with an API key that is not recorded; the configured key is for another service"
    )]
    OtherService { url: String },
}

impl SettingsError {
    /// Whether the variable of the base URL cannot be used.
    pub(crate) fn is_about_base_url(&self) -> bool {
        self.name() == Some("EDGECERT_BASE_URL")
    }

    /// The variable, setting or file that cannot be used.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Invalid { name, .. } | Self::NotUnicode(NotUnicode(name)) => Some(name),
            _ => None,
        }
    }
}

/// A mistake in a line of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FileFault {
    /// `key` is the key of the line, if it has one.
    #[error("{}{message}", key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
    Syntax { key: Option<String>, message: String },
    #[error("unknown key `{key}`")]
    UnknownKey { key: String, known: Vec<String> },
    #[error("`{key}`: {reason}")]
    Invalid { key: String, reason: String },
    #[error("expected `[[lineage]]`, in double brackets")]
    SingleBrackets,
    #[error("a `[[lineage]]` needs either `path`, or `cert` and `key`")]
    NoLocation,
}
