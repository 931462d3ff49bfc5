//! The host that is looked at: its files below a root, which is another one in tests, and the environment.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::file;

/// Where to look.
pub(super) struct Host<'a> {
    /// What stands for `/`.
    pub(super) root: PathBuf,
    pub(super) env: &'a Env,
}

/// No file of a client or of cron is larger.
const MAX_BYTES: u64 = 256 << 10;

/// Where a program is found that is named without its directory, by whatever calls it.
const USUAL_PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

impl Host<'_> {
    /// A path of the system.
    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether a program can be started: a path by its file, a bare name by the directories that callers search.
    pub(super) fn has_program(&self, word: &str) -> bool {
        if word.contains('/') {
            return is_executable(&self.at(word));
        }
        USUAL_PATH.iter().any(|directory| is_executable(&self.at(directory).join(word)))
    }
}

/// The text of a file that may not be there.
pub(super) fn text(path: &Path) -> Option<zeroize::Zeroizing<String>> {
    file::read_text(path, MAX_BYTES).ok()
}

/// The entries of a directory that may not be there, sorted.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Whether a file can be started.
pub(super) fn is_executable(path: &Path) -> bool {
    let can = |file: Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    fs::metadata(path).is_ok_and(can)
}

/// The last part of a path as text; empty where it is none.
pub(super) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
