//! The four rules of an upload (section 4.2). Pure: PEM text, a domain and a time go in, a verdict comes out.
//! Nothing here trusts the declared domain or the common name.

use jiff::Timestamp;

use crate::cert::{self, Leaf, PublicKey};
use crate::clock::iso;
use crate::key::{self, Key};
use crate::names;

/// What the service read from an upload that keeps the rules.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) leaf: Leaf,
    pub(crate) key_match: KeyMatch,
}

/// Whether certificate and key are a pair, as far as the service can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMatch {
    /// RSA, and the pair was compared.
    Ok,
    /// Not RSA; nothing was compared.
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

/// The rule that an upload breaks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Rule 1: the certificate.
    Certificate(String),
    /// Rule 1 and the parameter's own rule: the key.
    Key(String),
    /// Rule 2, with the end of the validity.
    Expired(i64),
    /// Rule 3, with the names that are there.
    NotCovered(String, Vec<String>),
    /// Rule 4.
    NoPair,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Certificate(reason) => write!(f, "cert_pem cannot be read: {reason}"),
            Self::Key(reason) => write!(f, "key_pem cannot be read: {reason}"),
            Self::Expired(at) => write!(f, "the certificate expired on {}", iso(*at)),
            Self::NotCovered(domain, names) => {
                write!(f, "the certificate's SAN entries ({}) do not cover {domain}", names.join(", "))
            }
            Self::NoPair => f.write_str("the certificate and the private key are not a pair"),
        }
    }
}

/// Applies the rules in the order of the document. Without `domain` (the plain create of section 4.2's note)
/// coverage is not asked for.
pub(crate) fn check(
    cert_pem: &str,
    key_pem: &str,
    domain: Option<&str>,
    now: Timestamp,
) -> Result<Accepted, Broken> {
    let leaf = cert::read(cert_pem).map_err(Broken::Certificate)?;
    let key = key::read(key_pem).map_err(Broken::Key)?;
    if leaf.not_after < now.as_second() {
        return Err(Broken::Expired(leaf.not_after));
    }
    if let Some(domain) = domain
        && !leaf.covers(domain)
    {
        return Err(Broken::NotCovered(domain.to_owned(), leaf.names));
    }
    let key_match = pair(&leaf.key, &key)?;
    Ok(Accepted { leaf, key_match })
}

fn pair(certificate: &PublicKey, key: &Key) -> Result<KeyMatch, Broken> {
    match (certificate, key) {
        (PublicKey::Rsa(public), Key::Rsa(private)) if public == private => Ok(KeyMatch::Ok),
        (PublicKey::Other, Key::Other) => Ok(KeyMatch::Unverified),
        _ => Err(Broken::NoPair),
    }
}

impl Leaf {
    /// Whether one of the SAN entries stands for this domain.
    pub(crate) fn covers(&self, domain: &str) -> bool {
        self.names.iter().any(|san| names::covers(san, domain))
    }
}
