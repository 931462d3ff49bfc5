//! What must hold of each deployment, after each step, and once nothing more is sent.

use std::collections::BTreeMap;

use time::Duration;

use super::Reported;
use super::host::{Host, HostLineage, Run};
use crate::deploy::model::{Change, ModelEdge, ModelResult, ModelSite, NAMES, STAGING, World, covers};
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::settings::{Guards, Verify};
use crate::state::{LineageState, Origin, SiteState};

/// What a deployment finds.
pub(super) struct BeforeDeployment {
    leaf: usize,
    /// The sites that the lineage is for and that other lineages do not supersede.
    wanted: Vec<usize>,
    /// Whether other lineages supersede it on all of its sites.
    is_superseded: bool,
    /// Whether every wanted site is bound, pushed and serves the leaf, and that can be seen.
    has_nothing_to_do: bool,
    /// Records that seem to hold the leaf already, because every listed site shows it, and hold another one that this host
    /// has not stored.
    seems_stored: Vec<u64>,
    /// Records whose valid leaf was issued later and can be seen at the edge, or was stored by this host.
    later: Vec<u64>,
    /// Number of changes so far.
    sent: usize,
    pub(super) disturbances: usize,
}

/// A site that a lineage provides the certificate of.
pub(super) struct DeployedLeaf {
    lineage: usize,
    site: usize,
    leaf: Leaf,
}

impl BeforeDeployment {
    pub(super) fn new(host: &Host, at: usize, run: &Run, leaves: &[DeployedLeaf], world: &World) -> Self {
        let lineage = &host.lineages[at];
        let requested = lineage.requested(&run.domains, world);
        let own = &world.leaves[lineage.leaf];
        let is_taken = |site: &usize| {
            let is_later = |leaf: &Leaf| leaf.rank() > own.rank() && leaf.not_after >= world.now;
            leaves
                .iter()
                .any(|deployed| deployed.lineage != at && deployed.site == *site && is_later(&deployed.leaf))
        };
        let wanted: Vec<usize> = requested.iter().copied().filter(|site| !is_taken(site)).collect();
        let has_leaf = |site: &usize| {
            is_visible(&world.sites[*site])
                && world.sites[*site].is_synced
                && is_served(*site, lineage.leaf, world)
        };
        let issued = world.leaves[lineage.leaf].not_before;
        let is_seeing = !world.faults.is_blind;
        let is_later = |id: &u64| {
            let held = world.records[id].leaf;
            let is_stored = host.stored.get(id).is_some_and(|(_, leaf)| *leaf == held);
            let leaf = &world.leaves[held];
            let is_later = leaf.not_before > issued && leaf.not_after > world.now;
            is_later && (is_stored || is_seeing && is_seen(*id, world))
        };
        let seems_stored = |id: &u64| {
            let held = world.records[id].leaf;
            let is_stored = host.stored.get(id).is_some_and(|(_, leaf)| *leaf == held);
            let mut listed = world.listed_on(*id).peekable();
            held != lineage.leaf
                && !is_stored
                && listed.peek().is_some()
                && listed.all(|site| shows(site, lineage.leaf))
        };
        Self {
            leaf: lineage.leaf,
            seems_stored: world.records.keys().copied().filter(seems_stored).collect(),
            is_superseded: !requested.is_empty() && wanted.is_empty(),
            has_nothing_to_do: is_seeing && wanted.iter().all(has_leaf),
            later: world.records.keys().copied().filter(is_later).collect(),
            wanted,
            sent: world.changes.len(),
            disturbances: disturbances(world),
        }
    }

