//! `edgecert deploy`, the hook, and `edgecert plan`: finds the lineage, resolves its settings and deploys it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::cli::DeployArgs;
use crate::clock::{Deadline, Start};
use crate::context::Context;
use crate::deploy::{ClientCache, Deployment, Journal};
use crate::error::Result;
use crate::hint::{Command, Place};
use crate::inventory::{self, Account};
use crate::names::{Domain, distinct, hosts};
use crate::progress::Progress;
use crate::report::{Report, SourceReport};
use crate::runtime::{Runtime, RuntimeError};
use crate::settings::{Layer, Layers, LineageEntry, Settings, SettingsError};
use crate::source::{self, Source, SourceError};
use crate::state::{self, Given, Origin, RunOptions};

/// Deploys the certificate that the command line or the hook's environment names.
pub(crate) fn run(
    args: &DeployArgs,
    context: &Context,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    if !args.dry_run && !args.certificate.is_given() && source::is_certbot_post_hook(&context.env) {
        return Err(SourceError::CertbotPostHook.into());
    }
    let source = source::find(&args.certificate, &context.env)?;
    let origin = if source::is_hook(&context.env) { Origin::Hook } else { Origin::Hand };
    let targets = inventory::targets(context.configuration(), &source);
    deploy(args, (targets, origin), context, progress, report)
}

/// Deploys one lineage to these accounts. Every failure is recorded, even a configuration error, because the ACME client
/// does not run the hook again.
pub(crate) fn deploy(
    args: &DeployArgs,
    (targets, origin): (Vec<(Source, Option<&LineageEntry>)>, Origin),
    context: &Context,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    // If nothing can be sent, the deployments can still be recorded.
    let (runtime, fault) = match Runtime::new() {
        Ok(runtime) => (runtime, None),
        Err(fault) => (Runtime::without_network()?, Some(fault)),
    };
    let layers = Layers::new(&args.settings, &context.env, context.configuration());
    let given = Given { domains: distinct(&args.domains), settings: layers.to_record(), guards: args.guards };
    let run =
        Run { args, origin, given, state_dir: layers.state_dir(), progress, start: Start::now(), fault };
    // What one deployment changes, the next one to the same account has to see.
    let mut accounts: Vec<Vec<Target>> = Vec::new();
    for (source, entry) in targets {
        let settings = layers.resolve(&Layer::default(), entry);
        let base_url = settings.as_ref().ok().map(|settings| settings.base_url.to_string());
        let account = Account { base_url, ..Account::of(layers.file, entry) };
        let (domains, is_configured) = (inventory::domains(&run.given, entry), entry.is_some());
        let target = Target { source, settings, account, domains, is_configured };
        let is_same = |other: &Target| match (&other.settings, &target.settings) {
            (Ok(other), Ok(own)) => other.is_same_service(own),
            _ => false,
        };
        match accounts.iter_mut().find(|members| members.iter().any(is_same)) {
            // Flags or variables make two accounts the same.
            Some(members) if members.iter().any(|other| other.domains == target.domains) => {}
            Some(members) => members.push(target),
            None => accounts.push(vec![target]),
        }
    }
    let names: Vec<_> = accounts.iter().flatten().map(|target| target.account.clone()).collect();
    let deploy_in_turn = async |targets: &Vec<Target>| {
        let mut reports = Vec::new();
        for target in targets {
            let mut report = Report::new(report.command());
            let result = run.deploy(target, &mut report).await;
            report.record(result);
            reports.push((target.account.label(&names), report));
        }
        reports
    };
    let reports = runtime.block_on(join_all(accounts.iter().map(deploy_in_turn)));
    report.add_accounts(reports.into_iter().flatten().collect());
    Ok(())
}

/// What the deployments of a lineage to several accounts have in common.
struct Run<'a> {
    args: &'a DeployArgs,
    origin: Origin,
    given: Given,
    state_dir: Option<PathBuf>,
    progress: &'a Progress,
    start: Start,
    /// Why nothing can be sent.
    fault: Option<RuntimeError>,
}

impl Run<'_> {
    /// Deploys to one account.
    async fn deploy(&self, target: &Target, report: &mut Report) -> Result<()> {
        let Self { args, origin, .. } = *self;
        let Target { source, settings, domains, .. } = target;
        report.deployed.source = Some(SourceReport::new(source));
        report.deployed.lineage = Some(state::lineage_name(source));
        let command = match origin {
            _ if args.dry_run => Command::Preview,
            Origin::Hook => Command::Hook,
            Origin::Hand | Origin::Retry | Origin::Standing => Command::Deploy,
        };
        let lineage = Some(source.flags());
        report.set_place(Place { command, is_recorded: false, lineage, domains: hosts(&args.domains) });
        let deadline = match settings {
            Ok(settings) => self.start.deadline(settings.timeout),
            Err(_) => Deadline::after(LOCK_TIMEOUT),
        };
        let state_dir = self.state_dir.as_deref();
        let mut journal = if args.dry_run {
            Journal::read_only(source, state_dir, report)
        } else {
            let mut journal =
                Journal::open(state::lineage_name(source), source, state_dir, deadline, report).await?;
            journal.options = RunOptions {
                service: settings.as_ref().ok().map(|settings| settings.base_url.to_string()),
                domains: domains.clone(),
                given: self.given.clone(),
                origin,
                is_configured: target.is_configured,
            };
            journal
        };
        let result = match (settings, &self.fault) {
            (Ok(_), Some(fault)) => Err(fault.clone().into()),
            (Ok(settings), None) => {
                let deployment = Deployment {
                    source,
                    settings,
                    domains,
                    guards: args.guards,
                    upload_only: !args.domains.is_empty() && settings.wait.is_zero(),
                    force: args.force,
                    dry_run: args.dry_run,
                    account: None,
                    deadline,
                    progress: self.progress,
                };
                let is_single_request = deployment.upload_only && domains.len() == 1;
                let clients = ClientCache::new(Arc::default(), !is_single_request);
                deployment.run(&mut journal, &clients, report).await
            }
            (Err(error), _) => Err(error.clone().into()),
        };
        journal.finish(result, report).await;
        report.set_place(Place { is_recorded: journal.can_be_retried(), ..report.place.clone() });
        Ok(())
    }
}

/// Time to wait for another run on the lineage if the settings cannot be resolved.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A lineage, and the account to deploy it to, from the command line, the environment and the configuration.
struct Target {
    source: Source,
    settings: Result<Settings, SettingsError>,
    /// Without a base URL if the settings cannot be resolved.
    account: Account,
    domains: Vec<Domain>,
    /// Whether it has an entry in the configuration.
    is_configured: bool,
}
