//! Why a scheduled `edgecert sync` does not count as a timer.

use crate::cmd::doctor::calls::Action;
use crate::cmd::doctor::host::Host;
use crate::cmd::doctor::schedule::{Job, JobUser, Obstacle};
use crate::cmd::doctor::user::{SyncFiles, User};
use crate::text;

/// Why it does not count.
pub(super) enum Fault {
    Obstacle(Obstacle),
    /// It runs as a user without what `sync` needs.
    User(String),
}

impl Fault {
    /// Completes a sentence that begins with the file of the schedule.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Obstacle(obstacle) => obstacle.reason(),
            Self::User(reason) => reason.clone(),
        }
    }

    /// How to repair the timer, if that is easier than another timer.
    pub(super) fn repair(&self, host: &Host<'_>) -> Option<String> {
        match self {
            Self::Obstacle(
                obstacle @ (Obstacle::NoProgram(_)
                | Obstacle::NotInPath { .. }
                | Obstacle::NoCron
                | Obstacle::NoLineFeed),
            ) => Some(obstacle.remedy(host)),
            Self::Obstacle(Obstacle::NoUnit(_) | Obstacle::NoSystemd) | Self::User(_) => None,
        }
    }
}

/// Finds what is wrong with a job that runs `sync`.
pub(super) fn find(job: &Job, files: &SyncFiles, host: &Host<'_>) -> Option<Fault> {
    let obstacle = job.obstacle(host).map(Fault::Obstacle);
    obstacle.or_else(|| check_user(job, files, host).err().map(Fault::User))
}

fn check_user(job: &Job, files: &SyncFiles, host: &Host<'_>) -> Result<(), String> {
    let Action::Sync { state_dir } = job.call.action() else { return Ok(()) };
    let switched = job.call.user.clone().map(JobUser::Named);
    let user = match switched.as_ref().unwrap_or(&job.user) {
        JobUser::Named(name) => {
            let unknown = || format!("runs it as {}, a user that does not exist", text::sanitize(name));
            User::find(host, name).ok_or_else(unknown)?
        }
        JobUser::Own => User::own(host),
        JobUser::Dynamic => {
            let prepared = job.prepared_state_dir.as_ref();
            return match (prepared, &files.state_dir) {
                (Some(prepared), Some(wanted)) if prepared == wanted => Ok(()),
                _ => Err("runs it as a dynamic user without the state directory".to_owned()),
            };
        }
    };
    let prepared = job.prepared_state_dir.clone();
    let reason = user.check(files, host, state_dir, prepared);
    reason.map_err(|reason| format!("runs it as {}, a user that {reason}", text::sanitize(&user.name)))
}
