//! Files that are replaced whole: a reader sees the old contents or the new, and a power failure loses neither.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A file under a temporary name. Dropping it removes that name.
#[derive(Debug)]
pub(crate) struct StagedFile {
    path: PathBuf,
    temporary: PathBuf,
}

impl StagedFile {
    /// Writes the parts of a file's contents to `temporary`, which is in the same directory as `path`, and syncs it.
    /// The umask applies to `mode`.
    pub(crate) fn write(path: &Path, temporary: PathBuf, contents: &[&[u8]], mode: u32) -> io::Result<Self> {
        // A killed run may have left one behind, with other permissions.
        let _ = fs::remove_file(&temporary);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        // Dropped if writing fails, and the file with it.
        let staged = Self { path: path.to_owned(), temporary };
        contents.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Sets the mode, whatever the umask.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.temporary, Permissions::from_mode(mode))
    }

    /// Renames the file to its final name and replaces an existing file.
    pub(crate) fn replace(&self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Checks that a file can be written, by writing it and removing it: the mode of a directory does not show whether its
/// file system is full or read-only.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    match StagedFile::write(path, path.to_owned(), &[b"\n"], 0o600) {
        // Another run has just created it, or it cannot be removed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        written => written.map(drop),
    }
}

/// Syncs a directory, so that renames in it survive a power failure.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(directory: &Path, text: &str) -> StagedFile {
        let (path, temporary) = (directory.join("file"), directory.join("file.new"));
        StagedFile::write(&path, temporary, &[text.as_bytes(), b"\n"], 0o600).unwrap()
    }

    fn files(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn replaced_file_has_new_contents() {
        let directory = tempfile::TempDir::new().unwrap();
        fs::write(directory.path().join("file"), "old").unwrap();
        fs::write(directory.path().join("file.new"), "left behind").unwrap();
        stage(directory.path(), "new").replace().unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("file")).unwrap(), "new\n");
        assert_eq!(files(directory.path()), ["file"]);
    }

    #[test]
    fn dropped_file_leaves_nothing() {
        let directory = tempfile::TempDir::new().unwrap();
        drop(stage(directory.path(), "new"));
        assert_eq!(files(directory.path()), [""; 0]);
    }
}
