//! The rules by which Go reads private keys, written down because the tests do not need Go for anything else.
//!
//! They are those of `encoding/asn1` and of `ParseECPrivateKey`, `ParsePKCS8PrivateKey` and `ParsePKCS1PrivateKey` in
//! `crypto/x509`, Go 1.24:
//!
//! - Lengths are definite and minimal, integers are minimal. Elements after the known ones of a SEQUENCE are ignored, and
//!   so are bytes after the outer SEQUENCE, except in PKCS#1.
//! - EC: the version is 1. The curve is that of PKCS#8, or else the one inside; without one the key is refused, and so
//!   are explicit parameters. The scalar may have zeros too many or too few; it is below the order of the curve. The
//!   public key has to be a BIT STRING and is not compared.
//! - PKCS#8: any version, attributes and public keys are ignored. RSA may have any parameters, Ed25519 none; its seed
//!   has 32 bytes. RSASSA-PSS is an unknown algorithm.
//! - RSA: the version is at most 1. The modulus is odd, the public exponent is odd and below 2^31, every number is
//!   positive, and d is below n. Since Go 1.24 the CRT values count: both exponents and the coefficient are reduced and
//!   fit the primes.

use rsa::BigUint;

use super::{PKCS1, SEC1};
use crate::harness::der;

const INTEGER: u8 = 2;
const BIT_STRING: u8 = 3;
const OCTET_STRING: u8 = 4;
const OID: u8 = 6;
const SEQUENCE: u8 = 0x30;

/// Object identifier and order of each curve.
const CURVES: [(&str, &str); 3] = [
    ("1.2.840.10045.3.1.7", "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
    (
        "1.3.132.0.34",
        "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973",
    ),
    (
        "1.3.132.0.35",
        "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409",
    ),
];

/// Whether Go reads a key with this PEM label.
pub(super) fn accepts(label: &str, der: &[u8]) -> bool {
    let key = match label {
        SEC1 => ec(der, None),
        PKCS1 => pkcs1(der),
        _ => pkcs8(der),
    };
    key.is_some()
}

/// The unread rest of an encoding.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads the next element: `parseTagAndLength`, without tags above 30, which no key has.
    fn element(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk()?;
        let mut length = usize::from(first);
        if first == 0x80 {
            return None;
        }
        if first > 0x80 {
            let (bytes, after) = rest.split_at_checked(usize::from(first - 0x80))?;
            length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            if bytes[0] == 0 || bytes.len() > 3 || length < 0x80 {
                return None;
            }
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn content(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.element().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }

    /// Whether the next element has this tag.
    fn is_next(&self, wanted: u8) -> bool {
        self.0.first() == Some(&wanted)
    }

    /// A positive integer or zero; Go refuses negative ones later.
    fn integer(&mut self) -> Option<BigUint> {
        let bytes = self.content(INTEGER)?;
        let is_minimal = match bytes {
            [] => false,
            [0, second, ..] => *second >= 0x80,
            _ => true,
        };
        (is_minimal && bytes[0] < 0x80).then(|| BigUint::from_bytes_be(bytes))
    }
}

fn ec(der: &[u8], outer: Option<&[u8]>) -> Option<()> {
    let mut fields = Reader(Reader(der).content(SEQUENCE)?);
    if fields.integer()? != BigUint::from(1u8) {
        return None;
    }
    let scalar = BigUint::from_bytes_be(fields.content(OCTET_STRING)?);
    let mut inner = None;
    if fields.is_next(0xa0) {
        inner = Reader(fields.content(0xa0)?).content(OID);
    }
    if fields.is_next(0xa1) {
        Reader(fields.content(0xa1)?).content(BIT_STRING).filter(|bits| bits.first() == Some(&0))?;
    }
    let named = outer.or(inner)?;
    let is_named = |(oid, _): &&(&str, &str)| der::content(&der::oid(oid)) == named;
    let (_, order) = CURVES.iter().find(is_named)?;
    let order = BigUint::parse_bytes(order.as_bytes(), 16)?;
    (scalar != BigUint::default() && scalar < order).then_some(())
}

fn pkcs8(der: &[u8]) -> Option<()> {
    let mut fields = Reader(Reader(der).content(SEQUENCE)?);
    fields.integer()?;
    let mut algorithm = Reader(fields.content(SEQUENCE)?);
    let oid = algorithm.content(OID)?;
    let key = fields.content(OCTET_STRING)?;
    let is = |dotted: &str| der::content(&der::oid(dotted)) == oid;
    if is("1.2.840.10045.2.1") {
        ec(key, algorithm.content(OID))
    } else if is("1.2.840.113549.1.1.1") {
        pkcs1(key)
    } else if is("1.3.101.112") && algorithm.0.is_empty() {
        Reader(key).content(OCTET_STRING).filter(|seed| seed.len() == 32).map(|_| ())
    } else {
        None
    }
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn pkcs1(der: &[u8]) -> Option<()> {
    let mut outer = Reader(der);
    let mut fields = Reader(outer.content(SEQUENCE)?);
    let (version, one) = (fields.integer()?, BigUint::from(1u8));
    if !outer.0.is_empty() || version > one {
        return None;
    }
    let mut next = || fields.integer().filter(|number| *number > BigUint::default());
    let [n, e, d, p, q, d_p, d_q, q_inv] =
        [next()?, next()?, next()?, next()?, next()?, next()?, next()?, next()?];
    let is_odd = |number: &BigUint| number % 2u8 == one;
    let fits = |exponent: &BigUint, prime: &BigUint| {
        let modulus = prime - 1u8;
        *exponent < modulus && exponent * &e % modulus == one
    };
    let is_public = is_odd(&n) && is_odd(&e) && e > one && e < BigUint::from(1u32 << 31);
    let are_primes = p > one && q > one && &p * &q == n && d < n;
    let is_crt = are_primes && fits(&d_p, &p) && fits(&d_q, &q) && q_inv < p && &q_inv * &q % &p == one;
    (is_public && is_crt).then_some(())
}
