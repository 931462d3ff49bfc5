//! Finds encodings that RFC 5280 forbids and TLS clients reject, but x509-parser accepts: other forms of time, repeated
//! extensions, and whatever webpki refuses.

use std::collections::BTreeSet;

use time::PrimitiveDateTime;
use time::macros::format_description;
use webpki::{EndEntityCert, Error};
use x509_parser::asn1_rs::Oid;

use super::CertificateError;
use super::extensions::describe;
use crate::der::{Element, GENERALIZED_TIME, UTC_TIME, elements, read};
use crate::text::sanitize;

/// Position of `validity` in a `TBSCertificate`, after the optional version (RFC 5280, section 4.1).
const VALIDITY: usize = 3;

/// The tags of `version` and `extensions`.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Why webpki cannot read a certificate. Its text continues a sentence about the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("is not of version 3")]
    Version,
    #[error("names two signature algorithms")]
    SignatureAlgorithms,
    #[error("is malformed")]
    Malformed,
}

/// Returns why webpki cannot read a certificate. It compares tags that x509-parser ignores.
pub(super) fn fault(certificate: &[u8]) -> Option<Fault> {
    match EndEntityCert::try_from(&certificate.into()) {
        // The check `purpose` reports unknown critical extensions.
        Ok(_) | Err(Error::UnsupportedCriticalExtension) => None,
        Err(Error::UnsupportedCertVersion) => Some(Fault::Version),
        Err(Error::SignatureAlgorithmMismatch) => Some(Fault::SignatureAlgorithms),
        Err(_) => Some(Fault::Malformed),
    }
}

/// Fails for invalid times and repeated extensions. webpki ignores repeated ones that it does not know.
pub(super) fn check(certificate: &[u8]) -> Result<(), CertificateError> {
    let tbs = tbs_fields(certificate).ok_or(CertificateError::Malformed)?;
    let has_version = tbs.first().is_some_and(|field| field.tag == VERSION);
    let validity = tbs.get(VALIDITY + usize::from(has_version)).ok_or(CertificateError::Malformed)?;
    match elements(validity.content).as_deref() {
        Some([not_before, not_after]) => {
            for (field, time) in [("notBefore", not_before), ("notAfter", not_after)] {
                if !is_valid_time(time) {
                    let found = sanitize(&String::from_utf8_lossy(time.content));
                    return Err(CertificateError::Time(field, found));
                }
            }
        }
        _ => return Err(CertificateError::Malformed),
    }
    let mut extensions = tbs.iter().filter(|field| field.tag == EXTENSIONS);
    extensions.try_for_each(|field| check_extensions(field.content))
}

fn tbs_fields(certificate: &[u8]) -> Option<Vec<Element<'_>>> {
    let (certificate, _) = read(certificate)?;
    let (tbs, _) = read(certificate.content)?;
    elements(tbs.content)
}

/// Whether a time has the form `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280, section 4.1.2.5). Years before 2050 may be
/// `GeneralizedTime`, which it forbids, because they are unambiguous and OpenSSL, webpki and browsers accept them.
fn is_valid_time(time: &Element<'_>) -> bool {
    // The second halves of both centuries have the same leap days.
    let century = match time.tag {
        UTC_TIME => "20",
        GENERALIZED_TIME => "",
        _ => return false,
    };
    let text = format!("{century}{}", String::from_utf8_lossy(time.content));
    let format = format_description!("[year][month][day][hour][minute][second]Z");
    let has_digits = text.len() == 15 && text.bytes().take(14).all(|digit| digit.is_ascii_digit());
    has_digits && PrimitiveDateTime::parse(&text, format).is_ok()
}

fn check_extensions(content: &[u8]) -> Result<(), CertificateError> {
    let (list, _) = read(content).ok_or(CertificateError::Malformed)?;
    let mut seen = BTreeSet::new();
    for extension in elements(list.content).ok_or(CertificateError::Malformed)? {
        let (oid, _) = read(extension.content).ok_or(CertificateError::Malformed)?;
        if !seen.insert(oid.content) {
            return Err(CertificateError::RepeatedExtension(describe(&Oid::new(oid.content.into()))));
        }
    }
    Ok(())
}
