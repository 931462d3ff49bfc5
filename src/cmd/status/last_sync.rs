//! The last `sync` of this host: the last line of the table, a field of the JSON object, and two metrics.

use std::fmt::Write as _;

use serde::Serialize;
use time::{Duration, OffsetDateTime};

use super::metrics::format_gauge;
use super::thresholds::Thresholds;
use super::verdict::Level;
use crate::report::{Sign, Style};
use crate::state::{LastSync, SyncRecord};
use crate::text::{humanize, people, rfc3339};

#[derive(Serialize)]
pub(super) struct LastSyncJson<'a> {
    #[serde(with = "rfc3339")]
    at: OffsetDateTime,
    exit_code: u8,
    message: Option<&'a str>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    failing_since: Option<OffsetDateTime>,
}

/// The JSON object; `None` if `sync` never ran, or if that is unknown.
pub(super) fn json(last: &LastSync) -> Option<LastSyncJson<'_>> {
    let SyncRecord { ended_at, exit_code, message, failing_since, .. } = last.record.as_ref()?;
    let message = message.as_deref();
    Some(LastSyncJson { at: *ended_at, exit_code: *exit_code, message, failing_since: *failing_since })
}

/// Formats the line below the table.
pub(super) fn text(last: &LastSync, now: OffsetDateTime, style: Style) -> String {
    let Some(record) = &last.record else {
        let word = if last.faults.is_empty() { "never" } else { "unknown" };
        return line(Some(Sign::Warning), word, style);
    };
    // The clock may have been corrected since.
    let age = (now - record.ended_at).max(Duration::ZERO);
    let (ago, exit_code) = (humanize(age), record.exit_code);
    let mut text = format!("{ago} ago, exit code {exit_code}");
    if let Some(since) = record.failing_since.filter(|since| *since < record.ended_at) {
        let _ = write!(text, ", failing since {}", people::since(since.min(now), now));
    }
    if let Some(message) = &record.message {
        let _ = write!(text, ": {message}");
    }
    let sign = match exit_code {
        0 if Thresholds::default().sync_age(age).level() > Level::Ok => Some(Sign::Warning),
        0 => None,
        _ => Some(Sign::Failed),
    };
    line(sign, &text, style)
}

fn line(sign: Option<Sign>, text: &str, style: Style) -> String {
    let sign = sign.map(|sign| style.sign(sign) + " ").unwrap_or_default();
    format!("{sign}last sync: {text}\n")
}

/// Formats the metrics, which have no labels; empty if `sync` never ran, or if that is unknown.
pub(super) fn metrics(last: &LastSync) -> String {
    let Some(SyncRecord { ended_at, exit_code, .. }) = &last.record else { return String::new() };
    let timestamp = ended_at.unix_timestamp();
    format_gauge("edgecert_last_sync_timestamp_seconds", "When sync last ended.", timestamp)
        + &format_gauge("edgecert_last_sync_exit_code", "Exit code of the last sync.", exit_code)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::NOW;
    use super::*;
    use crate::state::SyncRecordFault;

    fn last(age: Duration, exit_code: u8, failing: Option<Duration>) -> LastSync {
        let message = (exit_code != 0).then(|| "the service cannot be reached".to_owned());
        let ended_at = NOW - age;
        let failing_since = failing.map(|age| NOW - age);
        let (unattended, last_unattended) = (true, None);
        let record = SyncRecord { ended_at, exit_code, message, failing_since, unattended, last_unattended };
        LastSync { record: Some(record), faults: Vec::new() }
    }

    #[test]
    fn line_shows_time_and_result() {
        let minutes = Duration::minutes(12);
        let fault = SyncRecordFault::NewerVersion { path: "/x".into(), version: 2 };
        let rows = [
            (LastSync { record: None, faults: vec![fault] }, "! last sync: unknown\n"),
            (LastSync::default(), "! last sync: never\n"),
            (last(minutes, 0, None), "last sync: 12 minutes ago, exit code 0\n"),
            (last(-minutes, 0, None), "last sync: 0 seconds ago, exit code 0\n"),
            (last(Duration::hours(4), 0, None), "! last sync: 4 hours ago, exit code 0\n"),
            (
                last(minutes, 75, Some(minutes)),
                "x last sync: 12 minutes ago, exit code 75: the service cannot be reached\n",
            ),
            (
                last(minutes, 75, Some(Duration::hours(5))),
                "x last sync: 12 minutes ago, exit code 75, failing since 21 Nov 07:00 UTC (5 hours): \
                 the service cannot be reached\n",
            ),
        ];
        for (last, expected) in rows {
            assert_eq!(text(&last, NOW, Style::PLAIN), expected);
        }
    }

    #[test]
    fn metrics_need_a_run() {
        assert_eq!(metrics(&LastSync::default()), "");
        expect_test::expect![[r"
            # HELP edgecert_last_sync_timestamp_seconds When sync last ended.
            # TYPE edgecert_last_sync_timestamp_seconds gauge
            edgecert_last_sync_timestamp_seconds 1795261680
            # HELP edgecert_last_sync_exit_code Exit code of the last sync.
            # TYPE edgecert_last_sync_exit_code gauge
            edgecert_last_sync_exit_code 75
        "]]
        .assert_eq(&metrics(&last(Duration::minutes(12), 75, None)));
    }
}
