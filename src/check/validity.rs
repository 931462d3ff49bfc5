//! The check `validity`: whether the leaf has expired or is not valid yet.

use time::OffsetDateTime;

use super::finding::{Check, Finding};
use crate::cert::Certificate;
use crate::text::{humanize, rfc3339};

pub(super) fn check(file: &str, leaf: &Certificate, at: OffsetDateTime) -> Finding {
    let (not_before, not_after) = (rfc3339(leaf.not_before), rfc3339(leaf.not_after));
    // Validity counts in whole seconds and includes the last one (RFC 5280, section 4.1.2.5).
    let at = at.replace_nanosecond(0).unwrap_or(at);
    if at > leaf.not_after {
        return Finding::fail(Check::Validity, format!("{file} expired at {not_after}"))
            .hint("renew it with the ACME client, then deploy the renewal");
    }
    if at < leaf.not_before {
        let detail = format!("{file} is not valid before {not_before}");
        return Finding::fail(Check::Validity, detail).hint("check this host's clock, or wait until then");
    }
    let left = leaf.not_after - at;
    let detail = format!("valid until {not_after}, for {}", humanize(left));
    if left < (leaf.not_after - leaf.not_before) / 10 {
        let detail = format!("{file} is in the last tenth of its lifetime: {detail}");
        return Finding::warn(Check::Validity, detail)
            .hint("find out why the ACME client has not renewed it");
    }
    Finding::ok(Check::Validity, detail)
}
