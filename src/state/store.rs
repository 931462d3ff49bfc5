//! The state directory: reads and writes the file of each lineage.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::LineageState;
use super::lineage_state::VERSION;
use crate::file::{self, ReadError, StagedFile};
use crate::text;

/// A state directory.
pub(crate) struct Store {
    directory: PathBuf,
}

/// The part that state files of all versions have.
#[derive(serde::Deserialize)]
struct VersionHeader {
    version: u64,
}

/// A failure to write a state file or the directory.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", text::path(path))]
pub(crate) struct WriteError {
    path: PathBuf,
    reason: String,
    /// Decides the hint.
    pub(crate) cause: WriteFailure,
}

/// Why a file was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFailure {
    Io(io::ErrorKind),
    /// A later release wrote the file, which is kept.
    LaterVersion,
    /// The file cannot be read, and is kept.
    Unreadable(io::ErrorKind),
}

impl WriteError {
    /// Wraps an error of the operating system.
    pub(crate) fn new(path: &Path, error: &io::Error) -> Self {
        let cause = WriteFailure::Io(error.kind());
        Self { path: path.to_owned(), reason: file::reason(error), cause }
    }
}

/// The state directory cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct StateDirError(pub(crate) ReadError);

/// The reason why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("{} is not a valid state file; renamed to {}", text::path(path), text::path(renamed_to))]
    Quarantined { path: PathBuf, renamed_to: PathBuf },
    #[error("{} is not a valid state file and cannot be renamed: {reason}", text::path(path))]
    NotQuarantined { path: PathBuf, reason: String },
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("{} has version {version}; this edgecert reads versions up to {VERSION}", text::path(path))]
    NewerVersion { path: PathBuf, version: u64 },
}

impl StateError {
    /// Whether the file is invalid, so that it may be replaced: there is nothing in it to resume.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, Self::Quarantined { .. } | Self::NotQuarantined { .. })
    }
}

/// Maximum size of a state file; enough for as many sites as a listing can have.
const MAX_BYTES: u64 = 64 << 20;
const EXTENSION: &str = "json";
const QUARANTINED: &str = "damaged";

/// State files are for their owner only.
const MODE: u32 = 0o600;

