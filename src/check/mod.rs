//! The local checks: pure functions from what was read to findings, and the proof that nothing failed.
//!
//! A check reports everything it finds. Reading files is `bundle`'s work; what deploying would break elsewhere is
//! `plan.rs`'s.

mod chain;
mod issuer;
mod path;

pub use self::path::words;

use rustls::RootCertStore;
use serde::Serialize;
use time::OffsetDateTime;

use crate::bundle::{Bundle, Chain};
use crate::cert::{KeyType, SUPPORTED_KEY_TYPES};
use crate::key::PrivateKey;
use crate::names::Domain;
use crate::text;

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    Pem,
    Validity,
    Names,
    Key,
    Chain,
    Issuer,
}

text::display_as_serialized!(Check);

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub check: Check,
    pub status: Status,
    pub detail: String,
    /// What to do about it.
    #[serde(skip)]
    pub hint: Option<String>,
}

/// What the bundle is checked against.
pub struct CheckContext<'a> {
    /// Domains that must be covered; empty: any name will do.
    pub domains: &'a [Domain],
    /// The moment at which it must be valid.
    pub at: OffsetDateTime,
    /// What a test or self-signed issuer means.
    pub untrusted: Status,
    /// Roots to which a path must lead; `None`: the path is not verified.
    pub anchors: Option<&'a RootCertStore>,
    /// The ACME directory that the client named, where it did.
    pub directory: Option<&'a str>,
}

/// Proof that every check passed; the only thing that can be uploaded.
pub struct Vetted<'a> {
    pub chain: &'a Chain,
    pub key: &'a PrivateKey,
}

/// At least one check failed; the findings say which.
#[derive(Debug, thiserror::Error)]
#[error("the local checks refuse the certificate; nothing was sent")]
pub struct Refused;

/// Runs every check.
pub fn run(bundle: &Bundle, context: &CheckContext<'_>) -> Vec<Finding> {
    let mut findings = pem(bundle);
    let Ok(chain) = &bundle.chain else {
        let skip = |check| Finding::new(check, Status::Skipped, "there is no certificate to look at");
        findings.extend([Check::Validity, Check::Names, Check::Key, Check::Chain, Check::Issuer].map(skip));
        return findings;
    };
    findings.push(validity(bundle, chain, context.at));
    findings.extend(names(bundle, chain, context.domains));
    findings.push(key(bundle, chain));
    findings.extend(chain::check(&text::path(&bundle.files.cert), chain, context));
    findings.push(issuer::check(&text::path(&bundle.files.cert), chain, context));
    findings
}

/// The bundle as something that may be sent, if no finding is a failure.
pub fn vet<'a>(bundle: &'a Bundle, findings: &[Finding]) -> Result<Vetted<'a>, Refused> {
    let failed = findings.iter().any(|finding| finding.status == Status::Fail);
    match (&bundle.chain, &bundle.key) {
        (Ok(chain), Some(Ok(key))) if !failed => Ok(Vetted { chain, key }),
        _ => Err(Refused),
    }
}

impl Finding {
    fn new(check: Check, status: Status, detail: impl Into<String>) -> Self {
        Self { check, status, detail: detail.into(), hint: None }
    }

