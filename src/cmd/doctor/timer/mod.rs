//! Checks in the files of systemd and cron whether they run `edgecert sync` regularly: as a user with the hooks'
//! state, with a program that exists, and more often than once a day.

mod calendar;
mod cron;
mod job;
mod runs;
mod systemd;

use std::io;
use std::path::PathBuf;

use self::cron::SPOOLS;
use self::job::Job;
use self::runs::Runs;
pub(super) use self::systemd::Units;
use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use super::user::SyncFiles;
use crate::error::{ErrorKind, shell_word};
use crate::text;

const UNIT: &str = "edgecert-sync.timer";

/// Looks for a timer, or for several that together are frequent enough.
pub(super) fn check(host: &Host<'_>, files: &SyncFiles) -> DoctorFinding {
    let system = Units::of_system(host);
    let mut jobs = system.jobs();
    jobs.extend(Units::of_user(host).jobs());
    jobs.extend(cron::jobs(host, &|name| system.calls(name)));
    let judged: Vec<(&Job, Result<(), String>)> =
        jobs.iter().filter_map(|job| Some((job, job.fault(files, host)?))).collect();
    let working = || judged.iter().filter(|(_, result)| result.is_ok()).map(|(job, _)| *job);
    let runs = working().map(|job| job.runs).fold(Runs::default(), Runs::and);
    match working().next() {
        Some(job) if runs.is_frequent() => {
            DoctorFinding::ok(Subject::Timer, format!("{} runs edgecert sync", text::path(&job.place)))
        }
        _ => missing(&judged, host, &system),
    }
}

/// Reports that there is no timer, and why those that come close do not count.
fn missing(judged: &[(&Job, Result<(), String>)], host: &Host<'_>, system: &Units<'_>) -> DoctorFinding {
    let near: Vec<String> = judged.iter().map(|(job, result)| near_miss(job, result)).collect();
    let unreadable = unreadable_spool(host).filter(|_| near.is_empty());
    if let Some(spool) = unreadable {
        let detail = format!(
            "it is not known whether a timer runs edgecert sync: {} cannot be read",
            text::path(&spool)
        );
        let remedy = format!("check `crontab -l`, or {}", remedy(host, system));
        return DoctorFinding::warn(Subject::Timer, detail, remedy);
    }
    let near = if near.is_empty() { String::new() } else { format!(": {}", near.join("; ")) };
    let detail = format!("no timer runs edgecert sync, so failed deployments are not retried{near}");
    DoctorFinding::fail(Subject::Timer, ErrorKind::Config, detail, remedy(host, system))
}

fn near_miss(job: &Job, result: &Result<(), String>) -> String {
    let reason = match result {
        Err(reason) => reason,
        Ok(()) => "does not run it more often than once a day",
    };
    format!("{} {reason}", text::path(&job.place))
}

/// How to run `sync` every hour. Crontabs of `crontab -e` have no column for the user: the jobs run as their owner.
fn remedy(host: &Host<'_>, system: &Units<'_>) -> String {
    let program = shell_word(&text::path(&host.program));
    let crontab = format!("run `crontab -e` and add the line: 17 * * * * {program} sync --splay 600");
    if host.uid == 0 && system.has(UNIT) {
        return format!("run `systemctl enable --now {UNIT}`, or {crontab}");
    }
    if host.uid == 0 {
        return format!(
            "install the units in hooks/systemd and run `systemctl enable --now {UNIT}`, or {crontab}"
        );
    }
    crontab
}

/// A directory of crontabs that this user cannot read.
fn unreadable_spool(host: &Host<'_>) -> Option<PathBuf> {
    let is_denied = |path: &PathBuf| {
        std::fs::read_dir(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    SPOOLS.iter().map(|spool| host.at(spool)).find(is_denied)
}

#[cfg(test)]
mod tests;
