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
    config: Option<PathBuf>,
    configuration: OnceLock<Result<Configuration, settings::SettingsError>>,
}

impl Context {
    pub fn new(env: Env, config: Option<PathBuf>, style: Style) -> Self {
        Self { env, style, config, configuration: OnceLock::new() }
    }

    /// The configuration file in effect, or why it cannot be used. Reads the file on the first call.
    pub(crate) fn configuration(&self) -> Result<&Configuration, settings::SettingsError> {
        let read = || settings::read_configuration(self.config.as_deref(), &self.env);
        self.configuration.get_or_init(read).as_ref().map_err(Clone::clone)
    }
}
