//! The change log: which state files edgecert has written or deleted since the index was made, each with the stamp
//! that the state directory had afterwards. If the directory still has the last of these stamps, no other program has
//! created, replaced or deleted a file in it, and the log is complete. Otherwise, nothing follows from it.
//!
//! To give the directory a stamp that no other change can, its modification time gets random nanoseconds: a change
//! sets it to the time of the file system. A run that is killed before its change is logged leaves another stamp
//! behind. What another program changes while a run holds the log is missed until `sync` compares the state files,
//! so it is held for single system calls where that is possible.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::file;
use crate::state::Store;
use crate::state::lock::lock_file;

/// Without an extension that `Store` knows.
const NAME: &str = "index.changes";
const MODE: u32 = 0o600;
/// When it is reached, nothing is logged any more, until `sync` makes a new index.
const MAX_BYTES: usize = 1 << 20;
/// Whoever holds it longer has been stopped, or is at work on a very large index.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The locked log. The first line is the ID of the index that it belongs to. Each of the others has a stamp of the
/// directory, and the name of the lineage whose state file was changed, if any.
pub(super) struct ChangeLog<'s> {
    store: &'s Store,
    file: File,
    text: String,
}

/// A position in a log.
#[derive(Debug)]
pub(super) struct LogPosition {
    pub(super) id: String,
    length: usize,
}

impl LogPosition {
    /// Whether the log belongs to an index, and need not be made shorter.
    pub(super) fn is_short_log_of(&self, id: &str) -> bool {
        self.id == id && self.length < MAX_BYTES / 16
    }
}

impl<'s> ChangeLog<'s> {
    /// Opens and locks the log; `None` if there is none.
    pub(super) fn open(store: &'s Store) -> Option<Self> {
        Self::open_with(store, OpenOptions::new().read(true).append(true))
    }

    fn open_with(store: &'s Store, options: &mut OpenOptions) -> Option<Self> {
        let path = store.path(NAME);
        let file = file::open_regular(&path, options).ok()?;
        let Some(file) = lock_file(file, LOCK_TIMEOUT) else {
            // What this run changes will not be logged, and another run may be about to log something else.
            let _ = fs::remove_file(&path);
            return None;
        };
        if file.metadata().ok()?.nlink() == 0 {
            return None;
        }
        let mut text = String::new();
        let is_read = (&file).take(MAX_BYTES as u64 + 1).read_to_string(&mut text).is_ok();
        if !is_read {
            text.clear();
        }
        Some(Self { store, file, text })
    }

    /// Returns the end of the log, so that a run can find out later what was changed meanwhile. Begins a new log if
    /// there is none or it is incomplete.
    pub(super) fn begin(store: &'s Store) -> Option<LogPosition> {
        let mut options = OpenOptions::new();
        let mut log = Self::open_with(store, options.read(true).append(true).create(true).mode(MODE))?;
        if !log.is_complete() {
            log.restart(&new_id(), &BTreeSet::new()).ok()?;
        }
        Some(LogPosition { id: log.id()?.to_owned(), length: log.text.len() })
    }

    pub(super) fn exists(store: &Store) -> bool {
        store.path(NAME).exists()
    }

    /// Whether nothing else has changed the directory.
    pub(super) fn is_complete(&self) -> bool {
        let lines = self.text.strip_suffix('\n').and_then(|lines| lines.rsplit_once('\n'));
        let stamp = lines.and_then(|(_, last)| last.split_once(' ')).map(|(stamp, _)| stamp);
        self.text.len() < MAX_BYTES && stamp.is_some() && stamp == self.stamp().as_deref()
    }

    /// The lineages whose state was changed since the index with this ID was made; `None` if that is not known.
    pub(super) fn changed_since_index(&self, id: &str) -> Option<BTreeSet<String>> {
        (self.id() == Some(id) && self.is_complete()).then(|| self.names(id.len()))
    }

    /// The lineages whose state was changed since the log had this length; `None` if that is not known.
    pub(super) fn changed_since(&self, position: &LogPosition) -> Option<BTreeSet<String>> {
        (self.id() == Some(&position.id) && self.is_complete()).then(|| self.names(position.length))
    }

    /// Logs a change of the directory. If that fails, the log is incomplete.
    pub(super) fn append(&mut self, lineage: Option<&str>) -> io::Result<()> {
        let line = format!("{} {}\n", self.set_stamp()?, line_part(lineage.unwrap_or_default())?);
        self.text.push_str(&line);
        self.file.write_all(line.as_bytes())
    }

    /// Begins the log of an index, after which these lineages have been changed.
    pub(super) fn restart(&mut self, id: &str, changed: &BTreeSet<String>) -> io::Result<()> {
        self.text = format!("{id}\n");
        for name in changed {
            // The stamp of the last line counts.
            self.text.extend(["- ", line_part(name)?, "\n"]);
        }
        self.file.set_len(0)?;
        self.file.write_all(self.text.as_bytes())?;
        self.append(None)
    }

    fn id(&self) -> Option<&str> {
        self.text.split_once('\n').map(|(id, _)| id)
    }

    fn names(&self, from: usize) -> BTreeSet<String> {
        let lines = self.text.get(from..).unwrap_or_default().lines();
        let names = lines.filter_map(|line| line.split_once(' ')).map(|(_, name)| name);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn stamp(&self) -> Option<String> {
        Some(stamp_of(&fs::metadata(self.store.directory()).ok()?))
    }

    /// Gives the directory a stamp that it has never had.
    fn set_stamp(&self) -> io::Result<String> {
        set_stamp(self.store.directory())
    }
}

impl Store {
    /// Changes the directory, and logs that; `lineage` is the one whose state file is changed, if any.
    pub(in crate::state) fn track<T>(
        &self,
        lineage: Option<&str>,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let log = ChangeLog::open(self).filter(ChangeLog::is_complete);
        let result = change();
        if let Some(mut log) = log
            && let Err(error) = log.append(lineage)
        {
            log::debug!("cannot log a change of the state directory: {error}");
        }
        result
    }
}

/// An ID that no other index has.
pub(super) fn new_id() -> String {
    format!("{:032x}", fastrand::u128(..))
}

fn line_part(name: &str) -> io::Result<&str> {
    if name.contains('\n') { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(name) }
}

fn set_stamp(directory: &Path) -> io::Result<String> {
    const NANOS: i64 = 1_000_000_000;
    let now = fs::metadata(directory)?.mtime();
    let nanos = fastrand::i64(0..NANOS);
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: now, tv_nsec: nanos },
    };
    utimensat(CWD, directory, &times, AtFlags::empty())?;
    let metadata = fs::metadata(directory)?;
    // Not on a file system with coarser times, nor if another program has changed the directory meanwhile.
    if (metadata.mtime(), metadata.mtime_nsec()) == (now, nanos) {
        Ok(stamp_of(&metadata))
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn stamp_of(directory: &fs::Metadata) -> String {
    format!(
        "{:x}.{:x}.{:x}.{:x}.{:x}.{:x}",
        directory.dev(),
        directory.ino(),
        directory.mtime(),
        directory.mtime_nsec(),
        directory.ctime(),
        directory.ctime_nsec()
    )
}
