//! Failures of a run: message, hint and exit code.
//!
//! Modules return typed errors that hold facts. Every error reaches the user as a [`CommandError`], which only this
//! file builds. Those of lower modules get their kinds and hints in `diagnostics`; those of `deploy`, `sync` and the commands
//! implement [`Diagnostic`] where they are defined. `hint` has the hints that they share.

mod alike;
mod diagnostics;
mod hint;

use std::fmt::Display;

pub(crate) use self::alike::{MAX_NAMED, Subject, first_names};
pub(crate) use self::hint::{INTERNAL_HINT, read_hint, state_dir_hint, write_hint};
use crate::check::Finding;
use crate::hint::{Hint, Place};
pub(crate) use crate::text::shell_word;

/// Failure class. The discriminant is the exit code, on which scripts depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum ErrorKind {
    /// The command line is wrong.
    Usage = 2,
    /// A local check or a guard refused; nothing was sent.
    Refused = 65,
    /// A file is missing or cannot be read.
    NoInput = 66,
    /// The service refused, or no site is covered.
    Service = 69,
    /// A bug in edgecert.
    Internal = 70,
    /// A temporary failure; it is recorded, and `edgecert sync` retries it.
    Temporary = 75,
    /// The service sent an unintelligible response.
    Protocol = 76,
    /// The service rejected the API key.
    Denied = 77,
    /// A configuration error.
    Config = 78,
}

impl ErrorKind {
    /// All kinds, the most severe first.
    const BY_SEVERITY: [Self; 9] = [
        Self::Internal,
        Self::Config,
        Self::Denied,
        Self::NoInput,
        Self::Refused,
        Self::Protocol,
        Self::Service,
        Self::Temporary,
        Self::Usage,
    ];

    /// The kind that decides the exit code of a run with several failures.
    pub(crate) fn most_severe(kinds: impl IntoIterator<Item = Self>) -> Option<Self> {
        kinds.into_iter().min_by_key(|kind| Self::BY_SEVERITY.iter().position(|other| other == kind))
    }

    /// The most severe of several exit codes.
    pub(crate) fn most_severe_code(codes: impl IntoIterator<Item = u8>) -> u8 {
        let kinds = codes
            .into_iter()
            .filter_map(|code| Self::BY_SEVERITY.into_iter().find(|kind| kind.exit_code() == code));
        Self::most_severe(kinds).map_or(0, Self::exit_code)
    }

    /// The exit code.
    pub(crate) fn exit_code(self) -> u8 {
        self as u8
    }
}

/// An error that can be reported: its `Display` is the message.
///
/// A message is in lower case, has no final period, and names what was wanted, what was found and the state that things
/// are in.
pub(crate) trait Diagnostic: Display {
    /// The failure class.
    fn kind(&self) -> ErrorKind;

    /// What the user can do.
    fn hint(&self) -> Option<Hint> {
        None
    }

    /// States what was not sent because of the failure, for commands that send something.
    fn unsent(&self) -> Option<&'static str> {
        None
    }

    /// The site that failed, if it did so on its own.
    fn subject(&self) -> Option<Subject> {
        None
    }

    /// Whether the command line names something that does not exist. Nothing was sent for it, and a retry would fail
    /// again.
    fn is_misuse(&self) -> bool {
        false
    }
}

/// One failure as the user sees it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    kind: ErrorKind,
    message: String,
    /// See [`Diagnostic::unsent`]; `None` once it is part of the message.
    unsent: Option<&'static str>,
    hint: Option<Hint>,
    /// The text of the hint.
    advice: Option<Box<str>>,
    /// Whether the place is known where it is read.
    is_placed: bool,
    is_misuse: bool,
    subject: Option<Box<Subject>>,
}

