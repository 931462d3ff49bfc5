//! Judges when `sync` last ran, and how it ended. Nothing else in the check notices that its timer has stopped.

use time::{Duration, OffsetDateTime};

use super::gauge::Gauge;
use super::lineage_status::LineageStatus;
use super::thresholds::Thresholds;
use super::verdict::{Alert, Level};
use crate::error::ErrorKind;
use crate::state::{LastSync, SyncRecord, SyncRecordFault};
use crate::text::humanize;

/// Returns the age and the alerts. If `is_pending`, a pending lineage has an alert, which already covers a failure of
/// `sync`.
pub(super) fn evaluate(
    last: &LastSync,
    lineages: &[LineageStatus],
    thresholds: &Thresholds,
    is_pending: bool,
    now: OffsetDateTime,
) -> (Option<Gauge>, Vec<Alert>) {
    let age = age(last, lineages, thresholds, now);
    if thresholds.ignore_sync() {
        return (age, Vec::new());
    }
    let faults = last.faults.iter().map(fault_alert);
    let has_run = last.record.is_some() || edge_checked_at(lineages).is_some();
    let late = age.and_then(|age| late_alert(has_run, age));
    let failure = last.record.as_ref().filter(|_| !is_pending);
    let failure = failure.and_then(|record| failure_alert(record, thresholds, now));
    (age, faults.chain(late).chain(failure).collect())
}

/// The time since the last `sync`. Without a record, the time since `sync` last checked an edge (all that earlier
/// releases recorded), or else since the least recent of the lineages' latest runs; then it is never critical. `None`
/// if unknown, or if nothing was deployed yet.
fn age(
    last: &LastSync,
    lineages: &[LineageStatus],
    thresholds: &Thresholds,
    now: OffsetDateTime,
) -> Option<Gauge> {
    if let Some(record) = &last.record {
        return Some(thresholds.sync_age(elapsed(record.ended_at, now)));
    }
    let begun_at = || lineages.iter().filter_map(|lineage| lineage.begun_at).min();
    let since = edge_checked_at(lineages).or_else(begun_at).filter(|_| last.faults.is_empty())?;
    Some(thresholds.sync_age(elapsed(since, now)).without_critical())
}

/// When a `sync` last checked an edge.
fn edge_checked_at(lineages: &[LineageStatus]) -> Option<OffsetDateTime> {
    lineages.iter().filter_map(|lineage| lineage.edge_checked_at).max()
}

fn fault_alert(fault: &SyncRecordFault) -> Alert {
    let level = match fault {
        SyncRecordFault::Unreadable(_) | SyncRecordFault::NewerVersion { .. } => Level::Unknown,
        SyncRecordFault::Invalid { .. } => Level::Warning,
    };
    Alert::from_message(level, &fault.to_string())
}

fn late_alert(has_run: bool, age: Gauge) -> Option<Alert> {
    let level = Some(age.level()).filter(|level| *level > Level::Ok)?;
    let last_ran = || format!("sync last ran {} ago", humanize(age.value));
    let text = if has_run { last_ran() } else { "sync has never run".into() };
    let alert = Alert::new(level, None, &text).with_detail("; check its timer with `edgecert doctor`");
    Some(alert.with_urgency(age.urgency()))
}

/// Describes a failure that the check would report with its default thresholds.
pub(in crate::cmd) fn sync_failure(record: &SyncRecord, now: OffsetDateTime) -> Option<String> {
    let alert = failure_alert(record, &Thresholds::default(), now)?;
    Some(alert.text + &alert.detail)
}

/// The alert for a failure that is not temporary, or that has lasted for too long.
fn failure_alert(record: &SyncRecord, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Alert> {
    let failing_for = elapsed(record.failing_since.unwrap_or(record.ended_at), now);
    let is_temporary = record.exit_code == ErrorKind::Temporary.exit_code();
    let is_alert = match record.exit_code {
        0 => false,
        _ if is_temporary => thresholds.sync_age(failing_for).level() > Level::Ok,
        _ => true,
    };
    let message = record.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    let since = if is_temporary { format!(" for {}, last", humanize(failing_for)) } else { String::new() };
    let text = format!("sync failed{since} with exit code {}", record.exit_code);
    is_alert.then(|| Alert::new(Level::Warning, None, &text).with_detail(&message))
}

/// The time since an event; zero if the clock was set back since.
fn elapsed(since: OffsetDateTime, now: OffsetDateTime) -> Duration {
    (now - since).max(Duration::ZERO)
}
