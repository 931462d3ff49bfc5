//! Signature algorithms whose hash function is broken.

use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::signature_algorithm::RsaSsaPssParams;
use x509_parser::x509::AlgorithmIdentifier;

pub(super) const RSASSA_PSS: Oid<'static> = oid!(1.2.840.113549.1.1.10);

/// Signature algorithms (RFC 3279, section 2.2; OIW) and hash functions, with the name of the hash.
static BROKEN: [(Oid<'static>, &str); 6] = [
    (oid!(1.2.840.113549.1.1.4), "MD5"),
    (oid!(1.2.840.113549.1.1.5), "SHA-1"),
    (oid!(1.2.840.10045.4.1), "SHA-1"),
    (oid!(1.3.14.3.2.29), "SHA-1"),
    (oid!(1.2.840.113549.2.5), "MD5"),
    (oid!(1.3.14.3.2.26), "SHA-1"),
];

/// Returns the name of the signature's hash function if it is a broken one.
pub(super) fn broken_hash(algorithm: &AlgorithmIdentifier<'_>) -> Option<&'static str> {
    if algorithm.algorithm != RSASSA_PSS {
        return lookup(&algorithm.algorithm);
    }
    // The default is SHA-1 (RFC 4055, section 3.1).
    let parameters = algorithm.parameters.as_ref().map(RsaSsaPssParams::try_from);
    match parameters {
        Some(Ok(parameters)) => lookup(parameters.hash_algorithm_oid()),
        Some(Err(_)) => None,
        None => Some("SHA-1"),
    }
}

fn lookup(oid: &Oid<'_>) -> Option<&'static str> {
    BROKEN.iter().find(|(broken, _)| broken == oid).map(|(_, hash)| *hash)
}
