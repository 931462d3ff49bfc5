//! The form in which a private key is sent: the one that the strictest readers accept.
//!
//! ring needs the public key in an EC key, Go the curve; both and OpenSSL need version 1 of PKCS#8; RFC 5915 fixes the
//! length of the scalar. A key in this form is sent as it was read; any other one is encoded again from its numbers.

use std::fmt;

use pkcs8::der::Encode as _;
use pkcs8::der::asn1::{AnyRef, OctetStringRef};
use pkcs8::spki::AlgorithmIdentifierRef;
use rsa::pkcs1::{RsaPrivateKey, UintRef};
use sec1::{EcParameters, EcPrivateKey};
use zeroize::Zeroizing;

use super::{RSA, RSASSA_PSS, ec};
use crate::cert::PublicKey;
use crate::pem::KeyFormat;

/// A deviation from the strict form that was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The scalar of an EC key has the first number of bytes and should have the second.
    ScalarLength { found: usize, wanted: usize },
    /// An EC key lacks its public key.
    NoPublicKey,
    /// An EC key has its public key in compressed form.
    CompressedPublicKey,
    /// The curve is not named where readers look for it.
    NoCurve,
    /// PKCS#8 has parameters where the algorithm takes none, or none where it takes `NULL`.
    AlgorithmParameters,
    /// PKCS#8 is in version 2, with or without a public key (RFC 5958).
    Version2,
    /// An exponent or the coefficient of an RSA key is larger than its modulus.
    Unreduced,
}

/// In the past tense, like the repairs of a chain.
impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::ScalarLength { found, wanted } => {
                return write!(
                    f,
                    "wrote the private number in {wanted} bytes instead of {found}, as RFC 5915 requires"
                );
            }
            Self::NoPublicKey => "added the public key",
            Self::CompressedPublicKey => "wrote the public key uncompressed",
            Self::NoCurve => "added the name of the curve",
            Self::AlgorithmParameters => "corrected the parameters of the algorithm",
            Self::Version2 => "converted it from version 2 of PKCS#8 to version 1",
            Self::Unreduced => "reduced the RSA exponents",
        };
        f.write_str(text)
    }
}

/// The numbers of a private key, without their encoding.
pub(super) struct Numbers {
    pub(super) public_key: PublicKey,
    /// The secret values in the order of their encoding: the scalar in full length, the seed, or the RSA numbers from the
    /// private exponent to the coefficient.
    pub(super) secrets: Vec<Zeroizing<Vec<u8>>>,
    /// How the encoding that they were read from deviates.
    pub(super) repairs: Vec<Repair>,
}

impl Numbers {
    /// Encodes the key in `format`. `algorithm` is that of the PKCS#8 from which it was read.
    pub(super) fn to_der(
        &self,
        format: KeyFormat,
        algorithm: Option<AlgorithmIdentifierRef<'_>>,
    ) -> Option<Zeroizing<Vec<u8>>> {
        let key = self.unwrapped(format)?;
        let Some(AlgorithmIdentifierRef { oid, parameters }) = algorithm else { return Some(key) };
        let parameters = match (oid, ec::curve(&self.public_key)) {
            (RSA, _) => Some(AnyRef::NULL),
            (RSASSA_PSS, _) => parameters,
            (_, curve) => curve.map(AnyRef::from),
        };
        let key = OctetStringRef::new(&key).ok()?;
        pkcs8::PrivateKeyInfoRef::new(AlgorithmIdentifierRef { oid, parameters }, key)
            .to_der()
            .ok()
            .map(Zeroizing::new)
    }

    /// Encodes what PKCS#8 wraps. There the outer structure names the curve.
    fn unwrapped(&self, format: KeyFormat) -> Option<Zeroizing<Vec<u8>>> {
        let secrets: Vec<&[u8]> = self.secrets.iter().map(|number| number.as_slice()).collect();
        let der = match (&self.public_key, secrets.as_slice()) {
            (PublicKey::Rsa { modulus, exponent }, numbers) => rsa_der(modulus, exponent, numbers)?,
            (PublicKey::Ed25519(_), [seed]) => OctetStringRef::new(seed).ok()?.to_der().ok()?,
            (PublicKey::P256(point) | PublicKey::P384(point) | PublicKey::P521(point), [scalar]) => {
                let curve = ec::curve(&self.public_key).filter(|_| format == KeyFormat::Sec1);
                let parameters = curve.copied().map(EcParameters::NamedCurve);
                EcPrivateKey { private_key: scalar, parameters, public_key: Some(point) }.to_der().ok()?
            }
            _ => return None,
        };
        Some(Zeroizing::new(der))
    }
}

/// Encodes an `RSAPrivateKey`.
fn rsa_der(modulus: &[u8], exponent: &[u8], secrets: &[&[u8]]) -> Option<Vec<u8>> {
    let &[d, p, q, d_p, d_q, q_inv] = secrets else { return None };
    let number = |bytes| UintRef::new(bytes).ok();
    let key = RsaPrivateKey {
        modulus: number(modulus)?,
        public_exponent: number(exponent)?,
        private_exponent: number(d)?,
        prime1: number(p)?,
        prime2: number(q)?,
        exponent1: number(d_p)?,
        exponent2: number(d_q)?,
        coefficient: number(q_inv)?,
        other_prime_infos: None,
    };
    rsa::pkcs1::der::Encode::to_der(&key).ok()
}
