//! The check `purpose`: whether TLS clients accept the leaf as the certificate of a server.

use super::finding::{Check, Finding, Findings, Status};
use crate::bundle::Chain;
use crate::text::list;

pub(super) fn check(file: &str, chain: &Chain) -> Vec<Finding> {
    let (leaf, usage) = (&chain.leaf, &chain.leaf.usage);
    let mut findings = Findings::new(Check::Purpose);
    let mut add = |status, found: String, hint: &'static str| {
        findings.add(status, format!("{file} has {found}"), hint);
    };
    if let Some(extended) = usage.extended_key_usage.as_ref().filter(|extended| !extended.server_auth) {
        let (status, clients) =
            if extended.any { (Status::Warn, "some TLS clients") } else { (Status::Fail, "TLS clients") };
        let hint = "issue it as a server certificate, with the extended key usage serverAuth";
        add(status, format!("an extended key usage without serverAuth; {clients} reject it"), hint);
    }
    if leaf.is_ca {
        let hint =
            "pass the server's own certificate; if this is it, issue it again with basicConstraints CA:FALSE";
        add(Status::Fail, "a CA certificate (CA:TRUE) instead of a server's".into(), hint);
    }
    if let Some((status, found)) = usage.key_usage.and_then(key_usage) {
        let hint = "issue it as a server certificate, with the key usage digitalSignature";
        add(status, found.into(), hint);
    }
    if usage.is_precertificate {
        let found = "a precertificate (CT poison, 1.3.6.1.4.1.11129.2.4.3) instead of the final certificate";
        let hint = "pass the final certificate, which the CA issues after it";
        add(Status::Fail, found.into(), hint);
    }
    if !usage.unknown_critical.is_empty() {
        let names = list(&usage.unknown_critical);
        let found = format!("critical extensions unknown to TLS clients, which reject it: {names}");
        add(Status::Fail, found, "issue it without them, or without marking them as critical");
    }
    if !usage.wrongly_critical.is_empty() {
        let names = list(&usage.wrongly_critical);
        let found =
            format!("extensions that should not be marked as critical: {names}; many TLS clients reject it");
        add(Status::Warn, found, "issue it without marking them as critical");
    }
    for extension in &usage.unreadable {
        let found = format!("a malformed {extension} extension; TLS clients reject it");
        add(Status::Fail, found, "have the CA issue it again; RFC 5280 forbids this encoding");
    }
    // A root is trusted for its key, whatever its signature.
    let issuers = chain.issuers.iter().filter(|issuer| !issuer.is_self_issued());
    let issuers = issuers.map(|issuer| (format!("{file}: the intermediate {}", issuer.label()), issuer));
    for (name, certificate) in std::iter::once((file.to_owned(), leaf)).chain(issuers) {
        if let Some(hash) = certificate.broken_hash {
            let found = format!("{name} is signed with {hash}; TLS clients require SHA-256 or better");
            findings.add(Status::Warn, found, "renew it from a CA that signs with SHA-256");
        }
    }
    findings.or_ok("may authenticate a TLS server")
}

/// Accepts digitalSignature or keyEncipherment, fails usages that only sign certificates or CRLs, and warns of others,
/// because clients differ: OpenSSL requires digitalSignature, keyEncipherment or keyAgreement, browsers require digitalSignature,
/// and webpki requires none of them.
fn key_usage(usages: u16) -> Option<(Status, &'static str)> {
    /// digitalSignature and keyEncipherment, and keyCertSign and cRLSign (RFC 5280, section 4.2.1.3).
    const SERVER: u16 = 1 | 1 << 2;
    const SIGNING: u16 = 1 << 5 | 1 << 6;
    if usages & SERVER != 0 {
        None
    } else if usages != 0 && usages & !SIGNING == 0 {
        Some((Status::Fail, "a key usage for signing certificates or CRLs only; TLS clients reject it"))
    } else {
        let found = "a key usage without digitalSignature or keyEncipherment; many TLS clients reject it";
        Some((Status::Warn, found))
    }
}
