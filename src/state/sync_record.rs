//! The record of the last `sync`: when it ended, and how. A run that is killed leaves the previous record in place.
//!
//! Each shard of `sync --shard I/N` has a file of its own, so that shards do not wait for each other. The names have no
//! extension, so earlier releases ignore the files.

use std::path::Path;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::lineage_state::{RunResult, VERSION};
use super::shard::Shard;
use super::store::{StateError, Store, WriteError, parse};
use crate::file;
use crate::text::rfc3339;

const NAME: &str = "last-sync";
/// Maximum size of a file; the message is one short line.
const MAX_BYTES: u64 = 64 << 10;
/// How far in the future a recorded time may be, in case the clock has been corrected since.
pub(crate) const MAX_SKEW: time::Duration = time::Duration::minutes(5);

/// The file that says how a `sync` ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SyncRecord {
    pub(crate) version: u8,
    #[serde(with = "rfc3339::millis")]
    pub(crate) ended_at: OffsetDateTime,
    pub(crate) exit_code: u8,
    /// The most severe error, on one line; `None` if there was none.
    pub(crate) message: Option<String>,
    /// End of the first run in the current series of failures; `None` after a success.
    #[serde(with = "rfc3339::millis::option")]
    pub(crate) failing_since: Option<OffsetDateTime>,
    /// Whether its standard input was no terminal, so that something other than a person probably started it.
    #[serde(default)]
    pub(crate) unattended: bool,
    /// End of the last unattended run before this one; `None` if none is known, or if this run was unattended.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::millis::option")]
    pub(crate) last_unattended: Option<OffsetDateTime>,
}

/// The last `sync`, as far as its records show.
#[derive(Debug, Default)]
pub(crate) struct LastSync {
    /// `None` if `sync` never ran, or if `faults` says why that is unknown. With shards, the time is that of the shard
    /// that ran least recently, and a failure of any shard counts.
    pub(crate) record: Option<SyncRecord>,
    /// Files that cannot be used.
    pub(crate) faults: Vec<StateError>,
}

/// A run without `--shard`: the only shard, which has all lineages.
const ALL: Shard = Shard { index: 0, of: 1 };

impl SyncRecord {
    /// The record of a run that ends after the one with this record.
    pub(crate) fn after(before: Option<&Self>, result: RunResult, unattended: bool) -> Self {
        let RunResult { at: ended_at, exit_code, error: message } = result;
        let failing = before.filter(|before| before.exit_code != 0);
        let since = failing.map_or(ended_at, |before| before.failing_since.unwrap_or(before.ended_at));
        let failing_since = (exit_code != 0).then_some(since);
        let last_unattended = before.and_then(Self::unattended_at).filter(|_| !unattended);
        Self { version: VERSION, ended_at, exit_code, message, failing_since, unattended, last_unattended }
    }

    /// When an unattended run last ended; `None` if none is known.
    pub(crate) fn unattended_at(&self) -> Option<OffsetDateTime> {
        if self.unattended { Some(self.ended_at) } else { self.last_unattended }
    }

    /// Combines two shards: the earlier times, and the failure that has lasted longer.
    fn and(self, other: Self) -> Self {
        let since = |record: &Self| record.failing_since.unwrap_or(record.ended_at);
        let is_worse = other.exit_code != 0 && (self.exit_code == 0 || since(&other) < since(&self));
        let ended_at = self.ended_at.min(other.ended_at);
        let unattended = self.unattended && other.unattended;
        let last_unattended = self.unattended_at().zip(other.unattended_at()).map(|(a, b)| a.min(b));
        Self { ended_at, unattended, last_unattended, ..if is_worse { other } else { self } }
    }
}

impl Store {
    /// Records the end of a `sync`, for all lineages or for a shard.
    pub(crate) fn record_sync(
        &self,
        shard: Option<Shard>,
        result: RunResult,
        unattended: bool,
    ) -> Result<(), WriteError> {
        let name = file_name(shard.unwrap_or(ALL));
        let path = self.directory.join(&name);
        let own = read(&path, result.at);
        if let Err(error @ StateError::NewerVersion { .. }) = &own {
            return Err(WriteError::kept(path, error));
        }
        let full = read(&self.directory.join(NAME), result.at);
        // Its own, if both ended at the same time.
        let before = [full, own].into_iter().flatten().max_by_key(|record| record.ended_at);
        let json = serde_json::to_vec(&SyncRecord::after(before.as_ref(), result, unattended));
        // Runs that end at the same moment must not share the temporary file.
        Self::replace(&path, self.file(&name, &format!("{:x}", fastrand::u64(..))), json)
    }

