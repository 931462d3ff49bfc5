//! The index of the state directory: a cache of what `sync` needs to know about unchanged lineages, so that the next
//! run reads neither their state files nor their certificates. `deploy` reads from it what other lineages deployed.
//!
//! It can be deleted at any time. An entry is valid as long as both files have the stamps ([`Stamp`]) that they had
//! before they were read; otherwise, they are read again. Stamps can miss a change (a clock set back, a faulty file
//! system), so all files are read once a day. The index is ignored after a reboot, so it need not survive a power
//! failure and is never synced to disk.

mod lineage;
mod stamp;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

pub(crate) use self::lineage::{IndexedLineage, IndexedRank};
pub(crate) use self::stamp::Stamp;
use super::{Deployments, LineageState, StateDirError, StateError, Store};
use crate::clock::Deadline;
use crate::file::{self, StagedFile};
use crate::settings::RecordedSettings;

const NAME: &str = "index";
/// Incremented when the format changes.
const VERSION: u32 = 1;
/// Enough for a million lineages.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum age. All files are read when it is reached.
const MAX_AGE: Duration = Duration::days(1);
/// Reading the files of fewer lineages takes no longer.
const MIN_LINEAGES: usize = 16;
const MODE: u32 = 0o600;
/// Identifies the boot of the system.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The index that the last run wrote, and the changes by this run.
#[derive(Default)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    header: Header,
    /// Offset of the next entry to look at.
    next: usize,
    /// The entries that are still valid, in the order of their names.
    kept: Vec<Range<usize>>,
    /// New entries, by name.
    added: BTreeMap<String, Vec<u8>>,
}

/// The first line of the file, in JSON. The entries follow it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    version: u32,
    boot: String,
    /// Device and inode of the state directory.
    directory: (u64, u64),
    /// When all files were last read, in seconds since the Unix epoch.
    read_at: i64,
    /// The distinct options; most lineages have the same.
    options: Vec<IndexedOptions>,
    entries: usize,
}

/// Options of one or more lineages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexedOptions {
    pub(crate) settings: RecordedSettings,
    /// Base URL of the service that they were deployed to.
    pub(crate) service: String,
}

impl Index {
    /// Opens the index of a state directory; empty if there is no valid one.
    pub(crate) fn open(store: &Store, now: OffsetDateTime) -> Self {
        let (bytes, header) = read(store).unwrap_or_default();
        let own = Header::new(store, now);
        let age = now.unix_timestamp() - header.read_at;
        let counts = header.version == VERSION
            && !own.boot.is_empty()
            && (&header.boot, header.directory) == (&own.boot, own.directory)
            && (0..MAX_AGE.whole_seconds()).contains(&age);
        if !counts {
            return Self { header: own, ..Self::default() };
        }
        let next = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        Self { bytes, header, next, ..Self::default() }
    }

    /// Looks up a lineage, and keeps its entry if that is still valid: its state file has this stamp and, with
    /// `is_own`, its certificate is unchanged, too. Names must be passed in ascending order.
    pub(crate) fn find(&mut self, name: &str, state_stamp: Option<Stamp>, is_own: bool) -> Option<Found> {
        loop {
            let at = self.next;
            let (found, end) = self.entry(at)?;
            match found.name.cmp(name) {
                Ordering::Less => self.next = end,
                Ordering::Greater => return None,
                Ordering::Equal => {
                    let cert = || Stamp::of(Path::new(found.cert));
                    let is_same_cert = || found.cert_stamp.is_some() && found.cert_stamp == cert();
                    let is_current = found.has_state(state_stamp) && (!is_own || is_same_cert());
                    let expires_at = found.not_after;
                    self.next = end;
                    self.kept.extend(is_current.then_some(at..end));
                    return is_current.then_some(Found { place: at, expires_at });
                }
            }
        }
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, name: &str, entry: Vec<u8>) {
        self.added.insert(name.to_owned(), entry);
    }

    /// Encodes the entry of a lineage that was read. `None` if the next run has to read it again.
    pub(crate) fn encode(
        &mut self,
        name: &str,
        state: &LineageState,
        stamps: IndexStamps,
    ) -> Option<Vec<u8>> {
        let IndexStamps { state: state_stamp, cert, now } = stamps;
        let mut all = [Some(state_stamp), cert].into_iter().flatten();
        if !all.all(|stamp| stamp.is_reliable(now)) {
            return None;
        }
        let service = state.options.service.clone()?;
        let options = IndexedOptions { settings: state.options_for(true).settings(), service };
        let hosts = IndexedLineage::hosts(state)?;
        let number = self.header.options.iter().position(|known| *known == options);
        let number = number.unwrap_or_else(|| {
            self.header.options.push(options);
            self.header.options.len() - 1
        });
        let number = u32::try_from(number).ok()?;
        let lineage = IndexedLineage::new(name, state, &hosts, (state_stamp, cert), number)?;
        postcard::to_allocvec(&lineage).ok()
    }

