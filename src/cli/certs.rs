//! `edgecert certs`: its subcommands and flags.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};

use crate::settings::Connection;

// `edgecert certs …`.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum CertsCommand {
    /// List the account's certificates and the sites bound to each
    #[command(after_help = "Examples:\n  edgecert certs list\n  edgecert certs list --json")]
    List(Connection),
    /// Save a certificate and its private key to a directory
    Download(DownloadArgs),
}

// `edgecert certs download`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert certs download 5 --out certs
  edgecert certs download 5 --out certs --force
  edgecert certs download 5 --cert-only --out -

The files are NAME.crt and NAME.key (mode 0600). The private key is never printed.")]
pub(crate) struct DownloadArgs {
    /// Certificate ID, from `edgecert certs list`
    #[arg(value_name = "ID")]
    pub(crate) id: u64,

    /// Directory to write to, created if missing; `-` with --cert-only prints the certificate
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,

    /// Omit the private key
    #[arg(long)]
    pub(crate) cert_only: bool,

    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) service: Connection,
}

impl CertsCommand {
    /// Whether the command is run for its output. A download to files is not.
    pub(super) fn is_read(&self) -> bool {
        match self {
            Self::List(_) => true,
            Self::Download(args) => args.is_to_stdout(),
        }
    }
}

impl DownloadArgs {
    /// Whether the certificate is printed instead of written to files.
    pub(crate) fn is_to_stdout(&self) -> bool {
        self.out == Path::new("-")
    }
}
