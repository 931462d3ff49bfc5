//! Writes downloaded files: all or none, under safe names, keys with mode 0600.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::error::{CommandError, ErrorKind, Result, write_hint};
use crate::file::{self, StagedFile};
use crate::text;

/// A file to write.
pub(super) struct Part<'a> {
    pub(super) path: PathBuf,
    pub(super) content: &'a str,
    pub(super) mode: u32,
}

/// Maximum length of a file name without extensions; file systems allow 255 bytes.
const MAX_NAME_LENGTH: usize = 200;

/// Makes a file name from the first usable name.
pub(super) fn safe_name(names: &[Option<&str>], id: u64) -> String {
    let mut safe = names.iter().flatten().map(|name| file::safe_characters(name.trim(), MAX_NAME_LENGTH));
    let usable = safe.find(|name| name.contains(|c: char| c.is_ascii_alphanumeric()));
    usable.map_or_else(|| format!("certificate-{id}"), |name| name.trim_start_matches(['.', '-']).to_owned())
}

fn failed(path: &Path, error: &io::Error) -> CommandError {
    let message = format_args!("cannot write {}: {}", text::path(path), file::reason(error));
    CommandError::new(ErrorKind::NoInput, message)
        .hint(write_hint(error.kind(), "name another directory with --out"))
}

/// Writes all files or none: all are on disk under temporary names before the first is renamed, and new files are removed
/// again if a rename fails.
pub(super) fn all(parts: &[Part<'_>], directory: &Path, force: bool) -> Result<()> {
    if let Some(part) = parts.iter().find(|part| !force && part.path.symlink_metadata().is_ok()) {
        let message = format_args!("{} already exists; nothing was written", text::path(&part.path));
        return Err(CommandError::new(ErrorKind::Refused, message)
            .hint("pass --force to replace it, or name another directory"));
    }
    // Renaming over a directory fails, which must not happen after another file was replaced.
    if let Some(part) = parts.iter().find(|part| part.path.is_dir() && !part.path.is_symlink()) {
        return Err(failed(&part.path, &io::ErrorKind::IsADirectory.into()));
    }
    let created = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    created.map_err(|error| failed(directory, &error))?;
    let mut staged = Vec::new();
    for Part { path, content, mode } in parts {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
        let end: &[u8] = if content.ends_with('\n') { b"" } else { b"\n" };
        let file = StagedFile::write(path, temporary, &[content.as_bytes(), end], *mode);
        staged.push(file.map_err(|error| failed(path, &error))?);
    }
    for (at, (part, file)) in parts.iter().zip(&staged).enumerate() {
        if let Err(error) = file.replace() {
            for earlier in parts.iter().take(at).filter(|_| !force) {
                let _ = fs::remove_file(&earlier.path);
            }
            return Err(failed(&part.path, &error));
        }
    }
    file::sync_directory(directory).map_err(|error| failed(directory, &error))
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
