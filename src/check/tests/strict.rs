//! The check `pem`: encodings that x509-parser accepts, and RFC 5280 or webpki does not.

use webpki::{EndEntityCert, Error};

use super::*;
use crate::cert::Certificate;
use crate::text::rfc3339;
use der::{GENERALIZED_TIME, INTEGER, UTC_TIME};

const NO_TIME: &str = "with a time that is not of the form YYMMDDHHMMSSZ or YYYYMMDDHHMMSSZ";

const NO_CERTIFICATE: &str =
    "x pem: cert.pem holds a PEM block `CERTIFICATE` that is not an X.509 certificate\n";

const VALID: (u8, &str) = (UTC_TIME, "260101000000Z");

#[track_caller]
fn assert_refused(cert: &str, found: &str) {
    let hint = "have the CA issue it again; TLS clients reject it";
    Input::new(cert).finds(found, &format!("x pem: cert.pem holds a certificate {found}\n  hint: {hint}\n"));
}

#[test]
fn malformed_times_are_refused() {
    let rows: [(u8, &[&str]); 3] = [
        (
            UTC_TIME,
            &[
                "",
                "Z",
                "never",
                "2611221200Z",
                "261122120000",
                "261122120000z",
                "261122120000ZZ",
                "261122120000+0000",
                "261122120000-0500",
                "2611221200+0000",
                "261122120000.5Z",
                "26112212000AZ",
                "261122120000Z ",
                "26112212000\u{1b}Z",
                "26112212000\0Z",
                "26-11-22-12:0Z",
                "+61122120000Z",
                "٢61122120000Z",
                "20261122120000Z",
            ],
        ),
        (
            GENERALIZED_TIME,
            &[
                "",
                "261122120000Z",
                "205011221200Z",
                "2050112212Z",
                "20501122120000",
                "20501122120000+0000",
                "20501122120000.5Z",
                "20501122120000,123Z",
                "2050112212000xZ",
            ],
        ),
        (INTEGER, &["261122120000Z"]),
    ];
    let rows = rows.iter().flat_map(|(tag, texts)| texts.iter().map(|text| (*tag, *text)));
    for time in rows {
        for validity in [[time, VALID], [VALID, time]] {
            assert_refused(&ForgedCert { validity, ..ForgedCert::default() }.pem(), NO_TIME);
        }
    }
    let validity = [VALID, (UTC_TIME, "4911221200Z")];
    let issuer = ForgedCert { subject: "Private CA", issuer: "Root", validity, ..ForgedCert::default() };
    assert_refused(&(ForgedCert::default().pem() + &issuer.pem()), NO_TIME);
}

#[test]
fn times_must_exist() {
    let rows = [
        (UTC_TIME, "260022120000Z"),
        (UTC_TIME, "261322120000Z"),
        (UTC_TIME, "261131120000Z"),
        (UTC_TIME, "270229120000Z"),
        (UTC_TIME, "261122240000Z"),
        (UTC_TIME, "261122126000Z"),
        (UTC_TIME, "261122120060Z"),
        (GENERALIZED_TIME, "20501322120000Z"),
        (GENERALIZED_TIME, "21000229120000Z"),
        (GENERALIZED_TIME, "20501122120060Z"),
    ];
    for time in rows {
        for validity in [[time, VALID], [VALID, time]] {
            let cert = ForgedCert { validity, ..ForgedCert::default() }.pem();
            Input::new(&cert).finds(time.1, NO_CERTIFICATE);
        }
    }
}

