//! The local checks of a bundle. Pure: no I/O, no clock.
//!
//! Every check runs and reports all that it finds. Files are read by `bundle`; guards against breaking other sites are in
//! `plan`.

mod chain;
mod finding;
mod issuer;
mod key;
mod names;
mod path;
mod pem;
mod purpose;
mod validity;

use rustls::RootCertStore;
use time::OffsetDateTime;

use crate::bundle::{Bundle, Chain};
use crate::key::PrivateKey;
use crate::names::Domain;
use crate::text;

pub use self::finding::{Check, Finding, Status};
pub use self::path::describe_path_error;

/// The requirements that a bundle is checked against.
pub struct CheckContext<'a> {
    /// Domains that the leaf must cover; empty means any.
    pub domains: &'a [Domain],
    /// When the certificate must be valid.
    pub at: OffsetDateTime,
    /// The status of a test, staging or self-signed issuer.
    pub untrusted: Status,
    /// The path that the chain must have; `None` means that this is not checked.
    pub path: Option<PathRule<'a>>,
    /// The URL of the ACME directory, if the client names it.
    pub directory: Option<&'a str>,
}

/// The rule that a chain must have a path to a trust anchor.
#[derive(Clone, Copy)]
pub struct PathRule<'a> {
    pub anchors: &'a RootCertStore,
    /// The status of a chain without a path: a failure, or a warning unless another finding explains it.
    pub no_path: Status,
}

/// A bundle for which no check failed: the only thing that can be uploaded.
pub struct Vetted<'a> {
    chain: &'a Chain,
    key: &'a PrivateKey,
}

impl<'a> Vetted<'a> {
    pub fn chain(&self) -> &'a Chain {
        self.chain
    }

    pub fn key(&self) -> &'a PrivateKey {
        self.key
    }
}

/// Runs every check.
pub fn run(bundle: &Bundle, context: &CheckContext<'_>) -> Vec<Finding> {
    let mut findings = pem::check(bundle);
    let Ok(chain) = &bundle.chain else {
        let checks = [Check::Validity, Check::Names, Check::Key, Check::Purpose, Check::Chain, Check::Issuer];
        let detail = "there is no certificate to check";
        let skipped = |check| Finding { check, status: Status::Skipped, detail: detail.into(), hint: None };
        findings.extend(checks.map(skipped));
        return findings;
    };
    let file = text::path(&bundle.files.cert);
    findings.extend(validity::check(&file, &chain.leaf, context.at));
    findings.extend(names::check(&file, &chain.leaf, context.domains));
    findings.extend(key::check(&file, chain, bundle));
    findings.extend(purpose::check(&file, chain));
    let issuer = issuer::check(&file, chain, context);
    let is_explained = issuer.iter().any(|finding| finding.status != Status::Ok) || has_failed(&findings);
    findings.extend(chain::check(&file, chain, context, is_explained));
    findings.extend(issuer);
    findings
}

/// Makes a bundle uploadable; `None` if a finding is a failure, or if it has no key.
pub fn vet<'a>(bundle: &'a Bundle, findings: &[Finding]) -> Option<Vetted<'a>> {
    match (&bundle.chain, &bundle.key) {
        (Ok(chain), Some(Ok(key))) if !has_failed(findings) => Some(Vetted { chain, key }),
        _ => None,
    }
}

fn has_failed(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.status == Status::Fail)
}

#[cfg(test)]
mod tests;
