//! Errors of settings. Messages never repeat a value: a secret may be in its place by mistake.

use std::fmt::Display;

use super::BaseUrl;
use crate::file::ReadError;
use crate::hint::{Hint, read_hint};

/// A setting that is missing or cannot be used, such as a trust store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct SettingsError {
    pub(super) message: String,
    pub(crate) hint: Option<Hint>,
    /// Whether nothing sets a required setting.
    pub(crate) is_missing: bool,
}

pub(super) type Result<T, E = SettingsError> = std::result::Result<T, E>;

impl SettingsError {
    pub(crate) fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None, is_missing: false }
    }

    pub(super) fn no_base_url() -> Self {
        let hint = "set EDGECERT_BASE_URL, or base_url in /etc/edgecert/config.toml";
        Self { is_missing: true, ..Self::new("no base URL is set").hint(hint) }
    }

    pub(super) fn no_api_key() -> Self {
        let hint = "set EDGECERT_API_KEY, or write the key to a file and set api_key_file in /etc/edgecert/config.toml";
        Self { is_missing: true, ..Self::new("no API key is set").hint(hint) }
    }

    pub(super) fn key_of_other_service(own: &BaseUrl, url: &BaseUrl) -> Self {
        Self::new(format_args!("the configured API key is for {own}, not for {url}"))
            .hint(format!("pass --base-url {url} and --api-key-file FILE with the key for it"))
    }

    pub(crate) fn no_state_dir() -> Self {
        Self::new("no state directory is set, and there is no home directory")
            .hint("set EDGECERT_STATE_DIR, or state_dir in /etc/edgecert/config.toml, or pass --state-dir")
    }

    /// Sets what the user can do.
    pub(crate) fn hint(self, hint: impl Into<Hint>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<ReadError> for SettingsError {
    fn from(error: ReadError) -> Self {
        Self::new(&error).hint(read_hint(error.kind))
    }
}
