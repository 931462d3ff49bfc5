//! Kinds and hints of the errors of lower modules, which do not know them.

use std::io;

use super::hint::{
    OTHER_STATE_DIR, certificate_hint, read_hint, state_dir_hint, state_file_hint, write_hint,
};
use super::{Diagnostic, ErrorKind};
use crate::file::ReadError;
use crate::hint::Hint;
use crate::runtime::RuntimeError;
use crate::settings::{BaseUrl, FileFault};
use crate::state::{LockTimeout, StateDirError, StateError, WriteError, WriteFailure};
use crate::text::shell_word;
use crate::trust::TrustStoreError;
use crate::{api, file, settings, source};

impl Diagnostic for api::RequestError {
    fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    fn hint(&self) -> Option<Hint> {
        self.error.hint()
    }
}

impl Diagnostic for api::AttemptError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::ConnectionClosed { .. }
            | Self::Unavailable { .. } => ErrorKind::Temporary,
            Self::Untrusted { .. } | Self::NotTls { .. } | Self::NoCommonTls { .. } => ErrorKind::Config,
            Self::Unauthorized { .. } => ErrorKind::Denied,
            Self::Refused { .. } | Self::NoSuchList { .. } | Self::NotOk { .. } => ErrorKind::Service,
            Self::Redirected { .. }
            | Self::WebPage { .. }
            | Self::InvalidResponse { .. }
            | Self::ListTooLarge { .. } => ErrorKind::Protocol,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::ConnectionClosed { .. }
            | Self::Unavailable { .. } => return Some(Hint::RETRY),
            Self::Untrusted { fault, .. } => certificate_hint(*fault),
            Self::NotTls { .. } => "check scheme, host and port of the base URL",
            Self::NoCommonTls { .. } => "check the base URL; the server must support TLS 1.2 or 1.3",
            Self::Unauthorized { .. } => "set a valid key in EDGECERT_API_KEY or in the API key file",
            Self::NoSuchList { base_url, .. } | Self::WebPage { base_url, .. } => {
                return Some(base_url_hint(base_url));
            }
            Self::Redirected { .. } | Self::InvalidResponse { .. } => {
                "check the base URL; it may belong to another server"
            }
            Self::ListTooLarge { .. } => "split the sites across several accounts",
            Self::Refused { .. } | Self::NotOk { .. } => return None,
        };
        Some(hint.into())
    }
}

/// What to do about a base URL at which there is no such service.
fn base_url_hint(base_url: &BaseUrl) -> Hint {
    match base_url.before_api() {
        Some(url) => {
            format!("set the base URL to {url}; edgecert appends /api and the rest of the path").into()
        }
        None => "check the base URL; it is the part before /api".into(),
    }
}

impl Diagnostic for api::Gap {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Protocol
    }

    fn hint(&self) -> Option<Hint> {
        Some("report the incomplete list to the service's support".into())
    }
}

impl Diagnostic for api::SetupError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::TrustStore(error) => error.hint(),
            Self::Client(_) => None,
        }
    }
}

impl Diagnostic for TrustStoreError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::Unreadable(error) => read_hint(error.kind),
            Self::CaFile { .. } => "name a file with CA certificates in PEM",
            Self::NoRoots { named: true } => "check SSL_CERT_FILE and SSL_CERT_DIR",
            Self::NoRoots { named: false } => {
                "install the system's CA certificates (package ca-certificates)"
            }
        };
        Some(hint.into())
    }
}

impl Diagnostic for settings::SettingsError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::NoBaseUrl => "set EDGECERT_BASE_URL, or base_url in /etc/edgecert/config.toml".into(),
            Self::NoApiKey => "set EDGECERT_API_KEY, or write the key to a file and set api_key_file in /etc/edgecert/config.toml".into(),
            Self::OpenToOthers { path } if file::is_mounted_secret(path) => {
                "set defaultMode: 0440 where the secret is mounted".into()
            }
            Self::OpenToOthers { path } => format!("run `chmod o= {}`", shell_word(&path.to_string_lossy())).into(),
            Self::File { fault: FileFault::UnknownKey { key, .. }, .. } if key == "api_key" => {
                "write the key to a file of its own and set `api_key_file`".into()
            }
            Self::File { fault: FileFault::UnknownKey { known, .. }, .. } => {
                format!("known keys: {}", known.join(", ")).into()
            }
            Self::Read(error) => read_hint(error.kind).into(),
            Self::OtherService { url } => format!(
                "run `edgecert sync --base-url {url} --api-key-file FILE` with the key for that service, or deploy the lineage again"
            ).into(),
            Self::Invalid { .. } | Self::File { .. } | Self::NotUnicode(_) => return None,
        };
        Some(hint)
    }
}

