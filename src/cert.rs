//! X.509 certificates (RFC 5280): the fields that checks, plans and reports need.
//!
//! Parsing proves nothing: no signature is verified and no chain is built here.

mod extensions;
mod signature;
mod strict;

use std::net::IpAddr;

use ring::digest::{SHA256, digest};
use time::OffsetDateTime;
use x509_parser::oid_registry::OidRegistry;
use x509_parser::prelude::{
    FromDer as _, GeneralName, ParsedExtension, X509Certificate, X509Extension, X509Name,
};

pub use self::extensions::{ExtendedKeyUsage, Usage};
pub use crate::key::KeyType;
use crate::key::PublicKey;
use crate::leaf::Leaf;
use crate::names::MAX_DOMAIN;
use crate::pem;
use crate::text::{hex, rfc3339, sanitize, sanitize_untruncated};

/// A parsed certificate and its DER, which is what gets uploaded.
#[derive(Debug)]
pub struct Certificate {
    der: Vec<u8>,
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

/// The largest certificate that webpki accepts; OpenSSL's limit for a whole chain is higher.
const MAX_BYTES: usize = 0xffff;

/// Returns the SHA-256 of a certificate's DER in lower-case hex.
pub fn fingerprint(der: &[u8]) -> String {
    hex(digest(&SHA256, der).as_ref())
}

impl Certificate {
    /// Parses one certificate that is to be deployed; also fails for encodings that TLS clients reject, or notes their
    /// `fault`.
    pub fn from_der_strict(bytes: &[u8]) -> Result<Self, CertificateError> {
        if bytes.len() <= MAX_BYTES {
            strict::check(bytes)?;
        }
        let certificate = Self::from_der(bytes)?;
        Ok(Self { fault: strict::fault(&certificate.der), ..certificate })
    }

    /// Parses one certificate and ignores bytes after it. Accepts what others may have deployed.
    pub fn from_der(bytes: &[u8]) -> Result<Self, CertificateError> {
        if bytes.len() > MAX_BYTES {
            return Err(CertificateError::Forbidden("more than 65,535 bytes"));
        }
        let (rest, parsed) = X509Certificate::from_der(bytes).map_err(|_| CertificateError::Malformed)?;
        let der = bytes.get(..bytes.len() - rest.len()).ok_or(CertificateError::Malformed)?.to_vec();
        let mut certificate = Self {
            der,
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
            has_pss_key: parsed.public_key().algorithm.algorithm == signature::RSASSA_PSS,
            usage: Usage::default(),
            broken_hash: signature::broken_hash(&parsed.signature_algorithm),
            fault: None,
        };
        for extension in parsed.extensions() {
            certificate.add_extension(extension);
        }
        Ok(certificate)
    }

    fn add_extension(&mut self, extension: &X509Extension<'_>) {
        self.usage.add(extension);
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(san) => {
                for name in &san.general_names {
                    match name {
                        GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
                        GeneralName::IPAddress(bytes) => {
                            self.ip_addresses.extend(<[u8; 4]>::try_from(*bytes).map(IpAddr::from));
                            self.ip_addresses.extend(<[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                        }
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
        let subject = Some(self.subject.short.clone()).filter(|subject| !subject.is_empty());
        subject
            .or_else(|| self.names().into_iter().next())
            .unwrap_or_else(|| "a certificate without a name".into())
    }

    /// Whether subject and issuer are the same, as in a root or self-signed certificate.
    pub fn is_self_issued(&self) -> bool {
        self.subject == self.issuer
    }

    /// Whether `issuer` has the issuer's name and, if both certificates carry one, the issuer's key identifier (RFC
    /// 5280, section 4.2.1.1).
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
    fn from_x509(name: &X509Name<'_>) -> Self {
        let text = sanitize(&display(name));
        let mut common_names = name.iter_common_name().filter_map(|value| value.as_str().ok());
        let mut organizations = name.iter_organization().filter_map(|value| value.as_str().ok());
        let short =
            common_names.next().or_else(|| organizations.next()).map_or_else(|| text.clone(), sanitize);
        Self { raw: name.as_raw().to_vec(), text, short }
    }
}

/// Formats a name as its `Display` does, without its registry of all algorithms: filling that takes 200,000
/// instructions, and hardly any name has an attribute that has no abbreviation.
fn display(name: &X509Name<'_>) -> String {
    const NO_ABBREVIATION: &str = "OID(";
    let format = |registry: &OidRegistry<'_>| {
        name.to_string_with_registry(registry).unwrap_or_else(|_| "<X509Error: Invalid X.509 name>".into())
    };
    let text = format(&OidRegistry::default());
    if text.contains(NO_ABBREVIATION) {
        format(&OidRegistry::default().with_x509().with_pkcs9())
    } else {
        text
    }
}
