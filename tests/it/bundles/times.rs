//! The check `pem`: encodings that x509-parser accepts and RFC 5280 forbids.

use edgecert::cert::Certificate;
use edgecert::text::rfc3339;

use super::Input;
use crate::harness::der::{self, ForgedCert, GENERALIZED_TIME, INTEGER, UTC_TIME, extension};

const UTC_FORM: &str = "is not of the form YYMMDDHHMMSSZ";
const GENERALIZED_FORM: &str = "is not of the form YYYYMMDDHHMMSSZ";
const NO_DATE: &str = "is not a valid date and time";

/// The ASN.1 type, the time, how messages show it, and what it should have been.
const MALFORMED: [(u8, &str, &str, &str); 46] = [
    (UTC_TIME, "", "", UTC_FORM),
    (UTC_TIME, "Z", "Z", UTC_FORM),
    (UTC_TIME, "never", "never", UTC_FORM),
    (UTC_TIME, "26112212", "26112212", UTC_FORM),
    (UTC_TIME, "2611221200Z", "2611221200Z", UTC_FORM),
    (UTC_TIME, "261122120000", "261122120000", UTC_FORM),
    (UTC_TIME, "261122120000z", "261122120000z", UTC_FORM),
    (UTC_TIME, "261122120000ZZ", "261122120000ZZ", UTC_FORM),
    (UTC_TIME, "261122120000Z ", "261122120000Z", UTC_FORM),
    (UTC_TIME, " 261122120000Z", "261122120000Z", UTC_FORM),
    (UTC_TIME, "261122120000+0000", "261122120000+0000", UTC_FORM),
    (UTC_TIME, "261122120000+0200", "261122120000+0200", UTC_FORM),
    (UTC_TIME, "261122120000-0500", "261122120000-0500", UTC_FORM),
    (UTC_TIME, "2611221200+0000", "2611221200+0000", UTC_FORM),
    (UTC_TIME, "261122120000.5Z", "261122120000.5Z", UTC_FORM),
    (UTC_TIME, "261122120000.Z", "261122120000.Z", UTC_FORM),
    (UTC_TIME, "26112212000AZ", "26112212000AZ", UTC_FORM),
    (UTC_TIME, "2O1122120000Z", "2O1122120000Z", UTC_FORM),
    (UTC_TIME, "26-11-22-12:0Z", "26-11-22-12:0Z", UTC_FORM),
    (UTC_TIME, "+61122120000Z", "+61122120000Z", UTC_FORM),
    (UTC_TIME, "26112212000\u{1b}Z", "26112212000 Z", UTC_FORM),
    (UTC_TIME, "26112212000\0Z", "26112212000 Z", UTC_FORM),
    (UTC_TIME, "٢61122120000Z", "٢61122120000Z", UTC_FORM),
    (UTC_TIME, "20261122120000Z", "20261122120000Z", UTC_FORM),
    (UTC_TIME, "260022120000Z", "260022120000Z", NO_DATE),
    (UTC_TIME, "261322120000Z", "261322120000Z", NO_DATE),
    (UTC_TIME, "261100120000Z", "261100120000Z", NO_DATE),
    (UTC_TIME, "261131120000Z", "261131120000Z", NO_DATE),
    (UTC_TIME, "270229120000Z", "270229120000Z", NO_DATE),
    (UTC_TIME, "261122240000Z", "261122240000Z", NO_DATE),
    (UTC_TIME, "261122126000Z", "261122126000Z", NO_DATE),
    (UTC_TIME, "261122120060Z", "261122120060Z", NO_DATE),
    (GENERALIZED_TIME, "", "", GENERALIZED_FORM),
    (GENERALIZED_TIME, "261122120000Z", "261122120000Z", GENERALIZED_FORM),
    (GENERALIZED_TIME, "205011221200Z", "205011221200Z", GENERALIZED_FORM),
    (GENERALIZED_TIME, "2050112212Z", "2050112212Z", GENERALIZED_FORM),
    (GENERALIZED_TIME, "20501122120000", "20501122120000", GENERALIZED_FORM),
    (GENERALIZED_TIME, "20501122120000+0000", "20501122120000+0000", GENERALIZED_FORM),
    (GENERALIZED_TIME, "20501122120000-0130", "20501122120000-0130", GENERALIZED_FORM),
    (GENERALIZED_TIME, "20501122120000.5Z", "20501122120000.5Z", GENERALIZED_FORM),
    (GENERALIZED_TIME, "20501122120000,123Z", "20501122120000,123Z", GENERALIZED_FORM),
    (GENERALIZED_TIME, "2050112212000xZ", "2050112212000xZ", GENERALIZED_FORM),
    (GENERALIZED_TIME, "20501322120000Z", "20501322120000Z", NO_DATE),
    (GENERALIZED_TIME, "21000229120000Z", "21000229120000Z", NO_DATE),
    (GENERALIZED_TIME, "20501122120060Z", "20501122120060Z", NO_DATE),
    (INTEGER, "261122120000Z", "261122120000Z", "is not a UTCTime or GeneralizedTime"),
];

