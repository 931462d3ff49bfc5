//! The journal of one deployment: takes the lock of the lineage, writes the intent before the first request and the
//! result after the last.
//!
//! A state directory that cannot be written is a warning here: the deployment matters more than its journal.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use time::OffsetDateTime;

use crate::bundle;
use crate::cert::Certificate;
use crate::clock::{self, Deadline};
use crate::error::{CommandError, ErrorKind, Result};
use crate::hint::Hint;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::report::{Deployed, Report, SiteReport};
use crate::runtime::offload;
use crate::source::Source;
use crate::state::{
    self, Deployments, LineageState, Origin, RunOptions, ServiceDeployments, SiteState, Store, WriteError,
};
use crate::text;

/// The state of one lineage while it is deployed.
#[derive(Default)]
pub(crate) struct Journal {
    pub(super) name: String,
    /// As it is recorded.
    source: Source,
    /// Those of the run.
    pub(crate) options: RunOptions,
    /// The leaf on disk, once it is known.
    leaf: Option<Leaf>,
    /// `None` if there is no usable state directory.
    store: Option<Store>,
    lock: Option<File>,
    /// What earlier runs left behind.
    pub(crate) before: Option<LineageState>,
    /// Whether the state directory was read and has no state of the lineage.
    pub(crate) has_no_state: bool,
    /// The state since this run began.
    state: Option<LineageState>,
    /// The names that the leaf must have; `None` allows any.
    pub(crate) expected_names: Option<Vec<String>>,
    /// Whether the leaf has other names, so that nothing was done.
    pub(crate) has_other_names: bool,
    /// Whether the state file must stay as it is.
    is_read_only: bool,
    /// Why the state could not be written.
    pub(crate) write_error: Option<WriteError>,
}

impl Journal {
    /// Locks the lineage with this name, waiting for another run until the deadline, and reads its state.
    pub(crate) async fn open(
        name: String,
        source: &Source,
        directory: Option<&Path>,
        deadline: Deadline,
        report: &mut Report,
    ) -> Result<Self> {
        let mut journal = Self::new(name, source);
        let reason = match directory {
            _ if !source.is_on_disk() => "it is from standard input".to_owned(),
            _ if is_pipe(&source.files.cert) => {
                format!("{} is not a regular file", text::path(&source.files.cert))
            }
            None => "no state directory is set, and there is no home directory".to_owned(),
            Some(directory) => {
                match journal.lock(directory, deadline).await {
                    Ok(true) => journal.read(report),
                    Ok(false) => return Err(locked(&journal.name)),
                    Err(error) => journal.warn(error, report),
                }
                return Ok(journal);
            }
        };
        report.warnings.push(not_recorded(&reason));
        Ok(journal)
    }

    /// A journal that only reads, for a run that changes nothing.
    pub(crate) fn read_only(source: &Source, directory: Option<&Path>, report: &mut Report) -> Self {
        let store = directory.filter(|directory| directory.is_dir()).map(Store::at);
        let mut journal =
            Self { store, is_read_only: true, ..Self::new(state::lineage_name(source), source) };
        journal.read(report);
        journal
    }

    fn new(name: String, source: &Source) -> Self {
        Self { name, source: source.to_absolute(), ..Self::default() }
    }

    /// Opens the store and locks the lineage. `false`: another run still held the lock at the deadline.
    async fn lock(&mut self, directory: &Path, deadline: Deadline) -> Result<bool, WriteError> {
        let store = Store::open(directory)?;
        self.lock = store.lock(&self.name, deadline).await?;
        self.store = Some(store);
        Ok(self.lock.is_some())
    }

    fn read(&mut self, report: &mut Report) {
        let Some(store) = &self.store else { return };
        match store.read(&self.name) {
            Ok(state) => {
                self.has_no_state = state.is_none();
                self.before = state;
            }
            Err(error) => {
                report.warnings.push(error.to_string());
                // It may be the file of a later release.
                if !error.is_invalid() && !self.is_read_only {
                    self.is_read_only = true;
                    self.warn(store.refuse_overwrite(&self.name, &error), report);
                }
            }
        }
    }

    /// If this run is a retry by `sync`: when the deployment became pending.
    pub(super) fn repeats_since(&self) -> Option<OffsetDateTime> {
        self.retried().and_then(|state| state.pending_since)
    }

    /// The state before this run, if it is a retry by `sync`.
    fn retried(&self) -> Option<&LineageState> {
        self.before.as_ref().filter(|_| self.options.origin == Origin::Retry)
    }

