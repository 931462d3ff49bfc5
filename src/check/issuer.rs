//! The check `issuer`: test, staging and self-signed issuers, which no browser trusts.
//!
//! A private CA cannot be distinguished from a public one, so it passes.

use super::CheckContext;
use super::finding::{Check, Finding, Findings, Status};
use crate::bundle::Chain;
use crate::hint::{Hint, Override};
use crate::text;

/// Test issuers: lower-case substrings of the name, all of which must occur, and a description.
const TEST_ISSUERS: [(&[&str], &str); 5] = [
    (&["(staging)"], "Let's Encrypt's staging environment"),
    (&["fake le "], "Let's Encrypt's old staging environment"),
    (&["pebble intermediate ca"], "Pebble, a test server"),
    (&["pebble root ca"], "Pebble, a test server"),
    (&["buypass", "class ", " test"], "Buypass's test environment"),
];

/// Words in the host names of test directories.
const TEST_HOST_WORDS: [&str; 4] = ["staging", "test", "test4", "pebble"];

const ALLOW_UNTRUSTED: Override = Override { flag: "--allow-untrusted", purpose: "to deploy it anyway" };

pub(super) fn check(file: &str, chain: &Chain, context: &CheckContext<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(Check::Issuer);
    if let Some(reason) = untrusted(chain, context.directory) {
        let found = format!("{file} {reason}; browsers do not trust it");
        let is_self_issued = chain.leaf.is_self_issued();
        let instead =
            if is_self_issued { "have a CA issue it" } else { "issue it in the CA's production environment" };
        match context.untrusted {
            Status::Fail => {
                findings.add(Status::Fail, found, Hint::Override { instead, flags: vec![ALLOW_UNTRUSTED] });
            }
            status => findings.note(status, found),
        }
    }
    findings.or_ok(chain.leaf.issuer.short.clone())
}

/// Why browsers do not trust the issuer; continues a sentence whose subject is the file.
fn untrusted(chain: &Chain, directory: Option<&str>) -> Option<String> {
    if chain.leaf.is_self_issued() {
        return Some("is self-signed".into());
    }
    let issuers = std::iter::once(&chain.leaf).chain(&chain.issuers).map(|certificate| &certificate.issuer);
    for issuer in issuers {
        let name = issuer.text.to_lowercase();
        let test_issuer = TEST_ISSUERS.iter().find(|(parts, _)| parts.iter().all(|part| name.contains(part)));
        if let Some((_, description)) = test_issuer {
            return Some(format!("was issued by {}, {description}", issuer.short));
        }
    }
    let directory = directory.filter(|directory| is_test_directory(directory))?;
    Some(format!("comes from the test directory {}", text::sanitize(directory)))
}

fn is_test_directory(url: &str) -> bool {
    let host =
        url.split("://").nth(1).and_then(|rest| rest.split(['/', ':', '?']).next()).unwrap_or_default();
    host.to_lowercase().split(['.', '-']).any(|word| TEST_HOST_WORDS.contains(&word))
}
