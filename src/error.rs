//! Failures of a run: message, hint and exit code.
//!
//! Every error reaches the user as a [`CommandError`]. An error that nothing needs to tell from others is built as one;
//! typed errors become one by [`Diagnostic`], those of lower modules in `diagnostics`.

mod diagnostics;

use std::collections::HashMap;
use std::fmt::Display;

use crate::check::Finding;
use crate::hint::{Hint, Place};
pub(crate) use crate::hint::{read_hint, write_hint};
pub(crate) use crate::text::shell_word;
use crate::text::{self, count, sanitize};

/// The result of a step whose failure ends the run, or is one of its failures.
pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

/// Failure class. The discriminant is the exit code, on which scripts depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    #[default]
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
    const BY_SEVERITY: [Self; 9] = {
        use ErrorKind::{Config, Denied, Internal, NoInput, Protocol, Refused, Service, Temporary, Usage};
        [Internal, Config, Denied, NoInput, Refused, Protocol, Service, Temporary, Usage]
    };

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

/// An error with a type of its own, whose `Display` is the message.
pub(crate) trait Diagnostic: Display {
    /// The failure as the user sees it.
    fn diagnose(&self) -> CommandError;
}

/// One failure as the user sees it.
///
/// A message is in lower case, has no final period, and names what was wanted, what was found and the state that things
/// are in.
#[derive(Clone, Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    kind: ErrorKind,
    message: String,
    hint: Option<Box<Hint>>,
    /// What was not sent because of the failure; `None` once it is part of the message.
    unsent: Option<&'static str>,
    /// Where it is read, once that is known.
    place: Option<Box<Place>>,
    is_misuse: bool,
    /// The site or lineage that failed, if it did so on its own.
    subject: Option<Box<Subject>>,
    /// What failures must share to be the same for different subjects; `None`: the message.
    class: Option<Box<str>>,
}

#[derive(Clone, Debug)]
struct Subject {
    /// The kind of thing, such as `site`.
    noun: &'static str,
    name: String,
}

/// Failures that are alike are listed one by one up to this number. Of more, as many names are given.
pub(crate) const MAX_NAMED: usize = 5;

impl CommandError {
    pub(crate) fn new(kind: ErrorKind, message: impl Display) -> Self {
        Self { kind, message: message.to_string(), ..Self::default() }
    }

    /// Sets what the user can do.
    pub(crate) fn hint(self, hint: impl Into<Hint>) -> Self {
        Self { hint: Some(Box::new(hint.into())), ..self }
    }

    /// States what was not sent because of the failure, for commands that send something.
    pub(crate) fn unsent(self, unsent: &'static str) -> Self {
        Self { unsent: Some(unsent), ..self }
    }

    /// Marks the command line as the cause: it names something that does not exist. Nothing was sent for it, and a retry
    /// would fail again.
    pub(crate) fn misuse(self, is_misuse: bool) -> Self {
        Self { is_misuse, ..self }
    }

    /// Sets what failures of other sites or lineages must share to be the same, such as `refused 403`: their messages
    /// differ in names, addresses and numbers.
    pub(crate) fn class(self, class: impl Into<Box<str>>) -> Self {
        Self { class: Some(class.into()), ..self }
    }

    /// Sets the site that failed.
    pub(crate) fn of_site(self, domain: impl Display) -> Self {
        let subject = Subject { noun: "site", name: domain.to_string() };
        Self { subject: Some(Box::new(subject)), ..self }
    }

    /// Sets the lineage that failed, and names it before the message, unless that begins with it.
    pub(crate) fn of_lineage(&self, name: &str) -> Self {
        let is_named = self.message.starts_with(name);
        let named = if is_named { self.clone() } else { self.prefixed(format_args!("{name}: ")) };
        let subject = Some(Box::new(Subject { noun: "lineage", name: name.to_owned() }));
        Self { subject, ..named.class(self.class_or_message()) }
    }

    /// Puts a name or a clause before the message.
    pub(crate) fn prefixed(&self, prefix: impl Display) -> Self {
        Self { message: format!("{prefix}{}", self.message), ..self.clone() }
    }

    /// Appends a clause that says what was left undone.
    pub(crate) fn with_consequence(&self, consequence: &str) -> Self {
        Self { message: format!("{}; {consequence}", self.message), ..self.clone() }
    }

    /// Adapts message and hint to the place where they are read, unless they are for a more specific one.
    pub(crate) fn placed(mut self, place: &Place) -> Self {
        if self.place.is_some() {
            return self;
        }
        if let Some(unsent) = self.unsent.take().filter(|_| place.command.sends()) {
            self = self.with_consequence(unsent);
        }
        self.advise(place);
        self
    }

    /// Adapts the hint to a place.
    pub(crate) fn advise(&mut self, place: &Place) {
        self.place = Some(Box::new(place.clone()));
    }

    /// Replaces the message, and keeps kind and hint.
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
    pub(crate) fn advice(&self) -> Option<String> {
        Some(self.hint.as_ref()?.at(self.place.as_deref().unwrap_or(&Place::default())))
    }

    /// Whether the command line names something that does not exist.
    pub(crate) fn is_misuse(&self) -> bool {
        self.is_misuse
    }

    /// What failures of other sites or lineages share with this one.
    pub(crate) fn class_or_message(&self) -> &str {
        self.class.as_deref().unwrap_or(&self.message)
    }