    /// The lineage at a place that [`Self::find`] returned.
    pub(crate) fn lineage(&self, at: usize) -> Option<IndexedLineage<'_>> {
        self.entry(at).map(|(lineage, _)| lineage)
    }

    /// The options of a lineage.
    pub(crate) fn options(&self, lineage: &IndexedLineage<'_>) -> Option<&IndexedOptions> {
        self.header.options.get(lineage.options as usize)
    }

    /// The entry at a place, and where it ends.
    fn entry(&self, at: usize) -> Option<(IndexedLineage<'_>, usize)> {
        let rest = self.bytes.get(at..)?;
        let (lineage, after) = postcard::take_from_bytes(rest).ok()?;
        Some((lineage, at + rest.len() - after.len()))
    }

    /// Writes the index if it has changed. A failure only makes the next run slower.
    pub(crate) fn write(&mut self, store: &Store) {
        let is_same = self.added.is_empty() && self.kept.len() == self.header.entries;
        let entries = self.kept.len() + self.added.len();
        if is_same || self.header.boot.is_empty() || entries < MIN_LINEAGES {
            return;
        }
        self.header.entries = entries;
        // If another run holds the lock, that run writes the index.
        let Ok(_lock) = store.lock(NAME, Deadline::after(std::time::Duration::ZERO)) else { return };
        if let Err(error) = self.replace(store) {
            log::debug!("cannot write the index of the state directory: {error}");
        }
    }

    fn replace(&self, store: &Store) -> std::io::Result<()> {
        let mut contents = serde_json::to_vec(&self.header)?;
        contents.push(b'\n');
        let mut added = self.added.iter().peekable();
        for range in &self.kept {
            let name = self.lineage(range.start).map_or("", |lineage| lineage.name);
            while let Some((_, entry)) = added.next_if(|(other, _)| other.as_str() < name) {
                contents.extend(entry);
            }
            contents.extend(self.bytes.get(range.clone()).unwrap_or_default());
        }
        added.for_each(|(_, entry)| contents.extend(entry));
        StagedFile::write_unsynced(&store.path(NAME), store.file(NAME, "new"), &[&contents], MODE)?.replace()
    }
}

impl Store {
    /// The deployments of all lineages. Reads only the state files that have no valid entry.
    pub(crate) fn deployments(&self, now: OffsetDateTime) -> (Deployments, Vec<StateError>) {
        let (mut deployments, mut errors) = (Deployments::default(), Vec::new());
        let names = match self.names() {
            Ok(names) => names,
            Err(StateDirError(error)) => return (deployments, vec![error.into()]),
        };
        let mut index = Index::open(self, now);
        for name in names {
            let found = index.find(&name, self.stamp(&name), false);
            let known = found.and_then(|found| index.lineage(found.place));
            let options = known.as_ref().and_then(|known| index.options(known));
            if let (Some(lineage), Some(options)) = (&known, options) {
                deployments.add_indexed(&options.service, lineage);
                continue;
            }
            match self.read(&name) {
                Ok(state) => state.iter().for_each(|state| deployments.add(&name, state)),
                Err(error) => errors.push(error),
            }
        }
        (deployments, errors)
    }
}

/// A lineage with a valid entry.
pub(crate) struct Found {
    /// Where [`Index::lineage`] finds it.
    pub(crate) place: usize,
    /// When its leaf expires, in seconds since the Unix epoch.
    pub(crate) expires_at: i64,
}

/// The stamps that the files of a lineage had before they were read, and the time of reading.
#[derive(Clone, Copy)]
pub(crate) struct IndexStamps {
    pub(crate) state: Stamp,
    /// `None`: the certificate was not read.
    pub(crate) cert: Option<Stamp>,
    pub(crate) now: OffsetDateTime,
}

impl Header {
    /// The header of a new index. Without a boot ID, the index is not written.
    fn new(store: &Store, now: OffsetDateTime) -> Self {
        let directory = fs::metadata(store.path("")).map(|found| (found.dev(), found.ino()));
        Self {
            version: VERSION,
            boot: fs::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).unwrap_or_default(),
            directory: directory.unwrap_or_default(),
            read_at: now.unix_timestamp(),
            options: Vec::new(),
            entries: 0,
        }
    }
}

/// Reads the file and its header.
fn read(store: &Store) -> Option<(Vec<u8>, Header)> {
    let path = store.path(NAME);
    // Opening a pipe would wait for a writer.
    if !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let bytes = file::read(&path, MAX_BYTES).ok()?;
    let header = serde_json::from_slice(bytes.split(|byte| *byte == b'\n').next()?).ok()?;
    Some((bytes, header))
}
