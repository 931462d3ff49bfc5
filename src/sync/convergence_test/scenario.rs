//! Generates worlds, and what happens in them besides `sync`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use fastrand::Rng;
use time::macros::datetime;
use time::{Duration, OffsetDateTime};

use super::host::{Host, HostLineage};
use crate::bundle::Files;
use crate::deploy::model::{Faults, ModelEdge, ModelRecord, ModelSite, NAMES, SITE_NAMES, World, covers};
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::settings::{Configuration, Connection, Guards, Layer, Layers, Local, Settings, Verify};
use crate::source::{AcmeClient, Source};
use crate::state::Given;

const START: OffsetDateTime = datetime!(2026-06-01 00:00 UTC);
const LINEAGES: [&str; 3] = ["first", "second", "third"];

/// The default first.
static SETTINGS: LazyLock<[Arc<Settings>; 4]> = LazyLock::new(|| {
    [(false, Verify::Auto), (true, Verify::Auto), (false, Verify::Require), (true, Verify::Require)]
        .map(|(rebind, verify)| settings(rebind, verify))
});

fn settings(rebind: bool, verify: Verify) -> Arc<Settings> {
    let flags = Layer {
        connection: Connection { base_url: "https://api.example.net".parse().ok(), ..Connection::default() },
        local: Local { state_dir: Some("/state".into()), ..Local::default() },
        rebind: Some(rebind),
        verify: Some(verify),
        verify_every: "3600".parse().ok(),
        skip_unmatched: Some(true),
        ..Layer::default()
    };
    let env = [("EDGECERT_API_KEY", "key")].into_iter().collect();
    let configuration = Configuration::default();
    Arc::new(Layers::new(&flags, &env, &configuration).resolve(&Layer::default(), None).unwrap())
}

/// These settings with what a run by hand was given.
pub(super) fn with(settings: &Arc<Settings>, given: &Layer) -> Arc<Settings> {
    let rebind = settings.rebind || given.rebind == Some(true);
    let is_strict = given.verify.unwrap_or(settings.verify) == Verify::Require;
    Arc::clone(&SETTINGS[2 * usize::from(is_strict) + usize::from(rebind)])
}

/// A world with other clients' records and leaves, and a host with at least one lineage.
pub(super) fn generate(rng: &mut Rng) -> (World, Host) {
    let mut domains: Vec<usize> = (0..SITE_NAMES).collect();
    rng.shuffle(&mut domains);
    let mut world = World {
        sites: domains.into_iter().take(rng.usize(1..=4)).map(|domain| site(domain, rng)).collect(),
        records: BTreeMap::new(),
        leaves: Vec::new(),
        now: START,
        faults: Faults::default(),
        rng: rng.fork(),
        changes: Vec::new(),
        announces_content: rng.bool(),
        last_record: 0,
    };
    for _ in 0..rng.usize(..3) {
        upload_elsewhere(&mut world, rng);
    }
    if rng.bool() {
        rebind(&mut world, rng);
    }
    world.push();
    let mut host = Host { lineages: Vec::new(), stored: BTreeMap::new(), has_run_by_hand: false };
    for _ in 0..rng.usize(1..=2) {
        add_lineage(&mut world, &mut host, rng);
    }
    (world, host)
}

