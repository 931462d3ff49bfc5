//! The directory in which lineages are remembered. A file is replaced whole, and is on the disk when that is done.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{LineageState, VERSION};
use crate::file::{self, ReadError};

/// A directory that exists and belongs to edgecert.
pub(crate) struct Store {
    directory: PathBuf,
}

/// What a memory of any version has.
#[derive(serde::Deserialize)]
struct VersionHeader {
    version: u64,
}

/// What could not be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", crate::text::path(path))]
pub(crate) struct WriteError {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
}

/// What is wrong with a memory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// It was damaged and is set aside: there is nothing left to finish.
    #[error("{0}")]
    Damaged(String),
    /// It is there and cannot be read: whatever is to be finished cannot be known.
    #[error("{0}")]
    Unread(String),
}

/// No memory is larger, unless it is something else.
const MAX_BYTES: u64 = 4 << 20;
const ENDING: &str = "json";
const DAMAGED: &str = "damaged";

impl Store {
    /// Opens the directory, making it if it is not there.
    pub(crate) fn open(directory: &Path) -> Result<Self, WriteError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| unwritable(directory, &error))?;
        Ok(Self::at(directory))
    }

    /// A directory that is there already.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// A file of the directory.
    pub(super) fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.directory.join(format!("{name}.{ending}"))
    }

    /// What is remembered of a lineage, and what about that is strange. A file that cannot be understood is set aside.
    pub(crate) fn read(&self, name: &str) -> (Option<LineageState>, Option<StateError>) {
        let path = self.file(name, ENDING);
        let bytes = match file::read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(unreadable) if unreadable.is_missing() => return (None, None),
            Err(unreadable) => return (None, Some(StateError::Unread(unreadable.to_string()))),
        };
        // A later version may look quite different; it is none of ours to set aside.
        match serde_json::from_slice::<VersionHeader>(&bytes) {
            Ok(VersionHeader { version }) if version > VERSION.into() => {
                let shown = crate::text::path(&path);
                let strange = format!("{shown} is of version {version}, which this edgecert does not know");
                (None, Some(StateError::Unread(strange)))
            }
            _ => match serde_json::from_slice(&bytes) {
                Ok(memory) => (Some(memory), None),
                Err(_) => (None, Some(StateError::Damaged(quarantine(&path)))),
            },
        }
    }

    /// That what is there could not be read, so that it is not replaced.
    pub(crate) fn kept(&self, name: &str) -> WriteError {
        WriteError {
            path: self.file(name, ENDING),
            reason: "what it holds cannot be read and is kept".into(),
        }
    }

    /// The lineages that are remembered, by the names of their files.
    pub(crate) fn names(&self) -> Result<Vec<String>, ReadError> {
        self.names_with(ENDING)
    }

    /// Memories that could not be understood and were set aside.
    pub(crate) fn damaged(&self) -> Vec<PathBuf> {
        self.names_with(DAMAGED).unwrap_or_default().iter().map(|name| self.file(name, DAMAGED)).collect()
    }

    fn names_with(&self, ending: &str) -> Result<Vec<String>, ReadError> {
        let unreadable = |error: io::Error| ReadError::new(&self.directory, &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|other| other == ending) {
                names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Everything that is remembered, and what about it is strange.
    pub(crate) fn all(&self) -> (Vec<LineageState>, Vec<String>) {
        let names = match self.names() {
            Ok(names) => names,
            Err(unreadable) => return (Vec::new(), vec![unreadable.to_string()]),
        };
        let (memories, strange): (Vec<_>, Vec<_>) = names.iter().map(|name| self.read(name)).unzip();
        (
            memories.into_iter().flatten().collect(),
            strange.into_iter().flatten().map(|strange| strange.to_string()).collect(),
        )
    }

    /// Tries whether something can be written here, and stays. The file has one name for all runs, so that one which a killed
    /// run left is not left for ever; several runs may have it at once.
    pub(crate) fn probe(&self) -> Result<(), WriteError> {
        let path = self.file(".probe", "new");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(b"{}\n")?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        });
        written.and(removed).map_err(|error| unwritable(&path, &error))
    }

    /// Forgets a lineage. Its lock stays: another run may hold it.
    pub(crate) fn forget(&self, name: &str) -> Result<(), WriteError> {
        let path = self.file(name, ENDING);
        let gone = fs::remove_file(&path).and_then(|()| File::open(&self.directory)?.sync_all());
        gone.map_err(|error| unwritable(&path, &error))
    }

    /// Remembers a lineage: when this returns, a power failure cannot take it away.
    pub(crate) fn write(&self, name: &str, memory: &LineageState) -> Result<(), WriteError> {
        let (path, temporary) = (self.file(name, ENDING), self.file(name, "new"));
        let text = serde_json::to_string_pretty(memory)
            .map_err(|error| WriteError { path: path.clone(), reason: error.to_string() })?;
        let written = write_whole(&temporary, text.as_bytes()).and_then(|()| {
            fs::rename(&temporary, &path)?;
            File::open(&self.directory)?.sync_all()
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            unwritable(&path, &error)
        })
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // One that a killed run left behind may have other permissions.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn unwritable(path: &Path, error: &io::Error) -> WriteError {
    WriteError { path: path.to_owned(), reason: file::reason(error) }
}

/// Gives a damaged file another name, so that it can be looked at and does not stop anything.
fn quarantine(path: &Path) -> String {
    let aside = path.with_extension(DAMAGED);
    let (shown, other) = (crate::text::path(path), crate::text::path(&aside));
    match fs::rename(path, &aside) {
        Ok(()) => format!("{shown} cannot be understood; it is set aside as {other}"),
        Err(error) => format!("{shown} cannot be understood, nor set aside: {}", file::reason(&error)),
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
            "sites": [site("served"), site("superseded")],
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
            let (state, error) = fixtures.read(&name);
            assert!(error.is_none(), "{error:?}");
            store.write(&name, &state.unwrap()).unwrap();
            let [before, after] = [&fixtures, &store].map(|store| store.file(&name, ENDING));
            let [before, after] = [before, after].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!(before, after, "{name}");
        }
    }

    #[test]
    fn unknown_outcome_is_kept() {
        let (directory, store) = store(&file());
        let (state, error) = store.read("x");
        assert!(error.is_none(), "{error:?}");
        let state = state.unwrap();
        assert_eq!(state.sites[1].outcome, Outcome::Unknown("superseded".into()));
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
    fn unreadable_time_quarantines_the_file() {
        for field in ["begun", "pending_since"] {
            let mut file = file();
            file[field] = json!("yesterday");
            let (directory, store) = store(&file);
            assert!(matches!(store.read("x"), (None, Some(StateError::Damaged(_)))));
            let kept = fs::read_to_string(directory.path().join("x.damaged")).unwrap();
            assert_eq!(kept, file.to_string(), "{field}");
        }
    }
}