impl Store {
    /// Opens a directory, creating it if necessary.
    pub(crate) fn open(directory: &Path) -> Result<Self, WriteError> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        created.map_err(|error| WriteError::new(directory, &error))?;
        Ok(Self::at(directory))
    }

    /// Opens an existing directory.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Path of a lineage's file with this extension.
    pub(super) fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    /// Reads the state of a lineage; `None` if there is none. An invalid file is renamed, so that it can be examined and
    /// does not get in the way.
    pub(crate) fn read(&self, name: &str) -> Result<Option<LineageState>, StateError> {
        let path = self.file(name, EXTENSION);
        let bytes = match file::read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_slice::<VersionHeader>(&bytes) {
            // A later release may have changed everything but this field.
            Ok(VersionHeader { version }) if version > VERSION.into() => {
                Err(StateError::NewerVersion { path, version })
            }
            _ => serde_json::from_slice(&bytes).map(Some).map_err(|_| quarantine(path)),
        }
    }

    /// Reads all states, each with the name of its lineage; also returns the errors of the files that cannot be used.
    pub(crate) fn read_all(&self) -> (Vec<(String, LineageState)>, Vec<StateError>) {
        let names = match self.names() {
            Ok(names) => names,
            Err(StateDirError(error)) => return (Vec::new(), vec![error.into()]),
        };
        let (mut states, mut errors) = (Vec::new(), Vec::new());
        for name in names {
            match self.read(&name) {
                Ok(state) => states.extend(state.map(|state| (name, state))),
                Err(error) => errors.push(error),
            }
        }
        (states, errors)
    }

    /// The error for a state file that is kept although this release cannot read it.
    pub(crate) fn refuse_overwrite(&self, name: &str, unusable: &StateError) -> WriteError {
        let cause = match unusable {
            StateError::Unreadable(error) => WriteFailure::Unreadable(error.kind),
            _ => WriteFailure::LaterVersion,
        };
        let reason = "its contents cannot be read and are kept".into();
        WriteError { path: self.file(name, EXTENSION), reason, cause }
    }

    /// Lists the lineages that have a state file.
    pub(crate) fn names(&self) -> Result<Vec<String>, StateDirError> {
        self.names_with(EXTENSION).map_err(StateDirError)
    }

    /// Lists the invalid files that earlier runs renamed.
    pub(crate) fn quarantined(&self) -> Vec<PathBuf> {
        let names = self.names_with(QUARANTINED).unwrap_or_default();
        names.iter().map(|name| self.file(name, QUARANTINED)).collect()
    }

    fn names_with(&self, extension: &str) -> Result<Vec<String>, ReadError> {
        let unreadable = |error: io::Error| ReadError::new(&self.directory, &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|other| other == extension) {
                names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Writes the state of a lineage. It is on disk when this returns.
    pub(crate) fn write(&self, name: &str, state: &LineageState) -> Result<(), WriteError> {
        let (path, temporary) = (self.file(name, EXTENSION), self.file(name, "new"));
        let json = serde_json::to_vec_pretty(state).map_err(|error| WriteError::new(&path, &error.into()))?;
        StagedFile::write(&path, temporary, &[&json, b"\n"], MODE)
            .and_then(|staged| staged.replace())
            .and_then(|()| file::sync_directory(&self.directory))
            .map_err(|error| WriteError::new(&path, &error))
    }

    /// Deletes the state of a lineage. Its lock file stays: another run may hold it.
    pub(crate) fn forget(&self, name: &str) -> Result<(), WriteError> {
        let path = self.file(name, EXTENSION);
        let removed = fs::remove_file(&path).and_then(|()| file::sync_directory(&self.directory));
        removed.map_err(|error| WriteError::new(&path, &error))
    }

    /// Checks that files can be written. All runs use one file name, so that killed runs leave at most one file behind.
    pub(crate) fn probe(&self) -> Result<(), WriteError> {
        let path = self.file(".probe", "new");
        file::probe(&path).map_err(|error| WriteError::new(&path, &error))
    }
}

/// Renames an invalid file.
fn quarantine(path: PathBuf) -> StateError {
    let renamed_to = path.with_extension(QUARANTINED);
    match fs::rename(&path, &renamed_to) {
        Ok(()) => StateError::Quarantined { path, renamed_to },
        Err(error) => StateError::NotQuarantined { path, reason: file::reason(&error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use serde_json::{Value, json};

    /// A state file with two sites.
    fn file() -> Value {
        let site = |outcome: &str| json!({"id": 1, "domain": "a.example", "cname": null, "cert_id": 5, "outcome": outcome, "detail": null});
        json!({
            "version": 1,
            "lineage": {"client": "files", "cert": "/c", "issuers": null, "key": null, "directory": null},
            "order": {
                "service": null, "domains": [], "asked": {"domains": [], "settings": {}},
                "allow_shrink": false, "allow_older": false, "replace_lets": false,
            },
            "certificate": null,
            "generation": 1,
            "begun": "2026-01-02T03:04:05.678Z",
            "result": null,
            "pending_since": "2026-01-02T03:04:05Z",
            "last_success": null,
            "sites": [site("served"), site("later")],
        })
    }

    fn store(file: &Value) -> (tempfile::TempDir, Store) {
        let directory = tempfile::TempDir::new().unwrap();
        fs::write(directory.path().join("x.json"), file.to_string()).unwrap();
        let store = Store::at(directory.path());
        (directory, store)
    }

    #[test]
    fn earlier_files_are_rewritten_unchanged() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/state/fixtures");
        let directory = tempfile::TempDir::new().unwrap();
        let (fixtures, store) = (Store::at(&fixtures), Store::at(directory.path()));
        let names = fixtures.names().unwrap();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            let state = fixtures.read(&name).unwrap().unwrap();
            store.write(&name, &state).unwrap();
            let [before, after] = [&fixtures, &store].map(|store| store.file(&name, EXTENSION));
            let [before, after] = [before, after].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!(before, after, "{name}");
        }
    }

    #[test]
    fn unknown_outcome_is_kept() {
        let (directory, store) = store(&file());
        let state = store.read("x").unwrap().unwrap();
        assert_eq!(state.sites[1].outcome, Outcome::Unknown("later".into()));
        store.write("x", &state).unwrap();
        let written = fs::read_to_string(directory.path().join("x.json")).unwrap();
        let mut written: Value = serde_json::from_str(&written).unwrap();
        for added in ["gone_since", "told", "deployed_before"] {
            assert_eq!(written.as_object_mut().unwrap().remove(added), Some(Value::Null));
        }
        written["order"]["asked"]["settings"] = json!({});
        assert_eq!(written, file());
    }

    #[test]
    fn state_of_many_sites_is_read() {
        let (_directory, store) = store(&file());
        let mut state = store.read("x").unwrap().unwrap();
        let site = state.sites.pop().unwrap();
        state.sites = vec![site; 50_000];
        store.write("x", &state).unwrap();
        assert_eq!(store.read("x").unwrap(), Some(state));
    }

    #[test]
    fn invalid_time_quarantines_the_file() {
        for field in ["begun", "pending_since"] {
            let mut file = file();
            file[field] = json!("yesterday");
            let (directory, store) = store(&file);
            assert!(matches!(store.read("x"), Err(StateError::Quarantined { .. })));
            let kept = fs::read_to_string(directory.path().join("x.damaged")).unwrap();
            assert_eq!(kept, file.to_string(), "{field}");
        }
    }
}
