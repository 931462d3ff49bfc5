//! The check `validity`: whether the leaf has expired or is not valid yet.

use time::OffsetDateTime;

use super::finding::{Check, Finding, Findings, Status};
use crate::cert::Certificate;
use crate::text::{humanize, rfc3339};

pub(super) fn check(file: &str, leaf: &Certificate, at: OffsetDateTime) -> Vec<Finding> {
    let mut findings = Findings::new(Check::Validity);
    let (not_before, not_after) = (rfc3339(leaf.not_before), rfc3339(leaf.not_after));
    // Validity counts in whole seconds and includes the last one (RFC 5280, section 4.1.2.5).
    let at = at.replace_nanosecond(0).unwrap_or(at);
    let left = leaf.not_after - at;
    let valid = format!("valid until {not_after}, for {}", humanize(left));
    if left.is_negative() {
        let hint = "renew it with the ACME client, then deploy the renewal";
        findings.add(Status::Fail, format!("{file} expired at {not_after}"), hint);
    } else if at < leaf.not_before {
        let hint = "check this host's clock, or wait until then";
        findings.add(Status::Fail, format!("{file} is not valid before {not_before}"), hint);
    } else if left < (leaf.not_after - leaf.not_before) / 10 {
        let found = format!("{file} is in the last tenth of its lifetime: {valid}");
        findings.add(Status::Warn, found, "find out why the ACME client has not renewed it");
    }
    findings.or_ok(valid)
}
