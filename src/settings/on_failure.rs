//! The `on_failure` key of the configuration file: the program that receives the report of a failed run.

use std::path::{Path, PathBuf};

use toml::de::DeValue;

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// A path, or a name to look up in `PATH`.
    pub(crate) name: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The configuration file that names it.
    pub(crate) file: PathBuf,
}

/// Why a value does not name a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("expected a list of strings: the program and its arguments")]
    NotAList,
    #[error("it names no program")]
    Empty,
}

impl Program {
    /// Reads the value of the key. A name with a slash is relative to the file's directory, like all paths in it.
    pub(super) fn from_toml(value: &DeValue<'_>, file: &Path) -> Result<Self, ProgramError> {
        let words = value.as_array().ok_or(ProgramError::NotAList)?.iter();
        let words = words.map(|word| word.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        let mut words = words.ok_or(ProgramError::NotAList)?.into_iter();
        let name = words.next().filter(|name| !name.is_empty()).ok_or(ProgramError::Empty)?;
        let directory = file.parent().unwrap_or(Path::new(""));
        let name = if name.contains('/') { directory.join(name) } else { name.into() };
        Ok(Self { name, arguments: words.collect(), file: file.to_owned() })
    }
}
