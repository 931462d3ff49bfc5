//! `edgecert status`: what is known of each lineage, as a table, as JSON, for monitoring, or for Prometheus.
//!
//! `gather` collects the facts, the other files show them; none of them asks the service.

mod check;
mod facts;
#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "the tests' own lineages")]
mod fixture;
mod forget;
mod gather;
mod json;
mod metrics;
mod table;
mod verdict;
mod verify;

use self::check::Limits;
use self::facts::Lineage;
use self::verdict::Verdict;
use crate::cli::StatusArgs;
use crate::clock;
use crate::context::Context;
use crate::error::{AdHocError, CommandError, ErrorKind};
use crate::file;
use crate::inventory::Inventory;
use crate::report::CommandReport;
use crate::settings::Layers;
use crate::state::Store;
use crate::text;

/// Runs the command. With `--check` whatever fails is a verdict, too.
pub(crate) fn run(
    args: &StatusArgs,
    context: &Context,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    match show(args, context, report) {
        Err(error) if args.check => {
            finish(&Verdict::failed(error.message()), report);
            Ok(())
        }
        result => result,
    }
}

fn show(args: &StatusArgs, context: &Context, report: &mut CommandReport) -> Result<(), CommandError> {
    let file = context.configuration()?;
    let layers = Layers::new(&args.settings.layer, &context.env, file);
    let store = open(&layers, args.check)?;
    if let Some(lineage) = &args.forget {
        return forget::run(lineage, store.as_ref(), file, report);
    }
    let damaged = store.as_ref().map(damaged).unwrap_or_default();
    let now = clock::now();
    let (mut lineages, mut strange) = gather::gather(Inventory::gather(store.as_ref(), file)?, now);
    strange.extend(damaged);
    if args.verify {
        let edge = |lineage: &Lineage| Ok(layers.edge_addresses(lineage.edge_address.as_deref())?);
        verify::verify(&mut lineages, edge)?;
    }
    report.body.set("lineages", json::lineages(&lineages));
    let written = args.metrics.as_deref().map(|path| metrics::write(path, &metrics::text(&lineages, now)));
    if args.check {
        let mut verdict = check::evaluate(&lineages, &strange, Limits::of(args), now);
        if let Some(Err(error)) = written {
            verdict.fail(&error.to_string());
        }
        finish(&verdict, report);
        return Ok(());
    }
    report.warnings.extend(strange);
    if args.metrics.is_none() {
        report.body.text = table::text(&lineages, now, context.style);
    }
    Ok(written.transpose().map(|_| ())?)
}

fn finish(verdict: &Verdict, report: &mut CommandReport) {
    report.body.text = verdict.to_line();
    report.body.set("check", verdict.to_json());
    report.exit_with(verdict.level.exit_code());
}

/// The state directory; `None` where there is none, which is not `wanted` then either.
fn open(layers: &Layers<'_>, wanted: bool) -> Result<Option<Store>, CommandError> {
    let failed = |message: String| {
        let hint = "name it with --state-dir, and run edgecert as the user that it belongs to";
        CommandError::from(AdHocError::new(ErrorKind::NoInput, message, hint))
    };
    let Some(directory) = layers.state_dir() else {
        let message = "no state directory is set, and there is no home directory";
        return if wanted { Err(failed(message.into())) } else { Ok(None) };
    };
    match std::fs::read_dir(&directory) {
        Ok(_) => Ok(Some(Store::at(&directory))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !wanted => Ok(None),
        Err(error) => {
            let (shown, reason) = (text::path(&directory), file::reason(&error));
            Err(failed(format!("cannot read the state directory {shown}: {reason}")))
        }
    }
}

/// Memories that earlier runs set aside.
fn damaged(store: &Store) -> Vec<String> {
    let said = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        format!(
            "{} is a memory that could not be understood; look at it, then `edgecert status --forget {}`",
            text::path(path),
            text::sanitize(&name)
        )
    };
    store.quarantined().iter().map(said).collect()
}
