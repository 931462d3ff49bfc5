//! Reads small files with limits on size and time, and describes I/O errors.

mod memory;
pub(crate) mod recorded_path;
mod staged;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::retry_on_intr;
use time::OffsetDateTime;
use zeroize::Zeroizing;

pub(crate) use self::memory::{MEMORY, is_in_memory, is_missing_in_memory, provide};
pub(crate) use self::staged::{StagedFile, probe, sync_directory};
use crate::clock::Deadline;

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

/// The deadline for reading the files of a command that has no time limit of its own.
pub(crate) fn default_deadline() -> Deadline {
    Deadline::after(READ_TIMEOUT)
}

/// Reads a whole file of at most `max_bytes`. Pipes and other special files have a time limit: a pipe without a writer
/// would block the run forever.
pub(crate) fn read(path: &Path, max_bytes: u64, deadline: Deadline) -> Result<Vec<u8>, ReadError> {
    let bytes = if is_in_memory(path) {
        memory::read(path)
    } else {
        let opened = open(path, OpenOptions::new().read(true));
        opened.and_then(|opened| read_opened(&opened, max_bytes, deadline.left().min(READ_TIMEOUT)))
    };
    within(path, max_bytes, bytes)
}

/// Reads a whole regular file of at most `max_bytes`.
pub(crate) fn read_regular(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let opened = open(path, OpenOptions::new().read(true)).and_then(require_regular);
    within(path, max_bytes, opened.and_then(|opened| read_opened(&opened, max_bytes, READ_TIMEOUT)))
}

/// Opens a regular file for reading and appending, and creates it for its owner only. Fails for any other: opening or
/// reading a pipe would block.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    open(path, &mut options).and_then(require_regular).map(|(file, _)| file)
}

/// Replaces characters that a file system or a shell could misread, and truncates the text. A leading `.` or `-` is kept.
pub(crate) fn safe_characters(text: &str, max_length: usize) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    text.chars().map(keep).take(max_length).collect()
}

/// A file and its metadata, so that these are read only once.
type Opened = (File, Metadata);

/// Opens a file without waiting for the other end of a pipe.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Opened> {
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn require_regular(opened: Opened) -> io::Result<Opened> {
    match opened.1.file_type() {
        kind if kind.is_file() => Ok(opened),
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is not a regular file")),
    }
}

/// Fails if a file was not read, or if it is too large.
fn within(path: &Path, max_bytes: u64, read: io::Result<Vec<u8>>) -> Result<Vec<u8>, ReadError> {
    let bytes = read.map_err(|error| ReadError::new(path, &error))?;
    if bytes.len() as u64 <= max_bytes {
        return Ok(bytes);
    }
    let (size, unit) = if max_bytes >= 1 << 20 { (max_bytes >> 20, "MiB") } else { (max_bytes >> 10, "KiB") };
    let reason = format!("it is larger than {size} {unit}");
    Err(ReadError { path: path.to_owned(), reason, kind: io::ErrorKind::FileTooLarge })
}

/// Reads UTF-8 text. It is wiped on drop, because any file may contain a key by mistake.
pub(crate) fn read_text(
    path: &Path,
    max_bytes: u64,
    deadline: Deadline,
) -> Result<Zeroizing<String>, ReadError> {
    String::from_utf8(read(path, max_bytes, deadline)?).map(Zeroizing::new).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        ReadError::new(path, &io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
    })
}

/// When a file was last modified; `None` if it cannot be read, or if the year has more than four digits.
pub(crate) fn modified(path: &Path) -> Option<OffsetDateTime> {
    let file = fs::metadata(path).ok()?;
    OffsetDateTime::from_unix_timestamp(file.mtime()).ok()
}

/// Whether users other than owner and group have access to a regular file. Pipes such as `<(pass show key)` are exempt:
/// others cannot open them, whatever their mode.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    const OTHERS: u32 = 0o007;
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & OTHERS != 0)
}

/// Whether a file belongs to a mounted Kubernetes secret.
pub(crate) fn is_mounted_secret(path: &Path) -> bool {
    path.parent().is_some_and(|directory| directory.join("..data").symlink_metadata().is_ok())
}

/// Reads a file to its end, a pipe or a device within the time limit. The buffer has the size of a regular file and need
/// not grow: that would leave a copy of a secret behind. Wiping takes five instructions per byte of it, used or not.
fn read_opened((file, metadata): &Opened, max_bytes: u64, limit: Duration) -> io::Result<Vec<u8>> {
    let deadline = Deadline::after(limit);
    // A chain and a key need less than 16 KiB.
    let size = if metadata.is_file() { metadata.len().min(max_bytes) } else { 16 << 10 };
    let mut bytes = Vec::with_capacity(usize::try_from(size + READ_AHEAD).unwrap_or_default());
    let wait_for_input = || {
        let left = Timespec::try_from(deadline.left()).unwrap_or_default();
        poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&left))
    };
    // Of regular files, only some of the kernel's are read as they are written: `/proc/kmsg`, for example.
    let mut may_wait = !metadata.is_file();
    loop {
        if may_wait && retry_on_intr(wait_for_input)? == 0 {
            let reason = format!("no end of file within {:.0} s", limit.as_secs_f32());
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        let rest = max_bytes + 1 - bytes.len() as u64;
        match file.take(rest).read_to_end(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => may_wait = true,
            read => return read.map(|_| bytes),
        }
    }
}

/// Describes an operating system error, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    /// A file in memory, because file systems on disk have room for a few centuries only.
    #[test]
    fn absurd_times_are_unknown() {
        let memory = rustix::fs::memfd_create("times", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        let file = File::from(memory);
        let modified_at = |at: SystemTime| {
            file.set_modified(at).unwrap();
            modified(Path::new(&path))
        };
        let (second, epoch) = (Duration::from_secs(1), OffsetDateTime::UNIX_EPOCH);
        assert_eq!(modified_at(UNIX_EPOCH + second), Some(epoch + second));
        assert_eq!(modified_at(UNIX_EPOCH - second), Some(epoch - second));
        assert_eq!(modified_at(UNIX_EPOCH + Duration::from_secs(300_000_000_000)), None);
    }
}
