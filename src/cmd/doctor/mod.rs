//! `edgecert doctor`: finds problems of the setup before a renewal fails on them.
//!
//! One file per subject. A check that fails does not stop the others.

mod accounts;
mod calls;
mod certbot;
mod certbot_files;
mod client_files;
mod clients;
mod coverage;
mod finding;
mod hook_detection;
mod hooks;
mod host;
mod lineages;
mod next;
mod path_miss;
mod renewals;
mod schedule;
mod service;
mod settings;
mod setup;
mod timer;
mod uncovered;
mod unmanaged;
mod user;

use std::collections::HashSet;

use time::OffsetDateTime;

use self::accounts::Account;
use self::coverage::Coverage;
use self::finding::{DoctorFinding, Subject};
use self::host::Host;
use self::lineages::{HostLineage, Managed};
use self::renewals::Renewals;
use self::service::ServiceProbe;
use self::user::SyncFiles;
use crate::api::Listing;
use crate::cli::DoctorArgs;
use crate::clock;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::inventory::Inventory;
use crate::report::{CommandReport, finding_counts};
use crate::settings::{Configuration, Layers, Settings, SettingsError};
use crate::source::Source;
use crate::state::{Deployments, ServiceDeployments, Store};
use crate::trust::TrustStores;

/// The findings so far.
struct Doctor<'a> {
    host: &'a Host<'a>,
    renewals: Renewals<'a>,
    now: OffsetDateTime,
    /// Shared by the probe and the checks of all lineages.
    stores: TrustStores,
    findings: Vec<DoctorFinding>,
    warnings: Vec<String>,
    /// Whether anything names the service or the API key.
    has_settings: bool,
}

/// Runs the command. The most severe finding decides the exit code.
pub(crate) fn run(args: &DoctorArgs, context: &Context, report: &mut CommandReport) {
    if args.lists_settings {
        return settings::list(&args.settings.layer, context, report);
    }
    let host = Host::new(args.root.clone(), &context.env);
    let mut doctor = Doctor {
        host: &host,
        renewals: Renewals::find(&host),
        now: clock::now(),
        stores: TrustStores::default(),
        findings: Vec::new(),
        warnings: Vec::new(),
        has_settings: true,
    };
    doctor.check(args, context);
    let Doctor { mut findings, warnings, has_settings, now, .. } = doctor;
    report.warnings.extend(warnings);
    // Lineages may share a hook of certbot, which is then reported once.
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert((finding.subject, finding.detail.clone())));
    let next = next::step(&findings, has_settings, host.uid == 0);
    report.body.text = findings.iter().map(|finding| finding.lines(now, context.style)).collect();
    report.body.text += &finding_counts(findings.iter().map(|finding| finding.status));
    report.body.text.push_str(&next::line(next.as_deref(), context.style));
    let most_severe = ErrorKind::most_severe(findings.iter().filter_map(|finding| finding.kind));
    report.exit_with(most_severe.map_or(0, ErrorKind::exit_code));
    report.body.set("findings", findings);
    report.body.set("next", next);
}

