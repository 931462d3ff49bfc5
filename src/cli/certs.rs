//! `edgecert certs`: its subcommands and flags.

use clap::{Args, Subcommand};

use crate::settings::Layer;

/// `edgecert certs …`.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum CertsCommand {
    /// List the account's certificates
    List(ListArgs),
}

/// `edgecert certs list`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) settings: Layer,
}
