//! The result of one check of the setup, and how to repair what is wrong.

use serde::Serialize;

use crate::check::Status;
use crate::error::{CommandError, ErrorKind};
use crate::report::{Line, finding_line};
use crate::text::display_as_serialized;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DoctorFinding {
    pub(super) subject: Subject,
    pub(super) status: Status,
    pub(super) detail: String,
    pub(super) remedy: Option<String>,
    /// Failure class of a finding with status `fail`.
    #[serde(skip)]
    pub(super) kind: Option<ErrorKind>,
}

/// What was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Subject {
    Settings,
    BaseUrl,
    ApiKey,
    State,
    Service,
    Tls,
    Clock,
    Lineage,
    Hook,
    Site,
    Record,
    Renewal,
    Timer,
}

display_as_serialized!(Subject);

impl DoctorFinding {
    /// A check that passed.
    pub(super) fn ok(subject: Subject, detail: impl Into<String>) -> Self {
        Self { subject, status: Status::Ok, detail: detail.into(), remedy: None, kind: None }
    }

    /// Something that this host is not responsible for.
    pub(super) fn note(subject: Subject, detail: impl Into<String>) -> Self {
        Self { status: Status::Skipped, ..Self::ok(subject, detail) }
    }

    /// A problem that deserves attention but breaks nothing.
    pub(super) fn warn(subject: Subject, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Warn, remedy: Some(remedy.into()), ..Self::ok(subject, detail) }
    }

    /// A problem that has to be repaired.
    pub(super) fn fail(
        subject: Subject,
        kind: ErrorKind,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { status: Status::Fail, kind: Some(kind), ..Self::warn(subject, detail, remedy) }
    }

    /// A failure with the message and hint that other commands report for the error.
    pub(super) fn from_error(subject: Subject, error: impl Into<CommandError>) -> Self {
        let error = error.into();
        let remedy = error.advice().unwrap_or_else(|| "correct the setting".into());
        Self::fail(subject, error.kind(), error.message(), remedy)
    }

    /// The line of the finding, with its remedy.
    pub(super) fn line(&self) -> Line {
        finding_line(&self.subject, self.status, &self.detail, self.remedy.as_deref())
    }
}