    /// What the deployment changed.
    pub(super) fn changes<'w>(&self, world: &'w World) -> &'w [Change] {
        &world.changes[self.sent..]
    }

    pub(super) fn check(&self, state: &LineageState, result: Option<&ModelResult>, run: &Run, world: &World) {
        self.check_served(result, world);
        self.check_sightings(state, world);
        if run.is_unverified() {
            return;
        }
        let Guards { allow_shrink, allow_older, allow_partial, .. } = run.given.guards;
        let is_partial = world.faults.is_listing_partial();
        if !(allow_shrink || allow_partial && is_partial) {
            self.check_coverage(world);
        }
        let changes = self.changes(world);
        let yields = !allow_older || run.origin == Origin::Retry;
        let is_superseded = self.is_superseded && yields;
        assert!(!is_superseded || changes.is_empty(), "a superseded lineage sends {changes:?}");
        let has_nothing_to_do = self.has_nothing_to_do && !run.force && yields;
        assert!(!has_nothing_to_do || changes.is_empty(), "nothing to do, but it sends {changes:?}");
        for change in changes.iter().filter(|_| !allow_older) {
            let record = match change {
                Change::Upload { record, replaced, .. } => replaced.map(|_| *record),
                Change::Bind { from, .. } => *from,
            };
            // It may replace what is hidden.
            let is_hidden =
                |record: &u64| world.faults.hides_records_after.is_some_and(|last| *record > last);
            let record = record.filter(|record| !(allow_partial && is_hidden(record)));
            let is_later = record.is_some_and(|record| self.later.contains(&record));
            assert!(!is_later, "a later leaf is replaced: {change:?}");
        }
        let has_succeeded = state.result.as_ref().is_some_and(|result| result.exit_code == 0);
        assert!(!has_succeeded || !is_partial, "success with an incomplete listing");
        if has_succeeded && !world.faults.is_blind && !allow_older && !run.settings.wait.is_zero() {
            for site in self.wanted.iter().filter(|site| is_visible(&world.sites[**site])) {
                // `Fixpoint` checks the sites on which another lineage supersedes this one.
                if recorded(state, *site, world).is_none_or(|known| known.outcome != Outcome::Superseded) {
                    self.check_success(&world.sites[*site], changes, world);
                }
            }
        }
    }

    /// A site counts as served only if no address that can be reached shows another leaf.
    fn check_served(&self, result: Option<&ModelResult>, world: &World) {
        for site in result.iter().flat_map(|result| &result.served) {
            let site = &world.sites[usize::try_from(*site).unwrap() - 1];
            assert!(site.is_enabled && shows(site, self.leaf), "served, but it is not: {site}");
        }
    }

    /// Recorded sightings agree with the outcomes `served` and `stale`.
    fn check_sightings(&self, state: &LineageState, world: &World) {
        if state.result.is_none() {
            return;
        }
        let own = &world.leaves[self.leaf];
        for site in state.sites.iter().filter(|site| state.is_of_current_leaf(site)) {
            let serves_leaf = site.edge.serves(&own.fingerprint);
            let expected = match site.outcome {
                Outcome::Served => Some(true),
                Outcome::Stale => Some(false),
                _ => continue,
            };
            assert_eq!(serves_leaf, expected, "{site:?}");
            let (left, slack) = (own.not_after - world.now, site.edge.slack(world.now));
            assert!(expected == Some(false) || slack == Some(left), "{site:?}");
        }
    }

    /// No site loses coverage, unless the edges of the listed sites do not show what a record holds.
    fn check_coverage(&self, world: &World) {
        let changes = self.changes(world);
        for change in changes {
            let Change::Upload { record, replaced: Some(replaced), .. } = change else { continue };
            let [old, new] = [*replaced, self.leaf].map(|leaf| &world.leaves[leaf]);
            // A site that this deployment bound to the record did not depend on it before.
            let is_new = |at: usize| {
                let binds = |change: &Change| matches!(change, Change::Bind { site, to, .. } if *site == at && to == record);
                changes.iter().any(binds)
            };
            let sites = world.sites.iter().enumerate();
            let bound: Vec<(usize, &ModelSite)> =
                sites.filter(|(at, site)| site.cert_id == Some(*record) && !is_new(*at)).collect();
            // Some may have received the new leaf already.
            let shows_record = |edge: &ModelEdge| {
                edge.is_reachable && [Some(*replaced), Some(self.leaf)].contains(&edge.leaf)
            };
            let is_seen = |site: &ModelSite| site.is_enabled && site.edges.iter().all(shows_record);
            let mut listed = bound.iter().filter(|(at, _)| world.faults.hidden_site != Some(*at));
            let is_unseen = world.faults.is_blind || !listed.all(|(_, site)| is_seen(site));
            if is_unseen || self.seems_stored.contains(record) {
                continue;
            }
            let is_lost = |site: &ModelSite| covers(old, site.domain) && !covers(new, site.domain);
            assert!(!bound.iter().any(|(_, site)| is_lost(site)), "a site loses coverage: {change:?}");
        }
    }

    /// After success, handshakes show no other leaf, and a record that this deployment replaced or bound holds the
    /// leaf.
    fn check_success(&self, site: &ModelSite, changes: &[Change], world: &World) {
        let is_changed = changes.iter().any(|change| match change {
            Change::Upload { record, .. } | Change::Bind { to: record, .. } => site.cert_id == Some(*record),
        });
        let held = site.cert_id.and_then(|record| Some(world.records.get(&record)?.leaf));
        let mut shown = site.edges.iter().filter(|edge| edge.is_reachable).filter_map(|edge| edge.leaf);
        assert!(
            (!is_changed || held == Some(self.leaf)) && shown.all(|leaf| leaf == self.leaf),
            "silent success: {} does not serve the leaf",
            NAMES[site.domain]
        );
    }
}

