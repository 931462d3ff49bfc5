//! Private keys: reads PKCS#1, SEC1 and PKCS#8, and pairs a key with the public key of a certificate.
//!
//! The public key is computed from the private one. A public key stored in the same file is not trusted: it only has to
//! agree. Nothing is signed or decrypted here.

mod der;
mod ec;
mod rsa;

use pkcs8::der::Decode as _;
use pkcs8::der::asn1::{ObjectIdentifier, OctetStringRef};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use self::der::PrivateKeyInfo;
use crate::cert::{KeyType, PublicKey, SUPPORTED_KEY_TYPES, algorithm_name};
use crate::pem::{self, KeyFormat};
use crate::secret::Secret;

/// A private key of a supported type whose private and public parts match.
pub struct PrivateKey {
    /// Computed once: this is the most expensive step of the local checks.
    public_key: PublicKey,
    pem: Secret,
}

/// Why a private key cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Holds the name of the type.
    #[error("a private key of unsupported type {0}; supported types: {SUPPORTED_KEY_TYPES}")]
    Unsupported(String),
    /// Holds the format that was expected.
    #[error("a private key with invalid {0} encoding")]
    Malformed(&'static str),
    /// The numbers of an RSA key are not those of one key.
    #[error("an inconsistent private key: its primes and exponents do not match its modulus")]
    InconsistentRsa,
    /// The public key in the file is another one than the private key's.
    #[error("an inconsistent private key: its private and public parts do not match")]
    PublicKeyMismatch,
    /// The curve inside the `ECPrivateKey` is another one than that of the PKCS#8 envelope.
    #[error("an inconsistent private key: it names two different curves")]
    CurveMismatch,
}

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

impl PrivateKey {
    /// Reads a key and checks that its parts match.
    pub fn from_der(format: KeyFormat, der: &[u8]) -> Result<Self, KeyError> {
        let public_key = match format {
            KeyFormat::Pkcs1 => rsa::public_key(der)?,
            KeyFormat::Sec1 => ec::public_key(der, None)?,
            KeyFormat::Pkcs8 => pkcs8(der)?,
        };
        Ok(Self { public_key, pem: pem::encode(format.label(), der) })
    }

    /// The key as PEM, in the format in which it was read.
    pub fn pem(&self) -> &Secret {
        &self.pem
    }

    /// The type of the key.
    pub fn key_type(&self) -> KeyType {
        self.public_key.key_type()
    }

    /// Whether this is the private key that belongs to `public_key`.
    pub fn pairs_with(&self, public_key: &PublicKey) -> bool {
        match (&self.public_key, public_key) {
            (PublicKey::P256(own), PublicKey::P256(point))
            | (PublicKey::P384(own), PublicKey::P384(point))
            | (PublicKey::P521(own), PublicKey::P521(point)) => ec::is_same_point(own, point),
            (own, other) => own == other,
        }
    }
}

fn pkcs8(der: &[u8]) -> Result<PublicKey, KeyError> {
    let info = PrivateKeyInfo::from_der(der).map_err(|_| KeyError::Malformed("PKCS#8"))?;
    let public_key = match info.algorithm.oid {
        RSA | RSASSA_PSS => rsa::public_key(info.private_key)?,
        EC => ec::public_key(info.private_key, info.algorithm.parameters)?,
        ED25519 => ed25519_public_key(info.private_key)?,
        other => return Err(KeyError::Unsupported(algorithm_name(&other.to_string()))),
    };
    match info.public_key {
        Some(bits) if !is_encoding_of(&public_key, bits) => Err(KeyError::PublicKeyMismatch),
        _ => Ok(public_key),
    }
}

/// Whether these are the bits of `public_key` in a `SubjectPublicKeyInfo`.
fn is_encoding_of(public_key: &PublicKey, bits: &[u8]) -> bool {
    match public_key {
        PublicKey::Rsa { .. } => PublicKey::from_rsa_der(bits).as_ref() == Some(public_key),
        PublicKey::P256(point) | PublicKey::P384(point) | PublicKey::P521(point) => {
            ec::is_same_point(point, bits)
        }
        PublicKey::Ed25519(bytes) => bytes == bits,
        PublicKey::Unsupported(_) => false,
    }
}

/// Reads a `CurvePrivateKey` (RFC 8410, section 7).
fn ed25519_public_key(der: &[u8]) -> Result<PublicKey, KeyError> {
    let seed = <&OctetStringRef>::from_der(der).map_err(|_| KeyError::Malformed("Ed25519"))?;
    let pair =
        Ed25519KeyPair::from_seed_unchecked(seed.as_bytes()).map_err(|_| KeyError::Malformed("Ed25519"))?;
    Ok(PublicKey::Ed25519(pair.public_key().as_ref().to_vec()))
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ed25519_seeds_must_have_32_bytes() {
        let seed = |length: u8| [&[4, length], vec![7; length.into()].as_slice()].concat();
        assert!(matches!(ed25519_public_key(&seed(32)), Ok(PublicKey::Ed25519(key)) if key.len() == 32));
        for length in [0, 31, 33] {
            assert_eq!(ed25519_public_key(&seed(length)), Err(KeyError::Malformed("Ed25519")), "{length}");
        }
    }

    #[test]
    fn keys_of_different_types_never_pair() {
        let keys = || {
            let bytes = || vec![4, 1, 2];
            [
                PublicKey::Rsa { modulus: bytes(), exponent: bytes() },
                PublicKey::P256(bytes()),
                PublicKey::P384(bytes()),
                PublicKey::P521(bytes()),
                PublicKey::Ed25519(bytes()),
            ]
        };
        for (own_at, own) in keys().into_iter().enumerate() {
            let key = PrivateKey { public_key: own, pem: Secret::new(String::new()) };
            for (other_at, other) in keys().iter().enumerate() {
                assert_eq!(key.pairs_with(other), own_at == other_at, "{own_at} {other_at}");
            }
            assert!(!key.pairs_with(&PublicKey::Unsupported("X25519".into())));
        }
    }
}