const VALID: (u8, &str) = (UTC_TIME, "260101000000Z");

#[track_caller]
fn assert_refused(cert: &str, found: &str) {
    let hint = "have the CA issue it again; RFC 5280 forbids this, and TLS clients reject it";
    let line = format!("x pem       cert.pem holds a certificate {found}\n    hint: {hint}\n");
    Input { cert: cert.as_bytes(), ..Input::default() }.check().assert_finds(found, &line);
}

#[test]
fn malformed_times_are_refused_by_field() {
    for (tag, text, shown, wanted) in MALFORMED {
        for (field, validity) in [("notBefore", [(tag, text), VALID]), ("notAfter", [VALID, (tag, text)])] {
            let cert = ForgedCert { validity, ..ForgedCert::default() }.pem();
            assert_refused(&cert, &format!("whose {field} `{shown}` {wanted}"));
        }
    }
}

/// What an edge serves may have other forms than what is deployed.
#[test]
fn first_and_last_times_are_readable() {
    for (tag, text, shown) in [
        (GENERALIZED_TIME, "00000101000000Z", Some("0000-01-01T00:00:00Z")),
        (GENERALIZED_TIME, "00010101000000Z", Some("0001-01-01T00:00:00Z")),
        (GENERALIZED_TIME, "99991231235959Z", Some("9999-12-31T23:59:59Z")),
        (UTC_TIME, "500101000000+1400", Some("1949-12-31T10:00:00Z")),
        (UTC_TIME, "491231235959-1200", Some("2050-01-01T11:59:59Z")),
        // They would be outside these years in UTC.
        (GENERALIZED_TIME, "00000101000000+0500", None),
        (GENERALIZED_TIME, "99991231235959-0500", None),
    ] {
        for validity in [[(tag, text), VALID], [VALID, (tag, text)]] {
            let read = Certificate::from_der(&ForgedCert { validity, ..ForgedCert::default() }.der()).ok();
            let at = read.map(|read| if validity[1] == VALID { read.not_before } else { read.not_after });
            assert_eq!(at.map(rfc3339).as_deref(), shown, "{text}");
        }
    }
}

#[test]
fn malformed_issuer_is_refused_too() {
    let leaf = ForgedCert::default().pem();
    let validity = [VALID, (UTC_TIME, "4911221200Z")];
    let issuer = ForgedCert { subject: "Private CA", issuer: "Root", validity, ..ForgedCert::default() };
    assert_refused(&(leaf + &issuer.pem()), &format!("whose notAfter `4911221200Z` {UTC_FORM}"));
}

#[test]
fn repeated_extensions_are_refused_by_name() {
    let (key_usage, unknown) = (der::tlv(der::BIT_STRING, &[7, 0x80]), vec![5, 0]);
    let rows = [
        ("2.5.29.15", &key_usage, "2.5.29.15 (keyUsage)"),
        ("1.3.6.1.5.5.7.1.24", &unknown, "1.3.6.1.5.5.7.1.24 (TLS feature (must-staple))"),
        ("1.2.3.4", &unknown, "1.2.3.4"),
    ];
    for (id, value, name) in rows {
        for (first, second) in [(false, false), (true, false), (false, true)] {
            let unrelated = extension("1.2.3.5", false, &unknown);
            let extensions = vec![extension(id, first, value), unrelated, extension(id, second, value)];
            let cert = ForgedCert { extensions, ..ForgedCert::default() }.pem();
            assert_refused(&cert, &format!("that has the extension {name} more than once"));
        }
    }
    let san = extension("2.5.29.17", false, &der::sequence(&[der::tlv(der::DNS_NAME, b"b.example")]));
    let cert = ForgedCert { extensions: vec![san], ..ForgedCert::default() }.pem();
    assert_refused(&cert, "that has the extension 2.5.29.17 (subjectAltName) more than once");
}
