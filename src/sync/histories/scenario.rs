//! Generates worlds, and what happens in them besides the timer's runs.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fastrand::Rng;
use time::macros::datetime;
use time::{Duration, OffsetDateTime, Time};

use super::host::{Host, HostLineage};
use crate::bundle::Files;
use crate::deploy::model::{
    Faults, ModelEdge, ModelRecord, ModelSite, Moment, NAMES, SITE_NAMES, STAGING, World, covers,
};
use crate::error::ErrorKind;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::settings::{Configuration, Connection, Guards, Layer, Layers, Local, Settings, Verify};
use crate::source::{AcmeClient, Source};
use crate::state::Given;

pub(super) const START: OffsetDateTime = datetime!(2026-06-01 00:00 UTC);
const LINEAGES: [&str; 3] = ["first", "second", "third"];

/// The settings that differ between runs.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
struct Choice {
    verify: Verify,
    rebind: bool,
    allow_untrusted: bool,
    skip_unmatched: bool,
    waits: bool,
}

impl Choice {
    /// Settings are expensive to resolve, so all runs with the same choice share them.
    fn settings(self) -> Arc<Settings> {
        static RESOLVED: [OnceLock<Arc<Settings>>; 48] = [const { OnceLock::new() }; 48];
        let switches = [self.rebind, self.allow_untrusted, self.skip_unmatched, self.waits];
        let index =
            switches.into_iter().fold(self.verify as usize, |index, is_on| 2 * index + usize::from(is_on));
        Arc::clone(RESOLVED[index].get_or_init(|| settings(self)))
    }
}

fn settings(choice: Choice) -> Arc<Settings> {
    let flags = Layer {
        connection: Connection { base_url: "https://api.example.net".parse().ok(), ..Connection::default() },
        local: Local { state_dir: Some("/state".into()), ..Local::default() },
        rebind: Some(choice.rebind),
        verify: Some(choice.verify),
        verify_every: "3600".parse().ok(),
        allow_untrusted: Some(choice.allow_untrusted),
        skip_unmatched: Some(choice.skip_unmatched),
        wait: if choice.waits { None } else { "0".parse().ok() },
        ..Layer::default()
    };
    let env = [("EDGECERT_API_KEY", "key")].into_iter().collect();
    let configuration = Configuration::default();
    Arc::new(Layers::new(&flags, &env, &configuration).resolve(&Layer::default(), None).unwrap())
}

/// These settings with what a run by hand was given.
pub(super) fn with(settings: &Arc<Settings>, given: &Layer) -> Arc<Settings> {
    let choice = Choice {
        verify: given.verify.unwrap_or(settings.verify),
        rebind: given.rebind.unwrap_or(settings.rebind),
        allow_untrusted: given.allow_untrusted.unwrap_or(settings.allow_untrusted),
        skip_unmatched: given.skip_unmatched.unwrap_or(settings.skip_unmatched),
        waits: given.wait.is_none(),
    };
    choice.settings()
}

/// A world with other clients' records and leaves, and a host with at least one lineage.
pub(super) fn generate(rng: &mut Rng) -> (World, Host) {
    let mut domains: Vec<usize> = (0..SITE_NAMES).collect();
    rng.shuffle(&mut domains);
    let mut world = World {
        sites: domains
            .into_iter()
            .take(rng.usize(1..=4))
            .map(|domain| site(domain, (START, Duration::ZERO), rng))
            .collect(),
        records: BTreeMap::new(),
        leaves: Vec::new(),
        now: START,
        healthy: Duration::ZERO,
        faults: Faults::default(),
        rng: rng.fork(),
        changes: Vec::new(),
        announces_content: rng.bool(),
        last_record: 0,
        disturbances: 0,
    };
    for _ in 0..rng.usize(..3) {
        upload_elsewhere(&mut world, rng);
    }
    if rng.bool() {
        rebind(&mut world, rng);
    }
    world.push();
    let mut host = Host::new(world.moment());
    for _ in 0..rng.usize(1..=2) {
        add_lineage(&mut world, &mut host, rng);
    }
    (world, host)
}

