//! Overrides of the guards that protect other sites and newer certificates.

use clap::Args;
use serde::{Deserialize, Serialize};

// Guards that a run overrides, for the certificate of that run only. No doc comment: clap would take it for the summary
// of every command that has these flags.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[group(skip)]
#[command(next_help_heading = "Guard overrides")]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "four separate guards")]
pub(crate) struct Guards {
    /// Replace a record even if another site bound to it loses coverage
    #[arg(long)]
    pub(crate) allow_shrink: bool,
    /// Replace a certificate that was issued later than this one
    #[arg(long)]
    pub(crate) allow_older: bool,
    /// Replace a record that the service issues and renews itself (type lets)
    #[arg(long)]
    pub(crate) replace_lets: bool,
    /// Replace a record even if the service's listing is incomplete; other sites may lose coverage
    #[arg(long)]
    pub(crate) allow_partial: bool,
}
