//! The `on_failure` key of the configuration file: the program that receives the report of a failed run, and whether
//! the file can be trusted to name it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};
use serde_json::Value;

use super::SettingsError;
use crate::file::ReadError;
use crate::text;

/// Name of the key.
pub(super) const KEY: &str = "on_failure";

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// A path, or a name to look up in `PATH`.
    pub(crate) name: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The configuration file that names it.
    file: PathBuf,
}

/// Permission to write for group and others.
const WRITABLE: u32 = 0o022;
/// In such a directory only its owner and that of a file can replace the file.
const STICKY: u32 = 0o1000;

impl Program {
    /// Sets the file that names it. A name with a slash is relative to the file's directory, like all paths in it.
    pub(super) fn named_in(self, file: &Path) -> Self {
        let directory = file.parent().unwrap_or(Path::new(""));
        let is_path = self.name.as_os_str().as_encoded_bytes().contains(&b'/');
        let name = if is_path { directory.join(&self.name) } else { self.name };
        Self { name, file: file.to_owned(), ..self }
    }

    /// Whether nobody but root and this user can choose the program, by changing or replacing the configuration file.
    /// With another user's `HOME`, the file belongs to that user.
    pub(crate) fn trust(&self) -> Result<(), SettingsError> {
        let unknown = |error: io::Error| SettingsError::from(ReadError::new(&self.file, &error));
        let file = self.file.metadata().map_err(unknown)?;
        trust_owner(&self.file, &file)?;
        // Others cannot open a pipe such as `<(…)`, whatever its mode.
        if !file.is_file() {
            return Ok(());
        }
        if file.mode() & WRITABLE != 0 {
            return Err(writable("write", &self.file));
        }
        let named = std::path::absolute(&self.file).map_err(unknown)?;
        let real = named.canonicalize().map_err(unknown)?;
        // The links on the way, then the directories that they lead to: in each, the next one could be replaced.
        named.ancestors().chain(real.ancestors().skip(1)).try_for_each(|path| {
            let found = path.symlink_metadata().map_err(unknown)?;
            trust_owner(path, &found)?;
            let is_open = found.is_dir() && found.mode() & WRITABLE != 0 && found.mode() & STICKY == 0;
            // A mounted ConfigMap is open to all, but read-only.
            if is_open && !is_read_only(path) { Err(writable("replace files in", path)) } else { Ok(()) }
        })
    }
}

/// Reads the value of the key.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Program>, D::Error> {
    let words: Vec<String> = serde_json::from_value(Value::deserialize(from)?).unwrap_or_default();
    let mut words = words.into_iter();
    let name = words.next().filter(|name| !name.is_empty());
    let expected = || D::Error::custom("expected a list of strings: the program and its arguments");
    let name = name.ok_or_else(expected)?.into();
    Ok(Some(Program { name, arguments: words.collect(), file: PathBuf::new() }))
}

fn writable(action: &str, path: &Path) -> SettingsError {
    let error = SettingsError::new(format_args!("group or others can {action} {}", text::path(path)));
    error.hint(format!("run `chmod go-w {}`", text::shell_word(&path.to_string_lossy())))
}

fn trust_owner(path: &Path, found: &Metadata) -> Result<(), SettingsError> {
    if found.uid() == 0 || found.uid() == geteuid().as_raw() {
        return Ok(());
    }
    let path = text::path(path);
    let error =
        SettingsError::new(format_args!("{path} is owned by neither root nor the user running edgecert"));
    Err(error.hint("make root its owner, or the user that runs edgecert"))
}

fn is_read_only(directory: &Path) -> bool {
    statvfs(directory).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}