    /// Reads when `sync` last ended, and how. Combines the record of the last run for all lineages with those of the
    /// shards. A shard without a record does not count, because another host may process it.
    pub(crate) fn last_sync(&self, now: OffsetDateTime) -> LastSync {
        let (mut records, mut faults) = (Vec::new(), Vec::new());
        let names = match self.file_names() {
            Err(StateError::Directory(error)) if error.is_missing() => Vec::new(),
            names => names.map_err(|error| faults.push(error)).unwrap_or_default(),
        };
        for (name, shard) in names.iter().filter_map(|name| Some((name, shard_of(name)?))) {
            let record = read(&self.directory.join(name), now).map_err(|fault| faults.push(fault)).ok();
            records.extend(record.map(|record| (shard, record)));
        }
        let full = records.iter().find(|(shard, _)| *shard == ALL).map(|(_, record)| record);
        let shards = records.iter().filter(|(shard, _)| *shard != ALL);
        // Files with another number of shards are left over from an earlier setup.
        let newest = shards.max_by_key(|(_, record)| record.ended_at).map_or(ALL, |(shard, _)| *shard);
        let current = records.iter().filter(|(shard, _)| shard.of == newest.of);
        let current =
            current.map(|(_, record)| full.filter(|full| full.ended_at > record.ended_at).unwrap_or(record));
        LastSync { record: current.cloned().reduce(SyncRecord::and), faults }
    }
}

fn file_name(shard: Shard) -> String {
    if shard == ALL { NAME.into() } else { format!("{NAME}-{}-of-{}", shard.index, shard.of) }
}

/// The shard that a file name stands for; `None` if it is not a record.
fn shard_of(name: &str) -> Option<Shard> {
    let shard = match name.strip_prefix(NAME)? {
        "" => ALL,
        rest => rest.strip_prefix('-')?.replacen("-of-", "/", 1).parse().ok()?,
    };
    (name == file_name(shard)).then_some(shard)
}