fn recorded<'s>(state: &'s LineageState, site: usize, world: &World) -> Option<&'s SiteState> {
    let is_it = |known: &&SiteState| known.id == Some(site as u64 + 1);
    // The bare upload reports no ids, and a site may have been deleted and created again.
    let has_domain = |known: &&SiteState| World::index_of(&known.domain) == world.sites[site].domain;
    let by_domain = || state.sites.iter().find(has_domain).filter(|_| !world.sites[site].is_deleted);
    state.sites.iter().find(is_it).or_else(by_domain)
}

/// The number of disturbances so far: also the expiry of a leaf changes what is to be done.
fn disturbances(world: &World) -> usize {
    world.disturbances + world.leaves.iter().filter(|leaf| leaf.not_after < world.now).count()
}

/// The changes that runs made, each with the number of disturbances before the last run that made it.
#[derive(Default)]
pub(super) struct Sent(BTreeMap<(Option<usize>, u64, Option<usize>), usize>);

impl Sent {
    /// No change is repeated unless something happened since: neither an upload nor, in turn with others, a binding. As
    /// long as a push is not confirmed, the site cannot be read, or its edge does not show the leaf, runs upload it again.
    /// While a site cannot be read, no run knows that another has bound it.
    pub(super) fn check(&mut self, changes: &[Change], disturbances: usize, run: &Run, world: &World) {
        for change in changes {
            let (key, is_lagging) = match *change {
                Change::Upload { leaf, record, replaced, .. } => {
                    let mut sites = world.sites.iter().filter(|site| site.cert_id == Some(record));
                    let is_lagging = world.faults.is_unreadable
                        || sites.any(|site| !site.is_synced || !site.is_enabled || !shows(site, leaf));
                    ((None, record, Some(leaf)), replaced == Some(leaf) && is_lagging)
                }
                Change::Bind { site, to, .. } => ((Some(site), to, None), world.faults.is_unreadable),
            };
            if run.force || run.is_unverified() {
                self.0.remove(&key);
                continue;
            }
            let last = self.0.insert(key, disturbances);
            assert!(
                is_lagging || last.is_none_or(|last| last < disturbances),
                "repeated although nothing happened: {change:?}"
            );
        }
    }
}

/// How long the thresholds of `status --check` let a deployment be pending.
pub(super) const MAX_LAG: Duration = Duration::hours(7);
/// The sum of the thresholds for the age of the last `sync` and for a pending deployment.
const MAX_UNNOTICED: Duration = Duration::hours(3 + 6);

/// `status --check` reports a leaf that has expired at an edge if a valid one has been on disk for [`MAX_UNNOTICED`], nothing
/// else happened in that time, no run went without verification, and the service was in order for an hour of it. Until
/// the next `sync`, it reports that this is late; a deployment is pending only since then.
pub(super) fn check_expired(world: &World, host: &Host, judge: impl Fn() -> Vec<Reported>) {
    for (at, site) in world.sites.iter().enumerate().filter(|(_, site)| is_visible(site)) {
        let has_expired = |edge: &&ModelEdge| {
            let has_expired =
                |leaf: usize| world.leaves[leaf].not_after < world.now && world.covers(leaf, at);
            edge.is_reachable && edge.leaf.is_some_and(has_expired)
        };
        for edge in site.edges.iter().filter(has_expired) {
            let Some((_, winner)) = host.latest(at, world) else { continue };
            let HostLineage { written_at, unverified_at, .. } = winner;
            let (since, healthy) =
                *[*written_at, *unverified_at, host.disturbed_at, edge.since].iter().max().unwrap();
            let next_sync = host.synced.get(host.synced.partition_point(|end| *end <= since));
            let is_due = world.now - since > MAX_UNNOTICED
                && next_sync.is_none_or(|end| world.now - *end > MAX_LAG)
                && world.healthy - healthy > Duration::HOUR
                // In one `sync`, lineages whose files were restored may supersede each other.
                && !host.had_restored;
            if !is_due || winner.next_run(world).settings.verify == Verify::Off {
                continue;
            }
            let problems = judge();
            assert!(
                reports(&problems, host, at, world),
                "expired unnoticed: {site}, although {} is valid: {problems:?}",
                winner.name
            );
        }
    }
}

