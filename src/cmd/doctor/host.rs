//! The host to examine: files below a root, which tests replace, and the environment.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::file;

/// A host.
pub(super) struct Host<'a> {
    /// The directory that replaces `/`.
    pub(super) root: PathBuf,
    pub(super) env: &'a Env,
}

/// Maximum size of a file of an ACME client or of cron.
const MAX_BYTES: u64 = 256 << 10;

/// Search path of the programs that call hooks.
const USUAL_PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

impl Host<'_> {
    /// Places a path below the root.
    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether a command word names an executable: a path must be one, a bare name must be in one of the
    /// usual directories.
    pub(super) fn has_program(&self, word: &str) -> bool {
        if word.contains('/') {
            return is_executable(&self.at(word));
        }
        USUAL_PATH.iter().any(|directory| is_executable(&self.at(directory).join(word)))
    }
}

/// Reads a file as text; `None` if it cannot be read.
pub(super) fn read_text(path: &Path) -> Option<zeroize::Zeroizing<String>> {
    file::read_text(path, MAX_BYTES).ok()
}

/// Lists a directory in order; empty if it cannot be listed.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Whether a file is executable by someone.
pub(super) fn is_executable(path: &Path) -> bool {
    let is_program = |file: Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    fs::metadata(path).is_ok_and(is_program)
}

/// The file name; empty if there is none or it is not UTF-8.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
