//! The result of one check of the setup, and how to repair what is wrong.

use serde::Serialize;

use crate::check::Status;
use crate::error::{CommandError, ErrorKind};
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

impl Subject {
    /// A check that passed.
    pub(super) fn ok(self, detail: impl Into<String>) -> DoctorFinding {
        DoctorFinding { subject: self, status: Status::Ok, detail: detail.into(), remedy: None, kind: None }
    }

    /// Something that this host is not responsible for.
    pub(super) fn note(self, detail: impl Into<String>) -> DoctorFinding {
        DoctorFinding { status: Status::Skipped, ..self.ok(detail) }
    }

    /// A problem that deserves attention but breaks nothing.
    pub(super) fn warn(self, detail: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
        DoctorFinding { status: Status::Warn, remedy: Some(remedy.into()), ..self.ok(detail) }
    }

    /// A fault of the setup.
    pub(super) fn fail(self, detail: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
        DoctorFinding { status: Status::Fail, kind: Some(ErrorKind::Config), ..self.warn(detail, remedy) }
    }

    /// A failure with the message and hint that other commands report for the error.
    pub(super) fn failed(self, error: impl Into<CommandError>) -> DoctorFinding {
        let error = error.into();
        let remedy = error.advice().unwrap_or_else(|| "correct the setting".into());
        DoctorFinding { kind: Some(error.kind()), ..self.fail(error.message(), remedy) }
    }
}