/// Whether problems are about the host or a lineage that is for a site.
fn reports(problems: &[Reported], host: &Host, site: usize, world: &World) -> bool {
    problems.iter().any(|problem| problem.lineage.as_ref().is_none_or(|name| host.is_for(name, site, world)))
}

/// The state of a lineage has a bounded size.
pub(super) fn check_size(host: &Host) {
    for state in host.lineages.iter().filter_map(|lineage| lineage.state.as_ref()) {
        let size = serde_json::to_vec(state).unwrap().len();
        assert!(size <= MAX_STATE, "a state of {size} bytes: {state:#?}");
    }
}

/// Of a state with up to six sites of two addresses.
const MAX_STATE: usize = 8 << 10;

/// Whether handshakes can show what a site serves.
fn is_visible(site: &ModelSite) -> bool {
    site.is_enabled && !site.is_deleted && site.edges.iter().any(|edge| edge.is_reachable)
}

/// Whether handshakes with listed sites show the leaf in a record.
fn is_seen(record: u64, world: &World) -> bool {
    let leaf = world.records[&record].leaf;
    let shows = |site: &ModelSite| {
        let is_covered = covers(&world.leaves[leaf], site.domain);
        is_covered && site.edges.iter().all(|edge| edge.is_reachable && edge.leaf == Some(leaf))
    };
    let mut bound = world.listed_on(record).filter(|site| site.is_enabled).peekable();
    bound.peek().is_some() && bound.all(shows)
}

impl World {
    /// The listed sites that are bound to a record.
    fn listed_on(&self, record: u64) -> impl Iterator<Item = &ModelSite> {
        let listed = self.sites.iter().enumerate().filter(|(at, _)| self.faults.hidden_site != Some(*at));
        listed.map(|(_, site)| site).filter(move |site| site.cert_id == Some(record))
    }
}

/// Whether a site is bound to a record with a leaf, and no address that can be reached serves another.
fn is_served(site: usize, leaf: usize, world: &World) -> bool {
    world.bound_leaf(site) == Some(leaf) && shows(&world.sites[site], leaf)
}

/// Whether every address of a site that can be reached shows a leaf.
fn shows(site: &ModelSite, leaf: usize) -> bool {
    site.edges.iter().filter(|edge| edge.is_reachable).all(|edge| edge.leaf == Some(leaf))
}

impl HostLineage {
    /// The sites that it is for with these domains.
    fn requested(&self, domains: &[Domain], world: &World) -> Vec<usize> {
        let is_requested = |at: &usize| {
            let is_named = |domain: &Domain| World::index_of(domain) == world.sites[*at].domain;
            !world.sites[*at].is_deleted
                && world.covers(self.leaf, *at)
                && (domains.is_empty() || domains.iter().any(is_named))
        };
        (0..world.sites.len()).filter(is_requested).collect()
    }

    /// Whether its leaf can be deployed.
    fn is_valid(&self, world: &World) -> bool {
        let leaf = &world.leaves[self.leaf];
        leaf.not_after >= world.now && leaf.issuer.as_deref() != Some(STAGING)
    }

    fn outcome(&self, site: usize, world: &World) -> Option<&Outcome> {
        recorded(self.state.as_ref()?, site, world).map(|known| &known.outcome)
    }

    /// The leaf that was deployed to a site last. A site that the lineage is not for has it as long as it is bound to
    /// the same record, and no lineage of the host has stored another leaf there.
    fn deployed_to<'w>(&'w self, site: usize, host: &Host, world: &'w World) -> Option<&'w Leaf> {
        let state = self.state.as_ref()?;
        let known = recorded(state, site, world)?;
        let is_asked_for = state.is_for(known);
        let record = world.sites[site].cert_id.filter(|id| world.records.contains_key(id));
        let has_failed = matches!(known.outcome, Outcome::Queued | Outcome::Guarded | Outcome::Refused);
        match () {
            () if !is_asked_for && (record.is_none() || known.cert_id != record) => None,
            () if !is_asked_for && Self::is_replaced(known, host, world) => None,
            () if known.outcome.is_bound() => {
                let leaf = world.leaves.iter().find(|leaf| Some(&leaf.fingerprint) == known.leaf.as_ref());
                // A state that was lost since may not name it.
                let is_known = |leaf: &Leaf| state.leaf_deployed_to(known) == Some(leaf);
                leaf.filter(|leaf| is_known(leaf) || self.deployed.contains(&world.index_of_leaf(leaf)))
            }
            () if has_failed => state.previously_deployed.as_ref(),
            () => None,
        }
    }

