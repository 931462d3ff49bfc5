//! `edgecert deploy`, the hook: check, plan, upload, wait, report.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;

use super::journal::{self, Journal};
use crate::api::Client;
use crate::check::{self, Question, Status};
use crate::cli::DeployArgs;
use crate::clock::{self, Deadline};
use crate::env::Env;
use crate::names::Domain;
use crate::plan::Allow;
use crate::report::{CertificateReport, Report, SourceReport};
use crate::rollout::{self, Order};
use crate::secret::Redactor;
use crate::settings::{self, Entry, Place, Settings};
use crate::source::{self, Source};
use crate::{file, material, text};

/// Deploys the certificate that the command line or the hook's environment names.
pub(crate) fn run(
    args: &DeployArgs,
    config: Option<&Path>,
    env: &Env,
    report: &mut Report,
) -> anyhow::Result<()> {
    let source = source::find(&args.certificate.named(), env)?;
    deploy(args, &source, config, env, report)
}

/// Deploys one lineage.
pub(crate) fn deploy(
    args: &DeployArgs,
    source: &Source,
    config: Option<&Path>,
    env: &Env,
    report: &mut Report,
) -> anyhow::Result<()> {
    report.source = Some(SourceReport::new(source));
    let configuration = settings::read_file(config, env)?;
    let entry = configuration.lineages.iter().find(|entry| is_entry_of(entry, source));
    let settings = Settings::resolve(&args.settings, env, entry, &configuration)?;
    let deadline = Deadline::after(settings.timeout);
    let domains = &distinct(match entry {
        Some(entry) if args.domains.is_empty() => &entry.domains,
        _ => &args.domains,
    });
    warn_of_open_key(source, report);
    let directory = settings.state_dir.as_deref();
    let mut journal = if args.dry_run {
        Journal::look(source, directory)
    } else {
        Journal::open(source, directory, deadline, report)?
    };

    let mut files = source.files.clone();
    // Certificate and key may stand in one file.
    files.key.get_or_insert_with(|| files.cert.clone());
    let material = material::load(&files)?;
    report.certificate = material.chain.as_ref().ok().map(CertificateReport::new);
    let question = Question {
        domains,
        at: clock::now(),
        untrusted: if settings.allow_untrusted { Status::Warn } else { Status::Fail },
        anchors: None,
        directory: source.acme_directory.as_deref(),
    };
    report.add_findings(&check::run(&material, &question));
    let vetted = check::vet(&material, &report.checks)?;

    let wish = journal::order(&settings, &args.guards, domains);
    if journal.finds_it_done(&vetted.chain.leaf, &wish, report) {
        return Ok(());
    }
    let bare = !args.domains.is_empty() && settings.wait.is_zero();
    // The bare upload asks no guard, so it need not know what else was deployed.
    let issued = if bare { HashMap::new() } else { journal.issued(&settings, report) };
    let order = Order {
        vetted: &vetted,
        domains,
        settings: &settings,
        allow: Allow {
            rebind: settings.rebind,
            shrink: args.guards.allow_shrink,
            older: args.guards.allow_older,
            lets: args.guards.replace_lets,
        },
        issued: &issued,
        bare,
        dry_run: args.dry_run,
        deadline,
    };
    if args.dry_run {
        return carry_out(&order, report);
    }
    journal.intend(&vetted.chain.leaf, wish, report);
    let result = carry_out(&order, report);
    journal.conclude(&result, report);
    result
}

/// Connects to the service and lets the rollout do the rest.
fn carry_out(order: &Order<'_>, report: &mut Report) -> anyhow::Result<()> {
    let mut redactor = Redactor::default();
    redactor.hide(&order.settings.api_key);
    redactor.hide(order.vetted.key.pem());
    let client = Client::new(order.settings, redactor, order.deadline)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(rollout::run(&client, order, report));
    // A name that is still being looked up must not hold the run beyond its deadline.
    runtime.shutdown_background();
    done
}

/// The domains without those that are named again.
fn distinct(domains: &[Domain]) -> Vec<Domain> {
    let mut distinct: Vec<Domain> = Vec::new();
    for domain in domains {
        if !distinct.contains(domain) {
            distinct.push(domain.clone());
        }
    }
    distinct
}

/// Whether an entry of the configuration is about this lineage.
fn is_entry_of(entry: &Entry, source: &Source) -> bool {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    };
    match &entry.place {
        Place::Directory(directory) => source.directory.as_ref().is_some_and(|named| same(named, directory)),
        Place::Files { cert, key } => {
            same(cert, &source.files.cert) && source.files.key.as_ref().is_some_and(|other| same(key, other))
        }
    }
}

/// Mounted secrets are open to others, so this is no refusal.
fn warn_of_open_key(source: &Source, report: &mut Report) {
    let Some(key) = &source.files.key else { return };
    if file::is_open_to_others(key) {
        report.warnings.push(format!("others can read the private key {}", text::path(key)));
    }
}
