//! Reports a hook that its caller does not find, and how to put the program where it is found.

use std::path::Path;

use super::finding::{DoctorFinding, Subject};
use super::hook_detection::PathMiss;
use super::host::{Host, USUAL_PATH, is_executable};
use super::renewals::Caller;
use super::schedule::{SPOOLS, Scheduler, install};
use crate::error::{ErrorKind, shell_word};
use crate::text;

/// Directory for programs that do not come from the distribution.
const TARGET: &str = "/usr/local/bin";

/// Reports that the hook in a file has no effect, although the shell of the user that runs `doctor` may find it.
pub(super) fn finding(title: &str, config: &Path, miss: &PathMiss, host: &Host<'_>) -> DoctorFinding {
    let program = text::sanitize(&miss.program);
    let description = format!("{} calls {program} for {title} without a path", text::path(config));
    let missed = match &miss.caller {
        Some(caller) => {
            let path = text::sanitize(&caller.path.join(":"));
            format!("{} does not find it in its PATH {path}", caller.name())
        }
        None => format!("it is not in {}, where ACME clients find programs", USUAL_PATH.join(":")),
    };
    let found = match miss.program.as_str() {
        "edgecert" => Some(host.own_program()),
        other => host.locate(other),
    };
    let place = match &found {
        Some(found) => format!("; it is {}", text::path(found)),
        None => String::new(),
    };
    let detail = format!("{description}, but {missed}{place}");
    DoctorFinding::fail(Subject::Hook, ErrorKind::Config, detail, remedy(miss, found.as_deref(), host))
}

fn remedy(miss: &PathMiss, found: Option<&Path>, host: &Host<'_>) -> String {
    let target = Path::new(TARGET).join(&miss.program);
    let is_installed = is_executable(&host.at(&target));
    let installed = match found {
        _ if is_installed => None,
        Some(found) => Some(install(found, &target)),
        None => Some(format!("install {} into {TARGET}", shell_word(&text::sanitize(&miss.program)))),
    };
    let is_searched = |caller: &&Caller| !caller.path.iter().any(|directory| directory == TARGET);
    let path = miss.caller.as_ref().filter(is_searched).map(set_path);
    let steps: Vec<String> = installed.into_iter().chain(path).collect();
    steps.join(", and ")
}

/// How to add `TARGET` to the PATH of a caller.
fn set_path(caller: &Caller) -> String {
    let path = USUAL_PATH.join(":");
    match &caller.scheduler {
        Scheduler::Systemd { service } => {
            let service = shell_word(&text::sanitize(service));
            format!(
                "run `systemctl edit {service}` and add the lines `[Service]` and `Environment=PATH={path}`"
            )
        }
        Scheduler::Cron => {
            let is_of_user = SPOOLS.iter().any(|spool| caller.place.to_string_lossy().contains(spool));
            let file =
                if is_of_user { "the crontab (`crontab -e`)".into() } else { text::path(&caller.place) };
            format!("add the line `PATH={path}` at the top of {file}")
        }
    }
}
