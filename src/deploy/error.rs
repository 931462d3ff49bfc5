//! Why a deployment stopped before it had a result for each site.

use crate::api::{RequestError, SetupError};
use crate::error::{Diagnostic, ErrorKind, INTERNAL_HINT};
use crate::file::ReadError;
use crate::hint::Hint;
use crate::runtime::RuntimeError;
use crate::state::{LockTimeout, WriteError};
use crate::{settings, text};

#[derive(Debug, thiserror::Error)]
pub(crate) enum DeployError {
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    #[error(transparent)]
    Locked(#[from] LockTimeout),
    #[error("another run of edgecert began to deploy {lineage} with other options and has not finished")]
    NewerRun { lineage: String },
    #[error("{lineage} was renewed during this run, whose options apply to the previous certificate")]
    Renewed { lineage: String },
    #[error("the state of {lineage} was deleted while sync ran")]
    Forgotten { lineage: String },
    /// The state cannot be written, and this run must not deploy without it.
    #[error(transparent)]
    NotRecorded(WriteError),
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// Nothing can be sent.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(
        "none of the account's {} is covered by the certificate for {}",
        text::count(*sites, "site"),
        text::list(names)
    )]
    NoSiteCovered { sites: usize, names: Vec<String> },
    #[error("the account no longer has {}, to which this host deployed before", text::list(sites))]
    SitesGone { lineage: String, sites: Vec<String> },
    #[error("internal error: {0:#}")]
    Internal(#[from] anyhow::Error),
}

impl Diagnostic for DeployError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(error) => error.kind(),
            Self::Locked(error) => error.kind(),
            Self::NewerRun { .. } | Self::Renewed { .. } | Self::Forgotten { .. } => ErrorKind::Temporary,
            Self::NotRecorded(error) => error.kind(),
            Self::Unreadable(error) => error.kind(),
            Self::Runtime(error) => error.kind(),
            Self::Setup(error) => error.kind(),
            Self::Request(error) => error.kind(),
            Self::NoSiteCovered { .. } | Self::SitesGone { .. } => ErrorKind::Service,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::Settings(error) => return error.hint(),
            Self::Locked(error) => return error.hint(),
            Self::NewerRun { .. } | Self::Renewed { .. } => return Some(Hint::RETRY),
            Self::Forgotten { .. } => "to deploy the lineage again, run its hook",
            Self::NotRecorded(error) => return error.hint(),
            Self::Unreadable(error) => return error.hint(),
            Self::Runtime(error) => return error.hint(),
            Self::Setup(error) => return error.hint(),
            Self::Request(error) => return error.hint(),
            Self::NoSiteCovered { .. } => return Some(Hint::NoSite),
            Self::SitesGone { lineage, .. } => {
                return Some(format!(
                    "check that the API key is for the right account; if the sites were deleted, run `edgecert status --forget {lineage}`"
                ).into());
            }
            Self::Internal(_) => INTERNAL_HINT,
        };
        Some(hint.into())
    }

    fn unsent(&self) -> Option<&'static str> {
        match self {
            Self::Renewed { .. } | Self::NoSiteCovered { .. } | Self::SitesGone { .. } => {
                Some("nothing was sent")
            }
            Self::Forgotten { .. } => Some("nothing was sent for it"),
            _ => None,
        }
    }

    fn is_misuse(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.is_missing())
    }
}