fn site(domain: usize, since: Moment, rng: &mut Rng) -> ModelSite {
    let edge = ModelEdge { leaf: None, is_reachable: true, is_left_behind: false, since };
    ModelSite {
        domain,
        cert_id: None,
        is_enabled: rng.u8(..8) > 0,
        is_deleted: false,
        is_synced: true,
        is_push_held: false,
        edges: vec![edge; rng.usize(1..=2)],
    }
}

/// Chooses what goes wrong with the service for a while.
pub(super) fn faults(world: &World, rng: &mut Rng) -> Faults {
    let outages = [ErrorKind::Temporary, ErrorKind::Temporary, ErrorKind::Denied, ErrorKind::Protocol];
    let mut rarely = || rng.u8(..5) == 0;
    let (is_out, is_blind, is_unreadable, is_killed) = (rarely(), rarely(), rarely(), rarely());
    let (hides_site, hides_records) = (rarely(), rarely());
    Faults {
        outage: rng.choice(outages).filter(|_| is_out),
        failing: if rng.bool() { rng.u8(..12) } else { 0 },
        is_blind,
        is_unreadable,
        killed: if is_killed { 6 } else { 0 },
        hidden_site: hides_site.then(|| rng.usize(..world.sites.len())),
        hides_records_after: hides_records.then(|| rng.u64(..=world.last_record)),
    }
}

pub(super) fn random_event(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    match rng.u8(..22) {
        0..=1 => restore(world, host, rng),
        2 => add_lineage(world, host, rng),
        3..=5 => upload_elsewhere(world, rng),
        6..=7 => rebind(world, rng),
        8 => delete_record(world, rng),
        9 => toggle(world, rng),
        10 => hold_push(world, rng),
        11..=12 => cut_off(world, rng),
        13 => leave_behind(world, rng),
        14 => forget(host, rng),
        15 => stop_renewing(host, rng),
        16 => delete_site(world, rng),
        17 => add_site(world, rng),
        _ => {
            mend_edges(world, rng);
            "the edges work again"
        }
    }
}

/// An administrator deploys a lineage with options of all kinds.
pub(super) fn run_by_hand(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    let sites = world.sites.iter().filter(|site| !site.is_deleted).map(|site| site.domain);
    let covered = sites.filter(|site| covers(&world.leaves[host.lineages[at].leaf], *site));
    let mut domains: Vec<Domain> = covered.filter(|_| rng.bool()).map(World::domain).collect();
    if rng.bool() {
        domains.clear();
    }
    let verify = [Verify::Auto, Verify::Require, Verify::Off, Verify::Auto, Verify::Auto, Verify::Auto];
    let verify = rng.choice(verify).filter(|_| rng.bool());
    let mut rarely = || rng.u8(..4) == 0;
    let settings = Layer {
        rebind: rarely().then_some(true),
        allow_untrusted: rarely().then_some(true),
        skip_unmatched: rarely().then_some(true),
        wait: if rarely() { "0".parse().ok() } else { None },
        verify,
        ..Layer::default()
    };
    let guards = Guards {
        allow_shrink: rarely(),
        allow_older: rarely(),
        replace_lets: rarely(),
        allow_partial: rarely(),
    };
    let force = rarely();
    host.by_hand(at, Given { domains, settings, guards }, force, world);
    "a lineage is deployed by hand"
}

/// Deletes a site; the next push empties its edges.
fn delete_site(world: &mut World, rng: &mut Rng) -> &'static str {
    let mut sites: Vec<_> = world.sites.iter_mut().filter(|site| !site.is_deleted).collect();
    if sites.len() < 2 {
        return "no further site to delete";
    }
    let at = rng.usize(..sites.len());
    let site = &mut *sites[at];
    (site.is_deleted, site.cert_id) = (true, None);
    "a site is deleted"
}

/// An administrator permits what the first failing lineage is refused.
pub(super) fn override_guards(world: &mut World, host: &mut Host) -> &'static str {
    let is_failing = |lineage: &HostLineage| {
        let result = lineage.state.as_ref().and_then(|state| state.result.as_ref());
        result.is_some_and(|result| result.exit_code != 0)
    };
    let Some(at) = host.lineages.iter().position(is_failing) else { return "no lineage fails" };
    let settings = Layer { rebind: Some(true), skip_unmatched: Some(true), ..Layer::default() };
    let guards = Guards { allow_shrink: true, allow_older: true, replace_lets: true, allow_partial: true };
    host.by_hand(at, Given { domains: Vec::new(), settings, guards }, false, world);
    "an administrator permits everything"
}