    /// Whether the host is known to have stored another leaf in the record of a site.
    fn is_replaced(known: &SiteState, host: &Host, world: &World) -> bool {
        let stored = known.cert_id.and_then(|record| host.stored.get(&record));
        stored.is_some_and(|(_, leaf)| Some(&world.leaves[*leaf].fingerprint) != known.leaf.as_ref())
    }

    /// Whether `status` reports what a site shows: the lineage has not succeeded, or is not for the site.
    fn is_not_done(&self, site: usize, world: &World) -> bool {
        !self.has_succeeded() || self.outcome(site, world) == Some(&Outcome::Stale)
    }

    fn has_succeeded(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.pending_since.is_none())
    }
}

impl Host {
    /// Of the lineages that are for a site, the one with the latest valid leaf on disk, and its index.
    fn latest(&self, site: usize, world: &World) -> Option<(usize, &HostLineage)> {
        let candidates = self.lineages.iter().enumerate().filter(|(_, lineage)| {
            lineage.is_valid(world)
                && lineage.requested(&lineage.next_run(world).domains, world).contains(&site)
        });
        candidates.max_by_key(|(_, lineage)| world.leaves[lineage.leaf].rank())
    }

    /// Whether a lineage is for a site, or was deployed to it.
    fn is_for(&self, name: &str, site: usize, world: &World) -> bool {
        let mut named = self.lineages.iter().filter(|lineage| lineage.name == name);
        named.any(|lineage| {
            let known = lineage.state.as_ref().and_then(|state| recorded(state, site, world));
            known.is_some() || lineage.requested(&lineage.next_run(world).domains, world).contains(&site)
        })
    }

    /// The later, valid leaves that other lineages deployed to a site.
    fn later_leaves<'h>(
        &'h self,
        at: usize,
        site: usize,
        world: &'h World,
    ) -> impl Iterator<Item = (&'h HostLineage, &'h Leaf)> {
        let own = &world.leaves[self.lineages[at].leaf];
        let others = self.lineages.iter().enumerate().filter(move |(other, _)| *other != at);
        let deployed =
            others.filter_map(move |(_, other)| Some((other, other.deployed_to(site, self, world)?)));
        deployed.filter(move |(_, leaf)| leaf.rank() > own.rank() && leaf.not_after >= world.now)
    }

    /// The sites that lineages provide the certificate of. After a run that was killed, those that only reached a site
    /// through the record may have been replaced there.
    pub(super) fn deployed_leaves(&self, world: &World) -> Vec<DeployedLeaf> {
        let of_site = |site: usize| {
            let record = world.sites[site].cert_id;
            let is_record_known = record.is_none_or(|record| !self.unknown.contains(&record));
            let lineages = self.lineages.iter().enumerate();
            lineages.filter_map(move |(at, lineage)| {
                let leaf = lineage.deployed_to(site, self, world)?.clone();
                let state = lineage.state.as_ref()?;
                let is_certain = is_record_known || state.is_for(recorded(state, site, world)?);
                is_certain.then_some(DeployedLeaf { lineage: at, site, leaf })
            })
        };
        (0..world.sites.len()).flat_map(of_site).collect()
    }

    /// Whether every lineage succeeded, handshakes can show for every site what it serves, and no leaf expires before
    /// the next round ends.
    pub(super) fn is_verifiable(&self, world: &World) -> bool {
        let remains =
            |leaf: &Leaf| leaf.not_after < world.now || leaf.not_after > world.now + 2 * Duration::HOUR;
        if !world.leaves.iter().all(remains) {
            return false;
        }
        let is_shown = |site: &ModelSite| {
            site.is_deleted || site.is_enabled && site.edges.iter().all(|edge| edge.is_reachable)
        };
        // What a run by hand was for, only the state knows.
        !self.has_run_by_hand
            && self.lineages.iter().all(HostLineage::has_succeeded)
            && world.sites.iter().all(is_shown)
    }
}

