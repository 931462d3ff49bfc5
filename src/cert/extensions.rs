//! What the extensions of a certificate permit, and which of them make TLS clients reject it.

use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::extensions::{ParsedExtension, X509Extension};

use crate::der::{BIT_STRING, OID, SEQUENCE, elements, only};

/// The extensions that decide whether TLS clients accept a certificate for a server.
#[derive(Debug, Default)]
pub struct Usage {
    /// `None` without the extension: every purpose is permitted.
    pub extended_key_usage: Option<ExtendedKeyUsage>,
    /// The bits of the permitted usages, the first in the lowest bit; `None` without the extension: every usage is
    /// permitted.
    pub key_usage: Option<u16>,
    /// Whether there is a Certificate Transparency poison extension, critical or not.
    pub is_precertificate: bool,
    /// Names of the usage extensions and basic constraints that cannot be decoded.
    pub unreadable: Vec<&'static str>,
    /// Critical extensions that no TLS client is known to process.
    pub unknown_critical: Vec<String>,
    /// Known extensions that are marked as critical but should not be: most TLS clients do not process them.
    pub wrongly_critical: Vec<String>,
}

/// The extended key usage extension (RFC 5280, section 4.2.1.12).
#[derive(Debug)]
pub struct ExtendedKeyUsage {
    pub server_auth: bool,
    /// Whether it has `anyExtendedKeyUsage`.
    pub any: bool,
}

/// Marks a precertificate (RFC 6962, section 3.1). The RFC requires it to be critical, but only precertificates contain it
/// at all.
const CT_POISON: Oid<'static> = oid!(1.3.6.1.4.1.11129.2.4.3);

/// Known extensions, and whether TLS clients process them if they are critical. OpenSSL and browsers process all that are
/// marked `true` here, webpki all of these but the policies. Conforming CAs never mark the others as critical, and most
/// clients reject certificates in which they are.
static EXTENSIONS: [(Oid<'static>, &str, bool); 22] = [
    (oid!(2.5.29.15), KEY_USAGE, true),
    (oid!(2.5.29.17), "subjectAltName", true),
    (oid!(2.5.29.19), BASIC_CONSTRAINTS, true),
    (oid!(2.5.29.30), "nameConstraints", true),
    (oid!(2.5.29.31), "cRLDistributionPoints", true),
    (oid!(2.5.29.32), "certificatePolicies", true),
    (oid!(2.5.29.33), "policyMappings", true),
    (oid!(2.5.29.36), "policyConstraints", true),
    (oid!(2.5.29.37), EXTENDED_KEY_USAGE, true),
    (oid!(2.5.29.54), "inhibitAnyPolicy", true),
    (oid!(2.5.29.9), "subjectDirectoryAttributes", false),
    (oid!(2.5.29.14), "subjectKeyIdentifier", false),
    (oid!(2.5.29.16), "privateKeyUsagePeriod", false),
    (oid!(2.5.29.18), "issuerAltName", false),
    (oid!(2.5.29.35), "authorityKeyIdentifier", false),
    (oid!(2.5.29.46), "freshestCRL", false),
    (oid!(1.3.6.1.5.5.7.1.1), "authorityInfoAccess", false),
    (oid!(1.3.6.1.5.5.7.1.11), "subjectInfoAccess", false),
    (oid!(1.3.6.1.5.5.7.1.24), "TLS feature (must-staple)", false),
    (oid!(1.3.6.1.4.1.11129.2.4.2), "SCT list", false),
    (oid!(2.16.840.1.113730.1.1), "netscapeCertType", false),
    (CT_POISON, "CT poison", true),
];

const KEY_USAGE: &str = "keyUsage";
const EXTENDED_KEY_USAGE: &str = "extKeyUsage";
const BASIC_CONSTRAINTS: &str = "basicConstraints";

impl Usage {
    pub(super) fn add(&mut self, extension: &X509Extension<'_>) {
        let known = EXTENSIONS.iter().find(|(oid, ..)| *oid == extension.oid);
        match (known, extension.parsed_extension()) {
            (_, ParsedExtension::ExtendedKeyUsage(usage)) if is_list_of_oids(extension.value) => {
                let (server_auth, any) = (usage.server_auth, usage.any);
                self.extended_key_usage = Some(ExtendedKeyUsage { server_auth, any });
            }
            (_, ParsedExtension::KeyUsage(usage)) if only(BIT_STRING, extension.value).is_some() => {
                self.key_usage = Some(usage.flags);
            }
            (_, ParsedExtension::BasicConstraints(_)) if only(SEQUENCE, extension.value).is_some() => {}
            (Some((_, name @ (KEY_USAGE | EXTENDED_KEY_USAGE | BASIC_CONSTRAINTS), _)), _) => {
                self.unreadable.push(name);
            }
            _ => self.is_precertificate |= extension.oid == CT_POISON,
        }
        let id = || extension.oid.to_id_string();
        match known {
            Some((_, name, false)) if extension.critical => {
                self.wrongly_critical.push(format!("{} ({name})", id()));
            }
            None if extension.critical => self.unknown_critical.push(id()),
            _ => {}
        }
    }
}

/// Whether a value is a `SEQUENCE OF OBJECT IDENTIFIER`. x509-parser would accept elements of other types.
fn is_list_of_oids(value: &[u8]) -> bool {
    let oids = only(SEQUENCE, value).and_then(elements);
    oids.is_some_and(|oids| oids.iter().all(|oid| oid.tag == OID && !oid.content.is_empty()))
}
