//! Deploys one lineage: checks, memory, rollout. The one path that `deploy` and `sync` both take.

use std::collections::HashMap;

use anyhow::Context as _;
use time::OffsetDateTime;
use tokio::runtime::Runtime;

use super::journal::{Journal, Past};
use crate::api::{Access, Client, Listing};
use crate::check::{self, Question, Status, Vetted};
use crate::cli::GuardArgs;
use crate::clock::{self, Deadline};
use crate::names::Domain;
use crate::plan::Allow;
use crate::report::{CertificateReport, Report};
use crate::rollout::{self, Order};
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::source::Source;
use crate::{file, material, text};

/// A lineage and what is to be done with it.
pub(super) struct Task<'a> {
    pub(super) source: &'a Source,
    pub(super) settings: &'a Settings,
    /// The sites that must get it, each once; empty: every covered one.
    pub(super) domains: &'a [Domain],
    pub(super) guards: &'a GuardArgs,
    pub(super) bare: bool,
    pub(super) dry_run: bool,
    /// What the account has, where that is known already.
    pub(super) listing: Option<&'a Listing>,
    pub(super) deadline: Deadline,
}

/// Connections to services, for one lineage after the other.
pub(super) struct Carrier {
    runtime: Runtime,
    /// The client for the service that was asked last.
    client: Option<Client>,
}

impl Carrier {
    pub(super) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { runtime: runtime.context("cannot start the runtime")?, client: None })
    }

    /// Ends; a name that is still being looked up must not hold the run beyond its deadline.
    pub(super) fn end(self) {
        self.runtime.shutdown_background();
    }

    /// A client that keeps this run's secrets to itself.
    fn client(&mut self, access: &Access, redactor: Redactor, deadline: Deadline) -> anyhow::Result<Client> {
        if let Some(client) = &self.client {
            return Ok(client.anew(redactor, deadline));
        }
        let client = Client::new(access, redactor, deadline)?;
        self.client = Some(client.anew(Redactor::default(), deadline));
        Ok(client)
    }

    /// What the account has.
    pub(super) fn list(
        &mut self,
        access: &Access,
        settings: &Settings,
        deadline: Deadline,
    ) -> anyhow::Result<Listing> {
        let mut redactor = Redactor::default();
        redactor.hide(&settings.api_key);
        let client = self.client(access, redactor, deadline)?;
        Ok(self.runtime.block_on(client.listing())?)
    }

    /// Carries an order out.
    fn carry_out(&mut self, access: &Access, order: &Order<'_>, report: &mut Report) -> anyhow::Result<()> {
        let mut redactor = Redactor::default();
        redactor.hide(&order.settings.api_key);
        redactor.hide(order.vetted.key.pem());
        let client = self.client(access, redactor, order.deadline)?;
        self.runtime.block_on(rollout::run(&client, order, report))
    }
}

impl Task<'_> {
    /// Checks the lineage, brings it to its sites, and remembers both; `past` is what was deployed into the records of
    /// the service.
    pub(super) fn run(
        &self,
        journal: &mut Journal,
        past: Past<'_>,
        carrier: &mut Carrier,
        access: &mut dyn FnMut() -> anyhow::Result<std::sync::Arc<Access>>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        self.warn_of_open_key(report);
        let mut files = self.source.files.clone();
        // Certificate and key may stand in one file.
        files.key.get_or_insert_with(|| files.cert.clone());
        let material = material::load(&files)?;
        report.certificate = material.chain.as_ref().ok().map(CertificateReport::new);
        if let Ok(chain) = &material.chain {
            journal.reads(&chain.leaf);
        }
        let question = Question {
            domains: self.domains,
            at: clock::now(),
            untrusted: if self.settings.allow_untrusted { Status::Warn } else { Status::Fail },
            anchors: None,
            directory: self.source.acme_directory.as_deref(),
        };
        report.add_findings(&check::run(&material, &question));
        let vetted = check::vet(&material, &report.checks)?;
        if journal.finds_it_done(report) {
            return Ok(());
        }
        let issued = match past {
            // The bare upload asks no guard, so it need not know what else was deployed.
            Past::Unknown if self.bare => HashMap::new(),
            Past::Unknown => journal.issued(self.settings, report),
            Past::Known(issued) => issued.clone(),
        };
        if !self.dry_run {
            journal.intend(report);
        }
        let order = self.order(&vetted, &issued);
        carrier.carry_out(&*access()?, &order, report)
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
            bare: self.bare,
            dry_run: self.dry_run,
            deadline: self.deadline,
        }
    }

    /// Mounted secrets are open to others, so this is no refusal.
    fn warn_of_open_key(&self, report: &mut Report) {
        let Some(key) = &self.source.files.key else { return };
        if file::is_open_to_others(key) {
            report.warnings.push(format!("others can read the private key {}", text::path(key)));
        }
    }
}