impl Diagnostic for settings::Distrust {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Writable { path } | Self::Replaceable { directory: path } => {
                format!("run `chmod go-w {}`", shell_word(&path.to_string_lossy())).into()
            }
            Self::Foreign { .. } => "make root its owner, or the user that runs edgecert".into(),
            Self::Unknown { .. } => "check the path and its permissions".into(),
        })
    }
}

impl Diagnostic for source::SourceError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSource => ErrorKind::Usage,
            Self::CertbotPostHook | Self::SeveralClients(_) => ErrorKind::Config,
            Self::NotALineage { .. } | Self::SeveralLineages { .. } => ErrorKind::NoInput,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::NoSource => {
                "run edgecert as the deploy hook of an ACME client, or pass --lineage DIR, or --cert FILE and --key FILE"
            }
            Self::CertbotPostHook => {
                "run `certbot reconfigure --cert-name NAME --deploy-hook edgecert --post-hook ''` for each lineage, or use `edgecert sync` as the post hook"
            }
            Self::SeveralClients(_) => {
                "in the hook, name the lineage with --lineage, or --cert and --key, or remove the variables of the other client with `env -u VARIABLE edgecert`"
            }
            Self::NotALineage { is_denied: true, .. } => CLIENT_USER_HINT,
            Self::NotALineage { .. } => return Some(Hint::NameLineage),
            Self::SeveralLineages { .. } => return Some(Hint::NameFiles),
        };
        Some(hint.into())
    }

    fn unsent(&self) -> Option<&'static str> {
        matches!(self, Self::CertbotPostHook | Self::SeveralClients(_)).then_some("nothing was sent")
    }
}

const CLIENT_USER_HINT: &str = "run edgecert as the user that the ACME client runs as";

/// A file with a certificate or key; errors of other files have hints of their own.
impl Diagnostic for ReadError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoInput
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self.kind {
            io::ErrorKind::NotFound if self.path.starts_with("/dev/fd") => {
                "it was a pipe of an earlier run; run that command again"
            }
            io::ErrorKind::NotFound if self.path.starts_with("certificates") => {
                "run edgecert in the directory that the path is relative to; for Caddy that is its data directory"
            }
            io::ErrorKind::NotFound => {
                "check the path; acme.sh and `lego --filename` may name files that they did not write"
            }
            io::ErrorKind::FileTooLarge => "check the path; pass the PEM file of one certificate or key",
            io::ErrorKind::IsADirectory => "name a file, or pass the directory of a lineage with --lineage",
            io::ErrorKind::PermissionDenied => CLIENT_USER_HINT,
            kind => read_hint(kind),
        };
        Some(hint.into())
    }
}

impl Diagnostic for WriteError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self.cause {
            WriteFailure::Io(kind) => write_hint(kind, OTHER_STATE_DIR).into(),
            WriteFailure::LaterVersion => {
                format!("run the release of edgecert that wrote it, or {OTHER_STATE_DIR}").into()
            }
            WriteFailure::Unreadable(kind) => state_file_hint(kind).into(),
        })
    }
}

impl Diagnostic for StateDirError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoInput
    }

    fn hint(&self) -> Option<Hint> {
        Some(state_dir_hint(self.0.kind).into())
    }
}

impl Diagnostic for StateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreadable(_) => ErrorKind::NoInput,
            _ => ErrorKind::Config,
        }
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NewerVersion { .. } => "run the release of edgecert that wrote it".into(),
            Self::Unreadable(error) => state_file_hint(error.kind).into(),
            Self::NotQuarantined { .. } => "check the file and its permissions".into(),
            // The message says what to do.
            Self::Quarantined { .. } | Self::Damaged(_) => return None,
        })
    }
}

impl Diagnostic for RuntimeError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Temporary
    }

    fn hint(&self) -> Option<Hint> {
        Some(Hint::RETRY)
    }
}

impl Diagnostic for LockTimeout {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Temporary
    }

    fn hint(&self) -> Option<Hint> {
        Some(Hint::Wait)
    }
}
