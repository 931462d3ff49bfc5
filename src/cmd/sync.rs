//! `edgecert sync`.

use std::time::Duration;

use crate::cli::SyncArgs;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::CommandReport;
use crate::sync::{self, SyncOptions};

pub(crate) use crate::sync::tick;

/// Runs the command.
pub(crate) fn run(
    args: &SyncArgs,
    context: &Context,
    answer: &mut CommandReport,
) -> Result<(), CommandError> {
    let options = SyncOptions {
        flags: &args.settings.layer,
        splay: Duration::from_secs(args.splay),
        shard: args.shard,
    };
    sync::run(&options, context, answer)
}