    /// The finding as a sentence of its own, the hint behind it.
    pub fn sentence(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.detail),
            None => self.detail.clone(),
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

fn pem(bundle: &Bundle) -> Vec<Finding> {
    let cert_file = text::path(&bundle.files.cert);
    let mut findings = Vec::new();
    let cleaned = |before: &str| match bundle.cleaned.as_slice() {
        [] => String::new(),
        what => format!("{before}cleaned: {}", text::list(what)),
    };
    match &bundle.chain {
        Ok(chain) => findings.extend(
            chain
                .repairs
                .iter()
                .map(|repair| Finding::new(Check::Pem, Status::Warn, format!("{cert_file}: {repair}"))),
        ),
        Err(problems) => findings.extend(problems.iter().map(|problem| {
            Finding::new(Check::Pem, Status::Fail, format!("{cert_file} holds {}", problem.found))
                .hint(problem.hint)
        })),
    }
    if let (Some(Err(problem)), Some(file)) = (&bundle.key, &bundle.files.key) {
        let detail = format!("{} holds {}", text::path(file), problem.found);
        findings.push(Finding::new(Check::Pem, Status::Fail, detail).hint(problem.hint));
    }
    if findings.is_empty() {
        let key = if bundle.key.is_some() { " and its key" } else { "" };
        let length = bundle.chain.as_ref().map_or(0, Chain::length);
        let detail = format!("{}{key}{}", text::count(length, "certificate"), cleaned("; "));
        findings.push(Finding::new(Check::Pem, Status::Ok, detail));
    } else if !bundle.cleaned.is_empty() && findings.iter().all(|finding| finding.status != Status::Fail) {
        findings.push(Finding::new(Check::Pem, Status::Ok, cleaned("")));
    }
    findings
}

fn validity(bundle: &Bundle, chain: &Chain, at: OffsetDateTime) -> Finding {
    let (leaf, file) = (&chain.leaf, text::path(&bundle.files.cert));
    let (from, until) = (text::rfc3339(leaf.not_before), text::rfc3339(leaf.not_after));
    // Certificates count in seconds, and the last one is still theirs.
    let at = at.replace_nanosecond(0).unwrap_or(at);
    if at > leaf.not_after {
        let ago = text::humanize(at - leaf.not_after);
        Finding::new(Check::Validity, Status::Fail, format!("{file} expired at {until}, {ago} ago"))
            .hint("let the ACME client renew it; only a valid certificate is deployed")
    } else if at < leaf.not_before {
        let ahead = text::humanize(leaf.not_before - at);
        Finding::new(Check::Validity, Status::Fail, format!("{file} is not valid before {from}, in {ahead}"))
            .hint("check this machine's clock, or wait")
    } else {
        let left = leaf.not_after - at;
        let detail = format!("valid until {until}, for {}", text::humanize(left));
        if left < (leaf.not_after - leaf.not_before) / 10 {
            return Finding::new(
                Check::Validity,
                Status::Warn,
                format!("{file} is in the last tenth of its life: {detail}"),
            )
            .hint("look why the ACME client has not renewed it");
        }
        Finding::new(Check::Validity, Status::Ok, detail)
    }
}

fn names(bundle: &Bundle, chain: &Chain, domains: &[Domain]) -> Vec<Finding> {
    let (leaf, file) = (&chain.leaf, text::path(&bundle.files.cert));
    let names = leaf.names();
    if names.is_empty() {
        let subject = &leaf.subject.short;
        let detail =
            format!("{file} has no subject alternative name; its common name `{subject}` does not count");
        return vec![Finding::new(Check::Names, Status::Fail, detail).hint(
            "issue it with the names as DNS entries; browsers and the service look at nothing else (RFC 9525)",
        )];
    }
    // A site is a name; an address among the names covers none, even where it is written alike.
    let dns_names: Vec<String> = leaf.dns_names().map(text::sanitize).collect();
    let covered = if dns_names.is_empty() { "addresses".to_owned() } else { text::list(&dns_names) };
    let mut findings: Vec<Finding> = domains
        .iter()
        .filter(|domain| !domain.is_covered_by_any(leaf.dns_names()))
        .map(|domain| {
            Finding::new(
                Check::Names,
                Status::Fail,
                format!("{file} does not cover {domain}, only {covered}"),
            )
            .hint(format!("renew it with {domain} among its names, or leave out --domain {domain}"))
        })
        .collect();
    if findings.is_empty() {
        findings.push(Finding::new(Check::Names, Status::Ok, format!("covers {}", text::list(&names))));
    }
    findings
}

/// What browsers accept (CA/Browser Forum Baseline Requirements, section 6.1.5).
const LEAST_RSA_BITS: usize = 2048;

fn key(bundle: &Bundle, chain: &Chain) -> Finding {
    let leaf_type = chain.leaf.public_key.key_type();
    let cert_file = text::path(&bundle.files.cert);
    if !leaf_type.is_supported() {
        return Finding::new(
            Check::Key,
            Status::Fail,
            format!(
                "{cert_file} has a public key of unsupported type {leaf_type}; supported types: {SUPPORTED_KEY_TYPES}"
            ),
        )
        .hint("let the ACME client make a key of a supported type");
    }
    match (&bundle.key, &bundle.files.key) {
        (Some(Ok(key)), _) if key.pairs_with(&chain.leaf.public_key) => match leaf_type {
            KeyType::Rsa { bits } if bits < LEAST_RSA_BITS => {
                let detail = format!("{cert_file} has a key of {bits} bits; browsers want {LEAST_RSA_BITS}");
                Finding::new(Check::Key, Status::Warn, detail).hint("let the ACME client make a longer key")
            }
            leaf_type => Finding::new(Check::Key, Status::Ok, format!("{leaf_type}, the pair fits")),
        },
        (Some(Ok(key)), Some(key_file)) => {
            let difference = match key.key_type() {
                same if same == leaf_type => format!("both are {leaf_type}, but of different pairs"),
                other => format!("the certificate's key is {leaf_type}, this one is {other}"),
            };
            Finding::new(
                Check::Key,
                Status::Fail,
                format!("{} is not the private key of {cert_file}: {difference}", text::path(key_file)),
            )
            .hint("hand over the key and the certificate of one and the same renewal")
        }
        (Some(_), _) => Finding::new(Check::Key, Status::Skipped, "there is no usable private key"),
        (None, _) => Finding::new(Check::Key, Status::Skipped, "no private key was given"),
    }
}
