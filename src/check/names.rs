//! The check `names`: whether the leaf covers the requested domains.

use super::finding::{Check, Finding};
use crate::cert::Certificate;
use crate::hint::Hint;
use crate::names::Domain;
use crate::text::{list, sanitize};

pub(super) fn check(file: &str, leaf: &Certificate, domains: &[Domain]) -> Vec<Finding> {
    let names = leaf.names();
    if names.is_empty() {
        return vec![no_names(file, leaf)];
    }
    // IP addresses cover no domain, even one that is spelled like an address.
    let dns_names: Vec<String> = leaf.dns_names().map(sanitize).collect();
    let covered = if dns_names.is_empty() { "IP addresses".to_owned() } else { list(&dns_names) };
    let uncovered = domains.iter().filter(|domain| !domain.is_covered_by_any(leaf.dns_names()));
    let findings: Vec<Finding> = uncovered
        .map(|domain| {
            let instead = format!("renew it with {domain} among its names");
            let hint = Hint::OmitDomain { instead, domain: domain.to_string() };
            let detail = format!("{file} does not cover {domain}, only {covered}");
            let finding = Finding::fail(Check::Names, detail).hint(hint);
            Finding { uncovered: Some(domain.clone()), ..finding }
        })
        .collect();
    if findings.is_empty() {
        return vec![Finding::ok(Check::Names, format!("covers {}", list(&names)))];
    }
    findings
}

fn no_names(file: &str, leaf: &Certificate) -> Finding {
    let subject = &leaf.subject.short;
    let detail = format!("{file} has no subject alternative name; its subject `{subject}` does not count");
    Finding::fail(Check::Names, detail).hint(
        "issue it with its domains as subject alternative names; browsers and the service ignore the subject (RFC 9525)",
    )
}