    /// The site that failed, if it did so on its own.
    pub(crate) fn site(&self) -> Option<&str> {
        let subject = self.subject.as_deref()?;
        (subject.noun == "site").then_some(&subject.name)
    }

    /// Whether both read the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.kind, &self.message, self.advice()) == (other.kind, &other.message, other.advice())
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

    /// Merges the same failure of many sites or lineages: a thousand sites that fail for one reason are one line.
    pub(crate) fn merge(errors: &[Self]) -> Vec<Self> {
        let mut groups: Vec<Vec<&Self>> = Vec::new();
        let mut group_of = HashMap::new();
        for error in errors {
            let class =
                error.subject.as_ref().map(|subject| (error.kind, subject.noun, error.class_or_message()));
            let number = class.map_or(groups.len(), |class| *group_of.entry(class).or_insert(groups.len()));
            match groups.get_mut(number) {
                Some(group) => group.push(error),
                None => groups.push(vec![error]),
            }
        }
        let merge = |group: Vec<&Self>| match group.as_slice() {
            [first, ..] if group.len() > MAX_NAMED => {
                let subjects = || group.iter().filter_map(|error| error.subject.as_deref());
                let names = first_names(subjects().map(|subject| subject.name.as_str()));
                let number = count(group.len(), subjects().next().map_or("site", |subject| subject.noun));
                vec![first.prefixed(format_args!("{number} ({names}) failed in the same way; the first: "))]
            }
            group => group.iter().map(|error| (*error).clone()).collect(),
        };
        groups.into_iter().flat_map(merge).collect()
    }
}

/// Names the first of these and counts the rest.
pub(crate) fn first_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    text::list_first(names.into_iter().map(sanitize), MAX_NAMED)
}

impl<E: Diagnostic> From<E> for CommandError {
    fn from(error: E) -> Self {
        error.diagnose()
    }
}

/// An error without a type of its own is a bug.
impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(ErrorKind::Internal, format_args!("internal error: {error:#}"))
            .hint("report this, with the command and its output")
    }
}

/// A failed local check. It refuses the certificate before anything is sent.
impl From<&Finding> for CommandError {
    fn from(finding: &Finding) -> Self {
        let error = Self::new(ErrorKind::Refused, &finding.detail).unsent("nothing was sent");
        let class = match &finding.hint {
            Some(Hint::Text(remedy)) => remedy.clone().into_owned(),
            _ => finding.check.to_string(),
        };
        let is_misuse = matches!(finding.hint, Some(Hint::OmitDomain { .. }));
        Self { hint: finding.hint.clone().map(Box::new), ..error }.class(class).misuse(is_misuse)
    }
}

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

    fn stale(number: usize, status: u16) -> CommandError {
        let site = format!("{}.example", ["a", "b", "c", "d", "e", "f", "g"][number % 7]);
        let detail = format!("192.0.2.{number}:443 serves {} ({status})", number * 1000);
        let message = format!("{site} is stale: {detail}");
        CommandError::new(ErrorKind::Temporary, message).of_site(site).class(format!("stale {status}"))
    }

    fn merged(errors: &[CommandError]) -> Vec<String> {
        CommandError::merge(errors).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn many_alike_are_one() {
        let errors: Vec<CommandError> = (0..1000).map(|number| stale(number, 200)).collect();
        assert_eq!(
            merged(&errors),
            [
                "1000 sites (a.example, b.example, c.example, d.example, e.example and 995 more) failed in the same \
              way; the first: a.example is stale: 192.0.2.0:443 serves 0 (200)"
            ]
        );
        assert_eq!(merged(&errors[..MAX_NAMED]).len(), MAX_NAMED);
        assert_eq!(merged(&errors[..=MAX_NAMED]).len(), 1);
        let lineages: Vec<CommandError> = errors
            .iter()
            .enumerate()
            .map(|(number, error)| error.of_lineage(&format!("shop-{number}")))
            .collect();
        let [text] = &merged(&lineages)[..] else { panic!("{:?}", merged(&lineages)) };
        assert!(
            text.starts_with("1000 lineages (shop-0, shop-1, shop-2, shop-3, shop-4 and 995 more) failed"),
            "{text}"
        );
    }

    #[test]
    fn different_failures_stay_apart() {
        let (ok, refused) = (|number| stale(number, 200), |number| stale(number, 403));
        let errors: Vec<CommandError> =
            (0..40).map(|number| if number % 2 == 0 { ok(number) } else { refused(number) }).collect();
        assert_eq!(merged(&errors).len(), 2);
        let failed = |number: usize| {
            let reason = ["refuses the name", "is out of reach"][number % 2];
            let error = CommandError::new(ErrorKind::Temporary, format_args!("/srv/{number} {reason}"));
            error.class(reason).of_lineage(&format!("/srv/{number}"))
        };
        let merged_reasons = merged(&(0..20).map(failed).collect::<Vec<_>>());
        assert_eq!(merged_reasons.len(), 2);
        assert!(merged_reasons[0].ends_with("the first: /srv/0 refuses the name"), "{merged_reasons:?}");
        let other = || CommandError::from(anyhow::anyhow!("x"));
        let errors: Vec<CommandError> = (0..10).map(|_| other()).collect();
        assert_eq!(merged(&errors).len(), 10, "neither sites nor lineages");
    }
}