/// Ends what goes wrong with the edges. Some addresses may stay out of reach.
pub(super) fn mend_edges(world: &mut World, rng: &mut Rng) {
    let is_reachable = rng.u8(..4) > 0;
    let moment = world.moment();
    for site in &mut world.sites {
        site.is_push_held = false;
        for edge in &mut site.edges {
            if is_reachable && !edge.is_reachable {
                (edge.is_reachable, edge.since) = (true, moment);
            }
            edge.is_left_behind = false;
        }
    }
}

/// Adds a leaf that was issued at the beginning of a day, often at the same time as others. Returns its index.
fn add_leaf(world: &mut World, names: Vec<String>, (age, lifetime): (i64, Duration), rng: &mut Rng) -> usize {
    let not_before = world.now.replace_time(Time::MIDNIGHT) - Duration::days(age);
    let fingerprint = format!("{:04x}{:02x}", rng.u16(..), world.leaves.len());
    let not_after = not_before + lifetime;
    world.leaves.push(Leaf { fingerprint, names, not_before, not_after, issuer: None });
    world.leaves.len() - 1
}

/// A random age in days, less than two thirds of the lifetime, and that lifetime.
fn validity(rng: &mut Rng) -> (i64, Duration) {
    let days = [6, 45, 90][rng.usize(..3)];
    (rng.i64(0..days * 2 / 3), Duration::days(days))
}

fn add_lineage(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    let Some(name) = LINEAGES.get(host.lineages.len()) else { return "no further lineage" };
    let mut names = NAMES.map(str::to_owned).to_vec();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(1..=4));
    let (age, lifetime) = validity(rng);
    let leaf = add_leaf(world, names, (age, lifetime), rng);
    let covered = world.sites.iter().map(|site| site.domain).filter(|at| covers(&world.leaves[leaf], *at));
    let mut domains: Vec<Domain> = covered.filter(|_| rng.bool()).map(World::domain).collect();
    if rng.u8(..3) > 0 {
        domains.clear();
    }
    let files = Files { cert: PathBuf::from("/c"), issuers: None, key: None };
    let mut source = Source::new(AcmeClient::Files, files);
    source.directory = None;
    let mut rarely = || rng.u8(..4) == 0;
    let verify = if rarely() { Verify::Require } else { Verify::Auto };
    let (rebind, skip_unmatched) = (rarely(), !rarely());
    let choice = Choice { verify, rebind, allow_untrusted: false, skip_unmatched, waits: true };
    host.lineages.push(HostLineage {
        name: (*name).to_owned(),
        leaf,
        deployed: HashSet::new(),
        stored: BTreeMap::new(),
        earlier: Vec::new(),
        domains,
        settings: choice.settings(),
        source,
        state: None,
        written_at: world.moment(),
        unverified_at: world.moment(),
        lifetime,
        renews_at: renewal(&world.leaves[leaf], rng).max(world.now),
        retried: None,
    });
    "a lineage is added"
}

/// When a client renews a leaf: once half or a third of its life is left.
fn renewal(leaf: &Leaf, rng: &mut Rng) -> OffsetDateTime {
    let life = leaf.not_after - leaf.not_before;
    leaf.not_after - if rng.bool() { life / 2 } else { life / 3 }
}

/// The client renews a lineage and runs the hook, which may be lost, or killed by a reboot.
pub(super) fn renew(world: &mut World, host: &mut Host, at: usize, rng: &mut Rng) -> &'static str {
    let lineage = &mut host.lineages[at];
    let names = world.leaves[lineage.leaf].names.clone();
    lineage.earlier.push(lineage.leaf);
    lineage.leaf = add_leaf(world, names, (0, lineage.lifetime), rng);
    lineage.written_at = world.moment();
    let leaf = &mut world.leaves[lineage.leaf];
    leaf.issuer = (rng.u8(..16) == 0).then(|| STAGING.to_owned());
    lineage.renews_at = match leaf.issuer {
        Some(_) => world.now + Duration::DAY,
        None => renewal(leaf, rng).max(world.now + Duration::HOUR),
    };
    let killed = world.faults.killed;
    let what = match rng.u8(..8) {
        0..=1 => return "a lineage is renewed, and the hook is lost",
        2 => {
            world.faults.killed = 8;
            "a lineage is renewed, and the host reboots"
        }
        _ => "a lineage is renewed",
    };
    host.hook(at, world);
    world.faults.killed = killed;
    what
}

