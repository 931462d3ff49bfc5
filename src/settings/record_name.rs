//! The name of a record, which an upload may set.

use std::fmt;
use std::str::FromStr;

/// The optional `name` of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordName(String);

impl RecordName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RecordName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_valid = !text.is_empty() && !text.chars().any(char::is_control);
        is_valid.then(|| Self(text.to_owned())).ok_or("expected text without control characters")
    }
}
