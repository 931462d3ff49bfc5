//! Runs `sync` again and again in generated worlds: lineages that are renewed and compete, other clients that replace,
//! rebind and delete, requests that fail, edges that lag. After the last of these, a few rounds must reach a state in which
//! nothing more is sent, and it must be the right one.
//!
//! The code under test decides what to send: `sync`, the deployment and the planner. `deploy::model` stands in for the
//! service and its edges. `invariants` says what must hold.

mod host;
mod invariants;
mod scenario;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;

use self::host::Host;
use self::invariants::Fixpoint;
use crate::deploy::model::World;

const WORLDS: u64 = 20_000;

/// Rounds after the last disturbance within which nothing more is sent. In each of them, every lineage's turn to check
/// its edges comes.
const MAX_ROUNDS: usize = 5;

#[test]
fn first_worlds_converge() {
    converge_all(WORLDS / 20);
}

#[test]
fn every_world_converges() {
    converge_all(WORLDS);
}

/// Runs as many worlds.
fn converge_all(worlds: u64) {
    let next = AtomicU64::new(0);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= worlds {
                        return;
                    }
                    converge_or_show(seed);
                }
            });
        }
    });
}

/// Runs a world again if an assertion fails, and prints its history.
fn converge_or_show(seed: u64) {
    if let Err(failed) = catch_unwind(AssertUnwindSafe(|| converge(seed, &mut |_, _, _| {}))) {
        let _ = catch_unwind(AssertUnwindSafe(|| converge(seed, &mut show)));
        show_seed(seed);
        resume_unwind(failed);
    }
}

#[expect(clippy::print_stderr, reason = "output of a failing test")]
fn show(what: &str, world: &World, host: &Host) {
    eprintln!("{what}: {host:#?}\n{world:#?}");
}

#[expect(clippy::print_stderr, reason = "output of a failing test")]
fn show_seed(seed: u64) {
    eprintln!("seed {seed}");
}

fn converge(seed: u64, show: &mut dyn FnMut(&str, &World, &Host)) {
    let mut rng = Rng::with_seed(seed);
    let (mut world, mut host) = scenario::generate(&mut rng);
    show("start", &world, &host);
    for _ in 0..rng.usize(1..=5) {
        let events = scenario::disturb(&mut world, &mut host, &mut rng);
        show(&events, &world, &host);
        host.round(&mut world);
        show("after a disturbed round", &world, &host);
        scenario::end_faults(&mut world);
    }
    scenario::end_outages(&mut world, &mut rng);
    let mut silent_rounds = 0;
    for round in 0.. {
        let sent = world.changes.len();
        host.round(&mut world);
        show("after a quiet round", &world, &host);
        let changes = &world.changes[sent..];
        silent_rounds = if changes.is_empty() { silent_rounds + 1 } else { 0 };
        if silent_rounds == 2 {
            break;
        }
        assert!(round < MAX_ROUNDS, "no fixpoint: round {round} still sends {changes:?}");
    }
    Fixpoint { world: &world, host: &host }.check();
    if host.is_verifiable(&world) {
        let sent = world.changes.len();
        (0..host.lineages.len()).for_each(|at| host.forget(at));
        host.round(&mut world);
        assert_eq!(world.changes.len(), sent, "sent without state: {:?}", &world.changes[sent..]);
    }
}
