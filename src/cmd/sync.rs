//! `edgecert sync`, and the sync of one lineage for dehydrated's `unchanged_cert`.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use super::deploy::deploy;
use crate::cli::{DeployArgs, SyncArgs};
use crate::clock;
use crate::context::Context;
use crate::error::Result;
use crate::inventory::{self, Account};
use crate::kubernetes::Selection;
use crate::notify::{log_warning, send_heartbeat};
use crate::progress::Progress;
use crate::report::Report;
use crate::settings::Layers;
use crate::source::Source;
use crate::state::{self, Origin, RunResult, Store, WriteError};
use crate::sync::{self, SyncOptions};
use crate::text::sanitize;

/// Processes all lineages of the host, records the result, and sends the heartbeat.
pub(crate) fn run(args: &SyncArgs, context: &Context, progress: &Progress, report: &mut Report) {
    let options = SyncOptions {
        flags: &args.settings,
        splay: Duration::from_secs(args.splay),
        shard: args.shard,
        secrets: args
            .kubernetes
            .then(|| Selection { namespaces: args.namespaces.clone(), selector: args.selector.clone() }),
    };
    let result = sync::run(&options, context, progress).map(|summary| summary.report(report));
    let has_run = result.is_ok();
    report.record(result);
    match record(args, context, report) {
        Err(error) if has_run => report.fail(error),
        Err(error) => log::info!("{error}"),
        Ok(()) => {}
    }
    if let Err(error) = send_heartbeat(report, context) {
        log_warning("sync", &error);
        report.warnings.push(error);
    }
}

/// Records when this run ended, and how. Comes last, so that a run that is killed does not count. If the configuration
/// is invalid, the state directory is the one that `deploy` would use.
fn record(args: &SyncArgs, context: &Context, report: &Report) -> Result<(), WriteError> {
    let layers = Layers::new(&args.settings, &context.env, context.configuration());
    let Some(state_dir) = layers.state_dir() else { return Ok(()) };
    let error = report.most_severe_error().map(|error| sanitize(error.message()));
    let result = RunResult { at: clock::now(), exit_code: report.exit_code(), error };
    // `doctor` takes such runs for those of a timer.
    let unattended = !io::stdin().is_terminal();
    Store::open(&state_dir)?.record_sync(args.shard, result, unattended)
}

/// Processes one lineage for each account that the configuration names for it. Where it has no readable state, it is
/// deployed.
pub(crate) fn run_one(
    source: &Source,
    context: &Context,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let configuration = context.configuration().require_valid()?;
    let targets = inventory::targets(configuration, source);
    report.deployed.lineage = targets.first().map(|(source, _)| state::lineage_name(source));
    let accounts: Vec<_> = targets.iter().map(|(_, entry)| Account::of(configuration, *entry)).collect();
    let mut reports = Vec::new();
    for (target, account) in targets.into_iter().zip(&accounts) {
        let mut own = Report::new(report.command());
        match sync::run_one((&target.0, target.1), context, progress) {
            Ok(Some(summary)) => summary.report_one(&mut own),
            Ok(None) => {
                let target = (vec![target], Origin::Hook);
                let result = deploy(&DeployArgs::default(), target, context, progress, &mut own);
                own.record(result);
            }
            Err(error) => own.fail(error),
        }
        reports.push((account.label(&accounts), own));
    }
    report.add_accounts(reports);
    Ok(())
}
