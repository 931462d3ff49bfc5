//! Certificates: the facts in one that checks, plan and report need (RFC 5280).
//!
//! Nothing here trusts anything: no signature is verified, no chain is built.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ring::digest::{SHA256, digest};
use time::OffsetDateTime;
use x509_parser::asn1_rs::Tag;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate, X509Name};

use crate::pem;
use crate::text::{hex, sanitize};

/// One certificate, read once; the DER is kept because that is what is sent.
#[derive(Debug)]
pub struct Certificate {
    der: Vec<u8>,
    /// DNS names of the SAN extension as they are encoded: untrusted text.
    pub dns_names: Vec<String>,
    /// IP addresses of the SAN extension.
    pub ip_addresses: Vec<IpAddr>,
    pub not_before: OffsetDateTime,
    /// The last second at which the certificate is valid (RFC 5280, section 4.1.2.5: inclusive).
    pub not_after: OffsetDateTime,
    pub subject: Name,
    pub issuer: Name,
    pub subject_key_id: Option<Vec<u8>>,
    pub authority_key_id: Option<Vec<u8>>,
    pub is_ca: bool,
    pub public_key: PublicKey,
}

/// A distinguished name: its encoding to compare, its text to show.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    raw: Vec<u8>,
    /// The whole name, printable.
    pub text: String,
    /// The common name, or else the organisation, or else the whole name; printable.
    pub short: String,
}

/// A public key of a supported type, or the name of another one.
#[derive(Debug, PartialEq, Eq)]
pub enum PublicKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    P521(Vec<u8>),
    Ed25519(Vec<u8>),
    Unsupported(String),
}

/// The type of a key, as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyType {
    Rsa { bits: usize },
    P256,
    P384,
    P521,
    Ed25519,
    Other(String),
}

/// Shorter keys are broken, longer ones no TLS client verifies (webpki, rustls).
const RSA_BITS: RangeInclusive<usize> = 1024..=8192;

/// The types that a key may have, for messages.
pub const SUPPORTED_KEY_TYPES: &str = "RSA of 1024 to 8192 bits, P-256, P-384, P-521 and Ed25519";

/// The bytes are no certificate that could be used.
#[derive(Debug, thiserror::Error)]
pub enum NotACertificate {
    #[error("a block `CERTIFICATE` that holds no X.509 certificate")]
    Malformed,
    #[error("a block `CERTIFICATE` of {0} bytes, which is more than TLS clients take")]
    TooLarge(usize),
}

/// What verifiers take at most (webpki), and below what OpenSSL takes for a whole chain.
const MAX_BYTES: usize = 0xffff;

/// Lower-case hex of the SHA-256 of a certificate's DER.
pub fn fingerprint(der: &[u8]) -> String {
    hex(digest(&SHA256, der).as_ref())
}

impl Certificate {
    /// Reads one certificate; bytes behind it are dropped.
    pub fn from_der(bytes: &[u8]) -> Result<Self, NotACertificate> {
        if bytes.len() > MAX_BYTES {
            return Err(NotACertificate::TooLarge(bytes.len()));
        }
        let (rest, parsed) = X509Certificate::from_der(bytes).map_err(|_| NotACertificate::Malformed)?;
        let der = bytes.get(..bytes.len() - rest.len()).ok_or(NotACertificate::Malformed)?.to_vec();
        let mut certificate = Self {
            der,
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            not_before: parsed.validity().not_before.to_datetime(),
            not_after: parsed.validity().not_after.to_datetime(),
            subject: Name::read(parsed.subject()),
            issuer: Name::read(parsed.issuer()),
            subject_key_id: None,
            authority_key_id: None,
            is_ca: false,
            public_key: PublicKey::read(&parsed),
        };
        for extension in parsed.extensions() {
            certificate.add(extension.parsed_extension());
        }
        Ok(certificate)
    }

    fn add(&mut self, extension: &ParsedExtension<'_>) {
        match extension {
            ParsedExtension::SubjectAlternativeName(san) => {
                for name in &san.general_names {
                    match name {
                        GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
                        GeneralName::IPAddress(bytes) => self.ip_addresses.extend(ip_address(bytes)),
                        _ => {}
                    }
                }
            }
            ParsedExtension::BasicConstraints(constraints) => self.is_ca = constraints.ca,
            ParsedExtension::SubjectKeyIdentifier(id) => self.subject_key_id = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                self.authority_key_id = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            _ => {}
        }
    }

