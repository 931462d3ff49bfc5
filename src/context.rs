//! The inputs that all commands share: the environment, the configuration file and the style of the output.
//!
//! Each is read at most once per run; the configuration file not before a command or notification needs it.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::env::Env;
use crate::report::Style;
use crate::settings::{self, Configuration};

/// The environment, the configuration file and the output style of a run.
pub struct Context {
    pub(crate) env: Env,
    /// Style of standard output.
    pub(crate) style: Style,
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    file: OnceLock<Configuration>,
}

impl Context {
    pub fn new(env: Env, config: Option<PathBuf>, style: Style) -> Self {
        Self { env, style, config, file: OnceLock::new() }
    }

    /// The valid part of the configuration file. Reads the file on the first call.
    pub(crate) fn configuration(&self) -> &Configuration {
        self.file.get_or_init(|| settings::read_configuration(self.config.as_deref(), &self.env))
    }

    /// Whether the configuration file has been read. If not, a thread that has panicked may be reading it.
    pub(crate) fn has_read_configuration(&self) -> bool {
        self.file.get().is_some()
    }
}
