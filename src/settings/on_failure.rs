//! `on_failure` of the configuration file: the program that is told of a failure, with its arguments.

use std::path::{Path, PathBuf};

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// A path, or a name that is looked for in `PATH`.
    pub(crate) name: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The configuration file that names it.
    pub(crate) file: PathBuf,
}

impl Program {
    /// Understands the value of the key. A name with a slash is relative to the file's directory, as all paths are.
    pub(super) fn parse(file: &Path, value: &toml::Value) -> Result<Self, &'static str> {
        const WANTED: &str = "a list of strings is wanted: the program and its arguments";
        let words = value.as_array().ok_or(WANTED)?.iter();
        let words = words.map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        let mut words = words.ok_or(WANTED)?.into_iter();
        let name = words.next().filter(|name| !name.is_empty()).ok_or("it names no program")?;
        let directory = file.parent().unwrap_or(Path::new(""));
        let name = if name.contains('/') { directory.join(name) } else { name.into() };
        Ok(Self { name, arguments: words.collect(), file: file.to_owned() })
    }
}