/// Reads a file.
fn read(path: &Path, now: OffsetDateTime) -> Result<SyncRecord, StateError> {
    let invalid = |reason: String| StateError::InvalidRecord { path: path.to_owned(), reason };
    let bytes = file::read_regular(path, MAX_BYTES)?;
    let record: SyncRecord = parse(path, &bytes)?.ok_or_else(|| invalid("it is damaged".into()))?;
    if record.ended_at > now + MAX_SKEW {
        return Err(invalid(format!("its time is in the future, {}", rfc3339(record.ended_at))));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use tempfile::TempDir;
    use time::Duration;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-11-22 12:00 UTC);

    fn store() -> (TempDir, Store) {
        let directory = TempDir::new().unwrap();
        let store = Store::at(directory.path());
        (directory, store)
    }

    fn hour(hours: i64) -> OffsetDateTime {
        NOW + Duration::hours(hours)
    }

    fn shard(index: u64, of: u64) -> Shard {
        Shard { index, of }
    }

    /// A run: shard, exit code, hour.
    type Run = (Option<Shard>, u8, i64);
    /// Hour, exit code, hour of the first failure.
    type Last = Option<(i64, u8, Option<i64>)>;

    fn run(store: &Store, runs: &[Run]) {
        for (shard, exit_code, at) in runs {
            let error = (*exit_code != 0).then(|| format!("error at {at}"));
            let result = RunResult { at: hour(*at), exit_code: *exit_code, error };
            store.record_sync(*shard, result, true).unwrap();
        }
    }

    fn last(store: &Store) -> Last {
        let hours = |at: OffsetDateTime| (at - NOW).whole_hours();
        let record = store.last_sync(hour(9)).record?;
        Some((hours(record.ended_at), record.exit_code, record.failing_since.map(hours)))
    }

    #[test]
    fn record_is_a_small_private_file() {
        let (directory, store) = store();
        assert_eq!(last(&store), None);
        run(&store, &[(None, 75, 1)]);
        let path = directory.path().join("last-sync");
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\"version\":1,\"ended_at\":\"2026-11-22T13:00:00Z\",\"exit_code\":75,\"message\":\"error at 1\",\
             \"failing_since\":\"2026-11-22T13:00:00Z\",\"unattended\":true}\n"
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(store.names().unwrap().is_empty());
        let (earliest, too_early) = (hour(1) - MAX_SKEW, hour(1) - MAX_SKEW - Duration::SECOND);
        assert!(store.last_sync(earliest).record.is_some() && store.last_sync(too_early).record.is_none());
    }

    #[test]
    fn failures_in_a_row_have_one_beginning() {
        let (_directory, store) = store();
        for (exit_code, at, expected) in
            [(0, 1, None), (75, 2, Some(2)), (78, 3, Some(2)), (0, 4, None), (65, 5, Some(5))]
        {
            run(&store, &[(None, exit_code, at)]);
            assert_eq!(last(&store), Some((at, exit_code, expected)));
        }
    }

    #[test]
    fn run_by_hand_keeps_the_unattended_one() {
        let (_directory, store) = store();
        let both = [Some(shard(0, 2)), Some(shard(1, 2))];
        for (of, unattended, at, expected) in [
            (None, false, 1, None),
            (None, true, 2, Some(2)),
            (None, false, 3, Some(2)),
            (None, false, 4, Some(2)),
            (both[0], true, 5, Some(5)),
            (both[1], true, 6, Some(5)),
            (both[0], false, 7, Some(5)),
            (both[0], true, 8, Some(6)),
        ] {
            let result = RunResult { at: hour(at), exit_code: 0, error: None };
            store.record_sync(of, result, unattended).unwrap();
            let found = store.last_sync(hour(9)).record.unwrap().unattended_at();
            assert_eq!(found, expected.map(hour), "hour {at}");
        }
        // A record without the field.
        let path = store.directory.join("last-sync");
        let text = fs::read_to_string(&path).unwrap().replace(",\"unattended\":false", "");
        fs::write(&path, text).unwrap();
        assert!(!read(&path, hour(9)).unwrap().unattended);
    }

    #[test]
    fn shards_count_together() {
        let (first, second) = (Some(shard(0, 2)), Some(shard(1, 2)));
        let rows: [(&[Run], Last); 13] = [
            (&[(first, 0, 1), (second, 0, 3)], Some((1, 0, None))),
            (&[(first, 0, 1), (second, 75, 3)], Some((1, 75, Some(3)))),
            (&[(first, 78, 1), (second, 75, 3), (first, 78, 4)], Some((3, 78, Some(1)))),
            (&[(first, 0, 1)], Some((1, 0, None))),
            (&[(Some(shard(0, 1)), 65, 1)], Some((1, 65, Some(1)))),
            (&[(None, 0, 1), (first, 0, 3)], Some((3, 0, None))),
            (&[(first, 0, 1), (None, 0, 3)], Some((3, 0, None))),
            (&[(first, 75, 1), (second, 75, 1), (None, 0, 3)], Some((3, 0, None))),
            (&[(first, 75, 1), (None, 0, 3), (first, 75, 4)], Some((4, 75, Some(4)))),
            (&[(None, 75, 3), (first, 0, 4), (second, 0, 5)], Some((4, 0, None))),
            // Another number of shards.
            (&[(Some(shard(0, 3)), 75, 1), (first, 0, 2), (second, 0, 3)], Some((2, 0, None))),
            (&[(first, 0, 2), (second, 0, 3), (Some(shard(0, 3)), 0, 4)], Some((4, 0, None))),
            (&[(None, 0, 1), (Some(shard(5, u64::MAX)), 0, 4)], Some((4, 0, None))),
        ];
        for (number, (runs, expected)) in rows.into_iter().enumerate() {
            let (_directory, store) = store();
            run(&store, runs);
            assert_eq!(last(&store), expected, "row {number}");
        }
    }

    #[test]
    fn order_of_shards_does_not_matter() {
        let rows = [(0, 1, None, false), (0, 3, None, true), (75, 4, Some(2), true), (78, 5, Some(1), false)];
        let records = rows.map(|(exit_code, at, since, unattended)| {
            let (ended_at, failing_since) = (hour(at), since.map(hour));
            SyncRecord {
                version: VERSION,
                ended_at,
                exit_code,
                message: None,
                failing_since,
                unattended,
                last_unattended: None,
            }
        });
        for one in &records {
            for other in &records {
                assert_eq!(one.clone().and(other.clone()), other.clone().and(one.clone()));
            }
        }
    }

    #[test]
    fn unusable_record_is_a_fault() {
        let (directory, store) = store();
        let path = directory.path().join("last-sync");
        for garbage in [
            "",
            "{",
            "[]",
            "\0\0\0",
            r#"{"ended_at":"2026-11-22T13:00:00Z","exit_code":0,"message":null,"failing_since":null}"#,
            r#"{"version":1,"ended_at":"yesterday","exit_code":0}"#,
            r#"{"version":1,"ended_at":"2026-11-22T13:00:00Z","exit_code":4096,"message":null,"failing_since":null}"#,
            r#"{"version":1,"ended_at":"2027-11-22T13:00:00Z","exit_code":0,"message":null,"failing_since":null}"#,
        ] {
            fs::write(&path, garbage).unwrap();
            let LastSync { record, faults } = store.last_sync(hour(9));
            assert_eq!((record, faults.len()), (None, 1), "{garbage}");
            run(&store, &[(None, 0, 1)]);
            assert_eq!(last(&store), Some((1, 0, None)));
        }
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(store.last_sync(NOW).faults.len(), 1);
        run(&store, &[(None, 0, 1)]);
        assert_eq!(last(&store), Some((1, 0, None)));
        let later = r#"{"version":2,"ended":"now"}"#;
        fs::write(&path, later).unwrap();
        assert!(matches!(store.last_sync(hour(9)).faults[..], [StateError::NewerVersion { version: 2, .. }]));
        store.record_sync(None, RunResult { at: NOW, exit_code: 0, error: None }, true).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), later);
    }

    #[test]
    fn other_files_are_ignored() {
        let (directory, store) = store();
        for name in [
            "last-sync-1-of-1",
            "last-sync-00-of-1",
            "last-sync-0-of-1",
            "last-sync.new",
            "last-sync-x",
            "last-syncs",
            "last-sync-a-0123456789.json",
        ] {
            fs::write(directory.path().join(name), "{}").unwrap();
        }
        let LastSync { record, faults } = store.last_sync(hour(9));
        assert!(record.is_none() && faults.is_empty(), "{faults:?}");
        assert!(Store::at(Path::new("/no/such/directory")).last_sync(NOW).faults.is_empty());
        assert_eq!(Store::at(Path::new("/dev/null")).last_sync(NOW).faults.len(), 1);
    }
}
