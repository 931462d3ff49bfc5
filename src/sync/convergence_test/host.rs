//! A host with lineages, and one run of `sync` on it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use time::Duration;

use super::super::check::Check;
use super::super::decision::{Decision, decide};
use super::super::scan::{Candidate, LeafOnDisk};
use super::super::schedule::{Job, Schedule};
use super::invariants::BeforeDeployment;
use super::scenario;
use crate::deploy::model::{Change, ModelDeployment, ModelResult, World, recorded_sites};
use crate::deploy::run_options;
use crate::names::Domain;
use crate::outcome::ChangedRecords;
use crate::plan::IndexedListing;
use crate::settings::{Settings, Verify};
use crate::source::Source;
use crate::state::{Deployments, Given, LineageState, Origin, RunOptions, ServiceDeployments};
use crate::verify::EdgeView;

#[derive(Debug)]
pub(super) struct Host {
    pub(super) lineages: Vec<HostLineage>,
    /// By record, the lineage and the leaf that this host stored there last and has to remember.
    pub(super) stored: BTreeMap<u64, (usize, usize)>,
    pub(super) has_run_by_hand: bool,
}

pub(super) struct HostLineage {
    pub(super) name: String,
    /// The leaf on disk.
    pub(super) leaf: usize,
    /// The leaves that were on disk before.
    pub(super) earlier: Vec<usize>,
    pub(super) domains: Vec<Domain>,
    pub(super) settings: Arc<Settings>,
    pub(super) source: Source,
    pub(super) state: Option<LineageState>,
}

impl Host {
    /// Loses the state of a lineage.
    pub(super) fn forget(&mut self, at: usize) {
        self.lineages[at].state = None;
        self.stored.retain(|_, (lineage, _)| *lineage != at);
    }

    /// Notes what has to be remembered after a deployment. A run that was killed does not know the record that it
    /// replaced, nor does one that created a record without a response.
    fn remember(&mut self, at: usize, changes: &[Change], is_finished: bool) {
        for change in changes {
            let Change::Upload { leaf, record, replaced, is_lost } = change else { continue };
            let is_known = is_finished && (replaced.is_some() || !is_lost);
            if is_known || self.stored.get(record).is_some_and(|(lineage, _)| *lineage == at) {
                self.stored.insert(*record, (at, *leaf));
            } else {
                self.stored.remove(record);
            }
        }
    }

    /// One `sync`, an hour after the last one: `verify_every` is an hour, too.
    pub(super) fn round(&mut self, world: &mut World) {
        world.now += Duration::HOUR;
        world.push();
        let (listing, deployments) = (IndexedListing::new(world.listing()), self.deployments());
        let mut due = Vec::new();
        for lineage in &mut self.lineages {
            match decide(lineage.scan(world), &listing, &deployments, world.now) {
                Decision::Unchanged | Decision::Superseded | Decision::Expired(..) => {}
                Decision::Deploy(job) => due.push(job),
                Decision::Check(check) => due.extend(lineage.check(check, world)),
            }
        }
        let mut schedule = Schedule::new(due, &listing);
        // They run at the same time.
        world.rng.shuffle(&mut schedule.independent);
        for job in &schedule.independent {
            self.deploy_job(job, &listing, &deployments, world);
        }
        for job in &schedule.conflicting {
            let (listing, deployments) = (IndexedListing::new(world.listing()), self.deployments());
            self.deploy_job(job, &listing, &deployments, world);
        }
    }

    fn deploy_job(
        &mut self,
        job: &Job<'_>,
        listing: &IndexedListing,
        deployments: &ServiceDeployments,
        world: &mut World,
    ) {
        let at = self.lineages.iter().position(|lineage| lineage.name == job.lineage.name).unwrap();
        let run = self.lineages[at].next_run(world);
        self.deploy(at, &run, listing, deployments, world);
    }

    fn deployments(&self) -> ServiceDeployments {
        let mut deployments = Deployments::default();
        for lineage in &self.lineages {
            if let Some(state) = &lineage.state {
                deployments.add(&lineage.name, state);
            }
        }
        deployments.of_service(&self.lineages[0].settings.base_url.to_string())
    }

    /// A run by hand. It leaves no trace if it was a mistake.
    pub(super) fn by_hand(&mut self, at: usize, given: Given, force: bool, world: &mut World) {
        self.has_run_by_hand = true;
        let (listing, deployments) = (IndexedListing::new(world.listing()), self.deployments());
        let (sent, before) = (world.changes.len(), self.lineages[at].state.clone());
        let run = Run { force, ..self.lineages[at].run(given, Origin::Hand) };
        self.deploy(at, &run, &listing, &deployments, world);
        let result = self.lineages[at].state.as_ref().and_then(|state| state.result.as_ref());
        let is_mistake = result.is_some_and(|result| ![0, 75].contains(&result.exit_code));
        if is_mistake && world.changes.len() == sent {
            self.lineages[at].state = before;
        }
    }

