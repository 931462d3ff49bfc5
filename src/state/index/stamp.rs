//! File stamps: metadata that shows, without reading a file, whether it has changed since it was read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

/// Metadata that changes with the contents of a file. Symbolic links are followed, so it also changes when a client
/// repoints its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Time of the last modification, in seconds and nanoseconds.
    modified: (i64, i64),
    /// Time of the last inode change, which no program can set.
    changed: (i64, i64),
}

/// Two changes within the time resolution of the file system leave equal stamps; the coarsest is two seconds.
const MIN_AGE: Duration = Duration::seconds(2);

impl Stamp {
    /// The stamp of a regular file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Whether every later change of a file that is read now changes its stamp. Not if the file has just been written,
    /// or if its times are in the future.
    pub(super) fn is_reliable(&self, now: OffsetDateTime) -> bool {
        let limit = (now - MIN_AGE).unix_timestamp();
        self.modified.0 < limit && self.changed.0 < limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_and_future_times_are_unreliable() {
        let now = OffsetDateTime::from_unix_timestamp(1_000).unwrap();
        for (modified, changed, expected) in
            [(997, 997, true), (998, 0, false), (0, 998, false), (1_001, 0, false), (0, 1_001, false)]
        {
            let [modified, changed] = [modified, changed].map(|seconds| (seconds, 0));
            let stamp = Stamp { device: 1, inode: 1, size: 1, modified, changed };
            assert_eq!(stamp.is_reliable(now), expected, "{stamp:?}");
        }
    }

    #[test]
    fn replacing_a_file_changes_its_stamp() {
        let directory = tempfile::TempDir::new().unwrap();
        let [link, first, second] = ["live", "1", "2"].map(|name| directory.path().join(name));
        fs::write(&first, "old").unwrap();
        fs::write(&second, "new").unwrap();
        std::os::unix::fs::symlink(&first, &link).unwrap();
        let before = Stamp::of(&link).unwrap();
        assert_eq!(Some(before), Stamp::of(&first));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&second, &link).unwrap();
        assert_ne!(Some(before), Stamp::of(&link), "the link was moved");
        fs::rename(&second, &first).unwrap();
        assert_ne!(Some(before), Stamp::of(&first), "the file was replaced");
        assert_eq!(Stamp::of(directory.path()), None, "not a file");
        assert_eq!(Stamp::of(&second), None);
    }
}
