//! Keys: reads private keys in PKCS#1, SEC1 and PKCS#8, encodes them again in the form that every reader accepts, and
//! compares them with the public key of a certificate.
//!
//! The public key is computed from the private one. A public key stored in the same file is not trusted: it only has to
//! agree. Nothing is signed or decrypted here.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
use rsa::{BigUint, RsaPrivateKey};
use x509_parser::asn1_rs::{Oid, Tag, oid};
use x509_parser::x509::SubjectPublicKeyInfo;
use zeroize::Zeroizing;

use crate::der::{
    BIT_STRING, INTEGER, OCTET_STRING, OID, SEQUENCE, integer, only, significant, take, take_unsigned, write,
};
use crate::pem::{self, KeyFormat};
use crate::secret::{Redactor, Secret};

/// A public key, encoded in only one way, so that equal ones belong to the same private key.
#[derive(Debug, PartialEq, Eq)]
pub struct PublicKey {
    pub key_type: KeyType,
    /// An `RSAPublicKey`, an uncompressed point, or the bytes of an Ed25519 key.
    bits: Vec<u8>,
}

/// The type of a key. Others are not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyType {
    Rsa { bits: usize },
    P256,
    P384,
    P521,
    Ed25519,
    Other(String),
}

/// A private key of a supported type whose private and public parts match.
pub struct PrivateKey {
    pub public_key: PublicKey,
    /// The secret numbers: a scalar in full length, a seed, or those of RSA from the private exponent to the coefficient.
    secrets: Vec<Zeroizing<Vec<u8>>>,
    format: KeyFormat,
    /// ring needs the public key in an EC key, Go the curve; both and OpenSSL need version 1 of PKCS#8; RFC 5915 fixes
    /// the length of the scalar.
    der: Zeroizing<Vec<u8>>,
    /// Whether `der` differs from what was read.
    pub is_repaired: bool,
}

/// The public key, the secret numbers and the strict encoding of a private key.
type Parts = (PublicKey, Vec<Zeroizing<Vec<u8>>>, Zeroizing<Vec<u8>>);

