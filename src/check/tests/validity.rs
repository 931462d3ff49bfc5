//! The check `validity`: dates to the second, in both ASN.1 types.

use time::format_description::well_known::Rfc3339;

use super::*;
use der::{GENERALIZED_TIME, UTC_TIME};

/// The encoded dates.
type Validity<'a> = [(u8, &'a str); 2];

/// A time, and how the finding begins.
type Moment<'a> = (&'a str, &'a str);

#[test]
fn validity_is_checked_to_the_second() {
    let early = (UTC_TIME, "200101000000Z");
    let late = (UTC_TIME, "491231235959Z");
    let (expired, future) = ("x validity: cert.pem expired at ", "x validity: cert.pem is not valid before ");
    let valid = "* validity: valid until ";
    let ending = "! validity: cert.pem is in the last tenth of its lifetime: valid until ";
    let rows: [(Validity<'_>, &[Moment<'_>]); 8] = [
        (
            [early, (UTC_TIME, "300101000000Z")],
            &[
                ("2019-12-31T23:59:59Z", future),
                ("2020-01-01T00:00:00Z", valid),
                ("2028-12-31T16:48:00Z", valid),
                ("2028-12-31T16:48:01Z", ending),
                ("2030-01-01T00:00:00.9Z", ending),
                ("2030-01-01T00:00:01Z", expired),
            ],
        ),
        // Two-digit years are 1950 to 2049 (RFC 5280, section 4.1.2.5.1), later ones are GeneralizedTime.
        (
            [(UTC_TIME, "500101000000Z"), late],
            &[("1949-12-31T23:59:59Z", future), ("1950-01-01T00:00:00Z", valid)],
        ),
        ([early, late], &[("2049-12-31T23:59:59Z", ending), ("2050-01-01T00:00:00Z", expired)]),
        (
            [early, (GENERALIZED_TIME, "20600101000000Z")],
            &[("2060-01-01T00:00:00Z", ending), ("2060-01-01T00:00:01Z", expired)],
        ),
        (
            [(GENERALIZED_TIME, "20510101000000Z"), (GENERALIZED_TIME, "20610101000000Z")],
            &[("2050-12-31T23:59:59Z", future), ("2051-01-01T00:00:00Z", valid)],
        ),
        // Years before 2050 should be UTCTime, but they are unambiguous.
        (
            [early, (GENERALIZED_TIME, "20300101000000Z")],
            &[("2029-12-31T23:59:59Z", ending), ("2030-01-01T00:00:01Z", expired)],
        ),
        // "No well-defined expiration date" (RFC 5280, section 4.1.2.5).
        (
            [early, (GENERALIZED_TIME, "99991231235959Z")],
            &[("2026-01-01T00:00:00Z", valid), ("9999-12-31T23:59:59Z", ending)],
        ),
        ([late, early], &[("2030-01-01T00:00:00Z", expired)]),
    ];
    for (validity, moments) in rows {
        let cert = ForgedCert { validity, ..ForgedCert::default() }.pem();
        for (at, line) in moments {
            let at = OffsetDateTime::parse(at, &Rfc3339).unwrap();
            Input { at: Some(at), ..Input::new(&cert) }.finds(&format!("{validity:?} at {at}"), line);
        }
    }
}
