//! A scheduled call of edgecert, and why it does not count as a timer.

use std::path::PathBuf;

use super::runs::Runs;
use crate::cmd::doctor::calls::{Action, Call};
use crate::cmd::doctor::host::{Host, ProgramStatus};
use crate::cmd::doctor::user::{SyncFiles, User};
use crate::text;

/// A scheduled call.
pub(super) struct Job {
    /// The file that schedules it.
    pub(super) place: PathBuf,
    pub(super) runs: Runs,
    pub(super) call: Call,
    /// Whether the program exists where the scheduler searches for it.
    pub(super) program: ProgramStatus,
    /// The user that runs it, unless the call switches to another one.
    pub(super) user: JobUser,
    /// The state directory that systemd creates for it.
    pub(super) prepared_state_dir: Option<PathBuf>,
}

/// A user that runs a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobUser {
    Named(String),
    /// The user that runs `doctor`.
    Own,
    /// A dynamic user, which systemd allocates for each run and which owns the prepared directory.
    Dynamic,
}

impl Job {
    /// Whether it runs `sync`, and if so, why that does not work; `None` if it does something else.
    pub(super) fn fault(&self, files: &SyncFiles, host: &Host<'_>) -> Option<Result<(), String>> {
        let Action::Sync { state_dir } = self.call.action() else { return None };
        let program = text::sanitize(&self.call.program);
        Some(match self.program {
            ProgramStatus::Missing => {
                Err(format!("runs {program}, which does not exist or is not executable"))
            }
            ProgramStatus::NotInPath => Err(format!("runs {program} without a path, and does not find it")),
            ProgramStatus::Found | ProgramStatus::Unknown => self.check_user(files, host, state_dir),
        })
    }

    fn check_user(
        &self,
        files: &SyncFiles,
        host: &Host<'_>,
        state_dir: Option<PathBuf>,
    ) -> Result<(), String> {
        let user = match (&self.call.user, &self.user) {
            (Some(name), _) | (None, JobUser::Named(name)) => {
                let unknown = || format!("runs it as {}, a user that does not exist", text::sanitize(name));
                User::find(host, name).ok_or_else(unknown)?
            }
            (None, JobUser::Own) => User::own(host),
            (None, JobUser::Dynamic) => {
                let prepared = self.prepared_state_dir.as_ref();
                return match (prepared, &files.state_dir) {
                    (Some(prepared), Some(wanted)) if prepared == wanted => Ok(()),
                    _ => Err("runs it as a dynamic user without the state directory".to_owned()),
                };
            }
        };
        let prepared = self.prepared_state_dir.clone();
        let reason = user.check(files, host, state_dir, prepared);
        reason.map_err(|reason| format!("runs it as {}, a user that {reason}", text::sanitize(&user.name)))
    }
}
