//! The state directory: reads and writes the file of each lineage.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::LineageState;
use super::damaged::{DamagedFile, quarantine};
use super::lineage_state::VERSION;
use crate::file::{self, ReadError, StagedFile};
use crate::hint::{OTHER_STATE_DIR, state_hint, write_hint};
use crate::text;

/// A state directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    directory: PathBuf,
}

/// The part that state files of all versions have.
#[derive(serde::Deserialize)]
pub(super) struct VersionHeader {
    pub(super) version: u64,
}

/// A failure to write a state file or the directory.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", text::path(path))]
pub(crate) struct WriteError {
    path: PathBuf,
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl WriteError {
    /// Wraps an error of the operating system.
    pub(crate) fn new(path: &Path, error: &io::Error) -> Self {
        let hint = write_hint(error.kind(), OTHER_STATE_DIR);
        Self { path: path.to_owned(), reason: file::reason(error), hint }
    }

    /// The error for a file that cannot be read and is kept.
    fn kept(path: PathBuf, hint: String) -> Self {
        Self { path, reason: "its contents cannot be read and are kept".into(), hint }
    }

    /// The error for a file that is kept because a later release wrote it.
    pub(super) fn later_version(path: PathBuf) -> Self {
        Self::kept(path, format!("run the release of edgecert that wrote it, or {OTHER_STATE_DIR}"))
    }
}

/// The reason why a state file, or the directory, cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("{} is not a valid state file; renamed to {}", text::path(path), text::path(&file.path))]
    Quarantined { path: PathBuf, file: DamagedFile },
    /// An earlier run renamed it.
    #[error(transparent)]
    Damaged(#[from] DamagedFile),
    #[error("{} is not a valid state file and cannot be renamed: {reason}", text::path(path))]
    NotQuarantined { path: PathBuf, reason: String },
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("cannot read the state directory {}: {}", text::path(&.0.path), .0.reason)]
    Directory(ReadError),
    #[error("{} is not a valid record of a sync: {reason}; the next sync replaces it", text::path(path))]
    InvalidRecord { path: PathBuf, reason: String },
    #[error("{} has version {version}; this edgecert reads versions up to {VERSION}", text::path(path))]
    NewerVersion { path: PathBuf, version: u64 },
}

impl StateError {
    /// Whether the file is invalid, so that it may be replaced: there is nothing in it to resume.
    pub(crate) fn is_invalid(&self) -> bool {
        !matches!(self, Self::Unreadable(_) | Self::Directory(_) | Self::NewerVersion { .. })
    }

    /// The file, if it was renamed because it is invalid.
    pub(crate) fn damaged(&self) -> Option<&DamagedFile> {
        match self {
            Self::Quarantined { file, .. } | Self::Damaged(file) => Some(file),
            _ => None,
        }
    }
}

