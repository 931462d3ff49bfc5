//! Histories of a host, judged by `status --check`: see `sync::histories`.

use time::OffsetDateTime;

use super::assessment::{Assessment, Level, Problem};
use super::fleet::{DiskStatus, Fleet, LineageStatus};
use super::gather::mark_superseded;
use crate::cert::KeyType;
use crate::cli::MonitoringArgs;
use crate::deploy::model::World;
use crate::state::{Deployments, LastSync};
use crate::sync::histories::{self, Host, Reported};

/// `EDGECERT_TEST_HISTORIES` says how many there are, and `EDGECERT_TEST_SEED` with which of them to begin.
#[test]
fn every_history_keeps_sites_served() {
    let end = variable("EDGECERT_TEST_HISTORIES").unwrap_or(2_000);
    let seeds = variable("EDGECERT_TEST_SEED").unwrap_or(0)..end;
    let without_state = histories::run_all(seeds.clone(), judge);
    let number = seeds.end - seeds.start;
    assert!(without_state > number / 40, "{without_state} of {number} histories end without state");
}

/// Prints the history of the seed that `EDGECERT_TEST_SEED` names.
#[test]
fn history_repeats_from_its_seed() {
    match variable("EDGECERT_TEST_SEED") {
        Some(seed) => histories::replay(seed, judge),
        None => assert_eq!(histories::lines(1, judge), histories::lines(1, judge)),
    }
}

#[expect(clippy::disallowed_methods, reason = "variables of tests")]
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Finds the problems above the default thresholds.
fn judge(host: &Host, world: &World, now: OffsetDateTime) -> Vec<Reported> {
    let (mut lineages, mut deployments) = (Vec::new(), Deployments::default());
    for (member, leaf, written_at) in host.members(world) {
        let disk = DiskStatus::of(leaf.clone(), KeyType::P256, member.state.as_ref());
        if let Some(state) = &member.state {
            deployments.add(&member.name, state);
        }
        lineages.push(LineageStatus::new(member, disk, written_at));
    }
    mark_superseded(&mut lineages, &deployments, now);
    let last_sync = LastSync { record: host.last_sync.clone(), faults: Vec::new() };
    let fleet = Fleet { lineages, state_errors: Vec::new(), last_sync };
    let assessment = Assessment { fleet: &fleet, thresholds: &MonitoringArgs::default(), now };
    let severe = assessment.problems().into_iter().filter(|problem| problem.level > Level::Ok);
    let reported = |problem: Problem<'_>| Reported {
        lineage: problem.subject.lineage.map(str::to_owned),
        text: problem.text,
    };
    severe.map(reported).collect()
}
