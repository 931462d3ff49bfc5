//! `edgecert man`: its argument.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Write the manual pages to a directory
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert man pages
  man ./pages/edgecert.1

There is a page for each command, and edgecert.toml(5) and edgecert-state(5) for the
configuration and the state directory. Existing pages are replaced.")]
pub(crate) struct ManArgs {
    /// Directory to write to, created if missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}
