//! The process environment, captured once and passed down.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A snapshot of the environment. An empty variable counts as unset.
#[derive(Default)]
pub struct Env(HashMap<OsString, OsString>);

impl Env {
    /// Reads the environment of this process.
    pub fn capture() -> Self {
        std::env::vars_os().collect()
    }

    /// The raw value of a variable.
    pub(crate) fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Whether a variable exists, even if it is empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(OsStr::new(name))
    }

    /// The value of a variable as a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from)
    }

    /// The value of a variable as text; an error if it is not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        self.raw(name)
            .map(|value| value.to_str().ok_or_else(|| format!("{name} is not UTF-8 text")))
            .transpose()
    }

    /// The variables whose names have a prefix.
    pub(crate) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let has_prefix = move |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        let variables = self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        variables.filter(move |(name, _)| has_prefix(name))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
