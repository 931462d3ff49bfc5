//! Remembers a deployment: the lock on its lineage, the intent before the first request, the result after the last.
//!
//! A directory that cannot be written is a warning: the deployment matters more than the memory of it.

use std::collections::HashMap;
use std::path::Path;

use time::OffsetDateTime;

use crate::cert::Certificate;
use crate::cli::GuardArgs;
use crate::clock::{self, Deadline};
use crate::failure::Failure;
use crate::names::Domain;
use crate::report::{Outcome, Report, SiteReport};
use crate::settings::Settings;
use crate::source::Source;
use crate::state::{self, Held, Lock, Memory, Store, Unwritable};
use crate::text::{instant, rfc3339};

/// The memory of one lineage while it is deployed.
pub(super) struct Journal {
    name: String,
    lineage: state::Lineage,
    store: Option<Store>,
    lock: Option<Lock>,
    memory: Option<Memory>,
}

impl Journal {
    /// Opens the memory of a lineage, and waits for another run that is deploying it. Without a directory nothing is
    /// remembered.
    pub(super) fn open(
        source: &Source,
        directory: Option<&Path>,
        deadline: Deadline,
        report: &mut Report,
    ) -> Result<Self, Held> {
        let name = state::name(&source.files.cert);
        let mut journal = Self { name, lineage: lineage(source), store: None, lock: None, memory: None };
        match directory.map(|directory| journal.take(directory, deadline)) {
            Some(Ok(held)) => held?,
            Some(Err(unwritable)) => report.warnings.push(forgetful(&unwritable.to_string())),
            None => {
                report.warnings.push(forgetful("no state directory is set, and there is no home directory"));
            }
        }
        if let Some(store) = &journal.store {
            let (memory, strange) = store.read(&journal.name);
            journal.memory = memory;
            report.warnings.extend(strange);
        }
        Ok(journal)
    }

    /// The memory for a run that changes nothing, not even here.
    pub(super) fn look(source: &Source, directory: Option<&Path>) -> Self {
        let store = directory.filter(|directory| directory.is_dir()).map(Store::at);
        let name = state::name(&source.files.cert);
        Self { name, lineage: lineage(source), store, lock: None, memory: None }
    }

    fn take(&mut self, directory: &Path, deadline: Deadline) -> Result<Result<(), Held>, Unwritable> {
        let store = Store::open(directory)?;
        let lock = store.lock(&self.name, deadline)?;
        self.store = Some(store);
        Ok(lock.map(|lock| self.lock = Some(lock)))
    }

    /// When the leaves were issued that were deployed into the records of this service.
    pub(super) fn issued(&self, settings: &Settings, report: &mut Report) -> HashMap<u64, OffsetDateTime> {
        let (memories, strange) = self.store.as_ref().map(Store::all).unwrap_or_default();
        report.warnings.extend(strange);
        state::issued(&memories, &settings.base_url.to_string())
    }

    /// Whether another run, for which this one had to wait, has done all of the work; its result is reported then.
    pub(super) fn finds_it_done(
        &self,
        leaf: &Certificate,
        order: &state::Order,
        report: &mut Report,
    ) -> bool {
        let waited = self.lock.as_ref().is_some_and(|lock| lock.waited);
        let memory =
            self.memory.as_ref().filter(|memory| waited && memory.is_done(&certificate(leaf), order));
        let Some(memory) = memory else { return false };
        let at = memory.last_success.as_deref().unwrap_or_default();
        report.sites = memory.sites.iter().filter_map(|site| by_another_run(site, at)).collect();
        true
    }

    /// Writes down what is about to be done.
    pub(super) fn intend(&mut self, leaf: &Certificate, order: state::Order, report: &mut Report) {
        let (before, now) = (self.memory.take(), instant(clock::now()));
        self.memory = Some(Memory::intend(before, self.lineage.clone(), order, certificate(leaf), &now));
        self.write(report);
    }

    /// Writes down what came of it.
    pub(super) fn conclude(&mut self, result: &anyhow::Result<()>, report: &mut Report) {
        let (exit_code, error) = match result {
            Ok(()) => (report.exit_code(), report.error().map(str::to_owned)),
            Err(error) => {
                let failure = Failure::from_error(error, &report.checks);
                (failure.kind.exit_code(), Some(failure.message()))
            }
        };
        let sites = report.sites.iter().map(remembered).collect();
        if let Some(memory) = &mut self.memory {
            memory.conclude(exit_code, error, sites, &instant(clock::now()));
        }
        self.write(report);
    }

    fn write(&mut self, report: &mut Report) {
        let (Some(store), Some(memory)) = (&self.store, &self.memory) else { return };
        if let Err(unwritable) = store.write(&self.name, memory) {
            report.warnings.push(forgetful(&unwritable.to_string()));
        }
    }
}

/// What is asked for beside the certificate.
pub(super) fn order(settings: &Settings, guards: &GuardArgs, domains: &[Domain]) -> state::Order {
    state::Order {
        base_url: settings.base_url.to_string(),
        domains: domains.iter().map(|domain| domain.spelled().to_owned()).collect(),
        edge_addresses: settings.edge_addresses.clone(),
        rebind: settings.rebind,
        skip_unmatched: settings.skip_unmatched,
        allow_untrusted: settings.allow_untrusted,
        allow_shrink: guards.allow_shrink,
        allow_older: guards.allow_older,
        replace_lets: guards.replace_lets,
    }
}

fn lineage(source: &Source) -> state::Lineage {
    let absolute = |path: &std::path::PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    state::Lineage {
        client: source.client.word().to_owned(),
        cert: absolute(&source.files.cert),
        issuers: source.files.issuers.as_ref().map(absolute),
        key: source.files.key.as_ref().map(absolute),
        directory: source.directory.as_ref().map(absolute),
    }
}

fn certificate(leaf: &Certificate) -> state::Certificate {
    state::Certificate {
        fingerprint: leaf.fingerprint(),
        names: leaf.names(),
        not_before: rfc3339(leaf.not_before),
        not_after: rfc3339(leaf.not_after),
    }
}

fn remembered(site: &SiteReport) -> state::Site {
    state::Site {
        id: site.id,
        domain: site.domain.clone(),
        cert_id: site.cert_id,
        outcome: site.outcome.word().to_owned(),
        detail: site.detail.clone(),
    }
}

fn by_another_run(site: &state::Site, at: &str) -> Option<SiteReport> {
    Some(SiteReport {
        id: site.id,
        domain: site.domain.clone(),
        cert_id_before: site.cert_id,
        cert_id: site.cert_id,
        outcome: Outcome::from_word(&site.outcome)?,
        detail: Some(format!("deployed by another run at {at}")),
        edge: None,
    })
}

fn forgetful(reason: &str) -> String {
    format!("this deployment is not remembered: {reason}")
}
