//! `edgecert deploy`, the hook, and `edgecert plan`: finds the lineage, resolves its settings and deploys it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::DeployArgs;
use crate::clock::{Deadline, Start};
use crate::context::Context;
use crate::deploy::{ClientCache, DeployError, Deployment, Journal, recorded_domains, recorded_options};
use crate::error::CommandError;
use crate::hint::{Command, Place};
use crate::inventory;
use crate::names::{Domain, distinct};
use crate::progress::Progress;
use crate::report::{DeployReport, SourceReport};
use crate::runtime::Runtime;
use crate::settings::{self, Layer, Layers, Settings};
use crate::source::{self, Source, SourceError};
use crate::state::{self, Origin, Overrides};

/// Deploys the certificate that the command line or the hook's environment names.
pub(crate) fn run(
    args: &DeployArgs,
    context: &Context,
    progress: &dyn Progress,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    let named = args.certificate.named();
    if !args.dry_run && !named.is_given() && source::is_certbot_post_hook(&context.env) {
        return Err(SourceError::CertbotPostHook.into());
    }
    let source = source::find(&named, &context.env)?;
    let origin = if source::is_hook(&context.env) { Origin::Hook } else { Origin::Hand };
    deploy(args, (&source, origin), context, progress, report)
}

/// Deploys one lineage. Every failure is recorded, even a configuration error, because the ACME client does not run the
/// hook again.
pub(crate) fn deploy(
    args: &DeployArgs,
    (source, origin): (&Source, Origin),
    context: &Context,
    progress: &dyn Progress,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    report.body.source = Some(SourceReport::new(source));
    report.body.lineage = Some(state::lineage_name(&source.stable_path()));
    let command = match origin {
        _ if args.dry_run => Command::Plan,
        Origin::Hook => Command::Hook,
        Origin::Hand | Origin::State => Command::Deploy,
    };
    let has_domain_flag = !args.domains.is_empty();
    let place = Place { command, is_recorded: false, lineage: Some(source.flags()), has_domain_flag };
    report.set_place(place.clone());
    let start = Start::now();
    let inputs = Inputs::resolve(args, source, context);
    let deadline = match &inputs.settings {
        Ok(settings) => start.deadline(settings.timeout),
        Err(_) => Deadline::after(LOCK_TIMEOUT),
    };
    let run = async |report: &mut DeployReport| {
        let mut journal = inputs.open_journal(args, (source, origin), deadline, report).await?;
        let result = match &inputs.settings {
            Ok(settings) => {
                let deployment = Deployment {
                    source,
                    settings,
                    domains: &inputs.domains,
                    guards: args.guards.guards(),
                    only_leaf: None,
                    upload_only: !args.domains.is_empty() && settings.wait.is_zero(),
                    force: args.force,
                    dry_run: args.dry_run,
                    account: None,
                    deadline,
                    progress,
                };
                let clients = ClientCache::new(Arc::default(), !deployment.is_single_request());
                deployment.run(&mut journal, &clients, report).await
            }
            Err(error) => Err(error.clone().into()),
        };
        journal.finish(result, report);
        Ok::<_, DeployError>(journal)
    };
    let journal = Runtime::new()?.block_on(run(report))??;
    report.set_place(Place { is_recorded: journal.can_be_retried(), ..place });
    Ok(())
}

/// Time to wait for another run on the lineage if the settings cannot be resolved.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Inputs of a deployment, from the command line, the environment and the configuration.
struct Inputs {
    settings: Result<Settings, settings::SettingsError>,
    domains: Vec<Domain>,
    state_dir: Option<PathBuf>,
    /// Flags and variables, for the runs that retry the deployment.
    flags: Layer,
}

impl Inputs {
    fn resolve(args: &DeployArgs, source: &Source, context: &Context) -> Self {
        let (configuration, rest) = (context.configuration(), context.without_configuration());
        let file = configuration.as_ref().map_or(&rest, |file| *file);
        let layers = Layers::new(&args.settings.layer, &context.env, file);
        let entry = inventory::entry_of(file, source);
        let domains = match entry {
            Some(entry) if args.domains.is_empty() => distinct(&entry.domains),
            _ => distinct(&args.domains),
        };
        let (state_dir, flags) = (layers.state_dir(), layers.to_record());
        let settings = configuration.and_then(|_| layers.resolve(entry));
        Self { settings, domains, state_dir, flags }
    }

    async fn open_journal(
        &self,
        args: &DeployArgs,
        (source, origin): (&Source, Origin),
        deadline: Deadline,
        report: &mut DeployReport,
    ) -> Result<Journal, DeployError> {
        let state_dir = self.state_dir.as_deref();
        if args.dry_run {
            return Ok(Journal::read_only(source, state_dir, report));
        }
        let overrides =
            Overrides { domains: recorded_domains(&distinct(&args.domains)), settings: self.flags.clone() };
        let (settings, guards) = (self.settings.as_ref().ok(), args.guards.guards());
        let options = recorded_options(settings, overrides, guards, &self.domains);
        Journal::open(source, (options, origin), state_dir, deadline, report).await
    }
}
