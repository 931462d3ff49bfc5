//! The check `chain`: whether clients will be able to build a path from what is sent.

use time::OffsetDateTime;

use super::{Check, Finding, Status};
use crate::material::Chain;
use crate::text;

/// Warnings about the issuers beside the leaf; none of them stops a deployment.
pub(super) fn check(chain: &Chain, at: OffsetDateTime) -> Vec<Finding> {
    let mut findings: Vec<Finding> = chain
        .issuers
        .iter()
        .filter(|issuer| at > issuer.not_after)
        .map(|issuer| {
            let expired = text::rfc3339(issuer.not_after);
            warn(format!("the intermediate {} expired at {expired}", issuer.label()))
                .hint("let the ACME client fetch the chain again; clients may refuse this one")
        })
        .collect();
    if chain.issuers.is_empty() && !chain.leaf.is_self_issued() {
        let issuer = &chain.leaf.issuer.short;
        findings.push(
            warn(format!("the leaf stands alone, without its issuer {issuer}"))
                .hint("hand over the full chain; many clients cannot fetch the missing part"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::new(Check::Chain, Status::Ok, text::count(chain.length(), "certificate")));
    }
    findings
}

fn warn(detail: String) -> Finding {
    Finding::new(Check::Chain, Status::Warn, detail)
}
