//! `edgecert sync`: its flags.

use std::str::FromStr;

use clap::Args;

use crate::settings::Layer;

/// Finish what failed, deploy what changed, repair what drifted (for cron and timers)
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert sync
  edgecert sync --splay 300
  edgecert sync --shard 0/4")]
pub(crate) struct SyncArgs {
    /// Begin after a pause of up to so many seconds, at random
    #[arg(long, value_name = "SECS", default_value_t = 0)]
    pub(crate) splay: u64,

    /// Take this share of the lineages, for example 0/4 to 3/4
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// One of several equal shares, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "I/N is wanted, with I from 0 to N-1";
        let (index, of) = text.split_once('/').ok_or(WANTED)?;
        let shard = Self { index: index.parse().map_err(|_| WANTED)?, of: of.parse().map_err(|_| WANTED)? };
        if shard.index < shard.of { Ok(shard) } else { Err(WANTED) }
    }
}
