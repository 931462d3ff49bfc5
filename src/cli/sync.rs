//! `edgecert sync`: its flags.

use clap::Args;

use super::SettingArgs;
use crate::inventory::Shard;

/// Retry failures, deploy renewals, repair drift (for timers)
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert sync
  edgecert sync --splay 300
  edgecert sync --shard 0/4

It covers every lineage deployed before and every [[lineage]] of the configuration file.
--timeout applies to each lineage.")]
pub(crate) struct SyncArgs {
    /// Start after a random delay of up to SECS
    #[arg(long, value_name = "SECS", default_value_t = 0)]
    pub(crate) splay: u64,

    /// Process only share I of N of the lineages, for example 0/4 to 3/4
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}
