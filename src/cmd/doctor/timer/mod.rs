//! Checks in the files of systemd and cron whether they run `edgecert sync` regularly: as a user with the hooks'
//! state, with a program that exists, and more often than once a day.

mod fault;

use std::io;
use std::path::PathBuf;

use self::fault::Fault;
use super::calls::{Action, Program};
use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use super::schedule::{self, Job, Runs, SPOOLS, Units};
use super::user::SyncFiles;
use crate::error::{ErrorKind, shell_word};
use crate::text;

const UNIT: &str = "edgecert-sync.timer";
const SERVICE: &str = "edgecert-sync.service";

/// A timer, and why it does not count.
struct Judged {
    place: PathBuf,
    runs: Runs,
    fault: Option<Fault>,
}

/// Looks for a timer, or for several that together are frequent enough.
pub(super) fn check(host: &Host<'_>, files: &SyncFiles) -> DoctorFinding {
    let schedule = schedule::find(host, Program::Edgecert);
    let is_sync = |job: &&Job| matches!(job.call.action(), Action::Sync { .. });
    let syncs = schedule.jobs.into_iter().filter(|job| is_sync(&job)).map(|job| Judged {
        fault: fault::find(&job, files, host),
        runs: job.runs,
        place: job.place,
    });
    let broken = schedule.broken.into_iter().map(|(place, obstacle)| Judged {
        place,
        runs: Runs::default(),
        fault: Some(Fault::Obstacle(obstacle)),
    });
    let judged: Vec<Judged> = syncs.chain(broken).collect();
    let working = || judged.iter().filter(|timer| timer.fault.is_none());
    let runs = working().map(|timer| timer.runs).fold(Runs::default(), Runs::and);
    match working().next() {
        Some(timer) if runs.is_frequent() => {
            DoctorFinding::ok(Subject::Timer, format!("{} runs edgecert sync", text::path(&timer.place)))
        }
        _ => missing(&judged, host),
    }
}

/// Reports that there is no timer, and why those that come close do not count.
fn missing(judged: &[Judged], host: &Host<'_>) -> DoctorFinding {
    let near: Vec<String> = judged.iter().map(near_miss).collect();
    let unreadable = unreadable_spool(host).filter(|_| near.is_empty());
    if let Some(spool) = unreadable {
        let detail = format!(
            "it is not known whether a timer runs edgecert sync: {} cannot be read",
            text::path(&spool)
        );
        let remedy = format!("check `crontab -l`, or {}", set_up(host));
        return DoctorFinding::warn(Subject::Timer, detail, remedy);
    }
    let near = if near.is_empty() { String::new() } else { format!(": {}", near.join("; ")) };
    let detail = format!("no timer runs edgecert sync, so failed deployments are not retried{near}");
    // A timer that only lacks its program needs no second one.
    let repair = match judged {
        [Judged { fault: Some(fault), .. }] => fault.repair(host),
        _ => None,
    };
    let remedy = repair.unwrap_or_else(|| set_up(host));
    DoctorFinding::fail(Subject::Timer, ErrorKind::Config, detail, remedy)
}

fn near_miss(timer: &Judged) -> String {
    let reason = timer.fault.as_ref().map(Fault::reason);
    let reason = reason.unwrap_or_else(|| "does not run it more often than once a day".into());
    format!("{} {reason}", text::path(&timer.place))
}

/// How to run `sync` every hour, with what this host has. Crontabs of `crontab -e` have no column for the user: the
/// jobs run as their owner.
fn set_up(host: &Host<'_>) -> String {
    let program = shell_word(&text::path(&host.program));
    let install = if host.has_cron() { "" } else { "install cron (`apt install cron`), " };
    let crontab =
        format!("{install}run `crontab -e` and add the line: 17 * * * * {program} sync --splay 600");
    if host.uid != 0 {
        return crontab;
    }
    if !host.has_systemd() {
        let directory = if install.is_empty() { "" } else { "then " };
        return format!(
            "{install}{directory}run `install -m 644 hooks/cron/edgecert-sync /etc/cron.d/edgecert-sync` in /usr/share/edgecert or the source directory"
        );
    }
    let units = Units::of_system(host, Program::Edgecert);
    if units.has(UNIT) && units.has(SERVICE) {
        return format!("run `systemctl enable --now {UNIT}`");
    }
    format!(
        "run `install -m 644 hooks/systemd/{SERVICE} hooks/systemd/{UNIT} /etc/systemd/system/ && \
         systemctl daemon-reload && systemctl enable --now {UNIT}` in the source directory"
    )
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
