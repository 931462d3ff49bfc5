//! A scheduled call of a program.

use std::path::PathBuf;

use super::obstacle::Obstacle;
use super::runs::Runs;
use crate::cmd::doctor::calls::{Call, CallFinder, Program};
use crate::cmd::doctor::host::{Host, ProgramStatus};

/// A scheduled call.
pub(in crate::cmd::doctor) struct Job {
    /// The file that schedules it.
    pub(in crate::cmd::doctor) place: PathBuf,
    pub(in crate::cmd::doctor) scheduler: Scheduler,
    pub(in crate::cmd::doctor) runs: Runs,
    pub(in crate::cmd::doctor) call: Call,
    /// The directories that are searched for programs, before the call changes them.
    pub(in crate::cmd::doctor) path: Vec<String>,
    /// The user that runs it, unless the call switches to another one.
    pub(in crate::cmd::doctor) user: JobUser,
    /// The state directory that systemd creates for it.
    pub(in crate::cmd::doctor) prepared_state_dir: Option<PathBuf>,
    /// Whether cron ignores the crontab because its last line has no line feed.
    pub(in crate::cmd::doctor) is_ignored: bool,
}

/// What runs a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd::doctor) enum Scheduler {
    Systemd { service: String },
    Cron,
}

/// A user that runs a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd::doctor) enum JobUser {
    Named(String),
    /// The user that runs `doctor`.
    Own,
    /// A dynamic user, which systemd allocates for each run and which owns the prepared directory.
    Dynamic,
}

impl Job {
    /// What keeps it from running.
    pub(in crate::cmd::doctor) fn obstacle(&self, host: &Host<'_>) -> Option<Obstacle> {
        match self.scheduler {
            Scheduler::Systemd { .. } if !host.has_systemd() => return Some(Obstacle::NoSystemd),
            Scheduler::Cron if !host.has_cron() => return Some(Obstacle::NoCron),
            Scheduler::Systemd { .. } | Scheduler::Cron => {}
        }
        if self.is_ignored {
            return Some(Obstacle::NoLineFeed);
        }
        let finder = self.finder(host, Program::default());
        let program = finder.not_found(&self.call)?.to_owned();
        Some(match finder.status(&self.call) {
            ProgramStatus::NotInPath => Obstacle::NotInPath { program, path: self.path.join(":") },
            _ => Obstacle::NoProgram(program),
        })
    }

    /// Searches for programs as this job does.
    pub(in crate::cmd::doctor) fn finder<'a>(
        &'a self,
        host: &'a Host<'a>,
        wanted: Program,
    ) -> CallFinder<'a> {
        CallFinder { host, wanted, path: &self.path, unit_calls: None }
    }
}
