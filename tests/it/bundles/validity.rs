//! The check `validity`: dates to the second, in both ASN.1 types.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Input;
use crate::harness::der::{ForgedCert, GENERALIZED_TIME, UTC_TIME};

/// Asserts what the check finds of a certificate at a time.
#[track_caller]
fn assert_finds_at(validity: [(u8, &str); 2], at: &str, found: &str) {
    let cert = ForgedCert { validity, ..ForgedCert::default() }.pem();
    let moment = OffsetDateTime::parse(at, &Rfc3339).unwrap();
    let input = Input { cert: cert.as_bytes(), at: Some(moment), ..Input::default() };
    let line = match found {
        "valid" => "* validity  valid until DATE, for ".into(),
        "late" => "! validity  cert.pem is in the last tenth of its lifetime: valid until DATE, for ".into(),
        found => format!("x validity  cert.pem {found} DATE\n"),
    };
    input.check().assert_finds(&format!("{validity:?} at {at}"), &line);
}

const EXPIRED: &str = "expired at";
const EARLY: &str = "is not valid before";

#[test]
fn validity_is_checked_to_the_second() {
    let start = (UTC_TIME, "200101000000Z");
    let rows = [
        ([start, (UTC_TIME, "300101000000Z")], 2020, 2030),
        // Dates from 2050 on are GeneralizedTime (RFC 5280, section 4.1.2.5).
        ([start, (GENERALIZED_TIME, "20600101000000Z")], 2020, 2060),
        ([(GENERALIZED_TIME, "20510101000000Z"), (GENERALIZED_TIME, "20610101000000Z")], 2051, 2061),
    ];
    for (validity, start, end) in rows {
        let moments = [
            (format!("{start}-01-01T00:00:00Z"), "valid"),
            (format!("{}-12-31T23:59:59Z", start - 1), EARLY),
            (format!("{start}-06-01T00:00:00Z"), "valid"),
            (format!("{}-06-01T00:00:00Z", end - 1), "late"),
            (format!("{end}-01-01T00:00:00Z"), "late"),
            (format!("{end}-01-01T00:00:00.9Z"), "late"),
            (format!("{end}-01-01T00:00:01Z"), EXPIRED),
        ];
        for (at, found) in moments {
            assert_finds_at(validity, &at, found);
        }
    }
}

#[test]
fn both_date_types_are_understood() {
    let early = (UTC_TIME, "200101000000Z");
    let late = (UTC_TIME, "491231235959Z");
    let last = (GENERALIZED_TIME, "99991231235959Z");
    let rows = [
        // Two-digit years are 1950 to 2049 (RFC 5280, section 4.1.2.5.1).
        ([(UTC_TIME, "500101000000Z"), late], "1950-01-01T00:00:00Z", "valid"),
        ([(UTC_TIME, "500101000000Z"), late], "1949-12-31T23:59:59Z", EARLY),
        ([early, late], "2049-12-31T23:59:59Z", "late"),
        ([early, late], "2050-01-01T00:00:00Z", EXPIRED),
        // Years before 2050 should be UTCTime, but they are unambiguous.
        ([early, (GENERALIZED_TIME, "20300101000000Z")], "2029-12-31T23:59:59Z", "late"),
        ([early, (GENERALIZED_TIME, "20300101000000Z")], "2030-01-01T00:00:01Z", EXPIRED),
        ([early, (GENERALIZED_TIME, "20500101000000Z")], "2050-01-01T00:00:00Z", "late"),
        // "No well-defined expiration date" (RFC 5280, section 4.1.2.5).
        ([early, last], "9999-12-31T23:59:59Z", "late"),
        ([early, last], "2026-01-01T00:00:00Z", "valid"),
        (
            [(GENERALIZED_TIME, "20510101000000Z"), (GENERALIZED_TIME, "20520101000000Z")],
            "2026-01-01T00:00:00Z",
            EARLY,
        ),
        ([late, early], "2030-01-01T00:00:00Z", EXPIRED),
    ];
    for (validity, at, found) in rows {
        assert_finds_at(validity, at, found);
    }
}
