//! The commands that systemd and cron run regularly and that call a program, and what keeps them from running.

mod calendar;
mod cron;
mod job;
mod obstacle;
mod runs;
mod systemd;

use std::path::PathBuf;

pub(super) use self::cron::SPOOLS;
pub(super) use self::job::{Job, JobUser, Scheduler};
pub(super) use self::obstacle::{Obstacle, install};
pub(super) use self::runs::Runs;
pub(super) use self::systemd::Units;
use super::calls::Program;
use super::host::Host;

/// What calls a program regularly.
pub(super) struct Schedule {
    pub(super) jobs: Vec<Job>,
    /// Enabled timers of the program without a unit to start.
    pub(super) broken: Vec<(PathBuf, Obstacle)>,
}

/// Searches for scheduled calls of a program.
pub(super) fn find(host: &Host<'_>, wanted: Program) -> Schedule {
    let system = Units::of_system(host, wanted);
    let user = Units::of_user(host, wanted);
    let mut schedule = Schedule { jobs: Vec::new(), broken: Vec::new() };
    for units in [&system, &user] {
        units.add_timers(&mut schedule);
    }
    schedule.jobs.extend(cron::jobs(host, wanted, &|name| system.calls(name)));
    schedule
}
