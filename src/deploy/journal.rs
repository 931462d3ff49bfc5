//! Remembers a deployment: the lock on its lineage, the intent before the first request, the result after the last.
//!
//! A directory that cannot be written is a warning: the deployment matters more than the memory of it.

use std::collections::HashMap;
use std::path::Path;

use time::OffsetDateTime;

use crate::cert::Certificate;
use crate::clock::{self, Deadline};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::report::{DeployReport, SiteReport};
use crate::settings::{Guards, Settings};
use crate::source::Source;
use crate::state::{self, LineageState, Lock, LockError, LockTimeout, Store, WriteError};
use crate::text::{self, rfc3339, rfc3339_millis};

/// The memory of one lineage while it is deployed.
pub(crate) struct Journal {
    name: String,
    lineage: state::SourceState,
    order: state::DeployOptions,
    /// The leaf that was read, once it is known.
    leaf: Option<state::LeafState>,
    store: Option<Store>,
    lock: Option<Lock>,
    memory: Option<LineageState>,
    /// Whether another run was begun after this one had looked at the lineage.
    is_superseded: bool,
    is_intended: bool,
    /// Whether what is on the disk cannot be read, and stays.
    is_kept: bool,
    /// Why something is not on the disk.
    unwritten: Option<WriteError>,
}

/// Another run was told something else, and has left the lineage open.
#[derive(Debug, thiserror::Error)]
#[error(
    "another run of edgecert, which was told something else, has begun to deploy {name} and has not done it"
)]
pub(crate) struct Superseded {
    name: String,
}

/// When the leaves were issued that are in the records of the service.
#[derive(Clone, Copy)]
pub(crate) enum Past<'a> {
    Unknown,
    Known(&'a HashMap<u64, OffsetDateTime>),
}

impl Journal {
    /// Opens the memory of a lineage, and waits for another run that is deploying it. Without a directory nothing is
    /// remembered.
    pub(crate) fn open(
        source: &Source,
        order: state::DeployOptions,
        directory: Option<&Path>,
        deadline: Deadline,
        report: &mut DeployReport,
    ) -> Result<Self, LockTimeout> {
        let mut journal = Self::new(source, order);
        let is_pipe =
            std::fs::metadata(&source.files.cert).is_ok_and(|file| !file.is_file() && !file.is_dir());
        match directory.filter(|_| !is_pipe).map(|directory| journal.take(directory, deadline)) {
            Some(Ok(())) => {}
            Some(Err(LockError::Timeout(timeout))) => return Err(timeout),
            Some(Err(LockError::Write(unwritable))) => journal.forget(unwritable, report),
            None if is_pipe => {
                let cert = text::path(&source.files.cert);
                report.warnings.push(forgetful(&format!("{cert} is no file that could be read again")));
            }
            None => {
                report.warnings.push(forgetful("no state directory is set, and there is no home directory"));
            }
        }
        if let Some(store) = &journal.store {
            match store.read(&journal.name) {
                Ok(memory) => journal.memory = memory,
                Err(error) => {
                    report.warnings.push(error.to_string());
                    // The state of a later release, for one, is not replaced by what this one knows.
                    if !error.is_invalid() {
                        let kept = store.refuse_overwrite(&journal.name);
                        journal.is_kept = true;
                        journal.forget(kept, report);
                    }
                }
            }
        }
        Ok(journal)
    }

    /// The memory for a run that changes nothing, not even here.
    pub(crate) fn look(source: &Source, directory: Option<&Path>) -> Self {
        let store = directory.filter(|directory| directory.is_dir()).map(Store::at);
        Self { store, ..Self::new(source, state::DeployOptions::default()) }
    }

    fn new(source: &Source, order: state::DeployOptions) -> Self {
        Self {
            name: state::lineage_name(&source.stable_path()),
            lineage: lineage(source),
            order,
            leaf: None,
            store: None,
            lock: None,
            memory: None,
            is_superseded: false,
            is_intended: false,
            is_kept: false,
            unwritten: None,
        }
    }

    fn take(&mut self, directory: &Path, deadline: Deadline) -> Result<(), LockError> {
        let store = Store::open(directory)?;
        let lock = store.lock(&self.name, deadline)?;
        (self.store, self.lock) = (Some(store), Some(lock));
        Ok(())
    }

    /// Compares with what was found before the lock was taken: when the last run was begun then. What another run did
    /// since need not be done again. It may have been told something else: what it left open is not for this one.
    pub(crate) fn since(mut self, begun: Option<OffsetDateTime>) -> Result<Self, Superseded> {
        let Some(memory) = &self.memory else { return Ok(self) };
        // No moments are compared: the clock may have been set in between.
        self.is_superseded = begun != Some(memory.begun_at);
        if self.is_superseded && memory.pending_since.is_some() && memory.options != self.order {
            return Err(Superseded { name: self.name });
        }
        Ok(self)
    }

    /// When the leaves were issued that were deployed into the records of this service.
    pub(crate) fn issued(
        &self,
        settings: &Settings,
        report: &mut DeployReport,
    ) -> HashMap<u64, OffsetDateTime> {
        let (memories, strange) = self.store.as_ref().map(Store::read_all).unwrap_or_default();
        report.warnings.extend(strange.iter().map(ToString::to_string));
        let mut issued = state::IssueDates::default();
        for memory in &memories {
            issued.add(memory);
        }
        issued.of_service(&settings.base_url.to_string())
    }