    /// The encoded certificate.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Lower-case hex of the SHA-256 of the DER.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.der)
    }

    /// The certificate as clean PEM.
    pub fn pem(&self) -> String {
        pem::write("CERTIFICATE", &self.der).expose().to_owned()
    }

    /// DNS names and addresses of the SAN extension, printable.
    pub fn names(&self) -> Vec<String> {
        let dns = self.dns_names.iter().map(|name| sanitize(name));
        dns.chain(self.ip_addresses.iter().map(ToString::to_string)).collect()
    }

    /// What to call it in a message: its subject, or the first of its names.
    pub fn label(&self) -> String {
        let subject = Some(self.subject.short.clone()).filter(|subject| !subject.is_empty());
        subject
            .or_else(|| self.names().into_iter().next())
            .unwrap_or_else(|| "a certificate without any name".into())
    }

    /// The DNS names, for coverage.
    pub fn san(&self) -> impl Iterator<Item = &str> {
        self.dns_names.iter().map(String::as_str)
    }

    /// Whether issuer and subject are the same name, as in a root or a self-made certificate.
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Whether `issuer` looks like the one that signed this: same name and, where both say so, same key
    /// (RFC 5280, section 4.2.1.1).
    pub fn may_be_issued_by(&self, issuer: &Self) -> bool {
        let same_key = match (&self.authority_key_id, &issuer.subject_key_id) {
            (Some(wanted), Some(found)) => wanted == found,
            _ => true,
        };
        self.issuer == issuer.subject && same_key
    }
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Name {
    fn read(name: &X509Name<'_>) -> Self {
        let text = sanitize(&name.to_string());
        let first = |mut values: Vec<String>| values.drain(..).next();
        let common = name.iter_common_name().filter_map(|value| value.as_str().ok()).map(sanitize).collect();
        let organisation =
            name.iter_organization().filter_map(|value| value.as_str().ok()).map(sanitize).collect();
        let short = first(common).or_else(|| first(organisation)).unwrap_or_else(|| text.clone());
        Self { raw: name.as_raw().to_vec(), text, short }
    }
}

impl PublicKey {
    fn read(certificate: &X509Certificate<'_>) -> Self {
        let info = certificate.public_key();
        let bits = || info.subject_public_key.data.to_vec();
        match info.algorithm.algorithm.to_id_string().as_str() {
            "1.2.840.113549.1.1.1" | "1.2.840.113549.1.1.10" => {
                Self::from_rsa_der(&info.subject_public_key.data)
                    .unwrap_or_else(|| Self::Unsupported("RSA with a damaged public key".into()))
            }
            "1.2.840.10045.2.1" => {
                // The library takes any bytes for an object identifier, also those of explicit parameters.
                let named = info.algorithm.parameters.as_ref().filter(|named| named.tag() == Tag::Oid);
                let curve = named.and_then(|named| named.as_oid().ok());
                match curve.map(|oid| oid.to_id_string()).as_deref() {
                    Some("1.2.840.10045.3.1.7") => Self::P256(bits()),
                    Some("1.3.132.0.34") => Self::P384(bits()),
                    Some("1.3.132.0.35") => Self::P521(bits()),
                    Some(other) => Self::Unsupported(curve_name(other)),
                    None => Self::Unsupported("EC with explicit curve parameters".into()),
                }
            }
            "1.3.101.112" => Self::Ed25519(bits()),
            other => Self::Unsupported(algorithm_name(other)),
        }
    }

    /// Reads an `RSAPublicKey` (RFC 8017, appendix A.1.1).
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
    /// Whether a key of this type may be deployed.
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

/// Bits of a number in big-endian bytes.
pub fn bit_length(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let leading = number.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
    (number.len() - zeros) * 8 - leading
}

fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

/// A key algorithm, given by its object identifier, by its usual name.
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
        other => return format!("with object identifier {other}"),
    };
    name.into()
}

/// A curve, given by its object identifier, by its usual name.
pub fn curve_name(oid: &str) -> String {
    let name = match oid {
        "1.3.132.0.10" => "secp256k1",
        "1.3.132.0.33" => "P-224",
        "1.2.840.10045.3.1.1" => "P-192",
        "1.3.36.3.3.2.8.1.1.7" => "brainpoolP256r1",
        "1.3.36.3.3.2.8.1.1.11" => "brainpoolP384r1",
        "1.3.36.3.3.2.8.1.1.13" => "brainpoolP512r1",
        other => return format!("EC on the curve with object identifier {other}"),
    };
    name.into()
}
