//! Convergence: the real binary on generated hosts, after hooks, renewals, other clients, faults and lost state have left
//! anything behind. `sync` brings every site to the latest leaf of its host or says which one it cannot, and then sends
//! nothing more.
//!
//! `EDGECERT_TEST_WORLD=7` runs one world. Keys and random fingerprints differ from run to run.

mod events;
mod leaf;
mod world;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::Value;

use self::world::{EdgeSetting, HostLineage, Run, World};
use crate::harness::env_var;

const WORLDS: u64 = 100;
/// Most of the time is spent waiting.
const THREADS: usize = 8;
const MAX_ROUNDS: usize = 6;

impl World {
    fn live(&mut self) -> bool {
        for _ in 0..self.rng.usize(1..=7) {
            self.happen();
        }
        self.service.hold_pushes(false);
        self.service.push_now();
        if self.edge == EdgeSetting::Dead {
            self.edge = EdgeSetting::HalfDead;
        }
        self.log.push(format!("no more events, edge: {:?}", self.edge));
        // A lineage may notice in one run that another one no longer has a site, and deploy in the next.
        let is_quiet = |world: &mut Self| (0..2).all(|_| world.checked_sync().posts.is_empty());
        assert!((0..MAX_ROUNDS).any(|_| is_quiet(self)), "it does not converge");
        assert!(self.checked_sync().posts.is_empty(), "it sends again what it sent");
        let run = self.checked_sync();
        assert!(run.posts.is_empty(), "it sends again what it sent");
        let is_served = run.output.code == 0;
        if is_served && !self.has_tie() {
            self.wipe();
            let run = self.checked_sync();
            assert!(run.posts.is_empty(), "without state it sends what is served");
        }
        is_served
    }

    fn checked_sync(&mut self) -> Run {
        let run = self.sync(&[]);
        // A retry with the override of a hook may take a site from another lineage, which deploys in the next run.
        if run.posts.is_empty() || !self.is_overridden {
            self.check(&run);
        }
        run
    }

    /// Checks that every site serves the latest leaf of the host, or that the run failed and names it.
    fn check(&self, run: &Run) {
        for site in self.service.sites() {
            let domain = site["domain"].as_str().unwrap();
            let wanted = self.lineages.iter().filter(|lineage| lineage.wants(domain));
            let Some(latest) = wanted.map(|lineage| &lineage.leaf.rank).max() else { continue };
            let served = self.served(&site);
            let mut deployable = self.lineages.iter().flat_map(HostLineage::deployable);
            let is_latest = deployable.any(|leaf| {
                Some(leaf.fingerprint()) == served.as_deref() && leaf.covers(domain) && leaf.rank >= *latest
            });
            assert!(is_latest || is_reported(run, domain), "{domain} serves {served:?}, not {latest:?}");
        }
    }
}

/// Whether a run failed for a site.
fn is_reported(run: &Run, domain: &str) -> bool {
    let failures = ["stale", "misbound", "queued", "refused", "guarded"];
    let lineages = run.json["lineages"].as_array().into_iter().flatten();
    let failed = lineages.filter(|lineage| lineage["exit_code"] != 0);
    let mut sites = failed.flat_map(|lineage| lineage["sites"].as_array().into_iter().flatten());
    let is_failure = |site: &Value| failures.contains(&site["outcome"].as_str().unwrap());
    run.output.code != 0 && sites.any(|site| site["domain"] == domain && is_failure(site))
}

/// Returns whether everything was served in the end, or why the world is wrong.
fn try_world(seed: u64) -> Result<bool, String> {
    let mut world = World::generate(seed);
    let result = catch_unwind(AssertUnwindSafe(|| world.live()));
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("world {seed}: {}\n{}", text.unwrap_or_default(), world.log.join("\n"))
    })
}

#[test]
fn first_hosts_converge() {
    assert!(converge_all(0..WORLDS / 10) > 0, "no world was served completely");
}

#[test]
fn every_host_converges() {
    let only = env_var("EDGECERT_TEST_WORLD").map(|seed| seed.to_str().unwrap().parse::<u64>().unwrap());
    let served = converge_all(only.map_or(0..WORLDS, |seed| seed..seed + 1));
    assert!(only.is_some() || served > 25, "only {served} worlds were served completely");
}

/// Runs the worlds with these seeds; returns how many were served completely.
fn converge_all(seeds: Range<u64>) -> usize {
    let (next, served) = (AtomicU64::new(seeds.start), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        return;
                    }
                    match try_world(seed) {
                        Ok(is_served) => drop(served.fetch_add(usize::from(is_served), Ordering::Relaxed)),
                        Err(failure) => failures.lock().unwrap().push(failure),
                    }
                }
            });
        }
    });
    let failures: Vec<String> = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} worlds:\n{}", failures.len(), failures.join("\n\n"));
    served.into_inner()
}
