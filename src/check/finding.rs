//! The result of one local check.

use serde::Serialize;

use crate::hint::Hint;
use crate::names::Domain;
use crate::text;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    Pem,
    Validity,
    Names,
    Key,
    Purpose,
    Chain,
    Issuer,
}

text::display_as_serialized!(Check);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// What a check found. A check may have several findings.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub check: Check,
    pub status: Status,
    /// Names the file, unless the status is `ok` or `skipped`.
    pub detail: String,
    #[serde(skip)]
    pub hint: Option<Hint>,
    /// The requested domain that the leaf does not cover, if that is the failure.
    #[serde(skip)]
    pub uncovered: Option<Domain>,
}

impl Finding {
    pub(super) fn new(check: Check, status: Status, detail: impl Into<String>) -> Self {
        Self { check, status, detail: detail.into(), hint: None, uncovered: None }
    }

    pub(super) fn ok(check: Check, detail: impl Into<String>) -> Self {
        Self::new(check, Status::Ok, detail)
    }

    pub(super) fn skipped(check: Check, detail: impl Into<String>) -> Self {
        Self::new(check, Status::Skipped, detail)
    }

    pub(super) fn warn(check: Check, detail: impl Into<String>) -> Self {
        Self::new(check, Status::Warn, detail)
    }

    pub(super) fn fail(check: Check, detail: impl Into<String>) -> Self {
        Self::new(check, Status::Fail, detail)
    }

    pub(super) fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Detail and hint in one line.
    pub fn sentence(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.detail),
            None => self.detail.clone(),
        }
    }
}