    /// What this lineage, before this run, and those that were ever deployed to one of these sites have deployed.
    pub(super) fn neighbours<'h>(
        &self,
        service: &str,
        hosts: impl IntoIterator<Item = &'h str>,
        report: &mut Report,
    ) -> Rc<ServiceDeployments> {
        let own = (self.name.as_str(), self.before.as_ref());
        let neighbours = self.store.as_ref().map(|store| store.neighbours(service, hosts, own));
        let (deployments, errors) = neighbours.unwrap_or_default();
        report.warnings.extend(errors.iter().map(ToString::to_string));
        deployments.of_service(service)
    }

    /// Everything that lineages of this host deployed to the service.
    pub(super) fn all_deployments(&self, service: &str) -> Rc<ServiceDeployments> {
        let states = self.store.as_ref().map(|store| store.read_all().0).unwrap_or_default();
        Deployments::of(&states).of_service(service)
    }

    /// Notes for the runs on other lineages that this one is deployed to these sites. Must precede the upload.
    pub(super) fn claim<'h>(&self, service: &str, hosts: impl Iterator<Item = &'h str>, report: &mut Report) {
        let Some(store) = self.store.as_ref().filter(|_| self.write_error.is_none()) else { return };
        if let Err(error) = store.claim(service, hosts, &self.name) {
            report.warnings.push(format!("other lineages may not notice this deployment: {error}"));
        }
    }

    /// Sets the leaf that is to be deployed. Fails if the options are for the retry of another one, or if it must have
    /// other names: the client has renewed the lineage since the run began.
    pub(super) fn set_leaf(&mut self, leaf: &Certificate) -> Result<()> {
        let leaf = leaf.to_leaf();
        let is_other = self.retried().and_then(|state| state.leaf.as_ref()).is_some_and(|old| *old != leaf);
        self.has_other_names = self.expected_names.as_ref().is_some_and(|names| *names != leaf.names);
        if is_other || self.has_other_names {
            let message = "the lineage was renewed while this run started";
            let error = CommandError::new(ErrorKind::Temporary, message);
            return Err(error.hint(Hint::RETRY).unsent("nothing was sent"));
        }
        self.leaf = Some(leaf);
        Ok(())
    }

    /// Writes the intent to deploy.
    pub(crate) fn begin(&mut self, report: &mut Report) {
        let (before, source, leaf) = (self.before.clone(), self.source.clone(), self.leaf.clone());
        let state = LineageState::begin(before, source, &self.options, leaf, clock::now());
        if !self.before.as_ref().is_some_and(|before| state.adds_nothing_to(before)) {
            self.write(|store, name| store.write(name, &state), report);
        }
        self.state = Some(state);
    }

    /// Adds an error to the report and writes the result, which has the report's exit code and message. A failure
    /// before the intent was written is recorded, too, because the ACME client does not run the hook again. A mistake
    /// by hand is not: `sync` would repeat it in every run.
    ///
    /// The result is written in another thread, so that other tasks go on.
    pub(crate) async fn finish(&mut self, result: Result<()>, report: &mut Report) {
        if let Err(error) = result {
            report.fail(error);
        }
        if self.leaves_nothing_to_retry(report) {
            return self.withdraw(report);
        }
        if self.state.is_none() {
            if report.exit_code() == 0 {
                return;
            }
            let has_own_options = matches!(self.options.origin, Origin::Hook | Origin::Hand);
            if has_own_options && self.leaf.is_none() && self.store.is_some() {
                // They are for the leaf on disk, even if the run ended before reading it.
                self.leaf = bundle::leaf(&self.source.files, None).ok().flatten();
            }
            self.begin(report);
        }
        let Some(state) = &mut self.state else { return };
        let sites = recorded_sites(&report.deployed, state);
        let result = (report.exit_code(), report.error());
        state.finish(result, sites, &report.deployed.records, &self.options, clock::now());
        let (name, state) = (self.name.clone(), state.clone());
        let Some(store) = self.store.clone().filter(|_| !self.is_read_only) else { return };
        // If a power failure undoes it, a later run will do this again.
        if let Err(error) = offload(move || store.write_unsynced(&name, &state)).await {
            self.warn(error, report);
        }
    }

    /// Whether this run by hand failed before it changed anything, and not for a temporary reason: it was a mistake. A run
    /// for another service that could not be reached counts as one, too. With the state as it was, `sync` still finds a
    /// renewal and what was pending.
    fn leaves_nothing_to_retry(&self, report: &Report) -> bool {
        let has_only_failed = !report.errors().is_empty() && !report.deployed.changed;
        let is_temporary = report.errors().iter().any(|error| error.kind() == ErrorKind::Temporary);
        let known = self.before.as_ref().and_then(|before| before.service.as_ref());
        let is_other_service = self.options.service.as_ref().zip(known).is_some_and(|(own, old)| own != old);
        self.options.origin == Origin::Hand && has_only_failed && (!is_temporary || is_other_service)
    }

    /// Restores the state before this run.
    fn withdraw(&mut self, report: &mut Report) {
        if self.state.take().is_some() {
            let before = self.before.take();
            let restore = |store: &Store, name: &str| match &before {
                Some(before) => store.write(name, before),
                None => store.withdraw(name),
            };
            self.write(restore, report);
        }
        self.is_read_only = true;
    }

    /// Changes the state without a deployment.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut LineageState), report: &mut Report) {
        let Some(mut state) = self.before.take() else { return };
        change(&mut state);
        self.write(|store, name| store.write_unsynced(name, &state), report);
        self.before = Some(state);
    }

    /// Records that other lineages supersede this one on all its sites, which the report lists. Nothing remains
    /// pending.
    pub(crate) async fn supersede(&mut self, leaf: Option<Leaf>, report: &mut Report) {
        self.leaf = leaf;
        self.begin(report);
        self.finish(Ok(()), report).await;
    }

    /// Whether `sync` can retry the deployment: it is recorded, and a later run can read the key.
    pub(crate) fn can_be_retried(&self) -> bool {
        let is_recorded = self.store.is_some() && !self.is_read_only && self.write_error.is_none();
        is_recorded && !self.source.files.key.as_deref().is_some_and(is_pipe)
    }

    fn write(&mut self, write: impl FnOnce(&Store, &str) -> Result<(), WriteError>, report: &mut Report) {
        let Some(store) = self.store.as_ref().filter(|_| !self.is_read_only) else { return };
        if let Err(error) = write(store, &self.name) {
            self.warn(error, report);
        }
    }

    /// Warns once for each reason that the deployment is not recorded.
    fn warn(&mut self, error: WriteError, report: &mut Report) {
        let warning = not_recorded(&error.to_string());
        if !report.warnings.contains(&warning) {
            report.warnings.push(warning);
        }
        self.write_error = Some(error);
    }
}

