//! `edgecert doctor`: finds problems of the setup before a renewal fails on them.
//!
//! One file per subject. A check that fails does not stop the others. A dry run checks what a deployment would.

mod coverage;
mod finding;
mod hook;
mod host;
mod lineages;
mod service;
mod settings;
mod setup;
mod timer;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use time::OffsetDateTime;

use self::finding::{DoctorFinding, Subject};
use self::host::Host;
use self::lineages::HostLineage;
use self::service::Account;
use crate::check::Status;
use crate::cli::DoctorArgs;
use crate::clock;
use crate::context::Context;
use crate::deploy::ClientCache;
use crate::error::{ErrorKind, Result};
use crate::inventory::{Inventory, Member};
use crate::report::{Block, Report, finding_counts, finding_line};
use crate::runtime::Runtime;
use crate::settings::{Configuration, Layer, Layers, LineageEntry, Settings};
use crate::state::{Deployments, Given, Store};
use crate::text;
use crate::trust::TrustStores;

/// Lineages whose deployments are tried at once.
const MAX_CONCURRENT: usize = 32;

/// The findings so far, and what later ones follow from.
struct Doctor<'a> {
    runtime: &'a Runtime,
    host: &'a Host<'a>,
    /// Valid or not.
    file: &'a Configuration,
    /// Leaves the file out if it is invalid.
    layers: &'a Layers<'a>,
    now: OffsetDateTime,
    /// Shared by the connections and the checks of all lineages.
    stores: Arc<TrustStores>,
    /// The account of the run first, unless it has none.
    accounts: Vec<Account>,
    findings: Vec<DoctorFinding>,
}

/// Runs the command. The most severe finding decides the exit code.
pub(crate) fn run(args: &DoctorArgs, context: &Context, report: &mut Report) -> Result<()> {
    if args.lists_settings {
        settings::list(&args.settings, context, report);
        return Ok(());
    }
    let host = Host::new(args.root.clone(), &context.env);
    // Runs with an invalid file are recorded where it says.
    let (file, mut rest) = (context.configuration(), Configuration::default());
    rest.layer.local.state_dir.clone_from(&file.layer.local.state_dir);
    let layers = Layers::new(&args.settings, &context.env, file.require_valid().unwrap_or(&rest));
    let mut doctor = Doctor {
        runtime: &Runtime::new()?,
        host: &host,
        file,
        layers: &layers,
        now: clock::now(),
        stores: Arc::default(),
        accounts: Vec::new(),
        findings: setup::check(context, &layers, &host),
    };
    doctor.check(report);
    let mut findings = doctor.findings;
    // Lineages may share settings, or a hook of certbot, which are then reported once.
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert(finding.detail.clone()));
    let with = |status| findings.iter().filter(move |finding| finding.status == status);
    let next = with(Status::Fail).chain(with(Status::Warn)).find_map(|finding| finding.remedy.clone());
    let line = |finding: &DoctorFinding| {
        finding_line(finding.subject.to_string(), finding.status, &finding.detail, finding.remedy.as_deref())
    };
    report.push(Block::Lines(findings.iter().map(line).collect()));
    report.push(finding_counts(findings.iter().map(|finding| finding.status)));
    report.push(match &next {
        Some(next) => format!("next: {next}"),
        None => "nothing is left to do".to_owned(),
    });
    let most_severe = ErrorKind::most_severe(findings.iter().filter_map(|finding| finding.kind));
    report.exit_with(most_severe.map_or(0, ErrorKind::exit_code), None);
    report.set("findings", findings);
    report.set("next", next);
    Ok(())
}

