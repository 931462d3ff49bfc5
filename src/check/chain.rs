//! The check `chain`: whether clients can build a path from the leaf to a root.
//!
//! With trust anchors, validates the path; without them, only warns about chains that are likely to fail.

use webpki::Error;

use super::finding::{Check, Finding, Findings, Status};
use super::{CheckContext, PathRule, path};
use crate::bundle::Chain;
use crate::text;

/// Checks the chain. If `is_explained`, another finding already explains why clients reject it, and no warning about the
/// path is added.
pub(super) fn check(
    file: &str,
    chain: &Chain,
    context: &CheckContext<'_>,
    is_explained: bool,
) -> Vec<Finding> {
    let mut findings = Findings::new(Check::Chain);
    let has_issuer = chain.issuers.iter().any(|issuer| chain.leaf.may_be_issued_by(issuer));
    if !has_issuer && !chain.leaf.is_self_issued() {
        let issuer = &chain.leaf.issuer.short;
        let found = if chain.issuers.is_empty() {
            format!("{file} holds the leaf without its issuer {issuer}")
        } else {
            format!("{file} holds an issuer {issuer} whose key is not the one that signed the leaf")
        };
        let hint = "pass the full chain of this renewal; many clients cannot fetch a missing issuer";
        findings.add(Status::Warn, found, hint);
    }
    for issuer in &chain.issuers {
        let name = format!("{file}: the intermediate {}", issuer.label());
        if context.at > issuer.not_after {
            let found = format!("{name} expired at {}", text::rfc3339(issuer.not_after));
            let hint = "renew the certificate to get a current chain; clients may reject this one";
            findings.add(Status::Warn, found, hint);
        }
        // Old roots are of version 1.
        let is_old_root = issuer.fault == Some(Error::UnsupportedCertVersion) && issuer.is_self_issued();
        if issuer.fault.is_some() && !is_old_root {
            let found = format!("{name} is malformed; TLS clients reject it");
            findings.add(Status::Warn, found, "renew the certificate to get a chain that they accept");
        }
    }
    let is_explained = is_explained || !findings.list.is_empty();
    let rule = context.path.filter(|rule| rule.no_path == Status::Fail || !is_explained);
    let Some(PathRule { anchors, no_path }) = rule else {
        return findings.or_ok(text::count(chain.length(), "certificate"));
    };
    match path::validate(chain, anchors, context.at) {
        Ok(()) => findings.note(Status::Ok, "has a path to a trust anchor"),
        Err(error) => {
            let found =
                format!("{file} has no path to a trust anchor: {}", path::describe_path_error(&error));
            findings.add(no_path, found, path::hint(&error));
        }
    }
    findings.list
}
