//! The index of the state directory: a cache of what `sync` needs to know about unchanged lineages, so that the next
//! run reads neither their state files nor their certificates. `deploy` reads from it what other lineages deployed.
//!
//! It can be deleted at any time. An entry is valid as long as both files have the stamps ([`Stamp`]) that they had
//! before they were read; otherwise, they are read again. Stamps can miss a change (a clock set back, a faulty file
//! system), so all files are read once a day. The index is ignored after a reboot, so it need not survive a power
//! failure and is never synced to disk.
//!
//! `deploy` does not even compare stamps: the change log (`changes`) tells it which state files are not those that
//! were indexed.

mod changes;
mod header;
mod lineage;
mod lookup;
mod stamp;
mod tables;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use time::OffsetDateTime;

use self::changes::{ChangeLog, LogPosition, new_id};
use self::header::{Header, IndexedOptions};
pub(crate) use self::lineage::{IndexedLineage, IndexedRank};
pub(crate) use self::lookup::IndexedDeployments;
pub(crate) use self::stamp::Stamp;
use self::tables::{Contents, Table, TableBuilder};
use super::{LineageState, Store};
use crate::file::{self, StagedFile};

const NAME: &str = "index";
/// Enough for a million lineages.
const MAX_BYTES: u64 = 1 << 30;
/// Reading the files of fewer lineages takes no longer.
const MIN_LINEAGES: usize = 16;
const MODE: u32 = 0o600;

/// The index that the last run wrote, and the changes by this run.
#[derive(Default)]
pub(crate) struct Index {
    bytes: Arc<Vec<u8>>,
    header: Header,
    /// Length of the header.
    header_bytes: usize,
    /// Offset of the next entry to look at.
    next: usize,
    /// The entries that are still valid, in the order of their names.
    kept: Vec<Range<usize>>,
    /// The names of those that are not.
    dropped: BTreeSet<String>,
    /// New entries, by name.
    added: BTreeMap<String, Vec<u8>>,
    /// Lineages with a state file and without an entry.
    unindexed: BTreeSet<String>,
    /// Where the change log ended before any file was looked at.
    begun_at: Option<LogPosition>,
}

impl Index {
    /// Opens the index of a state directory to write it anew; empty if there is no valid one. Call it before the
    /// directory is listed.
    pub(crate) fn open(store: &Store, now: OffsetDateTime) -> Self {
        let is_large = || store.names().is_ok_and(|names| names.len() >= MIN_LINEAGES);
        let is_logged = ChangeLog::exists(store) || is_large();
        let begun_at = is_logged.then(|| ChangeLog::begin(store)).flatten();
        Self { begun_at, ..Self::read(store, now) }
    }

    /// Reads the index of a state directory; empty if there is no valid one.
    fn read(store: &Store, now: OffsetDateTime) -> Self {
        let (bytes, header) = read(store).unwrap_or_default();
        let own = Header::new(store, now);
        if !header.counts(&own) {
            return Self { header: own, ..Self::default() };
        }
        let header_bytes = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        let bytes = Arc::new(bytes);
        Self { bytes, header, header_bytes, next: header_bytes, ..Self::default() }
    }

    /// Looks up a lineage, and keeps its entry if that is still valid: its state file has this stamp and, with
    /// `is_own`, its certificate is unchanged, too. Names must be passed in ascending order.
    pub(crate) fn find(&mut self, name: &str, state_stamp: Option<Stamp>, is_own: bool) -> Option<Found> {
        let found = self.find_entry(name, state_stamp, is_own);
        if found.is_none() {
            self.unindexed.insert(name.to_owned());
        }
        found
    }

    fn find_entry(&mut self, name: &str, state_stamp: Option<Stamp>, is_own: bool) -> Option<Found> {
        loop {
            let at = self.next;
            let (found, end) = self.entry(at)?;
            let order = found.name.cmp(name);
            if order == Ordering::Greater {
                return None;
            }
            let cert = || Stamp::of(Path::new(found.cert));
            let is_same_cert = || found.cert_stamp.is_some() && found.cert_stamp == cert();
            let is_current =
                order == Ordering::Equal && found.has_state(state_stamp) && (!is_own || is_same_cert());
            let expires_at = found.not_after;
            let dropped = (!is_current).then(|| found.name.to_owned());
            self.next = end;
            if is_current {
                self.kept.push(at..end);
                return Some(Found { place: at, expires_at });
            }
            self.dropped.extend(dropped);
            if order == Ordering::Equal {
                return None;
            }
        }
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, name: &str, entry: Vec<u8>) {
        self.unindexed.remove(name);
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
        let end = self.header_bytes.saturating_add(usize::try_from(self.header.entry_bytes).ok()?);
        let rest = self.bytes.get(at..end.min(self.bytes.len()))?;
        let (lineage, after) = postcard::take_from_bytes(rest).ok()?;
        Some((lineage, at + rest.len() - after.len()))
    }