/// Maximum size of a state file; enough for as many sites as a listing can have.
pub(super) const MAX_BYTES: u64 = 64 << 20;
pub(super) const EXTENSION: &str = "json";
pub(super) const QUARANTINED: &str = "damaged";

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

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Syncs the directory, so that renames in it survive a power failure.
    fn sync_to_disk(&self) -> Result<(), WriteError> {
        file::sync_directory(&self.directory).map_err(|error| WriteError::new(&self.directory, &error))
    }

    /// Path of a lineage's file with this extension.
    pub(super) fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(format!("{name}.{extension}"))
    }

    /// Reads the state of a lineage; `None` if there is none. An invalid file is renamed, so that it can be examined
    /// and does not get in the way.
    pub(crate) fn read(&self, name: &str) -> Result<Option<LineageState>, StateError> {
        let path = self.file(name, EXTENSION);
        let bytes = match file::read_regular(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_slice::<LineageState>(&bytes) {
            Ok(state) if state.version <= VERSION => Ok(Some(state)),
            // A later release may have changed everything but the version.
            _ => match serde_json::from_slice(&bytes) {
                Ok(VersionHeader { version }) if version > VERSION.into() => {
                    Err(StateError::NewerVersion { path, version })
                }
                _ => Err(quarantine(name, &path)),
            },
        }
    }

    /// Reads all states, each with the name of its lineage; also returns the errors of the files that cannot be used.
    pub(crate) fn read_all(&self) -> (Vec<(String, LineageState)>, Vec<StateError>) {
        let names = match self.names() {
            Ok(names) => names,
            Err(error) => return (Vec::new(), vec![error]),
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
        let path = self.file(name, EXTENSION);
        match unusable {
            StateError::Unreadable(error) => WriteError::kept(path, state_hint(error.kind)),
            _ => WriteError::later_version(path),
        }
    }

    /// Lists the lineages that have a state file.
    pub(crate) fn names(&self) -> Result<Vec<String>, StateError> {
        Ok(with_extension(&self.file_names()?, EXTENSION))
    }

    /// Lists the lineages that have a state file, and those whose invalid file an earlier run renamed and that have
    /// had no new one since.
    pub(crate) fn list(&self) -> Result<(Vec<String>, Vec<DamagedFile>), StateError> {
        let files = self.file_names()?;
        let (names, mut damaged) = (with_extension(&files, EXTENSION), with_extension(&files, QUARANTINED));
        damaged.retain(|name| names.binary_search(name).is_err());
        let read = |name: String| {
            let path = self.file(&name, QUARANTINED);
            DamagedFile::read(name, path)
        };
        Ok((names, damaged.into_iter().map(read).collect()))
    }

    /// Whether a lineage has a state file.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name, EXTENSION).exists()
    }

    /// The names of all files.
    pub(super) fn file_names(&self) -> Result<Vec<String>, StateError> {
        let unreadable = |error: io::Error| StateError::Directory(ReadError::new(&self.directory, &error));
        let entries = fs::read_dir(&self.directory).map_err(unreadable)?;
        let names = entries.map(|entry| Ok(entry.map_err(unreadable)?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    /// Writes the state of a lineage. It is on disk when this returns.
    pub(crate) fn write(&self, name: &str, state: &LineageState) -> Result<(), WriteError> {
        self.write_unsynced(name, state)?;
        self.sync_to_disk()
    }

    /// Writes the state of a lineage; a power failure may bring back the earlier state. For the result of a run: if it
    /// is lost, the intent is still there and is repeated.
    pub(crate) fn write_unsynced(&self, name: &str, state: &LineageState) -> Result<(), WriteError> {
        Self::replace(&self.file(name, EXTENSION), self.file(name, "new"), serde_json::to_vec_pretty(state))
    }

    /// Replaces a file with this JSON. The contents are on disk when this returns; the directory entry may not be.
    pub(super) fn replace(
        path: &Path,
        temporary: PathBuf,
        json: serde_json::Result<Vec<u8>>,
    ) -> Result<(), WriteError> {
        let replace = |json: Vec<u8>| StagedFile::write(path, temporary, &[&json, b"\n"], MODE)?.replace();
        json.map_err(io::Error::from).and_then(replace).map_err(|error| WriteError::new(path, &error))
    }

    /// Deletes the state file of a lineage that had none before this run.
    pub(crate) fn withdraw(&self, name: &str) -> Result<(), WriteError> {
        self.delete(name, &[EXTENSION])
    }

    /// Deletes the state of a lineage, valid or not. Its lock file stays: another run may hold it.
    pub(crate) fn forget(&self, name: &str) -> Result<(), WriteError> {
        self.delete(name, &[QUARANTINED, EXTENSION])
    }

    fn delete(&self, name: &str, extensions: &[&str]) -> Result<(), WriteError> {
        for extension in extensions {
            let path = self.file(name, extension);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(WriteError::new(&path, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        self.sync_to_disk()
    }

    /// Checks that files can be written. All runs use one file name, so that killed runs leave at most one file behind.
    pub(crate) fn probe(&self) -> Result<(), WriteError> {
        let path = self.file(".probe", "new");
        file::probe(&path).map_err(|error| WriteError::new(&path, &error))
    }
}

/// The sorted names of the files with an extension, without it.
fn with_extension(files: &[String], extension: &str) -> Vec<String> {
    let names =
        files.iter().filter_map(|file| file.rsplit_once('.')).filter(|(_, found)| *found == extension);
    let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use serde_json::{Value, json};

    /// A state file with two sites.
    fn file() -> Value {
        let site = |outcome: &str| json!({"id": 1, "domain": "a.example", "cname": null, "cert_id": 5, "outcome": outcome, "detail": null, "leaf": "aa"});
        json!({
            "version": 1,
            "lineage": {"client": "files", "cert": "/c", "issuers": null, "key": null, "directory": null},
            "service": null,
            "domains": [],
            "standing": null,
            "is_standing_kept": false,
            "pending": null,
            "certificate": null,
            "generation": 1,
            "begun": "2026-01-02T03:04:05.678Z",
            "result": null,
            "pending_since": "2026-01-02T03:04:05Z",
            "last_success": null,
            "gone_since": null,
            "sites": [site("served"), site("later")],
            "sites_service": null,
            "records": [],
            "deployed_before": null,
        })
    }

    fn store(file: &Value) -> (tempfile::TempDir, Store) {
        let directory = tempfile::TempDir::new().unwrap();
        fs::write(directory.path().join("x.json"), file.to_string()).unwrap();
        let store = Store::at(directory.path());
        (directory, store)
    }

    #[test]
    fn unknown_outcome_is_kept() {
        let (directory, store) = store(&file());
        let state = store.read("x").unwrap().unwrap();
        assert_eq!(state.sites[1].outcome, Outcome::Unknown("later".into()));
        store.write("x", &state).unwrap();
        let written = fs::read_to_string(directory.path().join("x.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), file());
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
    fn file_of_a_later_release_is_kept() {
        let mut complete = file();
        complete["version"] = json!(2);
        for file in [complete, json!({"version": 2})] {
            let (directory, store) = store(&file);
            assert!(matches!(store.read("x"), Err(StateError::NewerVersion { version: 2, .. })));
            assert_eq!(fs::read_to_string(directory.path().join("x.json")).unwrap(), file.to_string());
        }
    }

    #[test]
    fn failures_of_the_system_are_reported() {
        let (directory, store) = store(&file());
        fs::create_dir(directory.path().join("y.json")).unwrap();
        assert!(matches!(store.read("y"), Err(StateError::Unreadable(_))));
        store.forget("y").unwrap_err();
        store.forget("x").unwrap();
        assert_eq!(store.read("x").unwrap(), None);
        Store::at(Path::new("/proc")).probe().unwrap_err();
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
