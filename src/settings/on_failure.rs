//! The `on_failure` key of the configuration file: the program that receives the report of a failed run, and whether
//! the file can be trusted to name it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;
use toml::de::DeValue;

use crate::{file, text};

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

/// Why a program must not be run: another user could make this one run any program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Distrust {
    #[error("group or others can write {}", text::path(path))]
    Writable { path: PathBuf },
    /// A directory in which the configuration file, or a directory above it, could be replaced.
    #[error("group or others can replace files in {}", text::path(directory))]
    Replaceable { directory: PathBuf },
    #[error("{} is owned by neither root nor the user running edgecert", text::path(path))]
    Foreign { path: PathBuf },
    #[error("cannot examine {}: {reason}", text::path(path))]
    Unknown { path: PathBuf, reason: String },
}

/// Permission to write for group and others.
const WRITABLE: u32 = 0o022;
/// In such a directory only its owner and that of a file can replace the file.
const STICKY: u32 = 0o1000;

impl Program {
    /// Reads the value of the key. A name with a slash is relative to the file's directory, like all paths in it.
    pub(super) fn from_toml(value: &DeValue<'_>, file: &Path) -> Result<Self, &'static str> {
        const NOT_A_LIST: &str = "expected a list of strings: the program and its arguments";
        let words = value.as_array().ok_or(NOT_A_LIST)?.iter();
        let words = words.map(|word| word.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        let mut words = words.ok_or(NOT_A_LIST)?.into_iter();
        let name = words.next().filter(|name| !name.is_empty()).ok_or("it names no program")?;
        let directory = file.parent().unwrap_or(Path::new(""));
        let name = if name.contains('/') { directory.join(name) } else { name.into() };
        Ok(Self { name, arguments: words.collect(), file: file.to_owned() })
    }

    /// Whether nobody but root and this user can choose the program, by changing or replacing the configuration file.
    /// With another user's `HOME`, the file belongs to that user.
    pub(crate) fn trust(&self) -> Result<(), Distrust> {
        let unknown =
            |error: io::Error| Distrust::Unknown { path: self.file.clone(), reason: file::reason(&error) };
        let file = self.file.metadata().map_err(unknown)?;
        trust_owner(&self.file, &file)?;
        // Others cannot open a pipe such as `<(…)`, whatever its mode.
        if !file.is_file() {
            return Ok(());
        }
        if file.mode() & WRITABLE != 0 {
            return Err(Distrust::Writable { path: self.file.clone() });
        }
        let named = std::path::absolute(&self.file).map_err(unknown)?;
        let real = named.canonicalize().map_err(unknown)?;
        // The links on the way, then the directories that they lead to.
        named.ancestors().chain(real.ancestors().skip(1)).try_for_each(|path| {
            let found = path.symlink_metadata().map_err(unknown)?;
            trust_owner(path, &found)?;
            let is_open = found.is_dir() && found.mode() & WRITABLE != 0 && found.mode() & STICKY == 0;
            // A mounted ConfigMap is open to all, but read-only.
            if is_open && !is_read_only(path) {
                return Err(Distrust::Replaceable { directory: path.to_owned() });
            }
            Ok(())
        })
    }
}

fn trust_owner(path: &Path, found: &Metadata) -> Result<(), Distrust> {
    let is_ours = found.uid() == 0 || found.uid() == geteuid().as_raw();
    if is_ours { Ok(()) } else { Err(Distrust::Foreign { path: path.to_owned() }) }
}

fn is_read_only(directory: &Path) -> bool {
    statvfs(directory).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}
