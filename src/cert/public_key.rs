//! Public keys of certificates, and the names of key types.

use std::fmt;
use std::ops::RangeInclusive;

use x509_parser::asn1_rs::Tag;
use x509_parser::x509::SubjectPublicKeyInfo;

/// A public key, as far as it is supported.
#[derive(Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// Big-endian numbers without leading zeros.
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// A point, compressed or not (SEC 1, section 2.3.3).
    P256(Vec<u8>),
    P384(Vec<u8>),
    P521(Vec<u8>),
    Ed25519(Vec<u8>),
    /// Holds the name of the type.
    Unsupported(String),
}

/// The type of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyType {
    Rsa { bits: usize },
    P256,
    P384,
    P521,
    Ed25519,
    Other(String),
}

/// Shorter keys are broken; no TLS client verifies signatures of longer ones (webpki, rustls).
const RSA_BITS: RangeInclusive<usize> = 1024..=8192;

/// The key types that can be deployed, for messages.
pub const SUPPORTED_KEY_TYPES: &str = "RSA of 1024 to 8192 bits, P-256, P-384, P-521 and Ed25519";

const RSASSA_PSS: &str = "1.2.840.113549.1.1.10";

impl PublicKey {
    pub(super) fn from_x509(info: &SubjectPublicKeyInfo<'_>) -> Self {
        let bits = &info.subject_public_key.data;
        match info.algorithm.algorithm.to_id_string().as_str() {
            "1.2.840.113549.1.1.1" | RSASSA_PSS => Self::from_rsa_der(bits)
                .unwrap_or_else(|| Self::Unsupported("RSA with an invalid public key".into())),
            "1.2.840.10045.2.1" => Self::from_ec_point(info, bits.to_vec()),
            "1.3.101.112" => Self::Ed25519(bits.to_vec()),
            other => Self::Unsupported(algorithm_name(other)),
        }
    }

    fn from_ec_point(info: &SubjectPublicKeyInfo<'_>, point: Vec<u8>) -> Self {
        // `as_oid` does not look at the tag, so explicit parameters would pass for an object identifier.
        let named = info.algorithm.parameters.as_ref().filter(|parameters| parameters.tag() == Tag::Oid);
        let curve = named.and_then(|parameters| parameters.as_oid().ok());
        match curve.map(|oid| oid.to_id_string()).as_deref() {
            Some("1.2.840.10045.3.1.7") => Self::P256(point),
            Some("1.3.132.0.34") => Self::P384(point),
            Some("1.3.132.0.35") => Self::P521(point),
            Some(other) => Self::Unsupported(curve_name(other)),
            None => Self::Unsupported("EC with explicit curve parameters".into()),
        }
    }

    /// Parses an `RSAPublicKey` (RFC 8017, appendix A.1.1).
    pub fn from_rsa_der(der: &[u8]) -> Option<Self> {
        let key = rsa::pkcs1::RsaPublicKey::try_from(der).ok()?;
        let [modulus, exponent] = [key.modulus, key.public_exponent].map(|number| number.as_bytes().to_vec());
        Some(Self::Rsa { modulus, exponent })
    }

    /// The type of the key.
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::Rsa { modulus, .. } => KeyType::Rsa { bits: bit_length(modulus) },
            Self::P256(_) => KeyType::P256,
            Self::P384(_) => KeyType::P384,
            Self::P521(_) => KeyType::P521,
            Self::Ed25519(_) => KeyType::Ed25519,
            Self::Unsupported(name) => KeyType::Other(name.clone()),
        }
    }
}

impl KeyType {
    /// Whether keys of this type can be deployed.
    pub fn is_supported(&self) -> bool {
        match self {
            Self::Rsa { bits } => RSA_BITS.contains(bits),
            Self::P256 | Self::P384 | Self::P521 | Self::Ed25519 => true,
            Self::Other(_) => false,
        }
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

/// Whether a key is limited to RSASSA-PSS.
pub(super) fn is_pss(info: &SubjectPublicKeyInfo<'_>) -> bool {
    info.algorithm.algorithm.to_id_string() == RSASSA_PSS
}

/// Returns the number of significant bits of a big-endian number.
pub fn bit_length(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let leading = number.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
    (number.len() - zeros) * 8 - leading
}

/// Returns the usual name of a key algorithm.
pub fn algorithm_name(oid: &str) -> String {
    let name = match oid {
        "1.2.840.10040.4.1" => "DSA",
        "1.2.840.113549.1.3.1" => "DH",
        "1.3.101.110" => "X25519",
        "1.3.101.111" => "X448",
        "1.3.101.113" => "Ed448",
        "2.16.840.1.101.3.4.3.17" => "ML-DSA-44",
        "2.16.840.1.101.3.4.3.18" => "ML-DSA-65",
        "2.16.840.1.101.3.4.3.19" => "ML-DSA-87",
        other => return format!("OID {other}"),
    };
    name.into()
}

/// Returns the usual name of an elliptic curve.
pub fn curve_name(oid: &str) -> String {
    let name = match oid {
        "1.3.132.0.10" => "secp256k1",
        "1.3.132.0.33" => "P-224",
        "1.2.840.10045.3.1.1" => "P-192",
        "1.3.36.3.3.2.8.1.1.7" => "brainpoolP256r1",
        "1.3.36.3.3.2.8.1.1.11" => "brainpoolP384r1",
        "1.3.36.3.3.2.8.1.1.13" => "brainpoolP512r1",
        other => return format!("EC with curve OID {other}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_length_ignores_leading_zeros() {
        let rows: [(&[u8], usize); 6] =
            [(&[], 0), (&[0], 0), (&[1], 1), (&[0, 0x80], 8), (&[1, 0], 9), (&[0, 0, 0x7f, 0xff], 15)];
        for (number, bits) in rows {
            assert_eq!(bit_length(number), bits, "{number:?}");
        }
    }

    #[test]
    fn rsa_is_supported_from_1024_to_8192_bits() {
        for (bits, wanted) in [(1023, false), (1024, true), (8192, true), (8193, false)] {
            assert_eq!(KeyType::Rsa { bits }.is_supported(), wanted, "{bits}");
        }
    }
}