fn stop_renewing(host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    host.lineages[at].renews_at += Duration::days(rng.i64(1..20));
    "a client stops renewing for a while"
}

/// The pushes do not reach an address of an edge.
fn leave_behind(world: &mut World, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..world.sites.len());
    let edges = &mut world.sites[at].edges;
    let edge = rng.usize(..edges.len());
    edges[edge].is_left_behind = true;
    "an address is left behind"
}

/// An administrator restores the files from a backup.
fn restore(world: &World, host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    let lineage = &mut host.lineages[at];
    let Some(earlier) = rng.choice(&lineage.earlier) else { return "no earlier leaf to restore" };
    lineage.leaf = *earlier;
    lineage.written_at = world.moment();
    host.has_restored = true;
    "a lineage goes back to an earlier leaf"
}

/// Another client uploads for a site, or the service issues a certificate for it.
fn upload_elsewhere(world: &mut World, rng: &mut Rng) -> &'static str {
    let domain = world.sites[rng.usize(..world.sites.len())].domain;
    let mut names = vec![NAMES[domain].to_owned()];
    names.extend(NAMES.iter().filter(|_| rng.u8(..4) == 0).map(|name| (*name).to_owned()));
    let validity = validity(rng);
    let leaf = add_leaf(world, names, validity, rng);
    let known = world.records.iter().find(|(_, record)| record.domain == domain).map(|(id, _)| *id);
    let record = ModelRecord { domain, leaf, is_system_issued: rng.u8(..8) == 0 };
    world.store(known.unwrap_or(world.last_record + 1), record);
    "another client uploads"
}

fn rebind(world: &mut World, rng: &mut Rng) -> &'static str {
    let records: Vec<u64> = world.records.keys().copied().collect();
    let at = rng.usize(..world.sites.len());
    let site = &mut world.sites[at];
    if site.is_deleted {
        return "no site to rebind";
    }
    site.cert_id = rng.choice(&records).copied().filter(|_| rng.u8(..4) > 0);
    site.is_synced = false;
    "another client rebinds"
}

/// The sites may stay bound to the record.
fn delete_record(world: &mut World, rng: &mut Rng) -> &'static str {
    let records: Vec<u64> = world.records.keys().copied().collect();
    let Some(id) = rng.choice(&records) else { return "no record to delete" };
    world.records.remove(id);
    let unbinds = rng.bool();
    for site in world.sites.iter_mut().filter(|site| unbinds && site.cert_id == Some(*id)) {
        site.cert_id = None;
        site.is_synced = false;
    }
    "a record is deleted"
}

fn toggle(world: &mut World, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..world.sites.len());
    world.sites[at].is_enabled ^= true;
    let moment = world.moment();
    world.sites[at].edges.iter_mut().for_each(|edge| edge.since = moment);
    "a site is enabled or disabled"
}

fn hold_push(world: &mut World, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..world.sites.len());
    world.sites[at].is_push_held ^= true;
    "the push to a site is held or released"
}

fn cut_off(world: &mut World, rng: &mut Rng) -> &'static str {
    let moment = world.moment();
    let at = rng.usize(..world.sites.len());
    let edges = &mut world.sites[at].edges;
    let edge = rng.usize(..edges.len());
    edges[edge].is_reachable ^= true;
    edges[edge].since = moment;
    "an address is cut off or back"
}

fn forget(host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    host.forget(at);
    "a state file is lost"
}

fn add_site(world: &mut World, rng: &mut Rng) -> &'static str {
    let domain = rng.usize(..SITE_NAMES);
    if world.sites.iter().any(|site| site.domain == domain && !site.is_deleted) {
        return "no further site";
    }
    world.sites.push(site(domain, world.moment(), rng));
    "a site is added"
}
