//! The name of a record, which an upload may set.

use serde::{Deserialize, Serialize};

use super::value::{Kind, Value};
use super::value_error::ValueError;
use crate::text::sanitize;

/// The optional `name` of an upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordName(String);

impl RecordName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for RecordName {
    const KIND: Kind = Kind::Text;

    fn from_text(text: &str) -> Result<Self, ValueError> {
        let is_valid = !text.is_empty() && !text.chars().any(char::is_control);
        is_valid.then(|| Self(text.to_owned())).ok_or(ValueError::Not(Self::KIND))
    }

    fn text(&self) -> String {
        sanitize(&self.0)
    }
}