impl Doctor<'_> {
    /// Goes through the deployments of all lineages, then compares these with the accounts.
    fn check(&mut self, report: &mut Report) {
        if let Ok(settings) = self.layers.incomplete(&Layer::default(), None) {
            self.account(None, Arc::new(settings), self.layers.base_url().is_ok());
        }
        // An entry may name no lineage yet.
        for entry in &self.layers.file.lineages {
            self.target(&Layer::default(), Some(entry));
        }
        let state_dir = self.layers.state_dir();
        let store = state_dir.as_deref().filter(|directory| directory.is_dir()).map(Store::at);
        let inventory = Inventory::gather(store.as_ref(), self.layers.file).unwrap_or_else(|error| {
            self.findings.push(Subject::State.failed(error));
            Inventory::gather(None, self.layers.file).unwrap_or_default()
        });
        for pattern in inventory.unmatched_patterns() {
            // There may be no lineage yet.
            let pattern = text::sanitize(pattern);
            let detail = format!("the path {pattern} in the configuration matches no lineage");
            self.findings.push(Subject::Lineage.warn(detail, "correct `path` in its [[lineage]]"));
        }
        let (mut lineages, mut deployments, mut earliest_run) = (Vec::new(), Deployments::default(), None);
        let visitor = |Member { name, source, entry, state, is_unclaimed }: Member<'_>| {
            if let Some(state) = &state {
                deployments.add(&name, state);
                earliest_run = earliest_run.into_iter().chain(state.begun_at).min();
            }
            match source {
                // `sync` leaves it alone, and says so.
                Ok(_) if is_unclaimed => {}
                Ok(source) => {
                    let host = self.host;
                    let target = |given: &Given| self.target(&given.settings, entry);
                    lineages.extend(HostLineage::new((source, entry), state.as_ref(), target, host));
                }
                Err(error) => self.findings.push(Subject::Lineage.failed(error)),
            }
        };
        inventory.visit(visitor, |error| report.warnings.push(error.to_string()));
        lineages.sort_by_cached_key(|lineage: &HostLineage| lineage.title.clone());
        for Account { settings, snapshot, .. } in &mut self.accounts {
            if let Some(snapshot) = snapshot {
                snapshot.deployments = deployments.of_service(&settings.base_url.to_string());
            }
        }
        let checks = lineages.iter_mut().filter_map(|lineage| {
            self.accounts.get(lineage.account).map(|account| lineage.check(account, self.now))
        });
        let findings = stream::iter(checks).buffered(MAX_CONCURRENT).concat();
        self.findings.extend(self.runtime.block_on(findings));
        // Unmanaged lineages would be deployed to the account of the run.
        if let Some(Account { name: None, settings, snapshot: Some(snapshot), .. }) = self.accounts.first() {
            let sites = &snapshot.listing.listing().sites.items;
            // Resolved once, as there may be thousands of either.
            let managed: HashSet<PathBuf> =
                lineages.iter().map(|lineage| lineage.source.real_path()).collect();
            let target = |_: &Given| Some((Arc::clone(settings), 0));
            let unmanaged = lineages::find(self.host)
                .filter(|source| !managed.contains(&source.real_path()))
                .filter_map(|source| HostLineage::new((source, None), None, target, self.host));
            let covers_site = |lineage: &HostLineage| sites.iter().any(|site| lineage.is_for(&site.domain));
            lineages.extend(unmanaged.filter(covers_site));
            if lineages.iter().all(|lineage| lineage.account != 0) {
                self.findings.push(lineages::none(sites, self.host));
            }
        }
        for (index, account) in self.accounts.iter().enumerate() {
            let own = lineages.iter().filter(|lineage| lineage.account == index);
            if let Some(snapshot) = &account.snapshot {
                let findings = coverage::check(snapshot, &own.collect::<Vec<_>>()).into_iter();
                self.findings.extend(findings.map(|finding| account.named(finding)));
            }
        }
        let last_sync = store.map(|store| store.last_sync(self.now)).unwrap_or_default();
        self.findings.push(timer::check(&last_sync, earliest_run, self.host, self.now));
    }

    /// The settings of a lineage, as far as they can be used, and the index of its account.
    fn target(&mut self, recorded: &Layer, entry: Option<&LineageEntry>) -> Option<(Arc<Settings>, usize)> {
        let (settings, is_complete) = match self.layers.resolve(recorded, entry) {
            Ok(settings) => (settings, true),
            Err(error) => {
                if !self.file.may_hold(&error) {
                    self.findings.push(Subject::Settings.failed(error));
                }
                (self.layers.incomplete(recorded, entry).ok()?, false)
            }
        };
        let own_name = entry.and_then(|entry| entry.account.clone());
        let name = own_name.unwrap_or_else(|| settings.base_url.to_string());
        let settings = Arc::new(settings);
        Some((Arc::clone(&settings), self.account(Some(name), settings, is_complete)))
    }

    /// The index of an account. A new one is listed if its settings are complete.
    fn account(&mut self, name: Option<String>, settings: Arc<Settings>, is_complete: bool) -> usize {
        let mut known = self.accounts.iter();
        known.position(|account| account.settings.is_same_service(&settings)).unwrap_or_else(|| {
            let clients = ClientCache::for_many(Arc::clone(&self.stores));
            let mut account = Account { name, settings, clients, snapshot: None };
            if is_complete {
                self.findings.extend(self.runtime.block_on(account.list()));
            }
            self.accounts.push(account);
            self.accounts.len() - 1
        })
    }
}
