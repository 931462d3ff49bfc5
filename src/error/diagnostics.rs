//! Kinds and hints of the errors of lower modules, which do not know them.

use std::io::ErrorKind as Io;

use super::{CommandError, Diagnostic, ErrorKind as K};
use crate::file::ReadError;
use crate::hint::{Hint, read_hint, state_hint};
use crate::runtime::RuntimeError;
use crate::settings::SettingsError;
use crate::state::{StateError, WriteError};
use crate::{api, source};

impl Diagnostic for api::RequestError {
    fn diagnose(&self) -> CommandError {
        self.error.diagnose()
    }
}

impl Diagnostic for api::AttemptError {
    fn diagnose(&self) -> CommandError {
        let error = |kind| CommandError::new(kind, self);
        match self {
            Self::NoResponse { .. } => error(K::Temporary).hint(Hint::RETRY),
            Self::Unavailable { status, .. } => {
                error(K::Temporary).class(format!("unavailable {status}")).hint(Hint::RETRY)
            }
            Self::Tls { hint, .. } => error(K::Config).hint(*hint),
            Self::Unauthorized { .. } => {
                error(K::Denied).hint("set a valid key in EDGECERT_API_KEY or in the API key file")
            }
            Self::Refused { status, .. } => error(K::Service).class(format!("refused {status}")),
            Self::NotOk { .. } => error(K::Service).class("not ok"),
            Self::NoList { status, .. } => error(if *status == 404 { K::Service } else { K::Protocol })
                .hint("check the base URL; it is the part before /api"),
            Self::Redirected { status, .. } | Self::InvalidResponse { status, .. } => error(K::Protocol)
                .class(format!("invalid {status}"))
                .hint("check the base URL; it may belong to another server"),
            Self::TooLarge => error(K::Protocol).hint("split the sites across several accounts"),
        }
    }
}

impl Diagnostic for api::Gap {
    fn diagnose(&self) -> CommandError {
        CommandError::new(K::Protocol, self).hint("report the incomplete list to the service's support")
    }
}

impl Diagnostic for SettingsError {
    fn diagnose(&self) -> CommandError {
        self.hint.iter().fold(CommandError::new(K::Config, self), |error, hint| error.hint(hint.clone()))
    }
}

impl Diagnostic for source::SourceError {
    fn diagnose(&self) -> CommandError {
        let error = |kind| CommandError::new(kind, self);
        match self {
            Self::NoSource => error(K::Usage).hint("run edgecert as the deploy hook of an ACME client, or pass --lineage DIR, or --cert FILE and --key FILE"),
            Self::CertbotPostHook => error(K::Config).unsent(UNSENT).hint("run `certbot reconfigure --cert-name NAME --deploy-hook edgecert --post-hook ''` for each lineage, or use `edgecert sync` as the post hook"),
            Self::SeveralClients(_) => error(K::Config).unsent(UNSENT).hint("in the hook, name the lineage with --lineage, or --cert and --key, or remove the variables of the other client with `env -u VARIABLE edgecert`"),
            Self::NotALineage { is_denied: true, .. } => error(K::NoInput).class("denied").hint(CLIENT_USER_HINT),
            Self::NotALineage { .. } => error(K::NoInput).class("not a lineage").hint("name the directory that holds the certificate and its key with --lineage DIR, or correct `path` in its [[lineage]]; or name both files with --cert and --key, or with `cert` and `key`"),
            Self::SeveralLineages { .. } => error(K::NoInput).class("several lineages").hint("name the files of one of them with --cert FILE and --key FILE, or with `cert` and `key` in its [[lineage]]"),
        }
    }
}

const UNSENT: &str = "nothing was sent";

const CLIENT_USER_HINT: &str = "run edgecert as the user that the ACME client runs as";

/// A file with a certificate or key; errors of other files have hints of their own.
impl Diagnostic for ReadError {
    fn diagnose(&self) -> CommandError {
        let hint = match self.kind {
            Io::NotFound if self.path.starts_with("/dev/fd") => {
                "it was a pipe of an earlier run; run that command again"
            }
            Io::NotFound if self.path.starts_with("certificates") => "run edgecert in Caddy's data directory",
            Io::NotFound => {
                "check the path; acme.sh and `lego --filename` may name files that they did not write"
            }
            Io::FileTooLarge => "check the path; pass the PEM file of one certificate or key",
            Io::IsADirectory => "name a file, or pass the directory of a lineage with --lineage",
            Io::PermissionDenied => CLIENT_USER_HINT,
            kind => read_hint(kind),
        };
        CommandError::new(K::NoInput, self).class(format!("unreadable: {:?}", self.kind)).hint(hint)
    }
}

impl Diagnostic for WriteError {
    fn diagnose(&self) -> CommandError {
        CommandError::new(K::Config, self)
            .class(format!("unwritable: {}", self.reason))
            .hint(self.hint.clone())
    }
}

impl Diagnostic for StateError {
    fn diagnose(&self) -> CommandError {
        let error = |kind| CommandError::new(kind, self);
        match self {
            Self::Unreadable(cause) | Self::Directory(cause) => {
                error(K::NoInput).class(format!("unreadable: {:?}", cause.kind)).hint(state_hint(cause.kind))
            }
            Self::NewerVersion { .. } => {
                error(K::Config).class("later version").hint("run the release of edgecert that wrote it")
            }
            Self::NotQuarantined { .. } => {
                error(K::Config).class("not renamed").hint("check the file and its permissions")
            }
            // The message says what to do.
            Self::Quarantined { .. } | Self::Damaged(_) | Self::InvalidRecord { .. } => {
                error(K::Config).class("damaged")
            }
        }
    }
}

impl Diagnostic for RuntimeError {
    fn diagnose(&self) -> CommandError {
        CommandError::new(K::Temporary, self).hint(Hint::RETRY)
    }
}
