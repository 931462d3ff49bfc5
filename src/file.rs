//! Reads small files with limits on size and time, and describes I/O errors.

mod memory;
pub(crate) mod recorded_path;
mod staged;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use zeroize::Zeroizing;

pub(crate) use self::memory::{MEMORY, is_in_memory, is_provided, provide};
pub(crate) use self::staged::{StagedFile, probe, sync_directory};
use crate::clock::Deadline;
use crate::text::count;

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

/// Read timeout for pipes; `--key <(pass show key)` may prompt for a passphrase.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Room beyond the size of a file. With less than this left, the standard library would read into a buffer of its own.
const READ_AHEAD: u64 = 32;

/// Large enough for a chain and a key.
const PIPE_BUFFER: u64 = 16 << 10;

/// The deadline for reading the files of a command that has no time limit of its own.
pub(crate) fn default_deadline() -> Deadline {
    Deadline::after(READ_TIMEOUT)
}

/// Reads a file that may hold a secret. The contents are wiped on drop.
pub(crate) fn read_secret(
    path: &Path,
    max_bytes: u64,
    deadline: Deadline,
) -> Result<Zeroizing<Vec<u8>>, ReadError> {
    read_until(path, max_bytes, deadline).map(Zeroizing::new)
}

/// Reads a whole file of at most `max_bytes`, with the default deadline.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    read_until(path, max_bytes, default_deadline())
}

/// Reads a whole file of at most `max_bytes`. Pipes and other special files have a time limit: a pipe without a writer
/// would block the run forever.
pub(crate) fn read_until(path: &Path, max_bytes: u64, deadline: Deadline) -> Result<Vec<u8>, ReadError> {
    let fail = |kind, reason: String| ReadError { path: path.to_owned(), reason, kind };
    let failed = |error: io::Error| ReadError::new(path, &error);
    let metadata = || std::fs::metadata(path).map_err(failed);
    let bytes = if is_in_memory(path) {
        memory::read(path)
    } else if let metadata = metadata()?
        && (metadata.is_file() || metadata.is_dir())
    {
        read_now(path, max_bytes, metadata.len().min(max_bytes) + READ_AHEAD)
    } else {
        let (sender, receiver) = mpsc::channel();
        let path = path.to_owned();
        std::thread::spawn(move || sender.send(read_now(&path, max_bytes, PIPE_BUFFER)));
        let timeout = deadline.left().min(READ_TIMEOUT);
        let timed_out = |_| {
            let seconds =
                usize::try_from((timeout + Duration::from_millis(500)).as_secs()).unwrap_or_default();
            fail(io::ErrorKind::TimedOut, format!("no end of file within {}", count(seconds, "second")))
        };
        receiver.recv_timeout(timeout).map_err(timed_out)?
    };
    let bytes = bytes.map_err(failed)?;
    if bytes.len() as u64 > max_bytes {
        let size = if max_bytes >= 1 << 20 {
            format!("{} MiB", max_bytes >> 20)
        } else {
            format!("{} KiB", max_bytes >> 10)
        };
        return Err(fail(io::ErrorKind::FileTooLarge, format!("it is larger than {size}")));
    }
    Ok(bytes)
}

/// Reads UTF-8 text. It is wiped on drop, because any file may contain a key by mistake.
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> Result<Zeroizing<String>, ReadError> {
    read_text_until(path, max_bytes, default_deadline())
}

/// Reads UTF-8 text within a deadline.
pub(crate) fn read_text_until(
    path: &Path,
    max_bytes: u64,
    deadline: Deadline,
) -> Result<Zeroizing<String>, ReadError> {
    String::from_utf8(read_until(path, max_bytes, deadline)?).map(Zeroizing::new).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        ReadError {
            path: path.to_owned(),
            reason: "it is not UTF-8 text".into(),
            kind: io::ErrorKind::InvalidData,
        }
    })
}

/// Whether users other than owner and group have access to a regular file. Pipes such as `<(pass show key)` are exempt:
/// others cannot open them, whatever their mode.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    const OTHERS: u32 = 0o007;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & OTHERS != 0)
}

/// Whether a file belongs to a mounted Kubernetes secret.
pub(crate) fn is_mounted_secret(path: &Path) -> bool {
    path.parent().is_some_and(|directory| directory.join("..data").symlink_metadata().is_ok())
}

/// Reads into a buffer of this size: growing would leave a copy of a secret behind, and wiping takes five instructions
/// per byte of the buffer, used or not.
fn read_now(path: &Path, max_bytes: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Describes an operating system error, without its number.
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
