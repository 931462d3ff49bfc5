//! From facts to what a person reads and a script tests: sentences, hints and the exit code.
//!
//! Modules return facts as errors of their own; here alone is decided whose turn it is. A message has no capital at its
//! start and no period at its end; the hint says what to do. What is not recognised is a fault of edgecert itself.

use std::io;

use crate::check::{Finding, Refused, Status};
use crate::file::ReadError;
use crate::state::{LockTimeout, WriteError};
use crate::trust::TrustStoreError;
use crate::{api, settings, source};

/// Whose turn it is now. The discriminant is the exit code; scripts depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A fault of edgecert itself.
    Fault = 70,
    /// Temporary and remembered; `edgecert sync` will finish it.
    Temporary = 75,
    /// The service answered something that cannot be understood.
    Protocol = 76,
    /// The service does not accept the API key.
    Denied = 77,
    /// Configuration.
    Config = 78,
}

impl ErrorKind {
    /// Gravest first: the one that a run with several ends with.
    const SEVERITY: [Self; 9] = [
        Self::Fault,
        Self::Config,
        Self::Denied,
        Self::NoInput,
        Self::Refused,
        Self::Protocol,
        Self::Service,
        Self::Temporary,
        Self::Usage,
    ];

    /// The most severe of several.
    pub(crate) fn most_severe(kinds: impl IntoIterator<Item = Self>) -> Option<Self> {
        kinds.into_iter().min_by_key(|kind| Self::SEVERITY.iter().position(|other| other == kind))
    }

    /// The exit code.
    pub(crate) fn exit_code(self) -> u8 {
        self as u8
    }
}

/// A run that did not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// At least one.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A sentence and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// An error whose kind was decided where it arose, because only there the facts are together.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic.message)]
pub(crate) struct CommandError {
    pub(crate) kind: ErrorKind,
    pub(crate) diagnostic: Diagnostic,
}

impl Diagnostic {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}

impl Failure {
    /// The failure that an error means; `findings` are those of the local checks so far.
    pub(crate) fn from_error(error: &anyhow::Error, findings: &[Finding]) -> Self {
        if error.is::<Refused>() {
            let failed = findings.iter().filter(|finding| finding.status == Status::Fail);
            let diagnostic = |finding: &Finding| Diagnostic {
                message: format!("{}; nothing was sent", finding.detail),
                hint: finding.hint.clone(),
            };
            return Self { kind: ErrorKind::Refused, diagnostics: failed.map(diagnostic).collect() };
        }
        let (kind, hint) = classify(error);
        let message =
            if kind == ErrorKind::Fault { format!("internal error: {error:#}") } else { error.to_string() };
        Self { kind, diagnostics: vec![Diagnostic { message, hint }] }
    }

    /// The sentences in one line; of many the first ones.
    pub(crate) fn message(&self) -> String {
        const MOST: usize = 10;
        let mut messages: Vec<&str> =
            self.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).take(MOST).collect();
        let more = format!("and {} more", self.diagnostics.len().saturating_sub(MOST));
        if self.diagnostics.len() > MOST {
            messages.push(&more);
        }
        messages.join("; ")
    }
}

fn classify(error: &anyhow::Error) -> (ErrorKind, Option<String>) {
    if let Some(decided) = error.downcast_ref::<CommandError>() {
        return (decided.kind, decided.diagnostic.hint.clone());
    }
    if let Some(error) = error.downcast_ref::<settings::Error>() {
        return (ErrorKind::Config, settings_hint(error));
    }
    if error.is::<WriteError>() {
        return (ErrorKind::Config, Some(STATE_HINT.into()));
    }
    if error.is::<LockTimeout>() {
        let hint = "let that run finish; `flock` is what keeps it, and it ends with its process";
        return (ErrorKind::Temporary, Some(hint.into()));
    }
    if let Some(error) = error.downcast_ref::<source::Error>() {
        let (kind, hint) = source_hint(error);
        return (kind, Some(hint.into()));
    }
    if let Some(unreadable) = error.downcast_ref::<ReadError>() {
        return (ErrorKind::NoInput, Some(unreadable_hint(unreadable).into()));
    }
    if error.is::<api::SetupError>() || error.is::<TrustStoreError>() {
        return (ErrorKind::Config, Some("name a file with CA certificates in PEM".into()));
    }
    if let Some(failed) = error.downcast_ref::<api::RequestError>() {
        return (api_kind(&failed.error), api_hint(&failed.error));
    }
    (ErrorKind::Fault, Some("please report this, with the command and what it printed".into()))
}

