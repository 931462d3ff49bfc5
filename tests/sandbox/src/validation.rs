//! The four validation rules of an upload (section 4.2 of `edge-api.md`). Pure: takes PEM text, a domain and
//! a time. The declared domain and the common name are never trusted.

use std::fmt;

use jiff::Timestamp;

use crate::cert::{Leaf, PublicKey};
use crate::clock::iso8601;
use crate::key;

/// An upload that satisfies every rule.
#[derive(Debug)]
pub(crate) struct Validated {
    pub(crate) leaf: Leaf,
    pub(crate) key_match: KeyMatch,
}

/// The value of `key_match` in an upload response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMatch {
    /// Both keys are RSA and they match.
    Ok,
    /// Neither key is RSA; they were not compared.
    Unverified,
}

impl KeyMatch {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unverified => "unverified",
        }
    }
}

/// The first rule that an upload violates.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// Rule 1: the certificate does not parse.
    Certificate(String),
    /// Rule 1 and the rule for `key_pem`: the key does not parse or is encrypted.
    Key(String),
    /// Rule 2; holds the end of the validity period in Unix seconds.
    Expired(i64),
    /// Rule 3: no SAN entry covers the domain.
    NotCovered { domain: String, names: Vec<String> },
    /// Rule 4.
    KeyMismatch,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(reason) => write!(f, "invalid cert_pem: {reason}"),
            Self::Key(reason) => write!(f, "invalid key_pem: {reason}"),
            Self::Expired(at) => write!(f, "the certificate expired on {}", iso8601(*at)),
            Self::NotCovered { domain, names } => {
                write!(f, "the certificate's SAN entries ({}) do not cover {domain}", names.join(", "))
            }
            Self::KeyMismatch => f.write_str("the certificate and the private key are not a pair"),
        }
    }
}

/// Applies the rules in the order of the document. Without a domain, which only `POST /api/certs` allows,
/// rule 3 does not apply.
pub(crate) fn validate(
    cert_pem: &str,
    key_pem: &str,
    domain: Option<&str>,
    now: Timestamp,
) -> Result<Validated, Violation> {
    let leaf = Leaf::parse(cert_pem).map_err(Violation::Certificate)?;
    let key = key::public_half(key_pem).map_err(Violation::Key)?;
    if leaf.not_after < now.as_second() {
        return Err(Violation::Expired(leaf.not_after));
    }
    if let Some(domain) = domain
        && !leaf.covers(domain)
    {
        return Err(Violation::NotCovered { domain: domain.to_owned(), names: leaf.names });
    }
    let key_match = compare_keys(&leaf.public_key, &key)?;
    Ok(Validated { leaf, key_match })
}

fn compare_keys(certificate: &PublicKey, key: &PublicKey) -> Result<KeyMatch, Violation> {
    match (certificate, key) {
        (PublicKey::Rsa(expected), PublicKey::Rsa(found)) if expected == found => Ok(KeyMatch::Ok),
        (PublicKey::Other, PublicKey::Other) => Ok(KeyMatch::Unverified),
        _ => Err(Violation::KeyMismatch),
    }
}
