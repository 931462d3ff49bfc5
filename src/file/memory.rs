//! Files in memory: the secrets of a Kubernetes API server, which are not written to disk. Their paths begin with a
//! directory that does not exist, so that they are read and recorded like other lineages.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

/// The directory of all files in memory.
pub(crate) const MEMORY: &str = "/kubernetes:";

static FILES: Mutex<BTreeMap<PathBuf, Zeroizing<Vec<u8>>>> = Mutex::new(BTreeMap::new());

/// Adds a file, or replaces it.
pub(crate) fn provide(path: PathBuf, bytes: Zeroizing<Vec<u8>>) {
    files().insert(path, bytes);
}

/// Whether this is the path of a file in memory, provided or not.
pub(crate) fn is_in_memory(path: &Path) -> bool {
    path.starts_with(MEMORY)
}

/// Whether this is the path of a file in memory that was not provided.
pub(crate) fn is_missing_in_memory(path: &Path) -> bool {
    is_in_memory(path) && !files().contains_key(path)
}

/// Copies a file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    files().get(path).map(|bytes| bytes.to_vec()).ok_or_else(missing)
}

fn files() -> MutexGuard<'static, BTreeMap<PathBuf, Zeroizing<Vec<u8>>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}
