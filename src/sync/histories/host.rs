//! A host with lineages, and the runs on it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use time::{Duration, OffsetDateTime};

use super::super::check::{Check, decide};
use super::super::scan::{Candidate, LeafOnDisk, Reason, Scanned};
use super::super::workers::schedule;
use super::invariants::{BeforeDeployment, DeployedLeaf, Sent};
use super::scenario;
use crate::deploy::incomplete_listing;
use crate::deploy::model::{Change, ModelDeployment, ModelResult, Moment, World, recorded_sites};
use crate::error::ErrorKind;
use crate::inventory::Member;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::{ChangedRecords, Outcome};
use crate::plan::IndexedListing;
use crate::report::Deployed;
use crate::settings::{Layer, Settings, Verify};
use crate::source::Source;
use crate::state::{
    Deployments, Given, LineageState, Origin, RunOptions, RunResult, ServiceDeployments, SiteState,
    SyncRecord,
};
use crate::verify::EdgeView;

pub(crate) struct Host {
    pub(super) lineages: Vec<HostLineage>,
    /// By record, the lineage and the leaf that this host stored there last and has to remember.
    pub(super) stored: BTreeMap<u64, (usize, usize)>,
    /// The records of which that is unknown, because a run was killed or had no response.
    pub(super) unknown: BTreeSet<u64>,
    pub(super) has_run_by_hand: bool,
    pub(crate) last_sync: Option<SyncRecord>,
    /// When each `sync` that reached the service ended.
    pub(super) synced: Vec<OffsetDateTime>,
    /// When anything but `sync` last happened, or lineages last left sites to others, or these took them over in the next
    /// `sync`.
    pub(super) disturbed_at: Moment,
    /// The sites that each lineage provided before the last `sync`, and no longer after it.
    pub(super) handed_over: HashSet<(usize, usize)>,
    /// Whether files were restored since the last `sync`, and before it.
    pub(super) has_restored: bool,
    pub(super) had_restored: bool,
    /// The changes that all runs so far have made.
    pub(super) sent: Sent,
    /// Descriptions of the runs since the last step; `None` if the history is not printed.
    pub(super) runs: Option<Vec<String>>,
}

pub(super) struct HostLineage {
    pub(super) name: String,
    /// The leaf on disk.
    pub(super) leaf: usize,
    /// The leaves that it stored or saw served, since its state was lost.
    pub(super) deployed: HashSet<usize>,
    /// The leaf that it stored last in each record, since its state was lost.
    pub(super) stored: BTreeMap<u64, usize>,
    /// The leaves that were on disk before.
    pub(super) earlier: Vec<usize>,
    pub(super) domains: Vec<Domain>,
    pub(super) settings: Arc<Settings>,
    pub(super) source: Source,
    pub(super) state: Option<LineageState>,
    /// When the leaf on disk was written.
    pub(super) written_at: Moment,
    /// When a run last relied on the service's word; at first, when the lineage was added.
    pub(super) unverified_at: Moment,
    /// How long its leaves are valid.
    pub(super) lifetime: Duration,
    pub(super) renews_at: OffsetDateTime,
    /// The records that retries of an unfinished run by hand have changed; the first change of each is a disturbance. `None`:
    /// no such run is pending.
    pub(super) retried: Option<BTreeSet<u64>>,
}

/// What deployments that run at the same time decide from: the listing, and what this host deployed, as the program and as
/// the model see it.
type Snapshot<'s> = (&'s IndexedListing, &'s ServiceDeployments, &'s [DeployedLeaf]);

impl Host {
    pub(super) fn new(disturbed_at: Moment) -> Self {
        Self {
            lineages: Vec::new(),
            stored: BTreeMap::new(),
            unknown: BTreeSet::new(),
            has_run_by_hand: false,
            last_sync: None,
            synced: Vec::new(),
            disturbed_at,
            handed_over: HashSet::new(),
            has_restored: false,
            had_restored: false,
            sent: Sent::default(),
            runs: None,
        }
    }

    /// Loses the state of a lineage.
    pub(super) fn forget(&mut self, at: usize) {
        self.lineages[at].state = None;
        self.lineages[at].deployed.clear();
        self.lineages[at].stored.clear();
        self.stored.retain(|_, (lineage, _)| *lineage != at);
    }

    /// The recorded sites of each lineage with their outcomes.
    pub(super) fn outcomes(&self) -> Vec<Vec<(Domain, Outcome)>> {
        let states = self.lineages.iter().map(|lineage| lineage.state.iter());
        let outcome = |site: &SiteState| (site.domain.clone(), site.outcome.clone());
        states.map(|state| state.flat_map(|state| &state.sites).map(outcome).collect()).collect()
    }

