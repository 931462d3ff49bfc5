//! Reading small files: bounded in size and in time, and what went wrong in words.

mod staged;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use zeroize::Zeroizing;

pub(crate) use self::staged::{StagedFile, probe, sync_directory};

/// A file that is missing or cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot read {}: {reason}", crate::text::path(path))]
pub(crate) struct ReadError {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
    /// Decides the hint; `FileTooLarge` and `InvalidData` are set by this module.
    pub(crate) kind: io::ErrorKind,
}

impl ReadError {
    /// Wraps an error of the operating system.
    pub(crate) fn new(path: &Path, error: &io::Error) -> Self {
        Self { path: path.to_owned(), reason: reason(error), kind: error.kind() }
    }

    /// Whether the file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.kind == io::ErrorKind::NotFound
    }
}

/// So long a pipe may keep us waiting: `--key <(pass show key)` asks a person for a passphrase.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A file that may hold a secret; wiped when it is dropped.
pub(crate) fn read_secret(path: &Path, most: u64) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    read(path, most).map(Zeroizing::new)
}

/// The whole file, if it is not larger than `most` bytes. What is no regular file is read with patience only: a pipe
/// that nobody writes into would hold the run for ever.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let fail = |kind, reason: String| ReadError { path: path.to_owned(), reason, kind };
    let failed = |error: io::Error| ReadError::new(path, &error);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let bytes = if metadata.is_file() || metadata.is_dir() {
        read_now(path, most)
    } else {
        let (sender, receiver) = mpsc::channel();
        let path = path.to_owned();
        std::thread::spawn(move || sender.send(read_now(&path, most)));
        let silent = |_| fail(io::ErrorKind::TimedOut, "nothing is written into it".into());
        receiver.recv_timeout(READ_TIMEOUT).map_err(silent)?
    };
    let bytes = bytes.map_err(failed)?;
    if bytes.len() as u64 > most {
        let size =
            if most >= 1 << 20 { format!("{} MiB", most >> 20) } else { format!("{} KiB", most >> 10) };
        return Err(fail(io::ErrorKind::FileTooLarge, format!("it is larger than {size}")));
    }
    Ok(bytes)
}

/// The same as text; a key may stand in it, even where none belongs.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<Zeroizing<String>, ReadError> {
    let bytes = read_secret(path, most)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError {
        path: path.to_owned(),
        reason: "it is not UTF-8 text".into(),
        kind: io::ErrorKind::InvalidData,
    })?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Whether others can open it. A pipe (`<(pass show edge)`) has a mode too, but no others that could.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    const OTHERS: u32 = 0o007;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & OTHERS != 0)
}

fn read_now(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Large enough for a chain and a key, so that no copy of a secret is left behind by growing.
    let mut bytes = Vec::with_capacity(16 << 10);
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An operating system's error in words, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}
