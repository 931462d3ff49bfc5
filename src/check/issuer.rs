//! The check `issuer`: test, staging and self-signed issuers, which no browser trusts.
//!
//! A private CA cannot be told from a public one and passes.

use super::{Check, CheckContext, Finding, Status};
use crate::bundle::Chain;

/// Marks in the names of test issuers, in lower case; all of a line have to be there. The last line is a precaution:
/// that CA publishes no test environment.
const TEST_ISSUERS: [(&[&str], &str); 6] = [
    (&["(staging)"], "Let's Encrypt's staging environment"),
    (&["fake le "], "Let's Encrypt's old staging environment"),
    (&["pebble intermediate ca"], "Pebble, a test server"),
    (&["pebble root ca"], "Pebble, a test server"),
    (&["buypass", "class ", " test"], "Buypass's test environment"),
    (&["zerossl", " test"], "a test environment of ZeroSSL"),
];

/// Words in the host names of test directories.
const TEST_HOSTS: [&str; 4] = ["staging", "test", "test4", "pebble"];

/// Judges the issuer; what an untrusted one means is part of the context.
pub(super) fn check(file: &str, chain: &Chain, context: &CheckContext<'_>) -> Finding {
    let Some(reason) = untrusted(chain, context.directory) else {
        return Finding::new(Check::Issuer, Status::Ok, chain.leaf.issuer.short.clone());
    };
    let finding =
        Finding::new(Check::Issuer, context.untrusted, format!("{file} {reason}; browsers do not trust it"));
    match context.untrusted {
        Status::Fail => {
            finding.hint("issue it in the CA's production environment, or pass --allow-untrusted")
        }
        _ => finding,
    }
}

fn untrusted(chain: &Chain, directory: Option<&str>) -> Option<String> {
    if chain.leaf.is_self_issued() {
        return Some("is self-signed".into());
    }
    let names = std::iter::once(&chain.leaf).chain(&chain.issuers).map(|certificate| &certificate.issuer);
    let marked = names
        .flat_map(|name| TEST_ISSUERS.map(|test| (name, test)))
        .find(|(name, (marks, _))| marks.iter().all(|mark| name.text.to_lowercase().contains(mark)));
    if let Some((name, (_, environment))) = marked {
        return Some(format!("is issued by {}, {environment}", name.short));
    }
    let directory = directory?;
    let host = directory.split("://").nth(1)?.split(['/', ':', '?']).next()?.to_lowercase();
    let is_test = host.split(['.', '-']).any(|word| TEST_HOSTS.contains(&word));
    is_test.then(|| format!("comes from the test directory {}", crate::text::sanitize(directory)))
}
