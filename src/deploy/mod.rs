//! Deploys one lineage: check, record the intent, upload, bind, wait until the edge serves the new leaf, report each
//! site, record the result.
//!
//! `deploy` and `sync` take this path. It gets resolved settings and plain options, fills a report and prints nothing.
//! The steps are in files of their own.

mod client_cache;
mod journal;
mod left_behind;
mod pending_site;
mod polling;
mod rollout;
mod scope;
mod survey;
mod upload;
mod verdict;

use std::sync::Arc;

use rustls::RootCertStore;

pub(crate) use self::client_cache::ClientCache;
pub(crate) use self::journal::Journal;
pub(crate) use self::left_behind::left_behind;
use self::rollout::Rollout;
pub(crate) use self::rollout::{AccountSnapshot, incomplete_listing};
use crate::bundle::{self, Bundle};
use crate::check::{self, CheckContext, PathRule, Status};
use crate::clock::{self, Deadline};
use crate::error::CommandError;
use crate::names::Domain;
use crate::progress::{Phase, Progress};
use crate::report::{CertificateReport, Report};
use crate::secret::Redactor;
use crate::settings::{Guards, Settings, SettingsError, TrustPolicy};
use crate::source::Source;
use crate::trust::TrustStores;
use crate::{file, text};

/// A lineage to deploy and the options for it.
pub(crate) struct Deployment<'a> {
    pub(crate) source: &'a Source,
    pub(crate) settings: &'a Settings,
    /// The sites that must get the certificate, each once; empty means every covered site.
    pub(crate) domains: &'a [Domain],
    pub(crate) guards: Guards,
    /// Upload for `domains` and do nothing else: no listing, no guards, no waiting.
    pub(crate) upload_only: bool,
    /// Upload even for sites that have the leaf.
    pub(crate) force: bool,
    /// Plan, and change nothing.
    pub(crate) dry_run: bool,
    /// The account as listed before; `None` lists it.
    pub(crate) account: Option<&'a AccountSnapshot>,
    pub(crate) deadline: Deadline,
    pub(crate) progress: &'a dyn Progress,
}

impl Deployment<'_> {
    /// Deploys and adds the results to the report. An error means that nothing was sent; failures of single sites are
    /// in the report. The caller passes the result to `Journal::finish`.
    pub(crate) async fn run(
        &self,
        journal: &mut Journal,
        clients: &ClientCache,
        report: &mut Report,
    ) -> Result<(), CommandError> {
        self.progress.enter(Phase::Checking);
        if let Some(key) = self.source.files.key.as_ref().filter(|key| file::is_open_to_others(key)) {
            // A mounted secret may have to be readable by others, so this is not an error.
            report.warnings.push(format!("others can read the private key {}", text::path(key)));
        }
        let bundle = self.load_bundle(clients).await?;
        report.deployed.certificate = bundle.chain.as_ref().ok().map(CertificateReport::new);
        if let Ok(chain) = &bundle.chain {
            journal.set_leaf(&chain.leaf)?;
        }
        let anchors = self.load_anchors(clients.trust_stores())?;
        let path = anchors.as_ref().map(|(anchors, no_path)| PathRule { anchors, no_path: *no_path });
        let directory = self.source.acme_directory();
        let context = CheckContext {
            domains: self.domains,
            at: clock::now(),
            untrusted: if self.settings.allow_untrusted { Status::Warn } else { Status::Fail },
            path,
            directory: directory.as_deref(),
        };
        report.add_findings(&check::run(&bundle, &context));
        let Some(vetted) = check::vet(&bundle, &report.deployed.checks) else {
            report.fail_checks();
            return Ok(());
        };
        journal.begin(report);
        let mut redactor = Redactor::default();
        vetted.key().hide_in(&mut redactor);
        let (client, settings) = (&clients.client(self.settings, redactor, self.deadline)?, self.settings);
        let vetted = &vetted;
        Rollout { deployment: self, settings, client, clients, vetted, journal }.run(report).await
    }

    async fn load_bundle(&self, clients: &ClientCache) -> Result<Bundle, CommandError> {
        let mut files = self.source.files.clone();
        // Certificate and key may be in one file.
        files.key.get_or_insert_with(|| files.cert.clone());
        // For a single lineage, a thread would only cost time.
        let is_one_of_many = self.account.is_some();
        let _permit = if is_one_of_many { Some(clients.load_permit().await) } else { None };
        let loaded = bundle::load_settled(files, self.deadline, is_one_of_many).await;
        loaded.map_err(|error| {
            let is_missing = error.is_missing();
            CommandError::from(error).misuse(is_missing)
        })
    }

    /// Loads the trust anchors that the chain is checked against; also returns the result for a chain without a path to
    /// one. `None` if the path is not to be checked.
    fn load_anchors(
        &self,
        stores: &TrustStores,
    ) -> Result<Option<(Arc<RootCertStore>, Status)>, SettingsError> {
        match &self.settings.trust_anchors {
            TrustPolicy::Off => Ok(None),
            TrustPolicy::Required(roots) => Ok(Some((stores.load(roots, self.deadline)?, Status::Fail))),
            TrustPolicy::Advisory(roots) => {
                let Settings { base_url, roots: own, .. } = self.settings;
                // Loading the system's roots takes longer than the rest of a bare upload, unless its connection does.
                if self.upload_only && (base_url.is_plain() || own != roots) {
                    return Ok(None);
                }
                // A system without any must not fail the run.
                let loaded = stores.load(roots, self.deadline);
                let loaded =
                    loaded.inspect_err(|error| log::info!("the path to a root is not checked: {error}"));
                Ok(loaded.ok().map(|anchors| (anchors, Status::Warn)))
            }
        }
    }
}

#[cfg(test)]
mod around_test;
#[cfg(test)]
pub(crate) mod model;
