//! `edgecert sites`: its subcommands and flags.

use clap::{Args, Subcommand};

use crate::settings::Layer;

/// `edgecert sites …`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum SitesCommand {
    /// List the account's sites
    List(ListArgs),
}

/// `edgecert sites list`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) settings: Layer,
}