    /// The deployments of the lineages with valid entries to a service, but for `read`. None of their leaves expires
    /// before `first_expiry`.
    pub(crate) fn deployments(
        &self,
        service: &str,
        read: impl Iterator<Item = String>,
        first_expiry: i64,
        store: &Store,
    ) -> IndexedDeployments {
        let mut skipped: BTreeSet<String> = self.dropped.iter().cloned().chain(read).collect();
        let mut at = self.next;
        while let Some((lineage, end)) = self.entry(at) {
            skipped.insert(lineage.name.to_owned());
            at = end;
        }
        // For the case that all state files have to be read.
        skipped.extend(self.unindexed.iter().chain(self.added.keys()).cloned());
        IndexedDeployments {
            contents: Contents::Memory(Arc::clone(&self.bytes)),
            header: self.header.clone(),
            layout: self.header.layout(self.header_bytes),
            service: service.to_owned(),
            skipped,
            first_expiry,
            store: store.clone(),
            read: OnceLock::new(),
        }
    }

    /// Writes the index if it or the change log has changed. A failure only makes the next run slower.
    pub(crate) fn write(&mut self, store: &Store) {
        let Some(begun_at) = &self.begun_at else { return };
        let is_same = self.added.is_empty()
            && self.kept.len() == self.header.entries
            && self.unindexed == self.header.unindexed
            && begun_at.is_short_log_of(&self.header.id);
        let entries = self.kept.len() + self.added.len();
        if is_same || self.header.boot.is_empty() || entries < MIN_LINEAGES {
            return;
        }
        let contents = self.contents();
        if let Err(error) = contents.and_then(|(id, contents)| self.replace(store, &id, &contents)) {
            log::debug!("cannot write the index of the state directory: {error}");
        }
    }

    /// The contents of the new index, and its ID.
    fn contents(&self) -> io::Result<(String, Vec<Vec<u8>>)> {
        let (mut entries, mut tables) = (Vec::new(), TableBuilder::default());
        let mut add = |lineage: Option<IndexedLineage<'_>>, entry: &[u8]| {
            let place = (entries.len() as u64, entry.len() as u64);
            if let Some(lineage) = &lineage
                && let Some(options) = self.options(lineage)
            {
                tables.add(&options.service, lineage, place);
            }
            entries.extend(entry);
        };
        let mut added = self.added.values().map(|entry| (postcard::from_bytes(entry).ok(), entry)).peekable();
        for range in &self.kept {
            let lineage = self.lineage(range.start);
            let name = lineage.as_ref().map_or("", |lineage| lineage.name);
            let is_before = |(other, _): &(Option<IndexedLineage<'_>>, _)| {
                other.as_ref().is_some_and(|other| other.name < name)
            };
            while let Some((other, entry)) = added.next_if(is_before) {
                add(other, entry);
            }
            add(lineage, self.bytes.get(range.clone()).unwrap_or_default());
        }
        added.for_each(|(lineage, entry)| add(lineage, entry));
        let [sites, records] = tables.finish();
        let id = new_id();
        let header = Header {
            id: id.clone(),
            entries: self.kept.len() + self.added.len(),
            entry_bytes: entries.len() as u64,
            site_rows: Table::rows_in(&sites),
            record_rows: Table::rows_in(&records),
            unindexed: self.unindexed.clone(),
            ..self.header.clone()
        };
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        Ok((id, vec![line, entries, sites, records]))
    }

    /// Replaces the file. The change log keeps what was changed since this run has begun to look at the files.
    fn replace(&self, store: &Store, id: &str, contents: &[Vec<u8>]) -> io::Result<()> {
        let log = ChangeLog::open(store);
        let (Some(mut log), Some(begun_at)) = (log, &self.begun_at) else { return Ok(()) };
        let changed = log.changed_since(begun_at);
        let parts: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let mut staged = StagedFile::create(&store.path(NAME), store.file(NAME, "new"), MODE)?;
        staged.fill(&parts)?;
        staged.replace()?;
        // Otherwise, the log belongs to another index, or something else has changed the directory.
        changed.map_or(Ok(()), |changed| log.restart(id, &changed))
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

/// Reads the file and its header.
fn read(store: &Store) -> Option<(Vec<u8>, Header)> {
    let bytes = file::read_regular(&store.path(NAME), MAX_BYTES).ok()?;
    let header = serde_json::from_slice(bytes.split(|byte| *byte == b'\n').next()?).ok()?;
    Some((bytes, header))
}
