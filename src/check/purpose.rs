//! The check `purpose`: whether TLS clients accept the leaf as the certificate of a server.

use super::finding::{Check, Finding};
use crate::bundle::Chain;
use crate::cert::{Certificate, Usage};
use crate::text::list;

pub(super) fn check(file: &str, chain: &Chain) -> Vec<Finding> {
    let (leaf, usage) = (&chain.leaf, &chain.leaf.usage);
    let mut findings: Vec<Finding> = [
        extended_key_usage(file, usage),
        ca(file, leaf),
        key_usage(file, usage),
        precertificate(file, usage),
        unknown_critical(file, usage),
        wrongly_critical(file, usage),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.extend(usage.unreadable.iter().map(|extension| unreadable(file, extension)));
    findings.extend(broken_signatures(file, chain));
    if findings.is_empty() {
        findings.push(Finding::ok(Check::Purpose, "may authenticate a TLS server"));
    }
    findings
}

fn extended_key_usage(file: &str, usage: &Usage) -> Option<Finding> {
    let extended = usage.extended_key_usage.as_ref().filter(|extended| !extended.server_auth)?;
    let found = match extended.purposes.as_slice() {
        [] => "an empty extended key usage, without serverAuth".into(),
        purposes => format!("the extended key usage {}, without serverAuth", list(purposes)),
    };
    let finding = if extended.any {
        Finding::warn(Check::Purpose, format!("{file} has {found}; some TLS clients reject it"))
    } else {
        Finding::fail(Check::Purpose, format!("{file} has {found}; TLS clients reject it"))
    };
    Some(finding.hint("issue it as a server certificate, with the extended key usage serverAuth"))
}

fn ca(file: &str, leaf: &Certificate) -> Option<Finding> {
    leaf.is_ca.then(|| {
        Finding::fail(Check::Purpose, format!("{file} has a CA certificate (CA:TRUE) instead of a server's"))
            .hint("pass the server's own certificate; if this is it, issue it again with basicConstraints CA:FALSE")
    })
}

/// Clients differ: OpenSSL requires digitalSignature, keyEncipherment or keyAgreement, browsers require digitalSignature,
/// and webpki requires none of them.
fn key_usage(file: &str, usage: &Usage) -> Option<Finding> {
    let names = usage.key_usage.as_ref()?;
    if names.iter().any(|name| ["digitalSignature", "keyEncipherment"].contains(name)) {
        return None;
    }
    let signs_only = !names.is_empty() && names.iter().all(|name| ["keyCertSign", "cRLSign"].contains(name));
    let found =
        if names.is_empty() { "an empty key usage".into() } else { format!("the key usage {}", list(names)) };
    let finding = if signs_only {
        let detail = format!(
            "{file} has {found}, which permits only signing certificates or CRLs; TLS clients reject it"
        );
        Finding::fail(Check::Purpose, detail)
    } else {
        let detail = format!(
            "{file} has {found}, without digitalSignature or keyEncipherment; many TLS clients reject it"
        );
        Finding::warn(Check::Purpose, detail)
    };
    Some(finding.hint("issue it as a server certificate, with the key usage digitalSignature"))
}

fn precertificate(file: &str, usage: &Usage) -> Option<Finding> {
    usage.is_precertificate.then(|| {
        let detail = format!(
            "{file} has a precertificate (CT poison, 1.3.6.1.4.1.11129.2.4.3) instead of the final certificate"
        );
        Finding::fail(Check::Purpose, detail).hint("pass the final certificate, which the CA issues after it")
    })
}

fn unknown_critical(file: &str, usage: &Usage) -> Option<Finding> {
    let found = (!usage.unknown_critical.is_empty()).then(|| list(&usage.unknown_critical))?;
    let detail = format!("{file} has critical extensions unknown to TLS clients, which reject it: {found}");
    Some(
        Finding::fail(Check::Purpose, detail)
            .hint("issue it without them, or without marking them as critical"),
    )
}

fn wrongly_critical(file: &str, usage: &Usage) -> Option<Finding> {
    let found = (!usage.wrongly_critical.is_empty()).then(|| list(&usage.wrongly_critical))?;
    let detail = format!(
        "{file} has extensions that should not be marked as critical: {found}; many TLS clients reject it"
    );
    Some(Finding::warn(Check::Purpose, detail).hint("issue it without marking them as critical"))
}

fn unreadable(file: &str, extension: &str) -> Finding {
    Finding::fail(
        Check::Purpose,
        format!("{file} has a malformed {extension} extension; TLS clients reject it"),
    )
    .hint("have the CA issue it again; RFC 5280 forbids this encoding")
}

/// Roots are left out: a root is trusted for its key, whatever its signature.
fn broken_signatures(file: &str, chain: &Chain) -> impl Iterator<Item = Finding> {
    let leaf = chain.leaf.broken_hash.map(|hash| format!("{file} is signed with {hash}"));
    let issuers = chain.issuers.iter().filter(|issuer| !issuer.is_self_issued());
    let issuers = issuers.filter_map(move |issuer| {
        Some(format!("{file}: the intermediate {} is signed with {}", issuer.label(), issuer.broken_hash?))
    });
    leaf.into_iter().chain(issuers).map(|detail| {
        Finding::warn(Check::Purpose, format!("{detail}; TLS clients require SHA-256 or better"))
            .hint("renew it from a CA that signs with SHA-256")
    })
}
