//! The four validation rules of an upload (section 4.2 of `edge-api.md`). Pure: takes PEM text, a domain and
//! a time. The declared domain and the common name are never trusted.

use jiff::Timestamp;

use crate::cert::{Leaf, PublicKey};
use crate::clock::iso8601;
use crate::key;

/// An upload that satisfies every rule.
#[derive(Debug)]
pub(crate) struct Validated {
    pub(crate) leaf: Leaf,
    /// `key_match` in the response: `ok` if both keys are RSA and match; `unverified` if neither is RSA, because they
    /// were not compared.
    pub(crate) key_match: &'static str,
}

/// Applies the rules in the order of the document and returns the first that is violated. Without a domain, which only
/// `POST /api/certs` allows, rule 3 does not apply.
pub(crate) fn validate(
    cert_pem: &str,
    key_pem: &str,
    domain: Option<&str>,
    now: Timestamp,
) -> Result<Validated, String> {
    let leaf = Leaf::parse(cert_pem).map_err(|reason| format!("invalid cert_pem: {reason}"))?;
    let key = key::public_half(key_pem).map_err(|reason| format!("invalid key_pem: {reason}"))?;
    if leaf.not_after < now.as_second() {
        return Err(format!("the certificate expired on {}", iso8601(leaf.not_after)));
    }
    if let Some(domain) = domain
        && !leaf.covers(domain)
    {
        let names = leaf.names.join(", ");
        return Err(format!("the certificate's SAN entries ({names}) do not cover {domain}"));
    }
    let key_match = match (&leaf.public_key, &key) {
        (PublicKey::Rsa(expected), PublicKey::Rsa(found)) if expected == found => "ok",
        (PublicKey::Other, PublicKey::Other) => "unverified",
        _ => return Err("the certificate and the private key are not a pair".to_owned()),
    };
    Ok(Validated { leaf, key_match })
}
