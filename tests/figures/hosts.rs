//! A thousand hosts that share an account of 600 requests a minute, simulated in virtual time.

use std::time::Duration;

use anyhow::Result;
use edgecert_workload::{Budget, Renewals, simulate};

use crate::fixture::Fixture;
use crate::table::{Figure, Goal, Measured, Table, Unit};

const HOSTS: usize = 1_000;
const BUDGET: Budget = Budget { requests: 600, period: Duration::from_secs(60) };
const SEED: u64 = 1;

/// The figures of one simulation, of which the name says what the clients renew.
macro_rules! figures {
    ($name:literal, $goal:expr) => {
        [
            figure(concat!($name, ": time / ideal with these hooks and timers"), Unit::Ratio, $goal),
            figure(concat!($name, ": time / ideal if hooks did not end"), Unit::Ratio, Goal::None),
            figure(concat!($name, ": longest wait; peer: ideal"), Unit::Seconds, Goal::None),
            figure(concat!($name, ": requests"), Unit::Count, Goal::None),
            figure(concat!($name, ": refusals"), Unit::Count, Goal::None),
            figure(concat!($name, ": deployments left to sync"), Unit::Count, Goal::None),
            figure(concat!($name, ": most requests in a second"), Unit::Count, NO_HERD),
        ]
    };
}

const fn figure(name: &'static str, unit: Unit, goal: Goal) -> Figure {
    Figure { row: 15, name, unit, goal }
}

const TWICE: Goal = Goal::AtMost(2.0);

/// Half of the hosts: those that were refused together must not come back together.
const NO_HERD: Goal = Goal::AtMost(500.0);

const fn renewals(renewing: usize, lineages: usize, spread: u64) -> Renewals {
    Renewals { hosts: HOSTS, renewing, lineages, spread: Duration::from_secs(spread) }
}

/// Adds the rows of this group.
#[expect(clippy::unnecessary_wraps, reason = "as of all groups")]
pub(crate) fn add(_: &Fixture, table: &mut Table) -> Result<()> {
    let simulations = [
        (figures!("1,000 hosts, hourly sync", TWICE), renewals(0, 0, 0)),
        // What is due on a day, if each host has ten certificates that are renewed every 60 days.
        (figures!("170 of them renew 1 each at once", TWICE), renewals(170, 1, 1)),
        (figures!("all renew 10 each within an hour", TWICE), renewals(HOSTS, 10, 3600)),
        (figures!("all renew 10 each at once", TWICE), renewals(HOSTS, 10, 1)),
        // What the hooks cannot finish in 90 seconds waits for the timers, however little it is.
        (figures!("all renew 1 each at once", TWICE), renewals(HOSTS, 1, 1)),
        // By chance, a few hooks are refused twice and end.
        (figures!("100 of them renew 5 each at once", Goal::None), renewals(100, 5, 1)),
    ];
    for (figures, renewals) in simulations {
        table.add_all(figures, measure(renewals));
    }
    Ok(())
}

fn measure(renewals: Renewals) -> Result<[Measured; 7]> {
    let simulated = simulate(renewals, BUDGET, SEED)?;
    let (finished, ideal) = (simulated.finished.as_secs_f64(), simulated.ideal.as_secs_f64());
    let without_limit = simulated.ideal_without_limit.as_secs_f64();
    let (wait, ideal_wait) = (simulated.longest_wait.as_secs_f64(), simulated.ideal_wait.as_secs_f64());
    let count = |count: usize| Measured::value(count as f64);
    Ok([
        Measured::of_two(finished / ideal, finished, ideal, Unit::Seconds),
        Measured::of_two(finished / without_limit, finished, without_limit, Unit::Seconds),
        Measured::of_two(wait, wait, ideal_wait, Unit::Seconds),
        count(simulated.requests),
        count(simulated.refusals),
        count(simulated.left_to_sync),
        count(simulated.peak),
    ])
}
