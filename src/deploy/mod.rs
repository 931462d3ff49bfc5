//! Deploys one lineage: checks, memory, rollout. The one path that `deploy` and `sync` both take.

pub(crate) mod journal;
mod polling;
mod rollout;
mod scope;
mod verdict;

use std::collections::HashMap;

use time::OffsetDateTime;

use self::journal::{Journal, Past};
use self::rollout::Order;
use crate::api::{Client, ClientConfig, Listing};
use crate::check::{self, CheckContext, Status, Vetted};
use crate::clock::{self, Deadline};
use crate::error::CommandError;
use crate::names::Domain;
use crate::plan::Allow;
use crate::report::{CertificateReport, DeployReport};
use crate::runtime::Runtime;
use crate::secret::Redactor;
use crate::settings::{Guards, Settings};
use crate::source::Source;
use crate::{bundle, file, text};

/// A lineage and what is to be done with it.
pub(crate) struct Deployment<'a> {
    pub(crate) source: &'a Source,
    pub(crate) settings: &'a Settings,
    /// The sites that must get it, each once; empty: every covered one.
    pub(crate) domains: &'a [Domain],
    pub(crate) guards: &'a Guards,
    pub(crate) upload_only: bool,
    pub(crate) dry_run: bool,
    /// What the account has, where that is known already.
    pub(crate) listing: Option<&'a Listing>,
    pub(crate) deadline: Deadline,
}

/// Connections to services, for one lineage after the other.
pub(crate) struct ClientCache {
    runtime: Runtime,
    /// The client for the service that was asked last.
    client: Option<Client>,
}

impl ClientCache {
    pub(crate) fn new() -> Result<Self, CommandError> {
        Ok(Self { runtime: Runtime::new()?, client: None })
    }

    /// A client that keeps this run's secrets to itself.
    fn client(
        &mut self,
        access: &ClientConfig,
        redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Client, CommandError> {
        if let Some(client) = &self.client {
            return Ok(client.for_task(redactor, deadline));
        }
        let client = Client::new(access, redactor, deadline)?;
        self.client = Some(client.for_task(Redactor::default(), deadline));
        Ok(client)
    }

    /// What the account has.
    pub(crate) fn list(
        &mut self,
        access: &ClientConfig,
        settings: &Settings,
        deadline: Deadline,
    ) -> Result<Listing, CommandError> {
        let mut redactor = Redactor::default();
        redactor.hide(&settings.api_key);
        let client = self.client(access, redactor, deadline)?;
        Ok(self.runtime.block_on(client.listing())??)
    }

    /// Carries an order out.
    fn carry_out(
        &mut self,
        access: &ClientConfig,
        order: &Order<'_>,
        report: &mut DeployReport,
    ) -> Result<(), CommandError> {
        let mut redactor = Redactor::default();
        redactor.hide(&order.settings.api_key);
        redactor.hide(order.vetted.key.pem());
        let client = self.client(access, redactor, order.deadline)?;
        self.runtime.block_on(rollout::run(&client, order, report))?
    }
}

impl Deployment<'_> {
    /// Checks the lineage, brings it to its sites, and remembers both; `past` is what was deployed into the records of
    /// the service.
    pub(crate) fn run(
        &self,
        journal: &mut Journal,
        past: Past<'_>,
        clients: &mut ClientCache,
        access: &mut dyn FnMut() -> Result<std::sync::Arc<ClientConfig>, CommandError>,
        report: &mut DeployReport,
    ) -> Result<(), CommandError> {
        self.warn_of_open_key(report);
        let mut files = self.source.files.clone();
        // Certificate and key may stand in one file.
        files.key.get_or_insert_with(|| files.cert.clone());
        let bundle = bundle::load(&files)?;
        report.body.certificate = bundle.chain.as_ref().ok().map(CertificateReport::new);
        if let Ok(chain) = &bundle.chain {
            journal.reads(&chain.leaf);
        }
        let context = CheckContext {
            domains: self.domains,
            at: clock::now(),
            untrusted: if self.settings.allow_untrusted { Status::Warn } else { Status::Fail },
            anchors: None,
            directory: self.source.acme_directory.as_deref(),
        };
        report.add_findings(&check::run(&bundle, &context));
        let Ok(vetted) = check::vet(&bundle, &report.body.checks) else {
            report.fail_checks();
            return Ok(());
        };
        if journal.already_deployed(report) {
            return Ok(());
        }
        let issued = match past {
            // The upload_only upload asks no guard, so it need not know what else was deployed.
            Past::Unknown if self.upload_only => HashMap::new(),
            Past::Unknown => journal.issued(self.settings, report),
            Past::Known(issued) => issued.clone(),
        };
        if !self.dry_run {
            journal.begin(report);
        }
        let order = self.order(&vetted, &issued);
        clients.carry_out(&*access()?, &order, report)
    }

    fn order<'o>(&'o self, vetted: &'o Vetted<'o>, issued: &'o HashMap<u64, OffsetDateTime>) -> Order<'o> {
        Order {
            vetted,
            domains: self.domains,
            settings: self.settings,
            allow: Allow {
                rebind: self.settings.rebind,
                shrink: self.guards.allow_shrink,
                older: self.guards.allow_older,
                lets: self.guards.replace_lets,
            },
            issued,
            listing: self.listing,
            upload_only: self.upload_only,
            dry_run: self.dry_run,
            deadline: self.deadline,
        }
    }

    /// Mounted secrets are open to others, so this is no refusal.
    fn warn_of_open_key(&self, report: &mut DeployReport) {
        let Some(key) = &self.source.files.key else { return };
        if file::is_open_to_others(key) {
            report.warnings.push(format!("others can read the private key {}", text::path(key)));
        }
    }
}
