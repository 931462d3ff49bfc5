//! `edgecert status`: the status of each lineage as a table, as JSON, as a verdict for monitoring systems, or as
//! metrics for Prometheus.
//!
//! `gather` collects the status without using the network, `verify` adds what the edges serve (`--verify`), and the
//! other files judge and show it. No request is sent to the service.

mod assessment;
mod fleet;
mod forget;
mod gather;
mod metrics;
mod plugin;
mod table;
mod verify;

use serde_json::{Value, json};

use self::assessment::Assessment;
pub(super) use self::assessment::sync_failure;
use self::fleet::Fleet;
use self::plugin::CheckVerdict;
use crate::cli::StatusArgs;
use crate::clock;
use crate::context::Context;
use crate::error::{Diagnostic as _, Result};
use crate::inventory::Inventory;
use crate::report::Report;
use crate::settings::{Layer, Layers, SettingsError};
use crate::state::{Store, SyncRecord};
use crate::text::rfc3339;

/// Runs the command. With `--check`, errors become part of the verdict.
pub(crate) fn run(args: &StatusArgs, context: &Context, report: &mut Report) -> Result<()> {
    match show(args, context, report) {
        Err(error) if args.check => {
            let hint = error.advice().map(|hint| format!("; {hint}")).unwrap_or_default();
            add_verdict(&CheckVerdict::default().fail(error.message(), &hint), report);
            Ok(())
        }
        result => result,
    }
}

/// Creates the report of a `--check` that failed before it could run, or that exceeded its time limit.
/// The detail follows the message if there is room.
pub fn failed_check(message: &str, detail: &str) -> Report {
    let mut report = Report::new("status");
    add_verdict(&CheckVerdict::default().fail(message, detail), &mut report);
    report
}

fn show(args: &StatusArgs, context: &Context, report: &mut Report) -> Result<()> {
    let configuration = context.configuration();
    let flags = Layer { local: args.settings.clone(), ..Layer::default() };
    let layers = Layers::new(&flags, &context.env, configuration);
    layers.require_valid()?;
    let (is_required, state_dir) = (args.check && !args.monitoring.allow_empty, layers.state_dir());
    if is_required && state_dir.is_none() {
        return Err(SettingsError::no_state_dir().into());
    }
    let state_dir = state_dir.filter(|directory| is_required || directory.try_exists().unwrap_or(true));
    let store = state_dir.as_deref().map(Store::at);
    if let Some(lineage) = &args.forget {
        return forget::run(lineage, store.as_ref(), report);
    }
    let now = clock::now();
    let last_sync = store.as_ref().map(|store| store.last_sync(now)).unwrap_or_default();
    let inventory = Inventory::gather(store.as_ref(), configuration)?;
    let (mut lineages, state_errors) = gather::gather(inventory, now);
    if args.verify {
        verify::verify(&mut lineages, &layers)?;
    }
    let fleet = Fleet { lineages, state_errors, last_sync };
    report.set("lineages", fleet.lineages.iter().map(|lineage| lineage.to_json(now)).collect::<Value>());
    let last_sync = |last: &SyncRecord| {
        let (at, failing_since) = (rfc3339(last.ended_at), last.failing_since.map(rfc3339));
        json!({"at": at, "exit_code": last.exit_code, "message": last.message, "failing_since": failing_since})
    };
    // `null` if `sync` never ran, or if that is unknown.
    report.set("last_sync", fleet.last_sync.record.as_ref().map(last_sync));
    let assessment = Assessment { fleet: &fleet, thresholds: &args.monitoring, now };
    let mut verdict = CheckVerdict::new(assessment);
    if fleet.lineages.is_empty() && fleet.state_errors.is_empty() && !args.monitoring.allow_empty {
        verdict = verdict.fail("no lineage is known (see --state-dir and --allow-empty)", "");
    }
    let write = |path| metrics::write(path, &metrics::format(&fleet, verdict.exit_code(), now));
    let written = args.metrics.as_deref().map_or(Ok(()), write);
    if args.check {
        if let Err(error) = written {
            verdict = verdict.fail(error.message(), "");
        }
        add_verdict(&verdict, report);
        return Ok(());
    }
    if args.metrics.is_none() {
        report.push(table::text(assessment, args.wide, context.style));
    }
    report.warnings.extend(fleet.last_sync.faults.iter().map(ToString::to_string));
    for error in &fleet.state_errors {
        report.fail(error.diagnose());
    }
    written
}

fn add_verdict(verdict: &CheckVerdict<'_>, report: &mut Report) {
    report.push(verdict.to_text());
    report.set("check", verdict.to_json());
    report.exit_with(verdict.exit_code(), verdict.failure());
}

#[cfg(test)]
mod agreement_test;
#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "lineages of unit tests")]
mod fixture;
#[cfg(test)]
mod histories_test;
