//! `edgecert doctor`: finds problems of the setup before a renewal fails on them.
//!
//! One file per subject. A check that fails does not stop the others.

mod accounts;
mod clients;
mod coverage;
mod finding;
mod hook;
mod host;
mod lineages;
mod next;
mod service;
mod settings;
mod setup;
mod timer;
mod uncovered;

use std::collections::HashSet;

use time::OffsetDateTime;

use self::accounts::Account;
use self::coverage::Coverage;
use self::finding::{DoctorFinding, Subject};
use self::host::Host;
use self::lineages::{HostLineage, Managed};
use self::service::ServiceProbe;
use crate::api::Listing;
use crate::cli::DoctorArgs;
use crate::clock;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::inventory::Inventory;
use crate::report::{Block, Report, finding_counts};
use crate::secret::Secret;
use crate::settings::{Configuration, Layers, Settings, SettingsError};
use crate::state::{Deployments, ServiceDeployments, Store};
use crate::trust::TrustStores;

/// The findings so far.
struct Doctor<'a> {
    host: &'a Host<'a>,
    now: OffsetDateTime,
    /// Shared by the probe and the checks of all lineages.
    stores: TrustStores,
    findings: Vec<DoctorFinding>,
    warnings: Vec<String>,
    /// Whether anything names the service or the API key.
    has_settings: bool,
}

/// Runs the command. The most severe finding decides the exit code.
pub(crate) fn run(args: &DoctorArgs, context: &Context, report: &mut Report) {
    if args.lists_settings {
        return settings::list(&args.settings, context, report);
    }
    let host = Host::new(args.root.clone(), &context.env);
    let mut doctor = Doctor {
        host: &host,
        now: clock::now(),
        stores: TrustStores::default(),
        findings: Vec::new(),
        warnings: Vec::new(),
        has_settings: true,
    };
    doctor.check(args, context);
    let Doctor { mut findings, warnings, has_settings, .. } = doctor;
    report.warnings.extend(warnings);
    // Lineages may share a hook of certbot, which is then reported once.
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert((finding.subject, finding.detail.clone())));
    let next = next::step(&findings, has_settings, host.uid == 0);
    report.push(Block::Lines(findings.iter().map(DoctorFinding::line).collect()));
    report.push(finding_counts(findings.iter().map(|finding| finding.status)));
    report.push(next::line(next.as_deref()));
    let most_severe = ErrorKind::most_severe(findings.iter().filter_map(|finding| finding.kind));
    report.exit_with(most_severe.map_or(0, ErrorKind::exit_code), None);
    report.set("findings", findings);
    report.set("next", next);
}

