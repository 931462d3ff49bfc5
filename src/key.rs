//! Private keys: reads PKCS#1, SEC1 and PKCS#8, converts them to the form that every reader accepts, and pairs a key
//! with the public key of a certificate.
//!
//! The public key is computed from the private one. A public key stored in the same file is not trusted: it only has to
//! agree. Nothing is signed or decrypted here.

mod der;
mod ec;
mod rsa;
mod strict;

use pkcs8::der::Decode as _;
use pkcs8::der::asn1::{AnyRef, ObjectIdentifier, OctetStringRef};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use zeroize::Zeroizing;

use self::der::PrivateKeyInfo;
use self::strict::Numbers;
pub use self::strict::Repair;
use crate::cert::{KeyType, PublicKey, SUPPORTED_KEY_TYPES, algorithm_name};
use crate::pem::{self, KeyFormat};
use crate::secret::{Redactor, Secret};

/// A private key of a supported type whose private and public parts match.
pub struct PrivateKey {
    /// The public key is computed once: this is the most expensive step of the local checks.
    numbers: Numbers,
    /// In strict form.
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
    /// Reads a key, checks that its parts match, and converts it to the strict form.
    pub fn from_der(format: KeyFormat, der: &[u8]) -> Result<Self, KeyError> {
        let (numbers, algorithm) = match format {
            KeyFormat::Pkcs1 => (rsa::read(der)?, None),
            KeyFormat::Sec1 => (ec::read(der, None)?, None),
            KeyFormat::Pkcs8 => {
                let info = PrivateKeyInfo::from_der(der).map_err(|_| KeyError::Malformed("PKCS#8"))?;
                (pkcs8(&info)?, Some(info.algorithm))
            }
        };
        let pem = if numbers.repairs.is_empty() {
            pem::encode(format.label(), der)
        } else {
            let der = numbers.to_der(format, algorithm).ok_or(KeyError::Malformed("DER"))?;
            pem::encode(format.label(), &der)
        };
        Ok(Self { numbers, pem })
    }

    /// The key as PEM, in the format in which it was read.
    pub fn pem(&self) -> &Secret {
        &self.pem
    }

    /// Hides the numbers of the key, which are the same in every format, and the lines of the PEM that hold them, because
    /// the file may be encoded again. Its other lines are public: a certificate has them, too.
    pub fn hide_in(&self, redactor: &mut Redactor) {
        for number in &self.numbers.secrets {
            redactor.hide_bytes(number);
        }
        let lines: Vec<&str> = self.pem.expose().lines().filter(|line| redactor.is_secret(line)).collect();
        for line in lines {
            redactor.hide_bytes(line.as_bytes());
        }
    }

    /// How the PEM differs from what was read.
    pub fn repairs(&self) -> &[Repair] {
        &self.numbers.repairs
    }

    /// The type of the key.
    pub fn key_type(&self) -> KeyType {
        self.numbers.public_key.key_type()
    }

    /// Whether this is the private key that belongs to `public_key`.
    pub fn pairs_with(&self, public_key: &PublicKey) -> bool {
        match (&self.numbers.public_key, public_key) {
            (PublicKey::P256(own), PublicKey::P256(point))
            | (PublicKey::P384(own), PublicKey::P384(point))
            | (PublicKey::P521(own), PublicKey::P521(point)) => ec::is_same_point(own, point),
            (own, other) => own == other,
        }
    }
}

fn pkcs8(info: &PrivateKeyInfo<'_>) -> Result<Numbers, KeyError> {
    let parameters = info.algorithm.parameters;
    let (mut numbers, has_right_parameters) = match info.algorithm.oid {
        RSA => (rsa::read(info.private_key)?, parameters.is_some_and(AnyRef::is_null)),
        RSASSA_PSS => (rsa::read(info.private_key)?, true),
        EC => (ec::read(info.private_key, Some(&info.algorithm))?, true),
        ED25519 => (ed25519(info.private_key)?, parameters.is_none()),
        other => return Err(KeyError::Unsupported(algorithm_name(&other.to_string()))),
    };
    if info.public_key.is_some_and(|bits| !is_encoding_of(&numbers.public_key, bits)) {
        return Err(KeyError::PublicKeyMismatch);
    }
    if !has_right_parameters {
        numbers.repairs.push(Repair::AlgorithmParameters);
    }
    if info.version != 0 || info.public_key.is_some() {
        numbers.repairs.push(Repair::Version2);
    }
    Ok(numbers)
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
fn ed25519(der: &[u8]) -> Result<Numbers, KeyError> {
    let seed = <&OctetStringRef>::from_der(der).map_err(|_| KeyError::Malformed("Ed25519"))?.as_bytes();
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Malformed("Ed25519"))?;
    let public_key = PublicKey::Ed25519(pair.public_key().as_ref().to_vec());
    Ok(Numbers { public_key, secrets: vec![Zeroizing::new(seed.to_vec())], repairs: Vec::new() })
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ed25519_seeds_must_have_32_bytes() {
        let read = |length: u8| {
            let seed = [&[4, length], vec![7; length.into()].as_slice()].concat();
            ed25519(&seed).map(|numbers| numbers.public_key)
        };
        assert!(matches!(read(32), Ok(PublicKey::Ed25519(key)) if key.len() == 32));
        for length in [0, 31, 33] {
            assert_eq!(read(length), Err(KeyError::Malformed("Ed25519")), "{length}");
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
            let numbers = Numbers { public_key: own, secrets: Vec::new(), repairs: Vec::new() };
            let key = PrivateKey { numbers, pem: Secret::new(String::new()) };
            for (other_at, other) in keys().iter().enumerate() {
                assert_eq!(key.pairs_with(other), own_at == other_at, "{own_at} {other_at}");
            }
            assert!(!key.pairs_with(&PublicKey::Unsupported("X25519".into())));
        }
    }
}
