//! Writes downloaded files: whole or not at all, each under a name that is safe, a key for its owner only.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::file::{self, StagedFile};
use crate::secret::Secret;
use crate::text;

/// A file to write.
pub(super) struct Part<'a> {
    path: PathBuf,
    content: &'a str,
    mode: u32,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotWritten {
    #[error("{} is there already", text::path(.0))]
    Exists(PathBuf),
    #[error("cannot write {}: {reason}", text::path(path))]
    Io { path: PathBuf, reason: String },
}

/// File systems take 255 bytes, an ending and a mark included.
const LONGEST_NAME: usize = 200;

/// The first of these names that makes a file name, without what a file name or a shell could mistake.
pub(super) fn safe_name(names: &[Option<&str>], id: u64) -> String {
    let safe = |name: &str| -> String {
        let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let safe: String = name.trim().chars().map(keep).take(LONGEST_NAME).collect();
        safe.trim_start_matches(['.', '-']).to_owned()
    };
    let mut usable = names.iter().flatten().map(|name| safe(name));
    usable
        .find(|name| name.contains(|c: char| c.is_ascii_alphanumeric()))
        .unwrap_or_else(|| format!("certificate-{id}"))
}

impl<'a> Part<'a> {
    /// For everybody to read.
    pub(super) fn open(path: &Path, content: &'a str) -> Self {
        Self { path: path.to_owned(), content, mode: 0o644 }
    }

    /// For the owner alone.
    pub(super) fn secret(path: &Path, content: &'a Secret) -> Self {
        Self { path: path.to_owned(), content: content.expose(), mode: 0o600 }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file under a temporary name.
    fn stage(&self) -> Result<StagedFile, NotWritten> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = self.path.with_file_name(format!(".{name}.{}.new", std::process::id()));
        let end: &[u8] = if self.content.ends_with('\n') { b"" } else { b"\n" };
        let staged = StagedFile::write(&self.path, temporary, &[self.content.as_bytes(), end], self.mode);
        staged.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> NotWritten {
        NotWritten::Io { path: self.path.clone(), reason: file::reason(error) }
    }
}

/// Writes all files, or none: every one lies on the disk under another name before the first gets its own.
pub(super) fn all(parts: &[Part<'_>], directory: &Path, force: bool) -> Result<(), NotWritten> {
    let of_directory =
        |error: &io::Error| NotWritten::Io { path: directory.to_owned(), reason: file::reason(error) };
    if let Some(part) = parts.iter().find(|part| !force && part.path.symlink_metadata().is_ok()) {
        return Err(NotWritten::Exists(part.path.clone()));
    }
    // A rename would fail only after an earlier file has been replaced.
    if let Some(part) = parts.iter().find(|part| part.path.is_dir() && !part.path.is_symlink()) {
        return Err(part.failed(&io::ErrorKind::IsADirectory.into()));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| of_directory(&error))?;
    let staged: Vec<StagedFile> = parts.iter().map(Part::stage).collect::<Result<_, _>>()?;
    name_all(parts, &staged, force)?;
    file::sync_directory(directory).map_err(|error| of_directory(&error))
}

/// Gives the files their names; where one cannot have it, the others lose theirs again.
fn name_all(parts: &[Part<'_>], staged: &[StagedFile], force: bool) -> Result<(), NotWritten> {
    for (at, (part, staged)) in parts.iter().zip(staged).enumerate() {
        let named = if force { staged.replace() } else { staged.create_new() };
        if let Err(error) = named {
            for earlier in parts.iter().take(at).filter(|_| !force) {
                let _ = fs::remove_file(&earlier.path);
            }
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => NotWritten::Exists(part.path.clone()),
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
    fn a_name_from_outside_is_a_safe_file_name() {
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
        assert_eq!(safe_name(&[Some(&"x".repeat(999))], 5).len(), LONGEST_NAME);
    }
}