    fn deploy(
        &mut self,
        at: usize,
        run: &Run,
        listing: &IndexedListing,
        deployments: &ServiceDeployments,
        world: &mut World,
    ) {
        let before = BeforeDeployment::new(self, at, run, world);
        let lineage = &self.lineages[at];
        let leaf = &world.leaves[lineage.leaf];
        let service = lineage.settings.base_url.to_string();
        let state = lineage.state.as_ref();
        let deployed = state.map(|state| state.deployed_sites(&service, leaf)).unwrap_or_default();
        let missed = state.map(|state| state.missed_sites(&service, leaf)).unwrap_or_default();
        let mut state = lineage.begin(run, world);
        world.now += Duration::SECOND;
        let deployment = ModelDeployment {
            lineage: &lineage.name,
            leaf: lineage.leaf,
            domains: &run.domains,
            settings: &run.settings,
            guards: run.given.guards,
            force: run.force,
            is_retry: run.origin == Origin::Retry,
            deployments,
            deployed: &deployed,
            missed: &missed,
            known: &state,
            listing,
        };
        if let Some(ModelResult { exit_code, error, sites, records }) = deployment.run(world) {
            state.finish((exit_code, error), sites, &records, &lineage.options(run), world.now);
        }
        before.check(&state, run, world);
        self.remember(at, before.changes(world), state.result.is_some());
        self.lineages[at].state = Some(state);
    }
}

/// The options of a run.
pub(super) struct Run {
    pub(super) domains: Vec<Domain>,
    pub(super) settings: Arc<Settings>,
    pub(super) given: Given,
    pub(super) origin: Origin,
    pub(super) force: bool,
}

impl HostLineage {
    /// A run with these options, which the configuration completes.
    fn run(&self, given: Given, origin: Origin) -> Run {
        let domains = if given.domains.is_empty() { &self.domains } else { &given.domains };
        let (domains, settings) = (domains.clone(), scenario::with(&self.settings, &given.settings));
        Run { domains, settings, given, origin, force: false }
    }

    /// The next run of `sync`.
    pub(super) fn next_run(&self, world: &World) -> Run {
        let state = self.state.as_ref();
        let on_disk = Some(&world.leaves[self.leaf]);
        let (given, origin) = state.map(|state| state.given(on_disk)).unwrap_or_default();
        self.run(given, origin)
    }

    fn scan(&self, world: &World) -> Candidate<'static> {
        let leaf = LeafOnDisk { is_missing: false, leaf: Some(world.leaves[self.leaf].clone()) };
        let place = (self.name.clone(), self.source.clone(), None);
        let Run { domains, settings, given, origin, .. } = self.next_run(world);
        Candidate::new(place, settings, (domains, given, origin), leaf, self.state.clone())
    }

    /// The state after the intent is written.
    fn begin(&self, run: &Run, world: &World) -> LineageState {
        let leaf = Some(world.leaves[self.leaf].clone());
        let source = Source::of_file("/c");
        LineageState::begin(self.state.clone(), source, &self.options(run), leaf, world.now)
    }

    fn options(&self, run: &Run) -> RunOptions {
        RunOptions {
            is_configured: !self.domains.is_empty(),
            ..run_options(Some(&run.settings), &run.domains, run.given.clone(), run.origin)
        }
    }

    /// Returns why the lineage has to be deployed.
    fn check<'a>(&mut self, mut check: Check<'_, 'a>, world: &World) -> Option<Job<'a>> {
        let run = self.next_run(world);
        if check.is_superseded {
            let mut state = self.begin(&run, world);
            let sites = recorded_sites(&check.superseded_sites(), &state);
            state.finish((0, None), sites, &ChangedRecords::default(), &self.options(&run), world.now);
            self.state = Some(state);
            return None;
        }
        let sites: Vec<u64> = check.sites.iter().map(|site| site.id).collect();
        for site in sites {
            let mut view = EdgeView::new(run.settings.verify == Verify::Require);
            world.observe(site, self.leaf, !world.faults.is_blind, &mut view);
            check.views.insert(site, view);
        }
        let drift = check.drift();
        if let (None, true, Some(state)) = (&drift, check.has_changes(world.now), &mut self.state) {
            state.update_sites(|site| check.update(site, world.now), check.checked_at(world.now));
        }
        drift.map(|reason| Job { lineage: check.lineage, reason })
    }

    /// Whether every address of an edge must be reached.
    pub(super) fn is_strict(&self) -> bool {
        self.settings.verify == Verify::Require
    }
}

impl fmt::Debug for HostLineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sites = self.state.iter().flat_map(|state| &state.sites);
        let sites: Vec<String> = sites.map(|site| format!("{site:?}")).collect();
        let result = self.state.as_ref().map(|state| (&state.result, state.pending_since));
        let domains: Vec<String> = self.domains.iter().map(ToString::to_string).collect();
        f.debug_struct(&self.name)
            .field("leaf", &self.leaf)
            .field("domains", &domains)
            .field("rebind", &self.settings.rebind)
            .field("is_strict", &self.is_strict())
            .field("sites", &sites)
            .field("result", &result)
            .finish_non_exhaustive()
    }
}
