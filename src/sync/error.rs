//! Why `sync` cannot run, or cannot deploy a lineage.

use crate::error::{Diagnostic, ErrorKind, state_file_hint};
use crate::file::ReadError;
use crate::state::{StateDirError, StateError, WriteError};
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
}

impl Diagnostic for SyncError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoStateDir | Self::StateFile(_) => ErrorKind::Config,
            Self::StateDir(error) => error.kind(),
            Self::NotWritable(error) => error.kind(),
            Self::Settings(error) => error.kind(),
            Self::Source(error) => error.kind(),
            Self::FilesMissing { .. } => ErrorKind::NoInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoStateDir => Some("name one with --state-dir, or set HOME".into()),
            Self::StateDir(error) => error.hint(),
            Self::NotWritable(error) => error.hint(),
            Self::StateFile(StateError::NewerVersion { .. }) => {
                Some("run the release of edgecert that wrote it".into())
            }
            Self::StateFile(StateError::Unreadable(error)) => Some(state_file_hint(error.kind)),
            Self::StateFile(_) => Some("check the file and its permissions".into()),
            Self::Settings(error) => error.hint(),
            Self::Source(error) => error.hint(),
            Self::FilesMissing { lineage, .. } => Some(format!(
                "restore the files, or run `edgecert status --forget {lineage}`; this is reported once"
            )),
        }
    }
}
