//! The state directory: reads and writes the file of each lineage, and locks it, so that two runs keep off the same
//! lineage.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use time::OffsetDateTime;
use tokio::time::sleep;

use super::LineageState;
use super::lineage_state::VERSION;
use crate::clock::Deadline;
use crate::file::{self, ReadError, StagedFile};
use crate::hint::{OTHER_STATE_DIR, state_hint, write_hint};
use crate::text;

/// A state directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) directory: PathBuf,
}

/// A failure to write a state file or the directory.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", text::path(path))]
pub(crate) struct WriteError {
    pub(super) path: PathBuf,
    pub(crate) reason: String,
    pub(crate) hint: String,
}

impl WriteError {
    /// Wraps an error of the operating system.
    pub(crate) fn new(path: &Path, error: &io::Error) -> Self {
        let hint = write_hint(error.kind(), OTHER_STATE_DIR);
        Self { path: path.to_owned(), reason: file::reason(error), hint }
    }

    /// The error for a file that is kept because it cannot be read, or because a later release wrote it.
    pub(super) fn kept(path: PathBuf, unusable: &StateError) -> Self {
        let hint = match unusable {
            StateError::Unreadable(error) => state_hint(error.kind),
            _ => format!("run the release of edgecert that wrote it, or {OTHER_STATE_DIR}"),
        };
        Self { path, reason: "its contents cannot be read and are kept".into(), hint }
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

/// A state file that cannot be parsed, after it was renamed.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{} is an invalid state file, so {lineage} {}; deploy it again, or run `edgecert status --forget {lineage}`",
    text::path(path),
    self.consequence()
)]
pub(crate) struct DamagedFile {
    /// Name of the lineage.
    pub(crate) lineage: String,
    pub(crate) path: PathBuf,
    /// Whether a deployment is pending, or may be because the file does not say.
    pub(crate) is_pending: bool,
    /// When the file was written; `None`: unknown.
    pub(crate) written_at: Option<OffsetDateTime>,
}

impl DamagedFile {
    /// Reads a file that was renamed.
    fn read(path: PathBuf, lineage: String) -> Self {
        let is_pending = file::read_regular(&path, MAX_BYTES).map_or(true, |bytes| may_be_pending(&bytes));
        let written_at = file::modified(&path);
        Self { lineage, path, is_pending, written_at }
    }

    /// What the file keeps edgecert from doing.
    pub(crate) fn consequence(&self) -> &'static str {
        if self.is_pending { "may be pending and is not retried" } else { "is no longer checked" }
    }
}

/// Maximum size of a state file; enough for as many sites as a listing can have.
const MAX_BYTES: u64 = 64 << 20;
const EXTENSION: &str = "json";
const QUARANTINED: &str = "damaged";

/// State files are for their owner only.
const MODE: u32 = 0o600;

/// Pause between two attempts to lock: flock has no time limit, and the system may refuse a thread to wait in.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

impl Store {
    /// Opens a directory, creating it if necessary.
    pub(crate) fn open(directory: &Path) -> Result<Self, WriteError> {
        create_directory(directory).map(|()| Self::at(directory))
    }

