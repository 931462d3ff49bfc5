//! `edgecert deploy`, the hook: check, plan, upload, wait, report.

use std::sync::Arc;
use std::time::Duration;

use crate::api::ClientConfig;
use crate::cli::DeployArgs;
use crate::clock::Deadline;
use crate::context::Context;
use crate::deploy::journal::{self, Journal, Past};
use crate::deploy::{ClientCache, Deployment};
use crate::error::CommandError;
use crate::inventory;
use crate::names::distinct;
use crate::report::{DeployReport, SourceReport};
use crate::settings::{Configuration, Layers};
use crate::source::{self, Source};
use crate::state;

/// Deploys the certificate that the command line or the hook's environment names.
pub(crate) fn run(
    args: &DeployArgs,
    context: &Context,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    let source = source::find(&args.certificate.named(), &context.env)?;
    deploy(args, &source, context, report)
}

/// Deploys one lineage. What fails for whatever reason is remembered: the client will not call again.
pub(crate) fn deploy(
    args: &DeployArgs,
    source: &Source,
    context: &Context,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    report.body.source = Some(SourceReport::new(source));
    let none = Configuration::default();
    let (file, unreadable) = match context.configuration() {
        Ok(file) => (file, None),
        Err(error) => (&none, Some(error)),
    };
    let layers = Layers::new(&args.settings.layer, &context.env, file);
    let entry = inventory::entry_of(file, source);
    let settings = match unreadable {
        Some(error) => Err(error),
        None => layers.resolve(entry),
    };
    let (asked, guards) = (distinct(&args.domains), args.guards.guards());
    let domains = match entry {
        Some(entry) if asked.is_empty() => distinct(&entry.domains),
        _ => asked.clone(),
    };
    let directory = layers.state_dir();
    let deadline = Deadline::after(settings.as_ref().map_or(UNKNOWN, |settings| settings.timeout));
    let mut journal = if args.dry_run {
        Journal::look(source, directory.as_deref())
    } else {
        let asked = state::Overrides { domains: journal::spelled(&asked), settings: layers.to_record() };
        let order = journal::order(settings.as_ref().ok(), asked, guards, &domains);
        Journal::open(source, order, directory.as_deref(), deadline, report)?
    };
    let result = settings.map_err(Into::into).and_then(|settings| {
        let task = Deployment {
            source,
            settings: &settings,
            domains: &domains,
            guards: &guards,
            upload_only: !args.domains.is_empty() && settings.wait.is_zero(),
            dry_run: args.dry_run,
            listing: None,
            deadline,
        };
        let mut clients = ClientCache::new()?;
        let mut access = || Ok(Arc::new(ClientConfig::new(&settings)?));
        let result = task.run(&mut journal, Past::Unknown, &mut clients, &mut access, report);
        result
    });
    report.record(result);
    if !args.dry_run {
        journal.finish(report);
    }
    Ok(())
}

/// So long another run is waited for where the settings cannot be read.
const UNKNOWN: Duration = Duration::from_secs(10);