impl CommandError {
    /// A failure that nothing needs to tell from others of its class. The message follows the rules of [`Diagnostic`].
    pub(crate) fn new(kind: ErrorKind, message: impl Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            unsent: None,
            hint: None,
            advice: None,
            is_placed: false,
            is_misuse: false,
            subject: None,
        }
    }

    /// Adds what the user can do.
    pub(crate) fn hint(self, hint: impl Into<Hint>) -> Self {
        let hint = hint.into();
        Self { advice: Some(hint.to_string().into()), hint: Some(hint), ..self }
    }

    /// Adds what was not sent because of the failure; see [`Diagnostic::unsent`].
    pub(crate) fn unsent(self, unsent: &'static str) -> Self {
        Self { unsent: Some(unsent), ..self }
    }

    /// Says which site failed on its own.
    pub(crate) fn of_site(self, domain: &impl ToString) -> Self {
        Self { subject: Some(Box::new(Subject::site(domain))), ..self }
    }

    /// Says whether the command line names something that does not exist; see [`Diagnostic::is_misuse`].
    pub(crate) fn misuse(self, is_misuse: bool) -> Self {
        Self { is_misuse, ..self }
    }

    /// Replaces the message, and keeps class and hint.
    pub(crate) fn saying(self, message: impl Display) -> Self {
        Self { message: message.to_string(), ..self }
    }

    /// The failure class.
    pub(crate) fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message, without its hint.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What the user can do, as text.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// Adapts message and hint to the place where they are read, unless they are for a more specific one.
    pub(crate) fn placed(mut self, place: &Place) -> Self {
        if !self.is_placed {
            self.is_placed = true;
            if let Some(unsent) = self.unsent.take().filter(|_| place.command.sends()) {
                self = self.with_consequence(unsent);
            }
            self.advise(place);
        }
        self
    }

    /// Adapts the hint to a place.
    pub(crate) fn advise(&mut self, place: &Place) {
        self.advice = self.hint.as_ref().map(|hint| hint.at(place).into());
    }

    /// Whether the command line names something that does not exist.
    pub(crate) fn is_misuse(&self) -> bool {
        self.is_misuse
    }

    /// Whether both read the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.message, &self.advice) == (other.kind, &other.message, &other.advice)
    }

    /// Prefixes the message with the lineage's name, unless it already begins with it.
    pub(crate) fn for_lineage(&self, name: &str) -> Self {
        let message = if self.message.starts_with(name) {
            self.message.clone()
        } else {
            format!("{name}: {}", self.message)
        };
        let inner = self.subject.as_deref().cloned();
        let subject = Some(Box::new(Subject::lineage(name, inner)));
        Self { message, subject, ..self.clone() }
    }

    /// Prefixes the message with the service, for a run that deploys to several.
    pub(crate) fn at_service(&self, service: &str) -> Self {
        Self { message: format!("{service}: {}", self.message), ..self.clone() }
    }

    /// Prefixes the message with a clause that says what is unknown because of the error.
    pub(crate) fn with_context(&self, context: &str) -> Self {
        Self { message: format!("{context}; {}", self.message), ..self.clone() }
    }

    /// Appends a clause that says what was left undone.
    pub(crate) fn with_consequence(&self, consequence: &str) -> Self {
        Self { message: format!("{}; {consequence}", self.message), ..self.clone() }
    }

    /// Joins the messages on one line. Those after the tenth are only counted.
    pub(crate) fn join(errors: &[Self]) -> String {
        const MAX_MESSAGES: usize = 10;
        let mut messages: Vec<&str> = errors.iter().map(Self::message).take(MAX_MESSAGES).collect();
        let more = format!("and {} more", errors.len().saturating_sub(MAX_MESSAGES));
        if errors.len() > MAX_MESSAGES {
            messages.push(&more);
        }
        messages.join("; ")
    }
}

impl<E: Diagnostic + ?Sized> Diagnostic for &E {
    fn kind(&self) -> ErrorKind {
        (**self).kind()
    }

    fn hint(&self) -> Option<Hint> {
        (**self).hint()
    }

    fn unsent(&self) -> Option<&'static str> {
        (**self).unsent()
    }

    fn subject(&self) -> Option<Subject> {
        (**self).subject()
    }

    fn is_misuse(&self) -> bool {
        (**self).is_misuse()
    }
}

impl<E: Diagnostic> From<E> for CommandError {
    fn from(error: E) -> Self {
        let plain = Self {
            unsent: error.unsent(),
            is_misuse: error.is_misuse(),
            subject: error.subject().map(Box::new),
            ..Self::new(error.kind(), &error)
        };
        match error.hint() {
            Some(hint) => plain.hint(hint),
            None => plain,
        }
    }
}

/// An error without a type of its own is a bug.
impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(ErrorKind::Internal, format_args!("internal error: {error:#}")).hint(INTERNAL_HINT)
    }
}

impl Diagnostic for FailedCheck<'_> {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Refused
    }

    fn hint(&self) -> Option<Hint> {
        self.0.hint.clone()
    }

    fn unsent(&self) -> Option<&'static str> {
        Some("nothing was sent")
    }

    fn is_misuse(&self) -> bool {
        self.0.uncovered.is_some()
    }
}

/// A failed local check. It refuses the certificate before anything is sent.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.detail)]
pub(crate) struct FailedCheck<'a>(pub(crate) &'a Finding);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_order_is_as_documented() {
        let codes = ErrorKind::BY_SEVERITY.map(ErrorKind::exit_code);
        assert_eq!(codes, [70, 78, 77, 66, 65, 76, 69, 75, 2]);
        let kinds = [ErrorKind::Temporary, ErrorKind::Service];
        assert_eq!(ErrorKind::most_severe(kinds), Some(ErrorKind::Service));
        assert_eq!(ErrorKind::most_severe([]), None);
        for (codes, expected) in [([0, 66], 66), ([65, 66], 66), ([78, 66], 78), ([0, 0], 0)] {
            assert_eq!(ErrorKind::most_severe_code(codes), expected);
        }
    }

    #[test]
    fn untyped_error_is_internal() {
        let error = CommandError::from(anyhow::anyhow!("surprise").context("cannot start"));
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "internal error: cannot start: surprise");
    }
}