    /// Learns what is to be deployed.
    pub(crate) fn reads(&mut self, leaf: &Certificate) {
        self.leaf = Some(certificate(leaf));
    }

    /// Whether another run, for which this one had to wait, has done all of the work; its result is reported then.
    pub(crate) fn already_deployed(&self, report: &mut DeployReport) -> bool {
        let (Some(memory), Some(leaf)) = (&self.memory, &self.leaf) else { return false };
        let waited = self.lock.as_ref().is_some_and(|lock| lock.has_waited);
        let at = memory.last_success.map(rfc3339_millis).unwrap_or_default();
        let order = if self.is_superseded { &memory.options } else { &self.order };
        if !(waited || self.is_superseded) || !memory.is_done(leaf, order) {
            return false;
        }
        report.body.sites = memory.sites.iter().filter_map(|site| by_another_run(site, &at)).collect();
        true
    }

    /// Writes down what is about to be done.
    pub(crate) fn begin(&mut self, report: &mut DeployReport) {
        let (mut order, before, now) = (self.order.clone(), self.memory.take(), clock::now());
        let known = before.as_ref().and_then(|before| before.options.service.clone());
        order.service = order.service.or(known);
        let memory = LineageState::begin(before, self.lineage.clone(), order, self.leaf.clone(), now);
        self.memory = Some(memory);
        self.is_intended = true;
        self.write(report);
    }

    /// Writes down what came of it; what failed before anything could be intended is remembered, too.
    pub(crate) fn finish(&mut self, report: &mut DeployReport) {
        let (exit_code, error) = (report.exit_code(), report.error().map(str::to_owned));
        if !self.is_intended {
            if exit_code == 0 {
                return;
            }
            self.begin(report);
        }
        let sites = report.body.sites.iter().map(remembered).collect();
        if let Some(memory) = &mut self.memory {
            memory.finish(exit_code, error, sites, clock::now());
        }
        self.write(report);
    }

    /// Writes down that the lineage's files are gone, which changes nothing of what was deployed.
    pub(crate) fn mark_missing(&mut self, report: &mut DeployReport) {
        if let Some(memory) = &mut self.memory {
            memory.mark_missing(clock::now());
        }
        self.write(report);
    }

    /// What could not be written, for a run that must not go on without a memory.
    pub(crate) fn unwritten(&self) -> Option<&WriteError> {
        self.unwritten.as_ref()
    }

    fn write(&mut self, report: &mut DeployReport) {
        let (Some(store), Some(memory), false) = (&self.store, &self.memory, self.is_kept) else { return };
        if let Err(unwritable) = store.write(&self.name, memory) {
            self.forget(unwritable, report);
        }
    }

    /// Says once for each reason that nothing is remembered.
    fn forget(&mut self, unwritable: WriteError, report: &mut DeployReport) {
        let warning = forgetful(&unwritable.to_string());
        if !report.warnings.contains(&warning) {
            report.warnings.push(warning);
        }
        self.unwritten = Some(unwritable);
    }
}

/// What is asked for beside the certificate.
pub(crate) fn order(
    settings: Option<&Settings>,
    asked: state::Overrides,
    guards: Guards,
    domains: &[Domain],
) -> state::DeployOptions {
    state::DeployOptions {
        service: settings.map(|settings| settings.base_url.to_string()),
        domains: spelled(domains),
        overrides: asked,
        allow_shrink: guards.allow_shrink,
        allow_older: guards.allow_older,
        replace_lets: guards.replace_lets,
    }
}

/// Domains as they were given.
pub(crate) fn spelled(domains: &[Domain]) -> Vec<String> {
    domains.iter().map(|domain| domain.spelled().to_owned()).collect()
}

fn lineage(source: &Source) -> state::SourceState {
    let absolute = |path: &std::path::PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    state::SourceState {
        client: source.client.to_string(),
        cert: absolute(&source.files.cert),
        issuers: source.files.issuers.as_ref().map(absolute),
        key: source.files.key.as_ref().map(absolute),
        directory: source.directory.as_ref().map(absolute),
    }
}

fn certificate(leaf: &Certificate) -> state::LeafState {
    state::LeafState {
        fingerprint: leaf.fingerprint(),
        names: leaf.names(),
        not_before: rfc3339::to_seconds(leaf.not_before),
        not_after: rfc3339::to_seconds(leaf.not_after),
    }
}

fn remembered(site: &SiteReport) -> state::SiteState {
    state::SiteState {
        id: site.id,
        domain: site.domain.clone(),
        cname: site.cname.clone(),
        cert_id: site.cert_id,
        outcome: site.outcome.clone(),
        detail: site.detail.clone(),
    }
}

fn by_another_run(site: &state::SiteState, at: &str) -> Option<SiteReport> {
    if matches!(site.outcome, Outcome::Unknown(_)) {
        return None;
    }
    Some(SiteReport {
        id: site.id,
        domain: site.domain.clone(),
        cert_id_before: site.cert_id,
        cert_id: site.cert_id,
        outcome: site.outcome.clone(),
        detail: Some(format!("deployed by another run at {at}")),
        edge: None,
        cname: site.cname.clone(),
    })
}

fn forgetful(reason: &str) -> String {
    format!("this deployment is not remembered: {reason}")
}
