//! Finds encodings that RFC 5280 forbids and TLS clients reject, but x509-parser accepts: other forms of time, repeated
//! extensions, and whatever webpki refuses.

use std::collections::HashSet;

use webpki::{EndEntityCert, Error};

use super::CertificateError;
use crate::der::{Element, elements, read};

/// The largest certificate that webpki accepts; OpenSSL's limit for a whole chain is higher.
const MAX_BYTES: usize = 0xffff;

/// Position of `validity` in a `TBSCertificate`, after the optional version (RFC 5280, section 4.1).
const VALIDITY: usize = 3;

/// The tags of `version` and `extensions`, and of times.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns why webpki cannot read a certificate. It compares tags that x509-parser ignores.
pub(super) fn fault(certificate: &[u8]) -> Option<Error> {
    let error = EndEntityCert::try_from(&certificate.into()).err();
    // The check `purpose` reports unknown critical extensions.
    error.filter(|error| *error != Error::UnsupportedCriticalExtension)
}

/// Fails for invalid times and repeated extensions. webpki ignores repeated ones that it does not know.
pub(super) fn check(certificate: &[u8]) -> Result<(), CertificateError> {
    if certificate.len() > MAX_BYTES {
        return Err(CertificateError::Forbidden("more than 65,535 bytes"));
    }
    let (times, ids) = fields(certificate).ok_or(CertificateError::Malformed)?;
    if !times.iter().all(is_valid_time) {
        let found = "a time that is not of the form YYMMDDHHMMSSZ or YYYYMMDDHHMMSSZ";
        return Err(CertificateError::Forbidden(found));
    }
    if ids.iter().collect::<HashSet<_>>().len() < ids.len() {
        return Err(CertificateError::Forbidden("an extension that occurs more than once"));
    }
    Ok(())
}

/// The times of a certificate, and the identifiers of its extensions.
fn fields(certificate: &[u8]) -> Option<(Vec<Element<'_>>, Vec<&[u8]>)> {
    let (certificate, _) = read(certificate)?;
    let (tbs, _) = read(certificate.content)?;
    let tbs = elements(tbs.content)?;
    let has_version = tbs.first()?.tag == VERSION;
    let validity = tbs.get(VALIDITY + usize::from(has_version))?;
    let extensions = match tbs.iter().find(|field| field.tag == EXTENSIONS) {
        Some(field) => elements(read(field.content)?.0.content)?,
        None => Vec::new(),
    };
    let ids = extensions.iter().map(|extension| Some(read(extension.content)?.0.content));
    Some((elements(validity.content)?, ids.collect::<Option<_>>()?))
}

/// Whether a time has the form `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280, section 4.1.2.5). Years before 2050 may be
/// `GeneralizedTime`, which it forbids, because they are unambiguous and OpenSSL, webpki and browsers accept them.
fn is_valid_time(time: &Element<'_>) -> bool {
    let length = match time.tag {
        UTC_TIME => 12,
        GENERALIZED_TIME => 14,
        _ => return false,
    };
    let digits = time.content.strip_suffix(b"Z").filter(|digits| digits.len() == length);
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}
