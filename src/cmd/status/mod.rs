//! `edgecert status`: the status of each lineage as a table, as JSON, as a verdict for monitoring systems, or as
//! metrics for Prometheus.
//!
//! `gather` collects the status without using the network, `verify` adds what the edges serve (`--verify`), and the
//! other files judge and show it. No request is sent to the service.

mod check;
mod forget;
mod gather;
mod gauge;
mod last_sync;
mod lineage_status;
mod metrics;
mod slack;
mod sync_check;
mod table;
mod thresholds;
mod verdict;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use self::check::Subject;
use self::lineage_status::LineageStatus;
pub(super) use self::sync_check::sync_failure;
use self::thresholds::Thresholds;
use self::verdict::CheckVerdict;
use crate::cli::StatusArgs;
use crate::clock;
use crate::context::Context;
use crate::error::{CommandError, Diagnostic, ErrorKind, state_dir_hint};
use crate::file;
use crate::hint::Hint;
use crate::inventory::Inventory;
use crate::report::{AnyReport, CommandReport};
use crate::settings::Layers;
use crate::state::Store;
use crate::text;

/// The state directory cannot be used.
#[derive(Debug, thiserror::Error)]
enum StatusError {
    #[error("no state directory is set, and there is no home directory")]
    NoStateDirectory,
    #[error("cannot read the state directory {}: {reason}", text::path(path))]
    UnreadableStateDirectory { path: PathBuf, reason: String, kind: io::ErrorKind },
}

impl Diagnostic for StatusError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoInput
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::NoStateDirectory => "name it with --state-dir, or set HOME",
            Self::UnreadableStateDirectory { kind, .. } => state_dir_hint(*kind),
        };
        Some(hint.into())
    }
}

/// Runs the command. With `--check`, errors become part of the verdict.
pub(crate) fn run(
    args: &StatusArgs,
    context: &Context,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    match show(args, context, report) {
        Err(error) if args.check => {
            let error = error.placed(&report.place);
            let hint = error.advice().map(|hint| format!("; {hint}")).unwrap_or_default();
            add_verdict(&CheckVerdict::failed(&format!("{}{hint}", error.message())), report);
            Ok(())
        }
        result => result,
    }
}

/// Creates the report of a `--check` that failed before it could run, or that exceeded its time limit.
pub fn failed_check(message: &str) -> impl AnyReport + use<> {
    let mut report = CommandReport::new("status");
    add_verdict(&CheckVerdict::failed(message), &mut report);
    report
}

/// Removes the temporary file that a run may leave beside the metrics file if its process exits early.
pub fn discard_metrics(path: &Path) {
    metrics::discard(path);
}

fn show(args: &StatusArgs, context: &Context, report: &mut CommandReport) -> Result<(), CommandError> {
    let configuration = context.configuration()?;
    let layers = Layers::new(&args.settings.layer, &context.env, configuration);
    layers.require_valid()?;
    let store = open_store(&layers, args.check && !args.monitoring.allow_empty)?;
    if let Some(lineage) = &args.forget {
        return forget::run(lineage, store.as_ref(), configuration, report);
    }
    let now = clock::now();
    let last_sync = store.as_ref().map(|store| store.last_sync(now)).unwrap_or_default();
    let inventory = Inventory::gather(store.as_ref(), configuration)?;
    let (mut lineages, state_errors) = gather::gather(inventory, now);
    if args.verify {
        let edges_of = |lineage: &LineageStatus| layers.edge_addresses(lineage.edge_address.as_ref());
        verify::verify(&mut lineages, edges_of)?;
    }
    slack::fill(&mut lineages, now);
    report.body.set("lineages", &lineages);
    report.body.set("last_sync", last_sync::json(&last_sync));
    let subject = Subject { lineages: &lineages, state_errors: &state_errors, last_sync: &last_sync };
    let is_judged = args.check || args.metrics.is_some();
    let mut verdict = if is_judged { judge(subject, args, now) } else { CheckVerdict::default() };
    let metrics = || {
        let unusable_files = state_errors.len() + last_sync.faults.len();
        metrics::format(&lineages, now)
            + &last_sync::metrics(&last_sync)
            + &metrics::format_host(verdict.level().exit_code(), unusable_files)
    };
    let written = args.metrics.as_deref().map_or(Ok(()), |path| metrics::write(path, &metrics()));
    if args.check {
        if let Err(error) = written {
            verdict.fail(&error.to_string());
        }
        add_verdict(&verdict, report);
        return Ok(());
    }
    report.warnings.extend(last_sync.faults.iter().map(ToString::to_string));
    if args.metrics.is_none() {
        report.body.text = table::text(&lineages, args.wide, now, context.style);
        report.body.text += &last_sync::text(&last_sync, now, context.style);
    }
    for error in state_errors {
        report.fail(error);
    }
    Ok(written?)
}

/// The verdict of `--check`.
fn judge(subject: Subject<'_>, args: &StatusArgs, now: OffsetDateTime) -> CheckVerdict {
    let is_empty = subject.lineages.is_empty() && subject.state_errors.is_empty();
    let mut verdict = check::evaluate(subject, &Thresholds::new(&args.monitoring), now);
    if is_empty && !args.monitoring.allow_empty {
        verdict.fail("no lineage is known (see --state-dir and --allow-empty)");
    }
    verdict
}

fn add_verdict(verdict: &CheckVerdict, report: &mut CommandReport) {
    report.body.text = verdict.to_text();
    report.body.set("check", verdict.to_json());
    report.exit_with(verdict.level().exit_code());
    report.explain(verdict.failure());
}

/// Opens the state directory; `None` if there is none and it is not `required`.
fn open_store(layers: &Layers<'_>, required: bool) -> Result<Option<Store>, StatusError> {
    let Some(directory) = layers.state_dir() else {
        return if required { Err(StatusError::NoStateDirectory) } else { Ok(None) };
    };
    match std::fs::read_dir(&directory) {
        Ok(_) => Ok(Some(Store::at(&directory))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => Ok(None),
        Err(error) => {
            let (reason, kind) = (file::reason(&error), error.kind());
            Err(StatusError::UnreadableStateDirectory { path: directory, reason, kind })
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "lineages of unit tests")]
mod fixture;
