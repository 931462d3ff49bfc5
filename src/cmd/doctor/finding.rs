//! One thing that was looked at, what came of it, and what mends it.

use serde::Serialize;

use crate::check::Status;
use crate::error::{CommandError, ErrorKind};
use crate::report::{Style, finding_line};

/// One line of the result.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) subject: Subject,
    pub(super) status: Status,
    pub(super) detail: String,
    pub(super) remedy: Option<String>,
    /// Whose turn it is; set where `status` is `fail`.
    #[serde(skip)]
    pub(super) kind: Option<ErrorKind>,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Subject {
    Settings,
    BaseUrl,
    ApiKey,
    State,
    Service,
    Tls,
    Clock,
    /// A lineage and its files.
    Lineage,
    Hook,
    Site,
    /// A certificate stored by the service.
    Record,
    Timer,
}

impl Subject {
    /// The word of the JSON object.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::BaseUrl => "base-url",
            Self::ApiKey => "api-key",
            Self::State => "state",
            Self::Service => "service",
            Self::Tls => "tls",
            Self::Clock => "clock",
            Self::Lineage => "lineage",
            Self::Hook => "hook",
            Self::Site => "site",
            Self::Record => "record",
            Self::Timer => "timer",
        }
    }
}

impl Finding {
    /// As it should be.
    pub(super) fn ok(subject: Subject, detail: impl Into<String>) -> Self {
        Self { subject, status: Status::Ok, detail: detail.into(), remedy: None, kind: None }
    }

    /// Worth telling, and not wrong.
    pub(super) fn warn(subject: Subject, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Warn, remedy: Some(remedy.into()), ..Self::ok(subject, detail) }
    }

    /// Wrong.
    pub(super) fn fail(
        subject: Subject,
        kind: ErrorKind,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { status: Status::Fail, kind: Some(kind), ..Self::warn(subject, detail, remedy) }
    }

    /// Wrong, in the words that every other command has for this error.
    pub(super) fn from_error(subject: Subject, error: impl Into<CommandError>) -> Self {
        let error = error.into();
        let remedy = error.hint().unwrap_or("correct it where it is set");
        Self::fail(subject, error.kind(), error.message(), remedy)
    }

    /// The line for people: the finding and its remedy.
    pub(super) fn line(&self, style: Style) -> String {
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        finding_line(self.subject.word(), self.status, &format!("{}{remedy}", self.detail), style)
    }
}
