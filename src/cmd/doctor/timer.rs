//! Whether a timer runs `edgecert sync`, according to the record of its runs in the state directory. A run without a
//! terminal is taken for one of a timer; it also proves user, program and API key.

use time::{Duration, OffsetDateTime};

use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use crate::cli::SYNC_AGE;
use crate::cmd::status::sync_failure;
use crate::state::LastSync;
use crate::text::humanize;

/// Judges the record as `status --check` does. `earliest_run` is the start of the earliest deployment, if any: after the
/// first one, there is time to set up a timer.
pub(super) fn check(
    last: &LastSync,
    earliest_run: Option<OffsetDateTime>,
    host: &Host<'_>,
    now: OffsetDateTime,
) -> DoctorFinding {
    let again = "run `edgecert sync`, and follow its hints";
    if let Some(fault) = last.faults.first() {
        return Subject::Timer.warn(fault.to_string(), again);
    }
    let [warning, critical] = SYNC_AGE;
    let Some((record, at)) = last.record.as_ref().and_then(|record| Some((record, record.unattended_at()?)))
    else {
        let reason = match last.record {
            Some(_) => "every `edgecert sync` on record had a terminal",
            None => "no `edgecert sync` is on record",
        };
        let detail = format!("{reason}, so no timer is known to run it");
        return match earliest_run.map(|run| now - run).filter(|age| *age > warning) {
            Some(age) => {
                let detail = format!("{detail}, although a deployment is {} old", humanize(age));
                Subject::Timer.fail(detail, set_up(host))
            }
            None => Subject::Timer.warn(detail, set_up(host)),
        };
    };
    // The clock may have been set back since.
    let age = (now - at).max(Duration::ZERO);
    let ended = format!("the last `edgecert sync` without a terminal ended {} ago", humanize(age));
    match sync_failure(record, now) {
        _ if age > critical => Subject::Timer.fail(ended, set_up(host)),
        _ if age > warning => Subject::Timer.warn(ended, set_up(host)),
        Some(failure) => Subject::Timer.warn(failure, again),
        None => {
            let code = record.exit_code;
            Subject::Timer.ok(format!("{ended} with exit code {code}, so a timer seems to run it"))
        }
    }
}

/// How to run `sync` every hour with what this host has, for the first time at once if possible.
fn set_up(host: &Host<'_>) -> String {
    if host.uid == 0 && host.has_systemd() {
        return "run `systemctl enable --now edgecert-sync.timer && systemctl start edgecert-sync.service`"
            .into();
    }
    format!(
        "run `crontab -e` and add the line: 17 * * * * {} sync --splay 600; if a crontab has it, wait for its first run",
        host.program()
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use time::macros::datetime;

    use super::*;
    use crate::check::Status;
    use crate::env::Env;
    use crate::error::ErrorKind;
    use crate::state::{RunResult, StateError, SyncRecord};

    const NOW: OffsetDateTime = datetime!(2026-11-22 12:00 UTC);
    const HOUR: Duration = Duration::HOUR;

    /// A run this many hours ago.
    fn run(hours: i32, exit_code: u8, unattended: bool) -> SyncRecord {
        let error = (exit_code != 0).then(|| "no".to_owned());
        let result = RunResult { at: NOW - HOUR * hours, exit_code, error };
        SyncRecord { failing_since: None, ..SyncRecord::after(None, result, unattended) }
    }

    fn check_on(root: PathBuf, uid: u32, record: Option<SyncRecord>, earliest: Option<i32>) -> DoctorFinding {
        let env = Env::default();
        let mut host = Host::new(root, &env);
        host.uid = uid;
        let last = LastSync { record, faults: Vec::new() };
        check(&last, earliest.map(|hours| NOW - HOUR * hours), &host, NOW)
    }

    #[test]
    fn record_is_judged() {
        let by_hand = |hours| SyncRecord { last_unattended: Some(NOW - HOUR * hours), ..run(0, 0, false) };
        let rows = [
            (
                Some(run(0, 0, true)),
                Status::Ok,
                "the last `edgecert sync` without a terminal ended 0 seconds ago with exit code 0, so a timer seems to run it",
            ),
            (
                Some(run(3, 75, true)),
                Status::Ok,
                "the last `edgecert sync` without a terminal ended 3 hours ago with exit code 75, so a timer seems to run it",
            ),
            (
                Some(by_hand(2)),
                Status::Ok,
                "the last `edgecert sync` without a terminal ended 2 hours ago with exit code 0, so a timer seems to run it",
            ),
            (Some(by_hand(4)), Status::Warn, "the last `edgecert sync` without a terminal ended 4 hours ago"),
            (
                Some(run(4, 0, true)),
                Status::Warn,
                "the last `edgecert sync` without a terminal ended 4 hours ago",
            ),
            (
                Some(run(25, 0, true)),
                Status::Fail,
                "the last `edgecert sync` without a terminal ended 25 hours ago",
            ),
            (Some(run(1, 77, true)), Status::Warn, "sync failed with exit code 77: no"),
            (
                Some(run(0, 0, false)),
                Status::Warn,
                "every `edgecert sync` on record had a terminal, so no timer is known to run it",
            ),
            (None, Status::Warn, "no `edgecert sync` is on record, so no timer is known to run it"),
        ];
        for (record, status, detail) in rows {
            let finding = check_on("/".into(), 0, record, Some(3));
            assert_eq!((finding.status, finding.detail.as_str()), (status, detail));
        }
        let after = ", although a deployment is 4 hours old";
        for record in [None, Some(run(0, 0, false))] {
            let finding = check_on("/".into(), 0, record, Some(4));
            assert!(
                finding.kind == Some(ErrorKind::Config) && finding.detail.ends_with(after),
                "{finding:?}"
            );
        }
        let fault = StateError::NewerVersion { path: "/x".into(), version: 2 };
        let last = LastSync { record: None, faults: vec![fault] };
        let finding = check(&last, Some(NOW - HOUR * 9), &Host::new("/".into(), &Env::default()), NOW);
        assert_eq!((finding.status, finding.detail.starts_with("/x has version 2")), (Status::Warn, true));
    }

    #[test]
    fn remedy_fits_the_host() {
        let root = tempfile::TempDir::new().unwrap();
        let remedy = |uid| check_on(root.path().to_owned(), uid, None, None).remedy.unwrap();
        assert!(remedy(0).starts_with("run `crontab -e` and add the line: 17 * * * * /"), "{}", remedy(0));
        std::fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
        assert!(remedy(1000).starts_with("run `crontab -e`"), "the timer runs as root");
        let enable =
            "run `systemctl enable --now edgecert-sync.timer && systemctl start edgecert-sync.service`";
        assert_eq!(remedy(0), enable);
    }
}
