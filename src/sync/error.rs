//! Why `sync` cannot run, or cannot deploy a lineage.

use std::path::PathBuf;

use time::OffsetDateTime;

use super::scan::Candidate;
use crate::error::{Diagnostic, ErrorKind};
use crate::file::ReadError;
use crate::hint::Hint;
use crate::kubernetes::KubernetesError;
use crate::runtime::RuntimeError;
use crate::state::{DamagedFile, StateDirError, StateError, WriteError};
use crate::{settings, source, text};

#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error("no state directory is set, and there is no home directory")]
    NoStateDir,
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    #[error(transparent)]
    NotWritable(#[from] WriteError),
    #[error("{0}; its lineage was not checked")]
    StateFile(StateError),
    #[error("{} is an invalid state file, so {} {}", text::path(&.0.path), .0.lineage, .0.consequence())]
    Damaged(DamagedFile),
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    #[error(transparent)]
    Source(#[from] source::SourceError),
    #[error(
        "{lineage}: the files of the lineage are missing ({}: {}); the deployed certificate stays in place",
        text::path(&file.path),
        file.reason
    )]
    FilesMissing { lineage: String, file: ReadError },
    #[error(
        "{lineage}: the deployed certificate expired at {}, and {} holds no later one",
        text::rfc3339(*at),
        text::path(cert)
    )]
    Expired { lineage: String, cert: PathBuf, at: OffsetDateTime },
    #[error(transparent)]
    Kubernetes(#[from] KubernetesError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl SyncError {
    /// The error for a lineage whose deployed leaf has expired.
    pub(super) fn expired(lineage: &Candidate, at: OffsetDateTime) -> Self {
        Self::Expired { lineage: lineage.name.clone(), cert: lineage.source.files.cert.clone(), at }
    }
}

impl Diagnostic for SyncError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoStateDir | Self::StateFile(_) | Self::Damaged(_) => ErrorKind::Config,
            Self::StateDir(error) => error.kind(),
            Self::NotWritable(error) => error.kind(),
            Self::Settings(error) => error.kind(),
            Self::Source(error) => error.kind(),
            Self::Kubernetes(error) => error.kind(),
            Self::FilesMissing { .. } => ErrorKind::NoInput,
            Self::Expired { .. } => ErrorKind::Refused,
            Self::Runtime(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoStateDir => Some("name one with --state-dir, or set HOME".into()),
            Self::StateDir(error) => error.hint(),
            Self::NotWritable(error) => error.hint(),
            Self::StateFile(error) => error.hint(),
            Self::Damaged(DamagedFile { lineage, .. }) => Some(format!(
                "deploy the lineage again, for example with `edgecert deploy --lineage DIR`, or run `edgecert status --forget {lineage}`"
            ).into()),
            Self::Settings(error) => error.hint(),
            Self::Source(error) => error.hint(),
            Self::Kubernetes(error) => error.hint(),
            Self::FilesMissing { lineage, .. } => Some(format!(
                "restore the files, or run `edgecert status --forget {lineage}`; this is reported once"
            ).into()),
            Self::Expired { lineage, .. } => Some(format!(
                "renew it with its ACME client, or run `edgecert status --forget {lineage}` if it is no longer needed"
            ).into()),
            Self::Runtime(error) => error.hint(),
        }
    }
}