/// Whose turn it is after a request that failed.
pub(crate) fn api_kind(error: &api::Error) -> ErrorKind {
    use api::Error as E;
    match error {
        E::Unreachable { .. } | E::TimedOut { .. } | E::ConnectionClosed { .. } | E::Unavailable { .. } => {
            ErrorKind::Temporary
        }
        E::Untrusted { .. } | E::NoTls { .. } => ErrorKind::Config,
        E::Denied { .. } => ErrorKind::Denied,
        E::Refused { .. } | E::NotOk { .. } => ErrorKind::Service,
        E::Redirected { .. } | E::Unreadable { .. } => ErrorKind::Protocol,
    }
}

/// What to do where nothing can be remembered.
pub(crate) const STATE_HINT: &str = "make room there, or let the user that runs edgecert write there, or name another directory with --state-dir";

/// The hint for everything that passes by itself.
pub(crate) const AGAIN: &str = "`edgecert sync` will finish it; let a timer run that";

/// What to do after a request that failed.
pub(crate) fn api_hint(error: &api::Error) -> Option<String> {
    use api::Error as E;
    let hint = match error {
        E::Unreachable { .. } | E::TimedOut { .. } | E::ConnectionClosed { .. } | E::Unavailable { .. } => {
            AGAIN
        }
        E::Untrusted { .. } => "if the service has a CA of its own, name its certificate with --ca-file",
        E::NoTls { .. } => "check scheme, host and port of the base URL",
        E::Denied { .. } => "put a valid key into EDGECERT_API_KEY or the API key file",
        E::Redirected { .. } | E::Unreadable { .. } => {
            "check the base URL; it may lead to something other than the service"
        }
        E::Refused { .. } | E::NotOk { .. } => return None,
    };
    Some(hint.into())
}

fn settings_hint(error: &settings::Error) -> Option<String> {
    use settings::Error as E;
    Some(match error {
        E::NoBaseUrl => "set EDGECERT_BASE_URL, or base_url in /etc/edgecert/config.toml".into(),
        E::NoApiKey => "set EDGECERT_API_KEY, or write the key into a file and name it with api_key_file in /etc/edgecert/config.toml".into(),
        E::OpenToOthers { path } => format!("chmod 600 {}", shell_word(&path.to_string_lossy())),
        E::File { known: Some(known), reason, .. } if reason.contains("api_key`") => {
            format!("write the key into a file of its own and name that with `api_key_file`; known are {known}")
        }
        E::File { known: Some(known), .. } => format!("known are {known}"),
        E::Unreadable(unreadable) if unreadable.kind == io::ErrorKind::FileTooLarge => {
            "check the path; the file is too large to be what this setting names".into()
        }
        E::Unreadable(_) => "check the path and its permissions".into(),
        E::OtherService { url } => format!(
            "run `edgecert sync --base-url {url} --api-key-file FILE` with the key for that service, or deploy it again"
        ),
        E::Bad { .. } | E::File { .. } | E::NotUnicode(_) => return None,
    })
}

fn source_hint(error: &source::Error) -> (ErrorKind, &'static str) {
    match error {
        source::Error::NoSource => (
            ErrorKind::Usage,
            "call it as the deploy hook of an ACME client, or pass --lineage DIR, or --cert FILE and --key FILE",
        ),
        source::Error::NotALineage { .. } => (
            ErrorKind::NoInput,
            "name the directory that holds the certificate and its key, or pass --cert FILE and --key FILE",
        ),
        source::Error::SeveralLineages { .. } => {
            (ErrorKind::NoInput, "name the files of one of them with --cert FILE and --key FILE")
        }
    }
}

fn unreadable_hint(unreadable: &ReadError) -> &'static str {
    match unreadable.kind {
        io::ErrorKind::NotFound => {
            "check the path; lego with --filename and acme.sh name files that they did not write"
        }
        io::ErrorKind::FileTooLarge => "check the path; pass the PEM file of one certificate or key",
        io::ErrorKind::IsADirectory => "name a file, or pass the directory of a lineage with --lineage",
        io::ErrorKind::TimedOut => "check the program that writes to the pipe",
        _ => "run edgecert as the user that the ACME client runs as",
    }
}

/// A word that can be pasted into a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_wins_in_the_documented_order() {
        let order = [70, 78, 77, 66, 65, 76, 69, 75];
        let codes: Vec<u8> = ErrorKind::SEVERITY.iter().map(|kind| kind.exit_code()).take(8).collect();
        assert_eq!(codes, order);
        assert_eq!(
            ErrorKind::most_severe([ErrorKind::Temporary, ErrorKind::Service]),
            Some(ErrorKind::Service)
        );
        assert_eq!(ErrorKind::most_severe([]), None);
    }

    #[test]
    fn an_unknown_error_is_our_own_fault() {
        let failure = Failure::from_error(&anyhow::anyhow!("surprise"), &[]);
        assert_eq!(
            (failure.kind, failure.message().as_str()),
            (ErrorKind::Fault, "internal error: surprise")
        );
    }

    #[test]
    fn a_pasted_path_is_one_word() {
        assert_eq!(shell_word("/etc/edgecert/key"), "/etc/edgecert/key");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
    }
}