    /// Notes what has to be remembered after a deployment. A run that was killed does not know the record that it
    /// replaced, nor does one without a response if it created a record or did not list it.
    fn remember(&mut self, at: usize, changes: &[Change], is_finished: bool, lists_records: bool) {
        for change in changes {
            let Change::Upload { leaf, record, replaced, is_lost } = change else { continue };
            self.lineages[at].stored.insert(*record, *leaf);
            let is_known = is_finished && (replaced.is_some() && lists_records || !is_lost);
            if is_known || self.stored.get(record).is_some_and(|(lineage, _)| *lineage == at) {
                self.stored.insert(*record, (at, *leaf));
                self.unknown.remove(record);
            } else {
                self.stored.remove(record);
                self.unknown.insert(*record);
            }
        }
    }

    /// The lineages as `status` gathers them, each with its leaf on disk and when that was written.
    pub(crate) fn members<'h>(
        &'h self,
        world: &'h World,
    ) -> impl Iterator<Item = (Member<'h>, &'h Leaf, OffsetDateTime)> {
        self.lineages.iter().map(|lineage| {
            let (name, source, state) = (lineage.name.clone(), lineage.source.clone(), lineage.state.clone());
            let member = Member { name, source: Ok(source), entry: None, state, is_unclaimed: false };
            (member, &world.leaves[lineage.leaf], lineage.written_at.0)
        })
    }

    /// One `sync`. If the host reboots, it leaves no record.
    pub(super) fn sync(&mut self, world: &mut World) {
        self.had_restored = std::mem::take(&mut self.has_restored);
        let before = self.provided();
        if let Some(exit_code) = self.sync_all(world) {
            let last = self.last_sync.take();
            let result = RunResult { at: world.now, exit_code, error: None };
            self.last_sync = Some(SyncRecord::after(last.as_ref(), result, true));
            self.synced.extend(world.faults.outage.is_none().then_some(world.now));
        }
        let handed_over = &before - &self.provided();
        let before = std::mem::replace(&mut self.handed_over, handed_over);
        if !(before.is_empty() && self.handed_over.is_empty()) {
            self.disturbed_at = world.moment();
        }
    }

    /// The sites that each lineage provides with its leaf.
    fn provided(&self) -> HashSet<(usize, usize)> {
        let sites = |(at, sites): (usize, Vec<(Domain, Outcome)>)| {
            let bound = sites.into_iter().filter(|(_, outcome)| outcome.is_bound());
            bound.map(move |(domain, _)| (at, World::index_of(&domain)))
        };
        self.outcomes().into_iter().enumerate().flat_map(sites).collect()
    }

    fn sync_all(&mut self, world: &mut World) -> Option<u8> {
        if let Some(kind) = world.faults.outage {
            return Some(kind.exit_code());
        }
        let (listing, deployments) = (IndexedListing::new(world.listing()), self.deployments());
        let lineages = self.lineages.iter().enumerate();
        let checks = lineages
            .map(|(at, lineage)| (at, decide(lineage.scan(world), &listing, &deployments, world.now)));
        let (settled, checks): (Vec<_>, Vec<_>) = checks.partition(|(_, check)| check.is_settled);
        let leaves = if checks.is_empty() { Vec::new() } else { self.deployed_leaves(world) };
        let gaps = listing.listing().gaps().filter(|gap| gap.may_hide(|_| false));
        let gaps = gaps.chain(settled.iter().filter_map(|(_, check)| check.gap));
        let mut codes: Vec<u8> = gaps.map(|gap| incomplete_listing(gap).kind().exit_code()).collect();
        let mut due = Vec::new();
        for (at, check) in checks {
            let checked = self.lineages[at].check(check, world);
            match checked.reason {
                Some(Reason::Expired(_)) => codes.push(ErrorKind::Refused.exit_code()),
                Some(_) => due.push(checked),
                None => {}
            }
        }
        let (mut independent, conflicting) = schedule(due, &listing);
        // They run at the same time.
        world.rng.shuffle(&mut independent);
        for lineage in &independent {
            codes.push(self.deploy_due(lineage, (&listing, &deployments, &leaves), world)?);
        }
        for lineage in &conflicting {
            let (listing, deployments) = (IndexedListing::new(world.listing()), self.deployments());
            let leaves = self.deployed_leaves(world);
            codes.push(self.deploy_due(lineage, (&listing, &deployments, &leaves), world)?);
        }
        Some(ErrorKind::most_severe_code(codes))
    }

    fn deploy_due(&mut self, due: &Candidate<'_>, snapshot: Snapshot<'_>, world: &mut World) -> Option<u8> {
        let at = self.lineages.iter().position(|lineage| lineage.name == due.name).unwrap();
        let run = self.lineages[at].next_run(world);
        let result = self.deploy(at, &run, snapshot, world)?;
        if let Some(line) = self.runs.as_mut().and_then(|runs| runs.last_mut()) {
            *line = format!("{line} ({})", due.reason.as_ref().unwrap());
        }
        Some(result.exit_code)
    }

    /// The hook of a client.
    pub(super) fn hook(&mut self, at: usize, world: &mut World) {
        let (listing, deployments) = (IndexedListing::new(world.listing()), self.deployments());
        let run = self.lineages[at].run(Given::default(), Origin::Hook);
        self.deploy(at, &run, (&listing, &deployments, &self.deployed_leaves(world)), world);
    }

    fn deployments(&self) -> Rc<ServiceDeployments> {
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
        let HostLineage { state: before, retried, .. } = &self.lineages[at];
        let (before, retried) = (before.clone(), retried.clone());
        let run = Run { force, ..self.lineages[at].run(given, Origin::Hand) };
        let result = self.deploy(at, &run, (&listing, &deployments, &self.deployed_leaves(world)), world);
        let lineage = &mut self.lineages[at];
        if result.is_some_and(|result| result.is_mistake) {
            (lineage.state, lineage.retried) = (before, retried);
        }
    }

    fn deploy(
        &mut self,
        at: usize,
        run: &Run,
        (listing, deployments, leaves): Snapshot<'_>,
        world: &mut World,
    ) -> Option<ModelResult> {
        let lineage = &self.lineages[at];
        let leaf = &world.leaves[lineage.leaf];
        let service = lineage.settings.base_url.to_string();
        let state = lineage.state.as_ref();
        let missed = state.map(|state| state.missed_sites(&service, leaf)).unwrap_or_default();
        let mut state = lineage.begin(run, world);
        world.now += Duration::SECOND;
        let before = BeforeDeployment::new(self, at, run, leaves, world);
        let deployment = ModelDeployment {
            lineage: &lineage.name,
            leaf: lineage.leaf,
            domains: &run.domains,
            settings: &run.settings,
            guards: run.given.guards,
            force: run.force,
            upload_only: run.is_upload_only(),
            repeats_since: state.pending_since.filter(|_| run.origin == Origin::Retry),
            deployments,
            missed: &missed,
            known: &state,
            listing,
        };
        let mut result = deployment.run(world);
        if let Some(ModelResult { exit_code, error, sites, records, .. }) = &mut result {
            let (ended, sites) = ((*exit_code, error.take()), std::mem::take(sites));
            state.finish(ended, sites, records, &lineage.options(run), world.now);
        }
        if let Some(runs) = &mut self.runs {
            runs.push(run.describe(&lineage.name, &state, before.changes(world)));
        }
        before.check(&state, result.as_ref(), run, world);
        self.sent.check(before.changes(world), before.disturbances, run, world);
        // An edge that is left behind may show it for another record than the one that holds it. If the lineage stored it
        // there, before another one replaced it, or stored a later one since, that says nothing new.
        let served = result.iter().flat_map(|result| &result.served);
        let seen: Vec<u64> =
            served.filter_map(|site| world.sites[usize::try_from(*site).unwrap() - 1].cert_id).collect();
        let HostLineage { leaf, stored: own, .. } = &self.lineages[at];
        let issued = |leaf: &usize| world.leaves[*leaf].not_before;
        let is_known = |stored: &usize| stored == leaf || issued(stored) > issued(leaf);
        let is_news = |record: &u64| seen.contains(record) && !own.get(record).is_some_and(is_known);
        self.stored.retain(|record, (_, stored)| stored == leaf || !is_news(record));
        let lists_records = !run.is_upload_only() && world.faults.hides_records_after.is_none();
        self.remember(at, before.changes(world), state.result.is_some(), lists_records);
        let changes = before.changes(world);
        let is_sending = matches!(run.origin, Origin::Retry | Origin::Hand) && !changes.is_empty();
        let lineage = &mut self.lineages[at];
        if changes.iter().any(|change| matches!(change, Change::Upload { .. })) {
            lineage.deployed.insert(lineage.leaf);
        }
        if run.origin != Origin::Retry {
            let is_unfinished = run.origin == Origin::Hand && state.pending_since.is_some();
            lineage.retried = is_unfinished.then(BTreeSet::new);
        } else if let Some(records) = &mut lineage.retried {
            let known = records.len();
            // What a run that was killed or without a response stored, the next one does not know.
            let known_record = |change: &Change| match change {
                Change::Upload { is_lost: true, .. } => None,
                Change::Upload { record, .. } | Change::Bind { to: record, .. } => Some(*record),
            };
            let is_finished = state.result.is_some();
            records.extend(changes.iter().filter(|_| is_finished).filter_map(known_record));
            world.disturbances += records.len() - known;
        }
        lineage.state = Some(state);
        lineage.note_served();
        if run.is_unverified() {
            lineage.unverified_at = world.moment();
        }
        // The standing options may ask for more than those of a run by hand that has ended.
        world.disturbances += usize::from(is_sending && lineage.next_run(world).given != run.given);
        result
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

impl Run {
    /// Whether this is the bare upload.
    pub(super) fn is_upload_only(&self) -> bool {
        let is_by_hand = matches!(self.origin, Origin::Hook | Origin::Hand);
        is_by_hand && !self.given.domains.is_empty() && self.settings.wait.is_zero()
    }

    /// Whether it relies on the service's word.
    pub(super) fn is_unverified(&self) -> bool {
        self.is_upload_only() || self.settings.verify == Verify::Off
    }

    fn describe(&self, lineage: &str, state: &LineageState, changes: &[Change]) -> String {
        let outcome = |site: &SiteState| format!("{} {}", site.domain, site.outcome);
        let sites: Vec<String> = state.sites.iter().map(outcome).collect();
        let end = state.result.as_ref().map_or_else(
            || "killed".to_owned(),
            |result| format!("exit {} {}", result.exit_code, result.error.as_deref().unwrap_or_default()),
        );
        let given = serde_json::to_string(&self.given).unwrap();
        let force = if self.force { " --force" } else { "" };
        format!("{lineage} {:?} {given}{force}: {sites:?} {end} {changes:?}", self.origin)
    }
}

impl HostLineage {
    /// A run with these options, which the configuration completes.
    fn run(&self, given: Given, origin: Origin) -> Run {
        let domains = if given.domains.is_empty() { &self.domains } else { &given.domains };
        let (domains, settings) = (domains.clone(), scenario::with(&self.settings, &given.settings));
        // It is for this run only.
        let given = Given { settings: Layer { wait: None, ..given.settings }, ..given };
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
        let begun = self.state.as_ref().and_then(|state| state.begun_at);
        let lineage = Scanned { name: self.name.clone(), source: self.source.clone(), entry: None, begun };
        let run = self.next_run(world);
        let options = self.options(&run);
        Candidate::new(lineage, run.settings, options, leaf, self.state.clone())
    }

    /// The state after the intent is written.
    fn begin(&self, run: &Run, world: &World) -> LineageState {
        let leaf = Some(world.leaves[self.leaf].clone());
        let source = Source::of_file("/c");
        LineageState::begin(self.state.clone(), source, &self.options(run), leaf, world.now)
    }

    fn options(&self, run: &Run) -> RunOptions {
        RunOptions {
            service: Some(run.settings.base_url.to_string()),
            domains: run.domains.clone(),
            given: run.given.clone(),
            origin: run.origin,
            is_configured: !self.domains.is_empty(),
        }
    }

    /// Notes that a site was seen to serve the leaf on disk.
    fn note_served(&mut self) {
        let is_served = |state: &LineageState| {
            let mut sites = state.sites.iter().filter(|site| state.is_of_current_leaf(site));
            sites.any(|site| site.outcome == Outcome::Served)
        };
        if self.state.as_ref().is_some_and(is_served) {
            self.deployed.insert(self.leaf);
        }
    }

    /// Handshakes as `sync::check` does, and records the result; the lineage has a reason if it is due.
    fn check<'a>(&mut self, mut check: Check<'_, 'a>, world: &World) -> Candidate<'a> {
        let run = self.next_run(world);
        if check.is_superseded {
            let mut state = self.begin(&run, world);
            let deployed = Deployed { sites: check.superseded, ..Deployed::default() };
            let sites = recorded_sites(&deployed, &state);
            state.finish((0, None), sites, &ChangedRecords::default(), &self.options(&run), world.now);
            self.state = Some(state);
            return check.lineage;
        }
        for checked in &mut check.sites {
            let mut seen = EdgeView::new(run.settings.verify == Verify::Require);
            let leaf = checked.reached_with.map_or(self.leaf, |leaf| world.index_of_leaf(leaf));
            world.observe(checked.site.id, leaf, !world.faults.is_blind, &mut seen);
            checked.view = Some(seen);
        }
        check.conclude();
        if let (true, Some(state)) = (check.has_changes(world.now), &mut self.state) {
            check.apply(state, world.now);
        }
        self.note_served();
        check.lineage
    }
}
