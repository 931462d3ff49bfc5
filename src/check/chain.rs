//! The check `chain`: whether clients can build a path from the leaf to a root.
//!
//! With trust anchors, validates the path; without them, only warns about chains that are likely to fail.

use super::context::CheckContext;
use super::finding::{Check, Finding, Status};
use super::path;
use crate::bundle::Chain;
use crate::cert::Fault;
use crate::text;

/// Checks the chain. If `is_explained`, another finding already explains why clients reject it, and no warning about the
/// path is added.
pub(super) fn check(
    file: &str,
    chain: &Chain,
    context: &CheckContext<'_>,
    is_explained: bool,
) -> Vec<Finding> {
    let mut findings = Vec::from_iter(missing_issuer(file, chain));
    for issuer in &chain.issuers {
        let issuer_name = format!("{file}: the intermediate {}", issuer.label());
        let mut warn = |found: String, hint: &'static str| {
            findings.push(Finding::warn(Check::Chain, format!("{issuer_name} {found}")).hint(hint));
        };
        if context.at > issuer.not_after {
            let found = format!("expired at {}", text::rfc3339(issuer.not_after));
            warn(found, "renew the certificate to get a current chain; clients may reject this one");
        }
        // Old roots are of version 1.
        let is_old_root = |fault: &Fault| *fault == Fault::Version && issuer.is_self_issued();
        if let Some(fault) = issuer.fault.filter(|fault| !is_old_root(fault)) {
            let found = format!("{fault}; TLS clients reject it");
            warn(found, "renew the certificate to get a chain that they accept");
        }
    }
    let is_explained = is_explained || !findings.is_empty();
    let rule = context.path.filter(|rule| rule.no_path == Status::Fail || !is_explained);
    match rule.map(|rule| (path::validate(chain, rule.anchors, context.at), rule.no_path)) {
        Some((Err(error), status)) => findings.push(no_path(file, &error, status)),
        Some((Ok(()), _)) => findings.push(Finding::ok(Check::Chain, "has a path to a trust anchor")),
        None if findings.is_empty() => {
            findings.push(Finding::ok(Check::Chain, text::count(chain.length(), "certificate")));
        }
        None => {}
    }
    findings
}

fn no_path(file: &str, error: &webpki::Error, status: Status) -> Finding {
    let reason = path::describe_path_error(error);
    if status == Status::Fail {
        let no_anchor =
            "check that the file holds the full chain, and that the trust anchors include its root";
        return Finding::fail(Check::Chain, format!("{file} has no path to a trust anchor: {reason}"))
            .hint(path::hint(error, no_anchor));
    }
    let no_anchor = "name the root of a private CA with --trust-anchors FILE, or pass --trust-anchors off";
    let detail = format!("{file} has no path to a root of the system's trust store: {reason}");
    Finding::warn(Check::Chain, detail).hint(path::hint(error, no_anchor))
}

fn missing_issuer(file: &str, chain: &Chain) -> Option<Finding> {
    let is_there = chain.issuers.iter().any(|issuer| chain.leaf.may_be_issued_by(issuer));
    if is_there || chain.leaf.is_self_issued() {
        return None;
    }
    let issuer = &chain.leaf.issuer.short;
    let detail = if chain.issuers.is_empty() {
        format!("{file} holds the leaf without its issuer {issuer}")
    } else {
        format!("{file} holds an issuer {issuer} whose key is not the one that signed the leaf")
    };
    let hint = "pass the full chain of this renewal; many clients cannot fetch a missing issuer";
    Some(Finding::warn(Check::Chain, detail).hint(hint))
}
