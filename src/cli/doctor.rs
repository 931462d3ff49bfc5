//! `edgecert doctor`: its flags.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::settings::Layer;

/// Check settings, service, lineages, hooks and timers
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert doctor
  edgecert doctor --json
  edgecert doctor --settings

Run it as the user that the ACME client runs as. The exit code is 0 if no finding is `fail`,
else that of the most severe one. The last line says what to do next.")]
pub(crate) struct DoctorArgs {
    /// Only list the settings in effect, and where each comes from
    #[arg(long = "settings")]
    pub(crate) lists_settings: bool,
    /// Look for ACME clients and hooks below DIR, for example in a mounted image
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, value_hint = ValueHint::DirPath)]
    pub(crate) root: PathBuf,
    #[command(flatten)]
    pub(crate) settings: Layer,
}
