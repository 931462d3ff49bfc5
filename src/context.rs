//! The inputs that all commands share: the environment, the configuration file and the style of the output.
//!
//! Each is read at most once per run; the configuration file not before a command or notification needs it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::env::Env;
use crate::report::Style;
use crate::settings::{self, Configuration, EffectiveSetting, HeartbeatUrl, Layer, Program};

/// The environment, the configuration file and the output style of a run.
pub struct Context {
    pub(crate) env: Env,
    /// Style of standard output.
    pub(crate) style: Style,
    /// `--config`.
    config: Option<PathBuf>,
    file: OnceLock<Configuration>,
}

impl Context {
    pub fn new(env: Env, config: Option<PathBuf>, style: Style) -> Self {
        Self { env, style, config, file: OnceLock::new() }
    }

    /// The configuration file in effect, or why it cannot be used. Reads the file on the first call.
    pub(crate) fn configuration(&self) -> Result<&Configuration, settings::SettingsError> {
        self.file().require_valid()
    }

    /// The program to run after a failure, if the configuration file names one; other faults of the file do not matter.
    pub(crate) fn on_failure(&self) -> Option<&Program> {
        self.file().on_failure.as_ref()
    }

    /// The URL to call after each `sync`, if the configuration file names one; other faults of the file do not matter.
    pub(crate) fn heartbeat_url(&self) -> Option<&HeartbeatUrl> {
        self.file().heartbeat_url.as_ref()
    }

    /// The usable part of an invalid configuration file: where to record the failure.
    pub(crate) fn without_configuration(&self) -> Configuration {
        self.file().only_state_dir()
    }

    /// Every setting in effect, with its origin; reads the API key. `flags` are those of the command.
    pub(crate) fn effective_settings(&self, flags: &Layer) -> Vec<EffectiveSetting> {
        settings::effective(flags, self.config.as_deref(), &self.env, self.file())
    }

    /// The configuration file, which may be invalid; `None` if there is none.
    pub(crate) fn configuration_path(&self) -> Option<&Path> {
        self.file().path.as_deref()
    }

    /// Whether the configuration file has been read. If not, a thread that has panicked may be reading it.
    pub(crate) fn has_read_configuration(&self) -> bool {
        self.file.get().is_some()
    }

    fn file(&self) -> &Configuration {
        self.file.get_or_init(|| settings::read_configuration(self.config.as_deref(), &self.env))
    }
}
