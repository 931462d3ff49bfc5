//! The results of one local check.

use serde::Serialize;

use crate::hint::Hint;
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
}

impl Finding {
    /// Detail and hint in one line.
    pub fn sentence(&self) -> String {
        text::sentence(&self.detail, self.hint.as_ref())
    }
}

/// The findings of one check.
pub(super) struct Findings {
    check: Check,
    pub(super) list: Vec<Finding>,
}

impl Findings {
    pub(super) fn new(check: Check) -> Self {
        Self { check, list: Vec::new() }
    }

    /// Adds a finding without a hint.
    pub(super) fn note(&mut self, status: Status, detail: impl Into<String>) {
        self.list.push(Finding { check: self.check, status, detail: detail.into(), hint: None });
    }

    pub(super) fn add(&mut self, status: Status, detail: String, hint: impl Into<Hint>) {
        self.list.push(Finding { check: self.check, status, detail, hint: Some(hint.into()) });
    }

    /// The findings, or if there are none, this one.
    pub(super) fn or_ok(mut self, detail: impl Into<String>) -> Vec<Finding> {
        if self.list.is_empty() {
            self.note(Status::Ok, detail);
        }
        self.list
    }
}
