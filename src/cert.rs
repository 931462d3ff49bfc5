//! X.509 certificates (RFC 5280): the fields that checks, plans and reports need.
//!
//! Parsing proves nothing: no signature is verified and no chain is built here.

mod extensions;
mod strict;

use std::net::IpAddr;

use ring::digest::{SHA256, digest};
use time::OffsetDateTime;
use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::objects::oid2abbrev;
use x509_parser::oid_registry::OidRegistry;
use x509_parser::prelude::{FromDer as _, GeneralName, ParsedExtension, X509Certificate, X509Name};
use x509_parser::signature_algorithm::RsaSsaPssParams;
use x509_parser::x509::AlgorithmIdentifier;

pub use self::extensions::{ExtendedKeyUsage, Usage};
pub use crate::key::KeyType;
use crate::key::{PublicKey, RSASSA_PSS};
use crate::leaf::Leaf;
use crate::names::MAX_DOMAIN;
use crate::pem;
use crate::text::{hex, rfc3339, sanitize, sanitize_untruncated};

/// A parsed certificate and its DER, which is what gets uploaded.
#[derive(Debug)]
pub struct Certificate {
    pub der: Vec<u8>,
    /// As encoded: untrusted text.
    dns_names: Vec<String>,
    ip_addresses: Vec<IpAddr>,
    pub not_before: OffsetDateTime,
    /// Inclusive: the last second of validity (RFC 5280, section 4.1.2.5).
    pub not_after: OffsetDateTime,
    pub subject: Name,
    pub issuer: Name,
    subject_key_id: Option<Vec<u8>>,
    authority_key_id: Option<Vec<u8>>,
    pub is_ca: bool,
    pub public_key: PublicKey,
    /// Whether the key is limited to RSASSA-PSS (RFC 4055, section 1.2).
    pub has_pss_key: bool,
    pub usage: Usage,
    /// The hash function of its signature, if it is a broken one.
    pub broken_hash: Option<&'static str>,
    /// Why webpki cannot read it; `None` if it can, or if it was not parsed strictly.
    pub fault: Option<webpki::Error>,
}

/// A distinguished name.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    raw: Vec<u8>,
    /// The whole name, sanitized.
    pub text: String,
    /// The common name, else the organization, else the whole name; sanitized.
    pub short: String,
}

/// Why bytes cannot be used as a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("a PEM block `CERTIFICATE` that is not an X.509 certificate")]
    Malformed,
    /// Forbidden by RFC 5280, or rejected by TLS clients.
    #[error("a certificate with {0}")]
    Forbidden(&'static str),
}

