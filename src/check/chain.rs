//! The check `chain`: whether clients will be able to build a path from what is sent.
//!
//! With trust anchors that is proven by webpki; without, what is likely to fail is a warning.

use super::{Check, CheckContext, Finding, Status, path};
use crate::bundle::Chain;
use crate::text;

/// Judges the issuers beside the leaf.
pub(super) fn check(file: &str, chain: &Chain, context: &CheckContext<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = chain
        .issuers
        .iter()
        .filter(|issuer| context.at > issuer.not_after)
        .map(|issuer| {
            let expired = text::rfc3339(issuer.not_after);
            warn(format!("the intermediate {} expired at {expired}", issuer.label()))
                .hint("let the ACME client fetch the chain again; clients may refuse this one")
        })
        .collect();
    let issued = chain.issuers.iter().any(|issuer| chain.leaf.may_be_issued_by(issuer));
    if !issued && !chain.leaf.is_self_issued() {
        let wanted = &chain.leaf.issuer.short;
        let found = if chain.issuers.is_empty() {
            "stands alone, without"
        } else {
            "has an issuer of the right name and the wrong key beside it, not"
        };
        findings
            .push(warn(format!("the leaf {found} its issuer {wanted}")).hint(
                "hand over the full chain of this renewal; many clients cannot fetch the missing part",
            ));
    }
    match context.anchors.map(|anchors| path::verify(chain, anchors, context.at)) {
        Some(Err(reason)) => findings.push(
            Finding::new(
                Check::Chain,
                Status::Fail,
                format!("{file} leads to none of the trust anchors: {reason}"),
            )
            .hint("check that the file holds the whole chain, and that the anchors are those of its CA"),
        ),
        Some(Ok(())) => findings.push(Finding::new(Check::Chain, Status::Ok, "leads to a trust anchor")),
        None if findings.is_empty() => {
            findings.push(Finding::new(Check::Chain, Status::Ok, text::count(chain.length(), "certificate")));
        }
        None => {}
    }
    findings
}

fn warn(detail: String) -> Finding {
    Finding::new(Check::Chain, Status::Warn, detail)
}
