//! The check `names`: whether the leaf covers the requested domains.

use super::finding::{Check, Finding, Findings, Status};
use crate::cert::Certificate;
use crate::hint::Hint;
use crate::names::Domain;
use crate::text::{list, sanitize};

pub(super) fn check(file: &str, leaf: &Certificate, domains: &[Domain]) -> Vec<Finding> {
    let mut findings = Findings::new(Check::Names);
    let names = leaf.names();
    if names.is_empty() {
        let subject = &leaf.subject.short;
        let found = format!("{file} has no subject alternative name; its subject `{subject}` does not count");
        let hint = "issue it with its domains as subject alternative names; browsers and the service ignore the subject (RFC 9525)";
        findings.add(Status::Fail, found, hint);
        return findings.list;
    }
    // IP addresses cover no domain, even one that is spelled like an address.
    let dns_names: Vec<String> = leaf.dns_names().map(sanitize).collect();
    let covered = if dns_names.is_empty() { "IP addresses".to_owned() } else { list(&dns_names) };
    for domain in domains.iter().filter(|domain| !domain.is_covered_by_any(leaf.dns_names())) {
        let instead = format!("renew it with {domain} among its names");
        let hint = Hint::OmitDomain { instead, domain: domain.to_string() };
        findings.add(Status::Fail, format!("{file} does not cover {domain}, only {covered}"), hint);
    }
    findings.or_ok(format!("covers {}", list(&names)))
}