/// Broken signature algorithms (RFC 3279, section 2.2; OIW) and hash functions, with the name of the hash.
static BROKEN: [(Oid<'static>, &str); 6] = [
    (oid!(1.2.840.113549.1.1.4), "MD5"),
    (oid!(1.2.840.113549.1.1.5), "SHA-1"),
    (oid!(1.2.840.10045.4.1), "SHA-1"),
    (oid!(1.3.14.3.2.29), "SHA-1"),
    (oid!(1.2.840.113549.2.5), "MD5"),
    (oid!(1.3.14.3.2.26), "SHA-1"),
];

/// Returns the SHA-256 of a certificate's DER in lower-case hex.
pub fn fingerprint(der: &[u8]) -> String {
    hex(digest(&SHA256, der).as_ref())
}

impl Certificate {
    /// Parses one certificate that is to be deployed; also fails for encodings that TLS clients reject, or notes their
    /// `fault`.
    pub fn from_der_strict(bytes: &[u8]) -> Result<Self, CertificateError> {
        strict::check(bytes)?;
        let certificate = Self::from_der(bytes).ok_or(CertificateError::Malformed)?;
        Ok(Self { fault: strict::fault(&certificate.der), ..certificate })
    }

    /// Parses one certificate and ignores bytes after it. Accepts what others may have deployed.
    pub fn from_der(bytes: &[u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(bytes).ok()?;
        let mut certificate = Self {
            der: bytes.get(..bytes.len() - rest.len())?.to_vec(),
            dns_names: Vec::new(),
            ip_addresses: Vec::new(),
            not_before: parsed.validity().not_before.to_datetime(),
            not_after: parsed.validity().not_after.to_datetime(),
            subject: Name::from_x509(parsed.subject()),
            issuer: Name::from_x509(parsed.issuer()),
            subject_key_id: None,
            authority_key_id: None,
            is_ca: false,
            public_key: PublicKey::from_x509(parsed.public_key()),
            has_pss_key: parsed.public_key().algorithm.algorithm.as_bytes() == RSASSA_PSS,
            usage: Usage::default(),
            broken_hash: broken_hash(&parsed.signature_algorithm),
            fault: None,
        };
        for extension in parsed.extensions() {
            certificate.usage.add(extension);
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(san) => {
                    san.general_names.iter().for_each(|name| certificate.add_name(name));
                }
                ParsedExtension::BasicConstraints(constraints) => certificate.is_ca = constraints.ca,
                ParsedExtension::SubjectKeyIdentifier(id) => certificate.subject_key_id = Some(id.0.to_vec()),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    certificate.authority_key_id = id.key_identifier.as_ref().map(|id| id.0.to_vec());
                }
                _ => {}
            }
        }
        Some(certificate)
    }

    fn add_name(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                self.ip_addresses.extend(<[u8; 4]>::try_from(*bytes).map(IpAddr::from));
                self.ip_addresses.extend(<[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            }
            _ => {}
        }
    }

    /// The SHA-256 of the DER in lower-case hex.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.der)
    }

    /// The certificate as PEM.
    pub fn pem(&self) -> String {
        pem::encode("CERTIFICATE", &self.der).expose().to_owned()
    }

    /// The DNS names of the SAN extension, not sanitized.
    pub fn dns_names(&self) -> impl Iterator<Item = &str> {
        self.dns_names.iter().map(String::as_str)
    }

    /// All DNS names and IP addresses of the SAN extension, sanitized. Names are cut at [`MAX_DOMAIN`], which no site's
    /// domain exceeds.
    pub fn names(&self) -> Vec<String> {
        let dns = self.dns_names().map(|name| sanitize_untruncated(name).chars().take(MAX_DOMAIN).collect());
        dns.chain(self.ip_addresses.iter().map(ToString::to_string)).collect()
    }

    /// The leaf to remember. Without the issuer, because that is not recorded.
    pub(crate) fn to_leaf(&self) -> Leaf {
        let [not_before, not_after] = [self.not_before, self.not_after].map(rfc3339::to_seconds);
        Leaf { fingerprint: self.fingerprint(), names: self.names(), not_before, not_after, issuer: None }
    }

    /// What messages call the certificate: its subject, else the first of its names.
    pub fn label(&self) -> String {
        let mut names = [self.subject.short.clone()].into_iter().chain(self.names());
        names.find(|name| !name.is_empty()).unwrap_or_else(|| "a certificate without a name".into())
    }

    /// Whether subject and issuer are the same, as in a root or self-signed certificate.
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Whether `issuer` has the issuer's name and, if both certificates carry one, the issuer's key identifier (RFC
    /// 5280, section 4.2.1.1).
    pub fn may_be_issued_by(&self, issuer: &Self) -> bool {
        let ids = self.authority_key_id.as_ref().zip(issuer.subject_key_id.as_ref());
        self.issuer == issuer.subject && ids.is_none_or(|(wanted, found)| wanted == found)
    }
}

impl Name {
    fn from_x509(name: &X509Name<'_>) -> Self {
        let mut registry = OidRegistry::default();
        // Filling it takes 90,000 instructions, and hardly any name has an attribute without an abbreviation.
        if name.iter_attributes().any(|attribute| oid2abbrev(attribute.attr_type(), &registry).is_err()) {
            registry = registry.with_x509().with_pkcs9();
        }
        let text = name.to_string_with_registry(&registry);
        let text = text.map_or_else(|_| "<X509Error: Invalid X.509 name>".into(), |text| sanitize(&text));
        let mut names = name.iter_common_name().chain(name.iter_organization());
        let short = names.find_map(|value| value.as_str().ok()).map_or_else(|| text.clone(), sanitize);
        Self { raw: name.as_raw().to_vec(), text, short }
    }
}

/// Returns the name of the signature's hash function if it is a broken one.
fn broken_hash(algorithm: &AlgorithmIdentifier<'_>) -> Option<&'static str> {
    let name = |oid: &Oid<'_>| BROKEN.iter().find(|(broken, _)| broken == oid).map(|(_, hash)| *hash);
    if algorithm.algorithm.as_bytes() != RSASSA_PSS {
        return name(&algorithm.algorithm);
    }
    match algorithm.parameters.as_ref().map(RsaSsaPssParams::try_from) {
        Some(parameters) => name(parameters.ok()?.hash_algorithm_oid()),
        // The default (RFC 4055, section 3.1).
        None => Some("SHA-1"),
    }
}