    /// Opens an existing directory.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
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
        let Some(bytes) = read_existing(&path, MAX_BYTES)? else { return Ok(None) };
        parse(&path, &bytes)?.map(Some).ok_or_else(|| quarantine(name, path))
    }

    /// Reads all states, each with the name of its lineage; also returns the errors of the files that cannot be used.
    pub(crate) fn read_all(&self) -> (Vec<(String, LineageState)>, Vec<StateError>) {
        let (mut states, mut errors) = (Vec::new(), Vec::new());
        for name in self.names().map_err(|error| errors.push(error)).unwrap_or_default() {
            let state = self.read(&name).map_err(|error| errors.push(error)).unwrap_or_default();
            states.extend(state.map(|state| (name, state)));
        }
        (states, errors)
    }

    /// The error for a state file that is kept although this release cannot read it.
    pub(crate) fn refuse_overwrite(&self, name: &str, unusable: &StateError) -> WriteError {
        WriteError::kept(self.file(name, EXTENSION), unusable)
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
        let read = |name: String| DamagedFile::read(self.file(&name, QUARANTINED), name);
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
        self.remove(name, EXTENSION)?;
        self.sync_to_disk()
    }

    /// Deletes the state of a lineage, valid or not. Its lock file stays: another run may hold it.
    pub(crate) fn forget(&self, name: &str) -> Result<(), WriteError> {
        self.remove(name, QUARANTINED)?;
        self.withdraw(name)
    }

    /// Removes a file of a lineage, if there is one.
    fn remove(&self, name: &str, extension: &str) -> Result<(), WriteError> {
        let path = self.file(name, extension);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WriteError::new(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Acquires the lock of a lineage, waiting for it until the deadline. `None`: another run still holds it. Dropping the
    /// file, or the end of the process, releases it (flock).
    pub(crate) async fn lock(&self, name: &str, deadline: Deadline) -> Result<Option<File>, WriteError> {
        let path = self.file(name, "lock");
        let failed = |error: io::Error| WriteError::new(&path, &error);
        let file = file::open_or_create(&path).map_err(failed)?;
        let mut is_waiting = false;
        while let Err(error) = file.try_lock() {
            if let TryLockError::Error(error) = error {
                return Err(failed(error));
            }
            if deadline.left().is_zero() {
                return Ok(None);
            }
            if !std::mem::replace(&mut is_waiting, true) {
                log::info!("waiting for another run on {name}");
            }
            sleep(LOCK_PAUSE).await;
        }
        Ok(Some(file))
    }

    /// Checks that files can be written. All runs use one file name, so that killed runs leave at most one file behind.
    pub(crate) fn probe(&self) -> Result<(), WriteError> {
        let path = self.file(".probe", "new");
        file::probe(&path).map_err(|error| WriteError::new(&path, &error))
    }
}

/// Creates a directory and its parents, for their owner only, unless they exist.
pub(super) fn create_directory(path: &Path) -> Result<(), WriteError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| WriteError::new(path, &error))
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read_existing(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>, ReadError> {
    match file::read_regular(path, max_bytes) {
        Err(error) if error.is_missing() => Ok(None),
        read => read.map(Some),
    }
}

/// Parses a file; `None` if it is invalid. A later release may have changed everything but the version.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<Option<T>, StateError> {
    #[derive(serde::Deserialize)]
    struct Header {
        version: u64,
    }
    // What this release has written, indented or not, need not be read twice.
    static OWN_STARTS: LazyLock<[String; 2]> =
        LazyLock::new(|| ["{\n  \"version\": ", "{\"version\":"].map(|start| format!("{start}{VERSION},")));
    let is_own = OWN_STARTS.iter().any(|start| bytes.starts_with(start.as_bytes()));
    let header: Option<Header> = if is_own { None } else { serde_json::from_slice(bytes).ok() };
    if let Some(Header { version }) = header.filter(|header| header.version > VERSION.into()) {
        return Err(StateError::NewerVersion { path: path.to_owned(), version });
    }
    Ok(str::from_utf8(bytes).ok().and_then(|text| serde_json::from_str(text).ok()))
}

/// Renames a file that cannot be parsed, so that it can be examined and does not get in the way. It is reported in every
/// run until its lineage has a valid state file again or is forgotten.
fn quarantine(lineage: &str, path: PathBuf) -> StateError {
    let renamed_to = path.with_extension(QUARANTINED);
    match fs::rename(&path, &renamed_to) {
        Ok(()) => StateError::Quarantined { path, file: DamagedFile::read(renamed_to, lineage.to_owned()) },
        Err(error) => StateError::NotQuarantined { path, reason: file::reason(&error) },
    }
}

/// Whether a deployment may be pending. Only a complete file that says otherwise is believed.
fn may_be_pending(bytes: &[u8]) -> bool {
    let state: Value = serde_json::from_slice(bytes).unwrap_or_default();
    state.get("pending_since") != Some(&Value::Null)
}

/// The sorted names of the files with an extension, without it.
fn with_extension(files: &[String], extension: &str) -> Vec<String> {
    let suffix = format!(".{extension}");
    let names = files.iter().filter_map(|file| file.strip_suffix(&suffix));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
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
        assert!(written.starts_with("{\n  \"version\": 1,"), "`parse` recognises it: {written}");
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

    #[test]
    fn only_a_complete_file_denies_that_it_is_pending() {
        let rows: [(&[u8], bool); 8] = [
            (br#"{"version": 1, "pending_since": null, "begun": 5}"#, false),
            (br#"{"version": 1, "pending_since": "2026-01-01T00:00:00Z"}"#, true),
            (br#"{"version": 1}"#, true),
            (br#"{"version": 1, "pending_since": null,"#, true),
            (br#"[{"pending_since": null}]"#, true),
            (b"{\"pending_since\": null, \"x\": \"\xff\"}", true),
            (&[0; 4096], true),
            (b"", true),
        ];
        for (bytes, expected) in rows {
            let is_pending = may_be_pending(bytes);
            assert_eq!(is_pending, expected, "{}", String::from_utf8_lossy(bytes));
            let (lineage, path) = (String::new(), PathBuf::new());
            let file = DamagedFile { lineage, path, is_pending, written_at: None };
            assert_eq!(file.consequence().contains("not retried"), expected);
        }
    }
}