/// A world in which nothing more is sent.
pub(super) struct Fixpoint<'a> {
    pub(super) world: &'a World,
    pub(super) host: &'a Host,
    /// The problems that `status --check` will report.
    pub(super) problems: &'a [Reported],
}

impl Fixpoint<'_> {
    pub(super) fn check(&self) {
        let sites = self.world.sites.iter().enumerate().filter(|(_, site)| is_visible(site));
        for (site, _) in sites {
            for at in 0..self.host.lineages.len() {
                self.check_success(at, site);
            }
            self.check_winner(site);
        }
    }

    /// A lineage that succeeded is served, or superseded by one that is, or that reports why not.
    fn check_success(&self, at: usize, site: usize) {
        let (world, lineage) = (self.world, &self.host.lineages[at]);
        // If its leaf has expired, every `sync` fails.
        let next = lineage.next_run(world);
        let requested = lineage.requested(&next.domains, world);
        if next.settings.verify == Verify::Off
            || !lineage.has_succeeded()
            || !lineage.is_valid(world)
            || !requested.contains(&site)
        {
            return;
        }
        let name = &lineage.name;
        let is_superseded = match lineage.outcome(site, world) {
            // A site that was added since.
            None => !is_served(site, lineage.leaf, world),
            Some(outcome) => *outcome == Outcome::Superseded,
        };
        if is_superseded {
            let mut later = self.host.later_leaves(at, site, world);
            // Without handshakes, it cannot know that its leaf was replaced.
            let is_blind = |other: &HostLineage| other.next_run(world).settings.verify == Verify::Off;
            assert!(
                later.any(|(other, leaf)| other.is_not_done(site, world)
                    || is_blind(other)
                    || is_served(site, world.index_of_leaf(leaf), world)),
                "silent success: {name} is superseded for site {site}, but by no lineage that is served"
            );
        } else {
            assert!(
                is_served(site, lineage.leaf, world),
                "silent success: site {site} does not serve the leaf of {name}"
            );
            self.check_slack(at, site);
        }
    }

    /// The slack is never longer than that of an address that can be reached, nor shorter if all can be.
    fn check_slack(&self, at: usize, site: usize) {
        let (world, lineage) = (self.world, &self.host.lineages[at]);
        let Some(known) = lineage.state.as_ref().and_then(|state| recorded(state, site, world)) else {
            return;
        };
        let own = &world.leaves[lineage.leaf];
        let (left, slack) = (own.not_after - world.now, known.edge.slack(world.now));
        assert!(
            slack.is_some_and(|slack| slack <= left),
            "site {site}: slack {slack:?} of {left}: {known:?}"
        );
        if world.sites[site].edges.iter().all(|edge| edge.is_reachable) {
            assert_eq!(
                (slack, known.edge.serves(&own.fingerprint)),
                (Some(left), Some(true)),
                "site {site}: {known:?}"
            );
        }
    }

    /// Whether a site serves the leaf of a lineage, or a later one that another lineage deployed.
    fn is_served_from(&self, site: usize, at: usize) -> bool {
        let (world, own) = (self.world, self.host.lineages[at].leaf);
        let later = self.host.later_leaves(at, site, world).map(|(_, leaf)| world.index_of_leaf(leaf));
        later.chain([own]).any(|leaf| is_served(site, leaf, world))
    }

    /// Of the lineages that are for a site, the one with the latest leaf is served, unless its state says why not.
    fn check_winner(&self, site: usize) {
        let world = self.world;
        let Some((at, winner)) = self.host.latest(site, world) else { return };
        if winner.next_run(world).settings.verify == Verify::Off {
            return;
        }
        let mut later = self.host.later_leaves(at, site, world);
        let is_explained = match winner.outcome(site, world) {
            Some(Outcome::Guarded | Outcome::Misbound) => !winner.has_succeeded(),
            Some(Outcome::Superseded) => later.any(|(other, _)| other.is_not_done(site, world)),
            _ => false,
        };
        let is_named = || reports(self.problems, self.host, site, world);
        assert!(
            self.is_served_from(site, at) || is_explained && is_named(),
            "site {site} does not serve the latest leaf, that of {}, and {:?} do not say so",
            winner.name,
            self.problems
        );
    }
}
