//! The last `sync` of this host: the last line of the table, a field of the JSON object, and two metrics.

use std::fmt::Write as _;

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::report::{Sign, Style};
use crate::state::{LastSync, SyncRecord};
use crate::text::{humanize, people, rfc3339};

/// The JSON object; `null` if `sync` never ran, or if that is unknown.
pub(super) fn json(last: &LastSync) -> Value {
    let Some(SyncRecord { ended_at, exit_code, message, failing_since, .. }) = &last.record else {
        return Value::Null;
    };
    let failing_since = failing_since.map(rfc3339);
    json!({"at": rfc3339(*ended_at), "exit_code": exit_code, "message": message, "failing_since": failing_since})
}

/// Formats the line below the table.
pub(super) fn text(last: &LastSync, sign: Sign, now: OffsetDateTime, style: Style) -> String {
    let text = match &last.record {
        None if last.faults.is_empty() => "never".into(),
        None => "unknown".into(),
        Some(SyncRecord { ended_at, exit_code, message, failing_since, .. }) => {
            // The clock may have been corrected since.
            let age = (now - *ended_at).max(Duration::ZERO);
            let mut text = format!("{} ago, exit code {exit_code}", humanize(age));
            if let Some(since) = failing_since.filter(|since| since < ended_at) {
                let _ = write!(text, ", failing since {}", people::since(since.min(now), now));
            }
            if let Some(message) = message {
                let _ = write!(text, ": {message}");
            }
            text
        }
    };
    let sign = if sign == Sign::Ok { String::new() } else { style.sign(sign) + " " };
    format!("{sign}last sync: {text}\n")
}
