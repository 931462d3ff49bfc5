//! `edgecert doctor`: its flags.

use clap::Args;

use crate::settings::Layer;

/// `edgecert doctor`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) settings: Layer,
}
