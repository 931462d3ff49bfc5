//! The header of the index: what it is for, and where its parts are.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use super::tables::Table;
use crate::settings::RecordedSettings;
use crate::state::Store;

/// Incremented when the format changes.
const VERSION: u32 = 2;
/// Maximum age. All files are read when it is reached.
const MAX_AGE: Duration = Duration::days(1);
/// Identifies the boot of the system.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The first line of the file, in JSON. The entries follow it, then the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) boot: String,
    /// Device and inode of the state directory.
    pub(super) directory: (u64, u64),
    /// When all files were last read, in seconds since the Unix epoch.
    pub(super) read_at: i64,
    /// Relates the change log to this index.
    pub(super) id: String,
    /// The distinct options; most lineages have the same.
    pub(super) options: Vec<IndexedOptions>,
    pub(super) entries: usize,
    pub(super) entry_bytes: u64,
    pub(super) site_rows: u64,
    pub(super) record_rows: u64,
    /// The other lineages that have a state file.
    pub(super) unindexed: BTreeSet<String>,
}

/// Options of one or more lineages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexedOptions {
    pub(crate) settings: RecordedSettings,
    /// Base URL of the service that they were deployed to.
    pub(crate) service: String,
}

/// Where the parts of an index begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) entries: u64,
    pub(super) sites: Table,
    pub(super) records: Table,
}

impl Header {
    /// The header of a new index. Without a boot ID, the index is not written.
    pub(super) fn new(store: &Store, now: OffsetDateTime) -> Self {
        let directory = fs::metadata(store.path("")).map(|found| (found.dev(), found.ino()));
        Self {
            version: VERSION,
            boot: fs::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).unwrap_or_default(),
            directory: directory.unwrap_or_default(),
            read_at: now.unix_timestamp(),
            ..Self::default()
        }
    }

    /// Whether an index with this header still counts; `own` is the header of a new one.
    pub(super) fn counts(&self, own: &Self) -> bool {
        let age = own.read_at.saturating_sub(self.read_at);
        self.version == VERSION
            && !own.boot.is_empty()
            && (&self.boot, self.directory) == (&own.boot, own.directory)
            && (0..MAX_AGE.whole_seconds()).contains(&age)
    }

    /// Where the parts are; `length` is that of the header, with the end of its line.
    pub(super) fn layout(&self, length: usize) -> Layout {
        let entries = length as u64;
        let sites = Table { start: entries.saturating_add(self.entry_bytes), rows: self.site_rows };
        Layout { entries, sites, records: Table { start: sites.end(), rows: self.record_rows } }
    }
}
