//! The check `validity`: dates to the second, in both ASN.1 types.

use super::check_cert;
use crate::harness::der::{ForgedCert, GENERALIZED_TIME, UTC_TIME};
use crate::harness::{Lineage, edgecert};

#[test]
fn validity_is_checked_to_the_second() {
    let lineage =
        Lineage::from_openssl(&["ecparam", "-genkey", "-noout", "-name", "prime256v1"], &["-days", "20"]);
    let rows = [
        ("20200101000000Z", "20300101000000Z"),
        // Dates from 2050 on are GeneralizedTime (RFC 5280, section 4.1.2.5).
        ("20200101000000Z", "20600101000000Z"),
        ("20510101000000Z", "20610101000000Z"),
    ];
    for (start, end) in rows {
        lineage.sign_between(start, end);
        let rfc3339 =
            |date: &str, seconds: &str| format!("{}-{}-{}T{seconds}Z", &date[..4], &date[4..6], &date[6..8]);
        let at = |moment: &str| {
            edgecert().args(["check", "--at", moment, "--lineage"]).args([lineage.path()]).run()
        };
        let year_before = |date: &str| (date[..4].parse::<u32>().unwrap() - 1).to_string();
        assert_eq!(at(&rfc3339(start, "00:00:00")).code, 0, "the first second, {start}");
        assert_eq!(
            at(&format!("{}-12-31T23:59:59Z", year_before(start))).code,
            65,
            "a second before {start}"
        );
        assert_eq!(at(&rfc3339(end, "00:00:00")).code, 0, "the last second, {end}");
        assert_eq!(at(&rfc3339(end, "00:00:00.9")).code, 0, "within the last second, {end}");
        assert_eq!(at(&rfc3339(end, "00:00:01")).code, 65, "a second after {end}");
        let late = at(&format!("{}-06-01T00:00:00Z", year_before(end)));
        assert!(late.stdout.contains("is in the last tenth of its life"), "{}", late.stdout);
        let early = at(&format!("{}-06-01T00:00:00Z", &start[..4]));
        assert!(early.stdout.contains("* validity  "), "{}", early.stdout);
    }
}

#[test]
fn both_date_types_are_understood() {
    let early = (UTC_TIME, "200101000000Z");
    let late = (UTC_TIME, "491231235959Z");
    let rows = [
        // Two-digit years are 1950 to 2049 (RFC 5280, section 4.1.2.5.1).
        ([(UTC_TIME, "500101000000Z"), late], "1950-01-01T00:00:00Z", 0, "* validity  "),
        ([(UTC_TIME, "500101000000Z"), late], "1949-12-31T23:59:59Z", 65, "is not valid before"),
        ([early, late], "2049-12-31T23:59:59Z", 0, "is in the last tenth of its life"),
        ([early, late], "2050-01-01T00:00:00Z", 65, "expired at"),
        // Years before 2050 should be UTCTime, but they are unambiguous.
        ([early, (GENERALIZED_TIME, "20300101000000Z")], "2029-12-31T23:59:59Z", 0, "is in the last tenth"),
        ([early, (GENERALIZED_TIME, "20300101000000Z")], "2030-01-01T00:00:01Z", 65, "expired at"),
        ([early, (GENERALIZED_TIME, "20500101000000Z")], "2050-01-01T00:00:00Z", 0, "is in the last tenth"),
        // "No well-defined expiration date" (RFC 5280, section 4.1.2.5).
        ([early, (GENERALIZED_TIME, "99991231235959Z")], "9999-12-31T23:59:59Z", 0, "is in the last tenth"),
        ([early, (GENERALIZED_TIME, "99991231235959Z")], "2026-01-01T00:00:00Z", 0, "* validity  "),
        (
            [(GENERALIZED_TIME, "20510101000000Z"), (GENERALIZED_TIME, "20520101000000Z")],
            "2026-01-01T00:00:00Z",
            65,
            "is not valid before",
        ),
        ([late, early], "2030-01-01T00:00:00Z", 65, "expired at"),
    ];
    for (validity, at, code, message) in rows {
        let (found_code, output) =
            check_cert(&ForgedCert { validity, ..ForgedCert::default() }.pem(), &["--at", at]);
        assert_eq!(found_code, code, "{validity:?} at {at}: {output}");
        assert!(output.contains(message), "{validity:?} at {at}: {output}");
    }
}