/// Why a private key cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Holds the name of the type.
    #[error("a private key of unsupported type {0}; supported types: {SUPPORTED_KEY_TYPES}")]
    Unsupported(String),
    /// Holds the format that was expected.
    #[error("a private key with invalid {0} encoding")]
    Malformed(&'static str),
    #[error("an inconsistent private key: {0}")]
    Inconsistent(&'static str),
}

/// The key types that can be deployed, for messages.
pub const SUPPORTED_KEY_TYPES: &str = "RSA of 1024 to 8192 bits, P-256, P-384, P-521 and Ed25519";

const RSA: &[u8] = &oid!(raw 1.2.840.113549.1.1.1);
pub(crate) const RSASSA_PSS: &[u8] = &oid!(raw 1.2.840.113549.1.1.10);
const EC: &[u8] = &oid!(raw 1.2.840.10045.2.1);
const ED25519: &[u8] = &oid!(raw 1.3.101.112);

struct Curve {
    oid: &'static [u8],
    key_type: KeyType,
    /// The length of scalars in bytes.
    length: usize,
}

static CURVES: [Curve; 3] = [
    Curve { oid: &oid!(raw 1.2.840.10045.3.1.7), key_type: KeyType::P256, length: 32 },
    Curve { oid: &oid!(raw 1.3.132.0.34), key_type: KeyType::P384, length: 48 },
    Curve { oid: &oid!(raw 1.3.132.0.35), key_type: KeyType::P521, length: 66 },
];

/// The parameters of an algorithm that has none, encoded.
const NULL: &[u8] = &[5, 0];

/// Tags of optional fields.
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_1: u8 = 0xa1;
const IMPLICIT_1: u8 = 0x81;

const MALFORMED_PKCS8: KeyError = KeyError::Malformed("PKCS#8");
const MALFORMED_EC: KeyError = KeyError::Malformed("EC");
const MALFORMED_RSA: KeyError = KeyError::Malformed("RSA");
const INCONSISTENT_RSA: KeyError =
    KeyError::Inconsistent("its primes and exponents do not match its modulus");
const PUBLIC_KEY_MISMATCH: KeyError = KeyError::Inconsistent("its private and public parts do not match");

impl PublicKey {
    /// The public key of a certificate.
    pub fn from_x509(info: &SubjectPublicKeyInfo<'_>) -> Self {
        let bits = &info.subject_public_key.data;
        let parameters = info.algorithm.parameters.as_ref();
        let named = parameters.filter(|curve| curve.tag() == Tag::Oid).map(|curve| curve.data);
        let key_type = match info.algorithm.algorithm.as_bytes() {
            RSA | RSASSA_PSS => match rsa_modulus(bits) {
                Some(modulus) => rsa_type(modulus),
                None => KeyType::Other("RSA with an invalid public key".into()),
            },
            EC => curve(named).map_or_else(KeyType::Other, |curve| curve.key_type.clone()),
            ED25519 => KeyType::Ed25519,
            other => KeyType::Other(unsupported(other)),
        };
        Self::new(key_type, bits)
    }

    /// Decompresses a point (SEC 1, section 2.3.4). One that is not on the curve pairs with no key.
    fn new(key_type: KeyType, bits: &[u8]) -> Self {
        let point = match key_type {
            _ if !matches!(bits, [2 | 3, ..]) => Ok(bits.into()),
            KeyType::P256 => p256::PublicKey::from_sec1_bytes(bits).map(|key| key.to_sec1_bytes()),
            KeyType::P384 => p384::PublicKey::from_sec1_bytes(bits).map(|key| key.to_sec1_bytes()),
            KeyType::P521 => p521::PublicKey::from_sec1_bytes(bits).map(|key| key.to_sec1_bytes()),
            _ => Ok(bits.into()),
        };
        Self { key_type, bits: point.unwrap_or_else(|_| bits.into()).into_vec() }
    }

    /// Fails if a public key is stored beside the private one, and these are not the bits of this key.
    fn confirm(&self, stored: Option<&[u8]>) -> Result<(), KeyError> {
        let is_same = stored.is_none_or(|bits| Self::new(self.key_type.clone(), bits) == *self);
        is_same.then_some(()).ok_or(PUBLIC_KEY_MISMATCH)
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa { bits } => write!(f, "RSA-{bits}"),
            Self::P256 => f.write_str("P-256"),
            Self::P384 => f.write_str("P-384"),
            Self::P521 => f.write_str("P-521"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

impl PrivateKey {
    /// Reads a key and checks that its parts match.
    pub fn from_der(format: KeyFormat, der: &[u8]) -> Result<Self, KeyError> {
        let (public_key, secrets, strict) = match format {
            KeyFormat::Pkcs1 => rsa(der)?,
            KeyFormat::Sec1 => ec(der, None)?,
            KeyFormat::Pkcs8 => pkcs8(der)?,
        };
        let is_repaired = *strict != der;
        Ok(Self { public_key, secrets, format, der: strict, is_repaired })
    }

    /// The key as PEM, in the format in which it was read.
    pub fn pem(&self) -> Secret {
        pem::encode(self.format.label(), &self.der)
    }

    /// Hides the numbers of the key, which are the same in every format, and the lines of the PEM that hold them, because
    /// the file may be encoded again. Its other lines are public: a certificate has them, too.
    pub fn hide_in(&self, redactor: &mut Redactor) {
        self.secrets.iter().for_each(|number| redactor.hide_bytes(number));
        let pem = self.pem();
        let lines: Vec<&str> = pem.expose().lines().filter(|line| redactor.is_secret(line)).collect();
        for line in lines {
            redactor.hide_bytes(line.as_bytes());
        }
    }
}

/// The curve that an object identifier names, or a description of an unsupported one.
fn curve(oid: Option<&[u8]>) -> Result<&'static Curve, String> {
    let oid = oid.ok_or("EC with explicit curve parameters")?;
    CURVES.iter().find(|curve| curve.oid == oid).ok_or_else(|| format!("EC with curve {}", unsupported(oid)))
}

/// Describes an unsupported algorithm or curve.
fn unsupported(oid: &[u8]) -> String {
    format!("OID {}", Oid::new(oid.into()).to_id_string())
}

/// The modulus of an `RSAPublicKey` (RFC 8017, appendix A.1.1).
fn rsa_modulus(public_key: &[u8]) -> Option<&[u8]> {
    let mut numbers = only(SEQUENCE, public_key)?;
    let (modulus, _exponent) = (take_unsigned(&mut numbers)?, take_unsigned(&mut numbers)?);
    numbers.is_empty().then_some(modulus)
}

/// Shorter keys than these are broken; no TLS client verifies signatures of longer ones (webpki, rustls).
fn rsa_type(modulus: &[u8]) -> KeyType {
    match BigUint::from_bytes_be(modulus).bits() {
        bits @ 1024..=8192 => KeyType::Rsa { bits },
        bits => KeyType::Other(format!("RSA-{bits}")),
    }
}

/// Reads a `PrivateKeyInfo`, also called `OneAsymmetricKey` (RFC 5958, section 2), with a public key in version 1 too, and
/// with one that is tagged explicitly.
fn pkcs8(der: &[u8]) -> Result<Parts, KeyError> {
    let mut fields = only(SEQUENCE, der).ok_or(MALFORMED_PKCS8)?;
    let version = take(&mut fields, INTEGER).ok_or(MALFORMED_PKCS8)?;
    let mut parameters = take(&mut fields, SEQUENCE).ok_or(MALFORMED_PKCS8)?;
    let algorithm = take(&mut parameters, OID).ok_or(MALFORMED_PKCS8)?;
    let key = take(&mut fields, OCTET_STRING).ok_or(MALFORMED_PKCS8)?;
    let attributes = take(&mut fields, CONTEXT_0).map(|content| write(CONTEXT_0, &[content]));
    let explicit = take(&mut fields, CONTEXT_1).map(|content| only(BIT_STRING, content).unwrap_or(content));
    let stored = explicit.or_else(|| take(&mut fields, IMPLICIT_1));
    if !matches!(version, [0 | 1]) || !fields.is_empty() {
        return Err(MALFORMED_PKCS8);
    }
    let (public_key, secrets, key) = match algorithm {
        RSA | ED25519 if !matches!(parameters, [] | NULL) => return Err(MALFORMED_PKCS8),
        RSASSA_PSS if !parameters.is_empty() && only(SEQUENCE, parameters).is_none() => {
            return Err(MALFORMED_PKCS8);
        }
        RSA | RSASSA_PSS => rsa(key)?,
        EC => ec(key, Some(parameters))?,
        ED25519 => ed25519(key)?,
        other => return Err(KeyError::Unsupported(unsupported(other))),
    };
    public_key.confirm(stored.map(|bits| bits.strip_prefix(&[0]).unwrap_or(bits)))?;
    let curve = CURVES.iter().find(|curve| curve.key_type == public_key.key_type);
    let parameters = match algorithm {
        RSA => NULL.to_vec(),
        RSASSA_PSS => parameters.to_vec(),
        _ => curve.map_or_else(Vec::new, |curve| write(OID, &[curve.oid]).to_vec()),
    };
    let algorithm = write(SEQUENCE, &[write(OID, &[algorithm]).as_slice(), &parameters]);
    let fields = [integer(&[0]), algorithm, write(OCTET_STRING, &[&key]), attributes.unwrap_or_default()];
    Ok((public_key, secrets, write(SEQUENCE, &fields)))
}

/// Reads a `CurvePrivateKey` (RFC 8410, section 7).
fn ed25519(der: &[u8]) -> Result<Parts, KeyError> {
    let seed = only(OCTET_STRING, der).ok_or(KeyError::Malformed("Ed25519"))?;
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Malformed("Ed25519"))?;
    let public_key = PublicKey::new(KeyType::Ed25519, pair.public_key().as_ref());
    Ok((public_key, vec![Zeroizing::new(seed.to_vec())], write(OCTET_STRING, &[seed])))
}

/// Reads an `ECPrivateKey` (RFC 5915, section 3). In PKCS#8, `parameters` are those of the algorithm.
fn ec(der: &[u8], parameters: Option<&[u8]>) -> Result<Parts, KeyError> {
    let mut fields = only(SEQUENCE, der).ok_or(MALFORMED_EC)?;
    take(&mut fields, INTEGER).filter(|version| *version == [1]).ok_or(MALFORMED_EC)?;
    let scalar = take(&mut fields, OCTET_STRING).ok_or(MALFORMED_EC)?;
    let inner = take(&mut fields, CONTEXT_0);
    let stored = take(&mut fields, CONTEXT_1).map(|field| only(BIT_STRING, field)?.strip_prefix(&[0]));
    let stored = stored.map(|bits| bits.ok_or(MALFORMED_EC)).transpose()?;
    if !fields.is_empty() {
        return Err(MALFORMED_EC);
    }
    let outer = parameters.filter(|parameters| !matches!(*parameters, [] | NULL));
    if outer.is_some() && inner.is_some() && inner != outer {
        return Err(KeyError::Inconsistent("it names two different curves"));
    }
    let [p256, p384, p521] = &CURVES;
    let curve = match (outer.or(inner), scalar.len()) {
        (Some(named), _) => curve(only(OID, named)).map_err(KeyError::Unsupported)?,
        // Some writers omit leading zeros, others add one. After a wrong guess the key does not pair with the leaf.
        (None, ..=33) => p256,
        (None, 34..=49) => p384,
        (None, _) => p521,
    };
    let significant = significant(scalar);
    let padding = curve.length.checked_sub(significant.len()).ok_or(MALFORMED_EC)?;
    let full = Zeroizing::new([vec![0; padding].as_slice(), significant].concat());
    let point = public_point(curve, &full, stored).ok_or(MALFORMED_EC)?;
    let public_key = PublicKey::new(curve.key_type.clone(), &point);
    public_key.confirm(stored)?;
    let is_named = parameters.is_none() || outer.is_some() && inner.is_some();
    let named = is_named.then(|| write(CONTEXT_0, &[write(OID, &[curve.oid])]));
    let point = write(CONTEXT_1, &[write(BIT_STRING, &[&[0], &*point])]);
    let fields = [integer(&[1]), write(OCTET_STRING, &[&full]), named.unwrap_or_default(), point];
    Ok((public_key, vec![full], write(SEQUENCE, &fields)))
}

/// The public point of a scalar, uncompressed. ring takes a tenth of the instructions of the `p256` crate, but can only
/// confirm a stored point.
fn public_point(curve: &Curve, scalar: &[u8], stored: Option<&[u8]>) -> Option<Box<[u8]>> {
    let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
    let pair = |point| EcdsaKeyPair::from_private_key_and_public_key(algorithm, scalar, point, &random);
    Some(match (&curve.key_type, stored) {
        (KeyType::P256, Some(point)) if pair(point).is_ok() => point.into(),
        (KeyType::P256, _) => p256::SecretKey::from_slice(scalar).ok()?.public_key().to_sec1_bytes(),
        (KeyType::P384, _) => p384::SecretKey::from_slice(scalar).ok()?.public_key().to_sec1_bytes(),
        _ => p521::SecretKey::from_slice(scalar).ok()?.public_key().to_sec1_bytes(),
    })
}

/// Reads an `RSAPrivateKey` (RFC 8017, appendix A.1.2).
fn rsa(der: &[u8]) -> Result<Parts, KeyError> {
    let mut fields = only(SEQUENCE, der).ok_or(MALFORMED_RSA)?;
    let version = take(&mut fields, INTEGER);
    let mut numbers = [&[][..]; 8];
    for number in &mut numbers {
        *number = take_unsigned(&mut fields).ok_or(MALFORMED_RSA)?;
    }
    match (version, fields) {
        (Some([0]), []) => {}
        (Some([1]), more) if only(SEQUENCE, more).is_some() => {
            return Err(KeyError::Unsupported("RSA with more than two primes".into()));
        }
        _ => return Err(MALFORMED_RSA),
    }
    let [n, e, ..] = numbers;
    let key_type = rsa_type(n);
    if let KeyType::Other(name) = key_type {
        return Err(KeyError::Unsupported(name));
    }
    // Every number is below the modulus; computing with a longer one would only cost time.
    if numbers.iter().any(|number| number.len() > n.len()) {
        return Err(INCONSISTENT_RSA);
    }
    let secrets = rsa_secrets(numbers.map(BigUint::from_bytes_be)).ok_or(INCONSISTENT_RSA)?;
    let public_key = PublicKey::new(key_type, &write(SEQUENCE, &[integer(n), integer(e)]));
    let numbers = [&[0], n, e].into_iter().chain(secrets.iter().map(|number| number.as_slice()));
    let strict = write(SEQUENCE, &numbers.map(integer).collect::<Vec<_>>());
    Ok((public_key, secrets, strict))
}

/// Returns the numbers from the private exponent on, each below its modulus, if they belong to one key. Their names are
/// those of RFC 8017, section 3.2.
///
/// `from_components` checks that n = p·q and that e·d ≡ 1 modulo p − 1 and q − 1. It also computes the values for the
/// Chinese remainder theorem; servers sign with those in the file, so a wrong one would spoil every handshake.
#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn rsa_secrets([n, e, d, p, q, d_p, d_q, q_inv]: [BigUint; 8]) -> Option<Vec<Zeroizing<Vec<u8>>>> {
    let stored = [d_p, d_q, q_inv].map(Zeroizing::new);
    let key = RsaPrivateKey::from_components(n, e, d, vec![p, q]).ok()?;
    let [p, q] = key.primes() else { return None };
    let (p_1, q_1) = (p - 1u8, q - 1u8);
    let [d_p, d_q, q_inv] = &stored;
    let reduced = [&**d_p % &p_1, &**d_q % &q_1, &**q_inv % p].map(Zeroizing::new);
    let computed = [key.dp()?.clone(), key.dq()?.clone(), key.qinv()?.to_biguint()?].map(Zeroizing::new);
    if reduced != computed {
        return None;
    }
    let d = Zeroizing::new(if key.d() < key.n() { key.d().clone() } else { key.d() % (p_1 * q_1) });
    let secrets = [&*d, p, q].into_iter().chain(computed.iter().map(|number| &**number));
    Some(secrets.map(|number| Zeroizing::new(number.to_bytes_be())).collect())
}

#[cfg(test)]
mod encodings;

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;
