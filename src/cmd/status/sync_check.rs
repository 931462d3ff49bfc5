//! Judges when `sync` last ran, and how it ended: a timer that died is seen here only.

use time::{Duration, OffsetDateTime};

use super::gauge::Gauge;
use super::lineage_status::LineageStatus;
use super::thresholds::Thresholds;
use super::verdict::{Alert, Level};
use crate::error::ErrorKind;
use crate::state::{LastSync, SyncRecord, SyncRecordFault};
use crate::text::humanize;

/// The time since the last `sync`; if there was none, since the first of the latest runs on each lineage. `None`: it is
/// unknown, or nothing was deployed yet.
pub(super) fn age(
    last: &LastSync,
    lineages: &[LineageStatus],
    thresholds: &Thresholds,
    now: OffsetDateTime,
) -> Option<Gauge> {
    let begun_at = || lineages.iter().filter_map(|lineage| lineage.begun_at).min();
    let since = match &last.record {
        Some(record) => record.ended_at,
        None if last.faults.is_empty() => begun_at()?,
        None => return None,
    };
    Some(thresholds.sync_age(elapsed(since, now)))
}

/// The alerts. If a lineage alerts because it `is_pending`, a failure of `sync` is no news.
pub(super) fn alerts(
    last: &LastSync,
    age: Option<Gauge>,
    thresholds: &Thresholds,
    is_pending: bool,
    now: OffsetDateTime,
) -> Vec<Alert> {
    if thresholds.ignore_sync() {
        return Vec::new();
    }
    let faults = last.faults.iter().map(fault_alert);
    let late = age.and_then(|age| late_alert(last, age));
    let failure = last.record.as_ref().filter(|_| !is_pending);
    let failure = failure.and_then(|record| failure_alert(record, thresholds, now));
    faults.chain(late).chain(failure).collect()
}

fn fault_alert(fault: &SyncRecordFault) -> Alert {
    let level = match fault {
        SyncRecordFault::Unreadable(_) | SyncRecordFault::NewerVersion { .. } => Level::Unknown,
        SyncRecordFault::Invalid { .. } => Level::Warning,
    };
    Alert::new(level, None, fault.to_string())
}

fn late_alert(last: &LastSync, age: Gauge) -> Option<Alert> {
    let level = Some(age.level()).filter(|level| *level > Level::Ok)?;
    let what = match &last.record {
        Some(_) => format!("sync last ran {} ago", humanize(age.value)),
        None => "sync has never run".into(),
    };
    let alert = Alert::new(level, None, format!("{what}; check its timer with `edgecert doctor`"));
    Some(Alert { urgency: age.urgency(), ..alert })
}

/// The alert for a failure that the next run will not mend, or that has lasted for too long.
fn failure_alert(record: &SyncRecord, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Alert> {
    let failing_for = elapsed(record.failing_since.unwrap_or(record.ended_at), now);
    let is_temporary = record.exit_code == ErrorKind::Temporary.exit_code();
    let is_alert = match record.exit_code {
        0 => false,
        _ if is_temporary => thresholds.sync_age(failing_for).level() == Level::Critical,
        _ => true,
    };
    let message = record.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    let since = if is_temporary { format!(" for {}, last", humanize(failing_for)) } else { String::new() };
    let text = format!("sync failed{since} with exit code {}{message}", record.exit_code);
    is_alert.then(|| Alert::new(Level::Warning, None, text))
}

/// The time since an event; zero if the clock was set back since.
fn elapsed(since: OffsetDateTime, now: OffsetDateTime) -> Duration {
    (now - since).max(Duration::ZERO)
}
