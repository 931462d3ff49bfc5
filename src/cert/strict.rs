//! Finds encodings that RFC 5280 forbids and TLS clients reject, but x509-parser accepts: other forms of time, repeated
//! extensions, and whatever webpki refuses.

use std::collections::BTreeSet;

use time::{Date, Month, Time};
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

/// Returns why webpki cannot read a certificate. It compares tags that x509-parser ignores.
pub(super) fn fault(certificate: &[u8]) -> Option<&'static str> {
    match EndEntityCert::try_from(&certificate.into()) {
        // The check `purpose` reports unknown critical extensions.
        Ok(_) | Err(Error::UnsupportedCriticalExtension) => None,
        Err(Error::UnsupportedCertVersion) => Some("is not of version 3"),
        Err(Error::SignatureAlgorithmMismatch) => Some("names two signature algorithms"),
        Err(_) => Some("is malformed"),
    }
}

/// Fails for invalid times and repeated extensions. webpki ignores repeated ones that it does not know.
pub(super) fn check(certificate: &[u8]) -> Result<(), CertificateError> {
    let tbs = tbs_fields(certificate).ok_or(CertificateError::Malformed)?;
    let has_version = tbs.first().is_some_and(|field| field.tag == VERSION);
    let validity = tbs.get(VALIDITY + usize::from(has_version)).ok_or(CertificateError::Malformed)?;
    match elements(validity.content).as_deref() {
        Some([not_before, not_after]) => {
            check_time("notBefore", not_before)?;
            check_time("notAfter", not_after)?;
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

/// Accepts the forms of RFC 5280, section 4.1.2.5. Years before 2050 may be `GeneralizedTime`, which it forbids, because
/// they are unambiguous and OpenSSL, webpki and browsers accept them.
fn check_time(field: &'static str, value: &Element<'_>) -> Result<(), CertificateError> {
    let (form, year_digits) = match value.tag {
        UTC_TIME => ("of the form YYMMDDHHMMSSZ", 2),
        GENERALIZED_TIME => ("of the form YYYYMMDDHHMMSSZ", 4),
        _ => return Err(invalid_time(field, value, "a UTCTime or GeneralizedTime")),
    };
    let (year, rest) = digits(value.content, year_digits).ok_or_else(|| invalid_time(field, value, form))?;
    let (numbers, rest) = month_to_second(rest).ok_or_else(|| invalid_time(field, value, form))?;
    if rest != b"Z" {
        return Err(invalid_time(field, value, form));
    }
    if is_valid(year, numbers) { Ok(()) } else { Err(invalid_time(field, value, "a valid date and time")) }
}

fn invalid_time(field: &'static str, value: &Element<'_>, wanted: &'static str) -> CertificateError {
    let found = sanitize(&String::from_utf8_lossy(value.content));
    CertificateError::Time { field, found, wanted }
}

/// Reads this many decimal digits.
fn digits(text: &[u8], count: usize) -> Option<(u16, &[u8])> {
    let (digits, rest) = text.split_at_checked(count)?;
    let number = digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u16::from(digit - b'0')))?;
    Some((number, rest))
}

/// Reads month, day, hour, minute and second.
fn month_to_second(mut text: &[u8]) -> Option<([u8; 5], &[u8])> {
    let mut numbers = [0; 5];
    for number in &mut numbers {
        let (value, rest) = digits(text, 2)?;
        (*number, text) = (u8::try_from(value).ok()?, rest);
    }
    Some((numbers, text))
}

/// Whether the date and time are valid. A two-digit year is passed as it is: `00` is a leap year here, as is 2000, and the
/// other years have the same leap days in both centuries.
fn is_valid(year: u16, [month, day, hour, minute, second]: [u8; 5]) -> bool {
    let date = Month::try_from(month).and_then(|month| Date::from_calendar_date(year.into(), month, day));
    date.is_ok() && Time::from_hms(hour, minute, second).is_ok()
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
