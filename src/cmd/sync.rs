//! `edgecert sync`, and the sync of one lineage for dehydrated's `unchanged_cert`.

use std::time::Duration;

use super::deploy::deploy;
use crate::cli::{DeployArgs, SyncArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::progress::Progress;
use crate::report::{DeployReport, Report};
use crate::source::Source;
use crate::state::Origin;
use crate::sync::{self, Summary, SyncOptions};

/// Processes all lineages of the host.
pub(crate) fn run(
    args: &SyncArgs,
    context: &Context,
    progress: &dyn Progress,
    report: &mut Report<Option<Summary>>,
) -> Result<(), CommandError> {
    let options = SyncOptions {
        flags: &args.settings.layer,
        splay: Duration::from_secs(args.splay),
        shard: args.shard,
    };
    sync::run(&options, context, progress)?.report(report);
    Ok(())
}

/// Processes one lineage, and deploys it if it has no readable state.
pub(crate) fn run_one(
    source: &Source,
    context: &Context,
    progress: &dyn Progress,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    match sync::run_one(source, context, progress)? {
        Some(summary) => {
            summary.report_one(report);
            Ok(())
        }
        None => deploy(&DeployArgs::default(), (source, Origin::Hook), context, progress, report),
    }
}