fn site(domain: usize, rng: &mut Rng) -> ModelSite {
    let edge = ModelEdge { leaf: None, is_reachable: true };
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

/// Lets something happen before a round, and chooses what goes wrong in it. Returns a description.
pub(super) fn disturb(world: &mut World, host: &mut Host, rng: &mut Rng) -> String {
    let events: Vec<&str> = (0..rng.usize(..3)).map(|_| happen(world, host, rng)).collect();
    if rng.bool() {
        let mut rarely = || rng.u8(..6) == 0;
        let (is_blind, is_unreadable, is_killed) = (rarely(), rarely(), rarely());
        let failing = if rng.bool() { rng.u8(..12) } else { 0 };
        let mut rarely = || rng.u8(..12) == 0;
        let (hides_site, hides_records) = (rarely(), rarely());
        world.faults = Faults {
            failing,
            is_blind,
            is_unreadable,
            killed: if is_killed { 6 } else { 0 },
            hidden_site: hides_site.then(|| rng.usize(..world.sites.len())),
            hides_records_after: hides_records.then(|| rng.u64(..=world.last_record)),
        };
    }
    format!("{events:?}")
}

fn happen(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    match rng.u8(..20) {
        15..=18 => run_by_hand(world, host, rng),
        19 => delete_site(world, rng),
        0..=1 => renew(world, host, rng),
        14 => restore(host, rng),
        2 => add_lineage(world, host, rng),
        3..=4 => upload_elsewhere(world, rng),
        5 => rebind(world, rng),
        6 => delete_record(world, rng),
        7 => toggle(world, rng),
        8 => hold_push(world, rng),
        9..=10 => cut_off(world, rng),
        11 => forget(host, rng),
        12 => let_expire(world, rng),
        _ => add_site(world, rng),
    }
}

/// An administrator deploys a lineage with options of all kinds.
fn run_by_hand(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    let sites = world.sites.iter().filter(|site| !site.is_deleted).map(|site| site.domain);
    let covered = sites.filter(|site| covers(&world.leaves[host.lineages[at].leaf], *site));
    let mut domains: Vec<Domain> = covered.filter(|_| rng.bool()).map(World::domain).collect();
    if rng.bool() {
        domains.clear();
    }
    let verify = [None, None, Some(Verify::Auto), Some(Verify::Require)][rng.usize(..4)];
    let settings = Layer { rebind: rng.bool().then_some(true), verify, ..Layer::default() };
    let mut rarely = || rng.u8(..4) == 0;
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

/// Its edges go with it.
fn delete_site(world: &mut World, rng: &mut Rng) -> &'static str {
    if world.sites.iter().filter(|site| !site.is_deleted).count() < 2 {
        return "no further site to delete";
    }
    let at = rng.usize(..world.sites.len());
    let site = &mut world.sites[at];
    (site.is_deleted, site.cert_id) = (true, None);
    "a site is deleted"
}

/// Ends what goes wrong in a single round.
pub(super) fn end_faults(world: &mut World) {
    world.faults = Faults::default();
}

/// Ends what goes wrong for longer. Some addresses may stay out of reach.
pub(super) fn end_outages(world: &mut World, rng: &mut Rng) {
    let is_reachable = rng.u8(..4) > 0;
    for site in &mut world.sites {
        site.is_push_held = false;
        for edge in &mut site.edges {
            edge.is_reachable |= is_reachable;
        }
    }
}

/// Adds a leaf that was issued up to a month ago, often at the same time as others. Returns its index.
fn add_leaf(world: &mut World, names: Vec<String>, rng: &mut Rng) -> usize {
    let not_before = world.now - Duration::days(10 * rng.i64(0..4));
    let not_after = not_before + Duration::days([60, 90, 400][rng.usize(..3)]);
    let fingerprint = format!("{:04x}{:02x}", rng.u16(..), world.leaves.len());
    world.leaves.push(Leaf { fingerprint, names, not_before, not_after, issuer: None });
    world.leaves.len() - 1
}

fn add_lineage(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    let Some(name) = LINEAGES.get(host.lineages.len()) else { return "no further lineage" };
    let mut names = NAMES.map(str::to_owned).to_vec();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(1..=4));
    let leaf = add_leaf(world, names, rng);
    let covered = world.sites.iter().map(|site| site.domain).filter(|at| covers(&world.leaves[leaf], *at));
    let mut domains: Vec<Domain> = covered.filter(|_| rng.bool()).map(World::domain).collect();
    if rng.u8(..3) > 0 {
        domains.clear();
    }
    let files = Files { cert: PathBuf::from("/c"), issuers: None, key: None };
    let mut source = Source::new(AcmeClient::Files, files);
    source.directory = None;
    let settings = Arc::clone(&SETTINGS[if rng.bool() { 0 } else { rng.usize(..4) }]);
    host.lineages.push(HostLineage {
        name: (*name).to_owned(),
        leaf,
        earlier: Vec::new(),
        domains,
        settings,
        source,
        state: None,
    });
    "a lineage is added"
}

/// The new leaf is not issued before the old one.
fn renew(world: &mut World, host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    let lineage = &mut host.lineages[at];
    let old = world.leaves[lineage.leaf].clone();
    lineage.earlier.push(lineage.leaf);
    lineage.leaf = add_leaf(world, old.names, rng);
    let new = &mut world.leaves[lineage.leaf];
    let delay = (old.not_before - new.not_before).max(Duration::ZERO);
    new.not_before += delay;
    new.not_after += delay;
    "a lineage is renewed"
}

/// An administrator restores the files from a backup.
fn restore(host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    let lineage = &mut host.lineages[at];
    let Some(earlier) = rng.choice(&lineage.earlier) else { return "no earlier leaf to restore" };
    lineage.leaf = *earlier;
    "a lineage goes back to an earlier leaf"
}

/// Another client uploads for a site, or the service issues a certificate for it.
fn upload_elsewhere(world: &mut World, rng: &mut Rng) -> &'static str {
    let domain = world.sites[rng.usize(..world.sites.len())].domain;
    let mut names = vec![NAMES[domain].to_owned()];
    names.extend(NAMES.iter().filter(|_| rng.u8(..4) == 0).map(|name| (*name).to_owned()));
    let leaf = add_leaf(world, names, rng);
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
    "a site is enabled or disabled"
}

fn hold_push(world: &mut World, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..world.sites.len());
    world.sites[at].is_push_held ^= true;
    "the push to a site is held or released"
}

fn cut_off(world: &mut World, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..world.sites.len());
    let edges = &mut world.sites[at].edges;
    let edge = rng.usize(..edges.len());
    edges[edge].is_reachable ^= true;
    "an address is cut off or back"
}

fn forget(host: &mut Host, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..host.lineages.len());
    host.forget(at);
    "a state file is lost"
}

fn let_expire(world: &mut World, rng: &mut Rng) -> &'static str {
    let at = rng.usize(..world.leaves.len());
    world.now = world.now.max(world.leaves[at].not_after + Duration::MINUTE);
    "a leaf expires"
}

fn add_site(world: &mut World, rng: &mut Rng) -> &'static str {
    let domain = rng.usize(..SITE_NAMES);
    if world.sites.iter().any(|site| site.domain == domain && !site.is_deleted) {
        return "no further site";
    }
    world.sites.push(site(domain, rng));
    "a site is added"
}
