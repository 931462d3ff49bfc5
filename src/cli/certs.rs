//! `edgecert certs`: its subcommands and flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::ServiceArgs;

// `edgecert certs …`.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum CertsCommand {
    /// List the account's certificates, and the sites that each of them feeds
    #[command(after_help = "Examples:\n  edgecert certs list\n  edgecert certs list --json")]
    List(ServiceArgs),
    /// Write a certificate and its private key into a directory
    Download(DownloadArgs),
}

// `edgecert certs download`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert certs download 5 --out certs
  edgecert certs download 5 --out certs --force
  edgecert certs download 5 --cert-only --out -

The files are NAME.crt and NAME.key (mode 0600). The key is never printed.")]
pub(crate) struct DownloadArgs {
    /// Number of the certificate, as `certs list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: u64,

    /// Directory to write into, made if it is not there; `-` is standard output, for the certificate alone
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,

    /// Leave the private key out
    #[arg(long)]
    pub(crate) cert_only: bool,

    /// Replace files that are there already
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) service: ServiceArgs,
}

impl CertsCommand {
    /// Its name in the JSON object.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::List(_) => "certs list",
            Self::Download(_) => "certs download",
        }
    }
}
