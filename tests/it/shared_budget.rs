//! Hosts that share the request budget of one account, simulated with edgecert's own pauses and limits. The figures have
//! a thousand of them (`tests/figures/hosts.rs`).

use std::time::Duration;

use edgecert_workload::{Budget, Renewals, Simulated, simulate};

const HOSTS: usize = 200;

/// As much for each host as in the figures.
const BUDGET: Budget = Budget { requests: 120, period: Duration::from_secs(60) };

fn simulated(renewing: usize, lineages: usize, spread: u64) -> Simulated {
    let spread = Duration::from_secs(spread);
    let simulated = simulate(Renewals { hosts: HOSTS, renewing, lineages, spread }, BUDGET, 1).unwrap();
    let Simulated { finished, ideal, .. } = simulated;
    assert!(finished <= 2 * ideal, "{finished:?} instead of {ideal:?}");
    simulated
}

#[test]
fn hourly_syncs_are_not_refused() {
    let simulated = simulated(0, 0, 0);
    assert_eq!((simulated.requests, simulated.refusals), (2 * HOSTS, 0));
}

#[test]
fn bursts_do_not_wait_for_sync() {
    let simulated = simulated(HOSTS / 6, 1, 1);
    assert!(simulated.refusals > 0, "the budget suffices for all at once");
    assert_eq!(simulated.left_to_sync, 0);
}

#[test]
fn mass_renewal_brings_no_herd() {
    let simulated = simulated(HOSTS, 10, 1);
    assert!(simulated.left_to_sync > HOSTS, "hooks alone cannot finish this");
    assert!(simulated.peak < HOSTS / 2, "{} hosts came at once", simulated.peak);
}

#[test]
fn timers_finish_what_hooks_cannot() {
    let simulated = simulated(HOSTS, 1, 1);
    assert!(simulated.left_to_sync > 0, "hooks alone finish this");
}
