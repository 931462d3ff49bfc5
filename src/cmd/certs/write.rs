//! Writes downloaded files: all or none, under safe names, keys with mode 0600.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Diagnostic, ErrorKind, write_hint};
use crate::file::{self, StagedFile};
use crate::hint::Hint;
use crate::secret::Secret;
use crate::text;

/// A file to write.
pub(super) struct Part<'a> {
    path: PathBuf,
    content: &'a str,
    mode: u32,
}

/// Why no file was written.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadWriteError {
    #[error("{} already exists; nothing was written", text::path(.0))]
    Exists(PathBuf),
    #[error("cannot write {}: {reason}", text::path(path))]
    Io { path: PathBuf, reason: String, kind: io::ErrorKind },
}

impl DownloadWriteError {
    fn new(path: &Path, error: &io::Error) -> Self {
        Self::Io { path: path.to_owned(), reason: file::reason(error), kind: error.kind() }
    }
}

/// Maximum length of a file name without extensions; file systems allow 255 bytes.
const MAX_NAME_LENGTH: usize = 200;

/// Makes a file name from the first usable name, and replaces characters that a file system or a shell could misread.
pub(super) fn safe_name(names: &[Option<&str>], id: u64) -> String {
    let safe = |name: &str| -> String {
        let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let safe: String = name.trim().chars().map(keep).take(MAX_NAME_LENGTH).collect();
        safe.trim_start_matches(['.', '-']).to_owned()
    };
    let mut usable = names.iter().flatten().map(|name| safe(name));
    usable
        .find(|name| name.contains(|c: char| c.is_ascii_alphanumeric()))
        .unwrap_or_else(|| format!("certificate-{id}"))
}

impl Diagnostic for DownloadWriteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Exists(_) => ErrorKind::Refused,
            Self::Io { .. } => ErrorKind::NoInput,
        }
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Exists(_) => "pass --force to replace it, or name another directory".into(),
            Self::Io { kind, .. } => write_hint(*kind, "name another directory with --out").into(),
        })
    }
}

impl<'a> Part<'a> {
    /// A file that everyone may read.
    pub(super) fn public(path: &Path, content: &'a str) -> Self {
        Self { path: path.to_owned(), content, mode: 0o644 }
    }

    /// A file that only its owner may read.
    pub(super) fn secret(path: &Path, content: &'a Secret) -> Self {
        Self { path: path.to_owned(), content: content.expose(), mode: 0o600 }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file under a temporary name.
    fn stage(&self) -> Result<StagedFile, DownloadWriteError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = self.path.with_file_name(format!(".{name}.{}.new", std::process::id()));
        let end: &[u8] = if self.content.ends_with('\n') { b"" } else { b"\n" };
        let staged = StagedFile::write(&self.path, temporary, &[self.content.as_bytes(), end], self.mode);
        staged.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> DownloadWriteError {
        DownloadWriteError::new(&self.path, error)
    }
}

/// Writes all files or none: all are on disk under temporary names before the first is renamed.
pub(super) fn all(parts: &[Part<'_>], directory: &Path, force: bool) -> Result<(), DownloadWriteError> {
    let directory_error = |error: &io::Error| DownloadWriteError::new(directory, error);
    if let Some(part) = parts.iter().find(|part| !force && part.path.symlink_metadata().is_ok()) {
        return Err(DownloadWriteError::Exists(part.path.clone()));
    }
    // Renaming over a directory fails, which must not happen after another file was replaced.
    if let Some(part) = parts.iter().find(|part| part.path.is_dir() && !part.path.is_symlink()) {
        return Err(part.failed(&io::ErrorKind::IsADirectory.into()));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| directory_error(&error))?;
    let staged: Vec<StagedFile> = parts.iter().map(Part::stage).collect::<Result<_, _>>()?;
    rename_all(parts, &staged, force)?;
    file::sync_directory(directory).map_err(|error| directory_error(&error))
}

/// Renames the files. If one rename fails, new files are removed again.
fn rename_all(parts: &[Part<'_>], staged: &[StagedFile], force: bool) -> Result<(), DownloadWriteError> {
    for (at, (part, staged)) in parts.iter().zip(staged).enumerate() {
        let named = if force { staged.replace() } else { staged.create_new() };
        if let Err(error) = named {
            for earlier in parts.iter().take(at).filter(|_| !force) {
                let _ = fs::remove_file(&earlier.path);
            }
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => DownloadWriteError::Exists(part.path.clone()),
                _ => part.failed(&error),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_names_become_safe() {
        let rows = [
            ("a.example", "a.example"),
            ("*.a.example", "_.a.example"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("...hidden", "hidden"),
            ("-rf", "rf"),
            ("My shop; rm -rf /", "My_shop__rm_-rf__"),
            ("b\u{fc}cher\n\u{1b}[2J", "b_cher___2J"),
            ("", "certificate-5"),
            ("..", "certificate-5"),
            ("**", "certificate-5"),
        ];
        for (name, safe) in rows {
            assert_eq!(safe_name(&[Some(name), None], 5), safe, "{name:?}");
        }
        assert_eq!(safe_name(&[None, Some("b.example")], 5), "b.example");
        assert_eq!(safe_name(&[Some(&"x".repeat(999))], 5).len(), MAX_NAME_LENGTH);
    }
}
