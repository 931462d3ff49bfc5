//! `edgecert doctor`: its flags.

use clap::Args;

use super::SettingArgs;

/// Check settings, service, lineages, hooks and timers
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert doctor
  edgecert doctor --json

Run it as the user that the ACME client runs as. The exit code is 0 if no finding is `fail`,
else that of the most severe one.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}