impl Doctor<'_> {
    fn check(&mut self, args: &DoctorArgs, context: &Context) {
        let empty = Configuration::default();
        let (configuration, result) = match context.configuration() {
            Ok(configuration) => (configuration, Ok(())),
            Err(error) => (&empty, Err(error)),
        };
        let layers = Layers::new(&args.settings, &context.env, configuration);
        let (base_url, api_key, state_dir) = (layers.base_url(), layers.api_key(), layers.state_dir());
        let has_api_key = api_key.is_ok();
        // Without an API key, an empty one is sent.
        let key = || api_key.clone().unwrap_or_else(|_| Secret::new(String::new()));
        let settings = base_url.as_ref().ok().map(|url| layers.complete(url.clone(), key())).transpose();
        let is_unset = matches!(base_url, Err(SettingsError::NoBaseUrl))
            && matches!(api_key, Err(SettingsError::NoApiKey));
        self.has_settings = !is_unset || result.is_err();
        self.findings.extend(setup::configuration_file(context));
        // With an account of its own, no entry needs the settings of the run.
        let is_needed = !(is_unset && accounts::covers_all(configuration));
        let service = is_needed.then_some((base_url, api_key));
        let unusable = layers.unusable.iter().filter(|error| !error.is_about_base_url()).cloned();
        let unusable = unusable.chain(settings.as_ref().err().cloned());
        self.findings.extend(setup::check_settings(result, unusable, service));
        self.findings.extend(accounts::overridden(configuration, &layers));
        self.findings.extend(accounts::keys_of_other_services(configuration));
        self.findings.extend(context.on_failure().and_then(setup::check_on_failure));
        if context.heartbeat_url().is_some() {
            self.findings.extend(context.configuration_path().and_then(setup::check_heartbeat_url));
        }
        self.findings.extend(setup::check_state(state_dir.as_deref()));
        let settings = settings.ok().flatten();
        let account = settings.as_ref().and_then(|settings| self.check_service(settings, has_api_key));
        let store = state_dir.as_deref().filter(|directory| directory.is_dir()).map(Store::at);
        let managed = self.check_lineages(store.as_ref(), configuration, &layers);
        let (own, lineages): (Vec<_>, Vec<_>) =
            managed.lineages.into_iter().partition(|lineage| lineage.policy.account.is_some());
        for account in accounts::find(configuration, &layers) {
            self.check_account(&account, &own, &managed.deployments);
        }
        if let (Some(account), Some(settings)) = (&account, &settings) {
            let deployments = managed.deployments.of_service(&settings.base_url.to_string());
            self.compare(account, &lineages, &deployments);
        }
        let last_sync = store.map(|store| store.last_sync(self.now)).unwrap_or_default();
        self.findings.push(timer::check(&last_sync, managed.earliest_run, self.host, self.now));
    }

    /// Probes the service of an account that only `[[lineage]]` entries name, and compares it with their lineages.
    fn check_account(&mut self, account: &Account<'_>, lineages: &[HostLineage], deployments: &Deployments) {
        let before = self.findings.len();
        let found = match &account.settings {
            Ok(settings) => self.check_service(settings, true),
            Err(error) => {
                self.findings.push(DoctorFinding::from_error(Subject::Settings, error));
                None
            }
        };
        if let (Some(listing), Ok(settings)) = (&found, &account.settings) {
            let deployed =
                lineages.iter().filter(|other| other.policy.account.as_deref() == Some(account.name));
            let (deployed, idle) = (deployed.collect(), Vec::new());
            let deployments = &deployments.of_service(&settings.base_url.to_string());
            let coverage = Coverage { account: listing, deployed, idle, deployments, now: self.now };
            self.findings.extend(coverage.findings());
        }
        for finding in self.findings.iter_mut().skip(before) {
            finding.detail = format!("{}: {}", account.name, finding.detail);
        }
    }

    /// Probes the service, and returns the contents of the account.
    fn check_service(&mut self, settings: &Settings, has_api_key: bool) -> Option<Listing> {
        match ServiceProbe::run(settings, &self.stores) {
            Ok(probe) => {
                if let Some(proxy) = &settings.proxy {
                    let origin = proxy.variable.unwrap_or("the setting proxy");
                    let detail = format!("requests go through the proxy {}, from {origin}", proxy.text());
                    self.findings.push(DoctorFinding::ok(Subject::Service, detail));
                }
                self.findings.extend(probe.findings(has_api_key));
                probe.account.ok()
            }
            Err(error) => {
                self.findings.push(DoctorFinding::from_error(Subject::Tls, error));
                None
            }
        }
    }

    /// Checks the lineages that edgecert manages.
    fn check_lineages(
        &mut self,
        store: Option<&Store>,
        configuration: &Configuration,
        layers: &Layers<'_>,
    ) -> Managed {
        let inventory = Inventory::gather(store, configuration).unwrap_or_else(|error| {
            self.findings.push(DoctorFinding::from_error(Subject::State, error));
            Inventory::configured(configuration)
        });
        self.findings.extend(inventory.unmatched_patterns().iter().map(|path| lineages::unmatched(path)));
        let mut managed = Managed::check(inventory, layers, self.host, self.now, &self.stores);
        self.warnings.extend(managed.state_errors.iter().map(ToString::to_string));
        self.findings.append(&mut managed.findings);
        managed
    }

    /// Compares the lineages of this host, managed or not, with the account.
    fn compare(&mut self, account: &Listing, managed: &[HostLineage], deployments: &ServiceDeployments) {
        let (unmanaged, denied) = lineages::find_unmanaged(self.host, managed, &account.sites);
        self.findings.extend(denied);
        if managed.is_empty() && unmanaged.is_empty() {
            self.findings.push(lineages::none(&account.sites, self.host));
        }
        let (deployed, idle): (Vec<_>, Vec<_>) =
            managed.iter().chain(&unmanaged).partition(|lineage| lineage.is_deployed());
        let coverage = Coverage { account, deployed, idle, deployments, now: self.now };
        self.findings.extend(unmanaged.iter().map(|lineage| coverage.unmanaged(lineage)));
        self.findings.extend(coverage.findings());
    }
}