/// Another run still held the lock of the lineage at the deadline.
pub(crate) fn locked(lineage: &str) -> CommandError {
    let message = format_args!("another run of edgecert is still deploying {lineage}");
    let hint = "wait for that run to finish, then run this command again; its options were not recorded";
    CommandError::new(ErrorKind::Temporary, message).class("locked").hint(hint)
}

/// Whether the file is a pipe or a device, which a later run cannot read again.
fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir())
}

fn not_recorded(reason: &str) -> String {
    format!("this deployment is not recorded: {reason}")
}

/// The sites that a run was for or bound, with what earlier runs saw of their edges, those that an earlier run bound
/// through a record that they share with these, and those that the listing may lack.
pub(crate) fn recorded_sites(deployed: &Deployed, state: &LineageState) -> Vec<SiteState> {
    let (sites, before) = (&deployed.sites, &state.sites);
    let by_host: HashMap<&str, &SiteState> = before.iter().map(|site| (site.domain.host(), site)).collect();
    let is_own = |site: &&SiteReport| site.is_required || site.outcome.is_bound();
    let records: HashSet<u64> = sites.iter().filter(is_own).filter_map(|site| site.cert_id).collect();
    let recorded = sites.iter().filter_map(|site| {
        let known = by_host.get(site.domain.host()).copied();
        if is_own(&site) {
            let mut edge = known.map(|known| known.edge.clone()).unwrap_or_default();
            edge.add(site.findings.as_deref());
            return Some(SiteState {
                id: site.id,
                domain: site.domain.clone(),
                cname: site.cname.clone(),
                cert_id: site.cert_id,
                outcome: site.outcome.clone(),
                detail: site.detail.clone(),
                leaf: None,
                edge,
            });
        }
        let is_still_reached = |known: &&SiteState| {
            known.outcome.is_bound()
                && known.cert_id == site.cert_id
                && known.cert_id.is_some_and(|id| records.contains(&id))
                && state.is_of_current_leaf(known)
        };
        known.filter(is_still_reached).cloned()
    });
    let mut hidden: HashSet<&str> = deployed.hidden.iter().map(Domain::host).collect();
    for site in sites {
        hidden.remove(site.domain.host());
    }
    let known = state.sites_of(state.service.as_deref()).iter();
    recorded.chain(known.filter(|known| hidden.contains(known.domain.host())).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use edgecert_workload::Authority;
    use tempfile::TempDir;

    use super::*;
    use crate::outcome::{ChangedRecords, Outcome};
    use crate::runtime::Runtime;
    use crate::state::fixture::served;

    #[test]
    fn options_of_a_retry_are_for_its_leaf() {
        let directory = TempDir::new().unwrap();
        let renewed = directory.path().join("cert.pem");
        let issued = Authority::new("Test").unwrap().issue(&["a.example".into()]).unwrap();
        std::fs::write(&renewed, issued.fullchain()).unwrap();
        let source = Source::of_file(renewed.to_str().unwrap());
        let renewed = bundle::load_chain(&source.files).unwrap().chain.ok().unwrap().leaf;
        let pending = Leaf { fingerprint: "aa".into(), ..renewed.to_leaf() };

        let options = |origin| RunOptions { origin, ..RunOptions::default() };
        let begun = OffsetDateTime::UNIX_EPOCH;
        let by_hand = options(Origin::Hand);
        let state = LineageState::begin(None, source.clone(), &by_hand, Some(pending.clone()), begun);
        let store = Store::open(&directory.path().join("state")).unwrap();
        store.write("x", &state).unwrap();

        let mut report = Report::new("deploy");
        let run = async {
            let (state, deadline) =
                (directory.path().join("state"), Deadline::after(Duration::from_secs(60)));
            let opened = Journal::open("x".into(), &source, Some(&state), deadline, &mut report).await;
            let mut journal = opened.unwrap();
            assert_eq!(journal.repeats_since(), None);
            journal.options = options(Origin::Retry);
            assert_eq!(journal.repeats_since(), Some(begun));
            let result = journal.set_leaf(&renewed);
            assert!(result.is_err());
            journal.finish(result, &mut report).await;
            assert_eq!(store.read("x").unwrap().unwrap().leaf, Some(pending), "still to be deployed");

            // Those of a hook that failed before it read the leaf are for the one on disk.
            journal.state = None;
            journal.options = options(Origin::Hook);
            journal.finish(Err(CommandError::new(ErrorKind::Config, "failed")), &mut report).await;
            assert_eq!(store.read("x").unwrap().unwrap().leaf, Some(renewed.to_leaf()));
        };
        Runtime::new().unwrap().block_on(run);
    }

    #[test]
    fn state_of_a_later_release_is_kept() {
        let (directory, source) = (TempDir::new().unwrap(), Source::of_file("/c"));
        let (name, deadline) = (state::lineage_name(&source), Deadline::after(Duration::from_secs(60)));
        let (store, options) = (Store::open(directory.path()).unwrap(), RunOptions::default());
        let begun = OffsetDateTime::UNIX_EPOCH;
        store.write(&name, &LineageState::begin(None, source.clone(), &options, None, begun)).unwrap();
        let file = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
        std::fs::write(&file, "{\"version\":300}").unwrap();

        let mut report = Report::new("deploy");
        Runtime::new().unwrap().block_on(async {
            let opened = Journal::open(name, &source, Some(directory.path()), deadline, &mut report).await;
            let mut journal = opened.unwrap();
            journal.options = RunOptions { origin: Origin::Hand, ..options };
            journal.begin(&mut report);
            journal.claim("https://api.example.net", ["a.example"].into_iter(), &mut report);
            journal.finish(Err(CommandError::new(ErrorKind::Refused, "a mistake")), &mut report).await;
        });
        assert_eq!(report.warnings.len(), 2, "it cannot be read, and the run is not recorded");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "{\"version\":300}");
        assert!(!directory.path().join("sites").exists());

        let mut report = Report::new("plan");
        Journal::read_only(&source, Some(directory.path()), &mut report);
        assert_eq!(report.warnings.len(), 1, "a run that changes nothing is never recorded");
    }

    #[test]
    fn sites_that_were_not_listed_stay_recorded() {
        let begun = OffsetDateTime::UNIX_EPOCH;
        let finish = |before: Option<&LineageState>, fingerprint: &str, domains: &[&str], hidden: &[&str]| {
            let service = Some("https://api.example.net".to_owned());
            let options = RunOptions { service, origin: Origin::Hook, ..RunOptions::default() };
            let (names, fingerprint) = (Vec::new(), fingerprint.to_owned());
            let leaf = Leaf { fingerprint, names, not_before: begun, not_after: begun, issuer: None };
            let source = Source::of_file("/c");
            let mut state = LineageState::begin(before.cloned(), source, &options, Some(leaf), begun);
            let site = |domain: &&str| SiteReport::new(&domain.parse().unwrap(), Outcome::Served, None);
            let sites = domains.iter().map(site).collect();
            let hidden = hidden.iter().map(|domain| domain.parse().unwrap()).collect();
            let deployed = Deployed { sites, hidden, ..Deployed::default() };
            let sites = recorded_sites(&deployed, &state);
            state.finish((0, None), sites, &ChangedRecords::default(), &options, begun);
            state
        };
        let shown = |state: &LineageState| {
            let shown = |site: &SiteState| (site.domain.spelled().to_owned(), site.leaf.clone().unwrap());
            state.sites.iter().map(shown).collect::<Vec<_>>()
        };
        let site = |domain: &str, leaf: &str| (domain.to_owned(), leaf.to_owned());
        let first = finish(None, "aa", &["a.example", "b.example"], &[]);
        let renewed = |hidden: &[&str]| shown(&finish(Some(&first), "bb", &["a.example"], hidden));
        assert_eq!(renewed(&["b.example"]), [site("a.example", "bb"), site("b.example", "aa")]);
        assert_eq!(renewed(&["a.example"]), [site("a.example", "bb")]);
        assert_eq!(renewed(&[]), [site("a.example", "bb")]);
    }

    #[test]
    fn site_stays_recorded_while_a_record_of_the_run_reaches_it() {
        type Edit = fn(&mut SiteState, &mut SiteReport);
        let rows: [(Edit, Option<Outcome>); 8] = [
            (|_, _| {}, Some(Outcome::Stale)),
            (|known, _| known.id = None, Some(Outcome::Stale)),
            (|known, _| known.outcome = Outcome::Queued, None),
            (|known, _| known.leaf = Some("bb".into()), None),
            (|_, now| now.cert_id = Some(6), None),
            (|known, now| (known.cert_id, now.cert_id) = (Some(6), Some(6)), None),
            (|_, now| now.outcome = Outcome::Served, Some(Outcome::Served)),
            (|_, now| now.is_required = true, Some(Outcome::Skipped)),
        ];
        for (row, (edit, expected)) in rows.into_iter().enumerate() {
            let (source, begun) = (Source::of_file("/c"), OffsetDateTime::UNIX_EPOCH);
            let (fingerprint, names) = ("aa".to_owned(), Vec::new());
            let leaf = Leaf { fingerprint, names, not_before: begun, not_after: begun, issuer: None };
            let mut state = LineageState::begin(None, source, &RunOptions::default(), Some(leaf), begun);
            let [mut known] = served().try_into().unwrap();
            (known.leaf, known.outcome) = (Some("aa".into()), Outcome::Stale);
            let cert_id = known.cert_id;
            let own = SiteReport::new(&"own.example".parse().unwrap(), Outcome::Served, None);
            let mut now = SiteReport::new(&known.domain, Outcome::Skipped, None);
            (now.id, now.cert_id, now.is_required) = (known.id, cert_id, false);
            edit(&mut known, &mut now);
            state.sites = vec![known];
            let sites = vec![now, SiteReport { id: Some(2), cert_id, ..own }];
            let recorded = recorded_sites(&Deployed { sites, ..Deployed::default() }, &state);
            let outcomes: Vec<Outcome> = recorded.into_iter().map(|site| site.outcome).collect();
            assert_eq!(
                outcomes,
                expected.into_iter().chain([Outcome::Served]).collect::<Vec<_>>(),
                "row {row}"
            );
        }
    }

    /// The exit code that is recorded of a run; `None`: no state is left.
    fn recorded(origin: Origin, has_begun: bool, failure: Option<ErrorKind>) -> Option<u8> {
        let (directory, source) = (TempDir::new().unwrap(), Source::of_file("/c"));
        let mut report = Report::new("deploy");
        Runtime::new().unwrap().block_on(async {
            let deadline = Deadline::after(Duration::from_secs(60));
            let opened = Journal::open("x".into(), &source, Some(directory.path()), deadline, &mut report);
            let mut journal = opened.await.unwrap();
            journal.options = RunOptions { origin, ..RunOptions::default() };
            if has_begun {
                journal.begin(&mut report);
            }
            let result = failure.map_or(Ok(()), |kind| Err(CommandError::new(kind, "failed")));
            journal.finish(result, &mut report).await;
        });
        let state = Store::at(directory.path()).read("x").unwrap();
        state.map(|state| state.result.unwrap().exit_code)
    }

    #[test]
    fn only_a_mistake_by_hand_leaves_no_state() {
        use ErrorKind::{Refused, Temporary};
        for (origin, has_begun, failure, expected) in [
            (Origin::Hook, false, None, None),
            (Origin::Hook, true, None, Some(0)),
            (Origin::Hook, false, Some(Refused), Some(Refused.exit_code())),
            (Origin::Hook, true, Some(Refused), Some(Refused.exit_code())),
            (Origin::Hand, true, None, Some(0)),
            (Origin::Hand, false, Some(Refused), None),
            (Origin::Hand, true, Some(Refused), None),
            (Origin::Hand, true, Some(Temporary), Some(Temporary.exit_code())),
        ] {
            assert_eq!(recorded(origin, has_begun, failure), expected, "{origin:?} {failure:?}");
        }
    }

    #[test]
    fn run_can_be_retried_if_it_is_recorded() {
        type Edit = fn(&mut Journal);
        let rows: [(Edit, bool); 6] = [
            (|_| {}, true),
            (|journal| journal.source.files.key = Some("/k".into()), true),
            (|journal| journal.source.files.key = Some("/dev/null".into()), false),
            (|journal| journal.store = None, false),
            (|journal| journal.is_read_only = true, false),
            (|journal| journal.write_error = Store::at(Path::new("/missing")).probe().err(), false),
        ];
        for (row, (edit, expected)) in rows.into_iter().enumerate() {
            let source = Source::of_file("/c");
            let mut journal =
                Journal { store: Some(Store::at(Path::new("/s"))), ..Journal::new("x".into(), &source) };
            edit(&mut journal);
            assert_eq!(journal.can_be_retried(), expected, "row {row}");
        }
        let (directory, pipe) = (TempDir::new().unwrap(), Source::of_file("/dev/null"));
        let (deadline, mut report) = (Deadline::after(Duration::from_secs(60)), Report::new("deploy"));
        for _ in 0..2 {
            let error = Store::at(Path::new("/missing")).probe().unwrap_err();
            Journal::new("x".into(), &pipe).warn(error, &mut report);
        }
        assert_eq!(report.warnings.len(), 1, "each reason is given once");
        let opened = Journal::open("x".into(), &pipe, Some(directory.path()), deadline, &mut report);
        assert!(!Runtime::new().unwrap().block_on(opened).unwrap().can_be_retried());
    }

    #[test]
    fn run_by_hand_for_another_service_is_a_mistake() {
        use ErrorKind::{Refused, Temporary};
        let nothing_to_retry = |[before, service]: [Option<&str>; 2], kinds: &[ErrorKind], changed| {
            let options = |service: Option<&str>| RunOptions {
                service: service.map(str::to_owned),
                origin: Origin::Hand,
                ..RunOptions::default()
            };
            let (source, begun) = (Source::of_file("/c"), OffsetDateTime::UNIX_EPOCH);
            let before = LineageState::begin(None, source.clone(), &options(before), None, begun);
            let (before, options) = (Some(before), options(service));
            let journal = Journal { options, before, ..Journal::new("x".into(), &source) };
            let mut report = Report::new("deploy");
            report.deployed.changed = changed;
            for kind in kinds {
                report.fail(CommandError::new(*kind, format!("{kind:?}")));
            }
            journal.leaves_nothing_to_retry(&report)
        };
        let (a, b) = (Some("https://a.example"), Some("https://b.example"));
        for (services, kinds, changed, expected) in [
            ([a, a], &[Refused][..], false, true),
            ([a, a], &[Refused], true, false),
            ([a, a], &[], false, false),
            ([a, a], &[Temporary], false, false),
            ([a, a], &[Refused, Temporary], false, false),
            ([a, b], &[Temporary], false, true),
            ([a, b], &[Temporary], true, false),
            ([a, None], &[Temporary], false, false),
            ([None, b], &[Temporary], false, false),
        ] {
            assert_eq!(nothing_to_retry(services, kinds, changed), expected, "{services:?} {kinds:?}");
        }
        assert!(is_pipe(Path::new("/dev/null")) && !is_pipe(Path::new("/dev")) && !is_pipe(Path::new("/c")));
    }
}