impl Doctor<'_> {
    fn check(&mut self, args: &DoctorArgs, context: &Context) {
        let empty = Configuration::default();
        let (configuration, result) = match context.configuration() {
            Ok(configuration) => (configuration, Ok(())),
            Err(error) => (&empty, Err(error)),
        };
        let layers = Layers::new(&args.settings.layer, &context.env, configuration);
        let inspection = layers.inspect();
        let (settings, has_api_key) = (layers.inspected_settings(&inspection), inspection.api_key.is_ok());
        let files = SyncFiles {
            state_dir: inspection.state_dir.clone(),
            is_default: inspection.has_default_state_dir,
            api_key_file: inspection.api_key_file,
        };
        let state_dir = inspection.state_dir;
        let is_unset = matches!(inspection.base_url, Err(SettingsError::NoBaseUrl))
            && matches!(inspection.api_key, Err(SettingsError::NoApiKey));
        self.has_settings = !is_unset || result.is_err();
        self.findings.extend(setup::configuration_file(context));
        // With an account of its own, no entry needs the settings of the run.
        let is_needed = !(is_unset && accounts::covers_all(configuration));
        let (url, key) = (inspection.base_url, inspection.api_key);
        let service = is_needed.then_some((url, key));
        self.findings.extend(setup::check_settings(result, inspection.unusable, service));
        self.findings.extend(accounts::overridden(configuration, &layers));
        self.findings.extend(accounts::keys_of_other_services(configuration));
        self.findings.extend(context.on_failure().and_then(setup::check_on_failure));
        if context.heartbeat_url().is_some() {
            self.findings.extend(context.configuration_path().and_then(setup::check_heartbeat_url));
        }
        self.findings.extend(setup::check_state(state_dir.as_deref()));
        let account = settings.as_ref().and_then(|settings| self.check_service(settings, has_api_key));
        let store = state_dir.as_deref().filter(|directory| directory.is_dir()).map(Store::at);
        let (lineages, deployments) = self.check_lineages(store.as_ref(), configuration, &layers);
        let (own, lineages): (Vec<_>, Vec<_>) =
            lineages.into_iter().partition(|lineage| lineage.policy.account.is_some());
        self.check_renewals(own.iter());
        for account in accounts::find(configuration, &layers) {
            self.check_account(&account, &own, &deployments);
        }
        if let (Some(account), Some(settings)) = (&account, &settings) {
            let deployments = deployments.of_service(&settings.base_url.to_string());
            self.compare(account, &lineages, &deployments);
        } else {
            self.check_renewals(lineages.iter());
        }
        self.findings.push(timer::check(self.host, &files));
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
            let managed =
                lineages.iter().filter(|other| other.policy.account.as_deref() == Some(account.name));
            let (managed, (hooked, idle)) = (managed.collect(), Default::default());
            let deployments = &deployments.of_service(&settings.base_url.to_string());
            let coverage = Coverage { account: listing, managed, hooked, idle, deployments, now: self.now };
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

    /// Checks the lineages that edgecert manages, and their hooks.
    fn check_lineages(
        &mut self,
        store: Option<&Store>,
        configuration: &Configuration,
        layers: &Layers<'_>,
    ) -> (Vec<HostLineage>, Deployments) {
        let inventory = Inventory::gather(store, configuration).unwrap_or_else(|error| {
            self.findings.push(DoctorFinding::from_error(Subject::State, error));
            Inventory::configured(configuration)
        });
        self.findings.extend(inventory.unmatched_patterns().iter().map(|path| lineages::unmatched(path)));
        let managed = Managed::new(inventory, layers);
        self.warnings.extend(managed.state_errors.iter().map(ToString::to_string));
        self.findings.extend(managed.findings);
        let mut lineages = Vec::with_capacity(managed.lineages.len());
        for (source, policy) in managed.lineages {
            let (lineage, findings) = HostLineage::check(source, policy, self.now, &self.stores);
            self.findings.extend(findings);
            lineages.push(lineage);
        }
        lineages.sort_by_key(HostLineage::title);
        let readable = lineages.iter().filter(|lineage| lineage.leaf.is_some());
        self.findings
            .extend(readable.map(|lineage| hooks::check_managed(lineage, self.host, &self.renewals)));
        (lineages, managed.deployments)
    }

    /// Compares the lineages of this host, managed or not, with the account.
    fn compare(&mut self, account: &Listing, managed: &[HostLineage], deployments: &ServiceDeployments) {
        let (unmanaged, findings) = unmanaged::find(self.host, &self.renewals, managed, &account.sites);
        self.findings.extend(findings);
        self.findings.extend(unmanaged::check_hooks(&unmanaged, managed, self.host));
        let (hooked, idle): (Vec<_>, Vec<_>) =
            unmanaged.iter().partition(|unmanaged| unmanaged.hook.is_installed());
        let [hooked, idle]: [Vec<&HostLineage>; 2] =
            [hooked, idle].map(|list| list.into_iter().map(|other| &other.lineage).collect());
        self.check_renewals(managed.iter().chain(hooked.iter().copied()));
        if managed.is_empty() && unmanaged.is_empty() {
            self.findings.push(lineages::none(&account.sites));
        }
        let managed = managed.iter().collect();
        let coverage = Coverage { account, managed, hooked, idle, deployments, now: self.now };
        self.findings.extend(coverage.findings());
    }

    /// Checks whether something runs the ACME clients of lineages that are deployed at each renewal.
    fn check_renewals<'l>(&mut self, lineages: impl Iterator<Item = &'l HostLineage>) {
        let readable = lineages.filter(|lineage| lineage.leaf.is_some());
        let sources: Vec<&Source> = readable.map(|lineage| &lineage.source).collect();
        self.findings.extend(self.renewals.check(&sources));
    }
}
