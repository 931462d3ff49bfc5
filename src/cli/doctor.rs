//! `edgecert doctor`: its flags.

use clap::Args;

use crate::settings::Layer;

/// Find faults of the set-up before the first renewal does
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert doctor
  edgecert doctor --json

Exit codes: 0 if nothing is wrong, else that of the gravest finding. Warnings count as nothing wrong.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) settings: Layer,
}