/// What an edge serves may have other forms than what is deployed.
#[test]
fn first_and_last_times_are_readable() {
    for (tag, text, shown) in [
        (GENERALIZED_TIME, "00000101000000Z", Some("0000-01-01T00:00:00Z")),
        (GENERALIZED_TIME, "99991231235959Z", Some("9999-12-31T23:59:59Z")),
        (UTC_TIME, "500101000000+1400", Some("1949-12-31T10:00:00Z")),
        (UTC_TIME, "491231235959-1200", Some("2050-01-01T11:59:59Z")),
        // They would be outside these years in UTC.
        (GENERALIZED_TIME, "00000101000000+0500", None),
        (GENERALIZED_TIME, "99991231235959-0500", None),
    ] {
        for validity in [[(tag, text), VALID], [VALID, (tag, text)]] {
            let read = Certificate::from_der(&ForgedCert { validity, ..ForgedCert::default() }.der());
            let at = read.map(|read| if validity[1] == VALID { read.not_before } else { read.not_after });
            assert_eq!(at.map(rfc3339).as_deref(), shown, "{text}");
        }
    }
}

#[test]
fn repeated_extensions_are_refused() {
    let names = der::sequence(&[der::tlv(der::DNS_NAME, b"b.example")]);
    let rows: [(&str, &[u8]); 4] = [
        ("2.5.29.15", &[3, 2, 7, 0x80]),
        ("1.3.6.1.5.5.7.1.24", &[5, 0]),
        ("1.2.3.4", &[5, 0]),
        ("2.5.29.17", &names),
    ];
    for (id, value) in rows {
        for (first, second) in [(false, false), (true, false), (false, true)] {
            let unrelated = extension("1.2.3.5", false, &[5, 0]);
            let extensions = vec![extension(id, first, value), unrelated, extension(id, second, value)];
            let cert = ForgedCert { extensions, ..ForgedCert::default() }.pem();
            assert_refused(&cert, "with an extension that occurs more than once");
        }
    }
}

/// Gives the identifier of the first extension the tag 0x88.
fn with_wrong_tag(certificate: &ForgedCert<'_>) -> String {
    let mut der = certificate.der();
    let at = der.windows(4).position(|bytes| bytes == [0x06, 0x03, 0x55, 0x1d]).unwrap();
    der[at] = 0x88;
    der::pem("CERTIFICATE", &der)
}

#[test]
fn what_webpki_cannot_read_is_reported() {
    let ca = ca("Intermediate", CA);
    let found = "x pem: cert.pem holds a malformed certificate; TLS clients reject it\n";
    Input::new(&(with_wrong_tag(&leaf()) + &ca.pem())).finds("leaf", found);
    let found = "! chain: cert.pem: the intermediate Intermediate is malformed; TLS clients reject it\n";
    Input::new(&(leaf().pem() + &with_wrong_tag(&ca))).finds("issuer", found);
}

#[test]
fn root_may_be_of_version_1() {
    let issuer = ForgedCert { version: 0, extensions: Vec::new(), ..ca("Intermediate", CA) };
    let found = "! chain: cert.pem: the intermediate Intermediate is malformed; TLS clients reject it\n";
    Input::new(&(leaf().pem() + &issuer.pem())).finds("issuer", found);
    let root = ForgedCert { issuer: issuer.subject, ..issuer };
    let (findings, _) = Input::new(&(leaf().pem() + &root.pem())).check();
    assert!(!findings.contains("malformed") && findings.contains("* chain: 2 certificates"), "{findings}");
}

#[test]
fn webpki_accepts_what_passes_with_flipped_bit() {
    let (leaf, ca) = (leaf().der(), ca("Intermediate", CA).pem());
    let passes =
        |leaf: &[u8]| !Input::new(&(der::pem("CERTIFICATE", leaf) + &ca)).check().0.contains("x pem: ");
    assert!(passes(&leaf));
    let is_refused = |leaf: &[u8]| {
        let leaf = leaf.into();
        EndEntityCert::try_from(&leaf).is_err_and(|error| error != Error::UnsupportedCriticalExtension)
    };
    let escapes = |bit: &usize| {
        let mut flipped = leaf.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        is_refused(&flipped) && passes(&flipped)
    };
    let bits: Vec<usize> = (0..leaf.len() * 8).filter(escapes).collect();
    assert!(bits.is_empty(), "bits {bits:?} of {leaf:02x?}");
}
