//! RSA and Ed25519 keys: numbers in another order or not reduced, parameters of the algorithm, newer versions.

use std::fs;

use rsa::BigUint;

use super::{PKCS1, PKCS8, Row, Sent, broken, int, pkcs8, row};
use crate::harness::der::{self, INTEGER, OCTET_STRING};
use crate::harness::{Lineage, openssl};

const NULL: [u8; 2] = [5, 0];
const PARAMETERS: &str = "corrected the parameters of the algorithm";
const REDUCED: &str = "reduced the RSA exponents";
const VERSION_1: &str = "converted it from version 2 of PKCS#8 to version 1";
const INCONSISTENT: &str = "its primes and exponents do not match its modulus";
const BROKEN_RSA: &str = "a private key with invalid RSA encoding";
const BROKEN_PKCS8: &str = "a private key with invalid PKCS#8 encoding";

/// The numbers of an `RSAPrivateKey` after the version.
type Numbers = [BigUint; 8];

fn pkcs1(numbers: &Numbers) -> Vec<u8> {
    let numbers = numbers.iter().map(|number| {
        let bytes = number.to_bytes_be();
        let sign = if bytes[0] < 0x80 { &[][..] } else { &[0] };
        der::tlv(INTEGER, &[sign, bytes.as_slice()].concat())
    });
    der::sequence(&std::iter::once(int(0)).chain(numbers).collect::<Vec<_>>())
}

/// A lineage with an RSA key, and the encodings of that key.
pub(super) fn rsa() -> (Lineage, Vec<Row>) {
    let generate = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
    let lineage = Lineage::from_openssl(&generate, &["-days", "20"]);
    let convert = ["rsa", "-traditional", "-in", "privkey.pem", "-outform", "DER", "-out", "key.der"];
    openssl(lineage.path(), &convert);
    let strict = fs::read(lineage.file("key.der")).unwrap();
    let elements = der::elements(&strict);
    let numbers: Vec<_> =
        elements[1..].iter().map(|number| BigUint::from_bytes_be(der::content(number))).collect();
    let numbers: Numbers = numbers.try_into().unwrap();
    let rows = [rsa_rows(&strict, &numbers), rsa_pkcs8_rows(&strict, &numbers)];
    (lineage, rows.into_iter().flatten().collect())
}

/// The same key with its primes in the other order.
#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn swapped([n, e, d, p, q, d_p, d_q, _]: &Numbers) -> Numbers {
    let inverse = p.modpow(&(q - 2u8), q);
    [n, e, d, q, p, d_q, d_p, &inverse].map(Clone::clone)
}

fn rsa_rows(strict: &[u8], numbers: &Numbers) -> Vec<Row> {
    let [_, _, _, p, q, ..] = numbers;
    let changed = |at: usize, number: BigUint| {
        let mut changed = numbers.clone();
        changed[at] = number;
        pkcs1(&changed)
    };
    let increased = |at: usize, modulus: BigUint| changed(at, &numbers[at] + modulus);
    let repaired = |text| Sent::Repaired(strict.to_vec(), text);
    let mut exchanged = numbers.clone();
    exchanged.swap(5, 6);
    let elements: Vec<Vec<u8>> = der::elements(strict).into_iter().map(<[u8]>::to_vec).collect();
    let with_element = |at: usize, element: Vec<u8>| {
        let mut elements = elements.clone();
        elements[at] = element;
        der::sequence(&elements)
    };
    let negative = der::tlv(INTEGER, &der::content(&elements[1])[1..]);
    let padded = der::tlv(INTEGER, &[&[0], der::content(&elements[2])].concat());
    let row = |name, der, result| row(name, PKCS1, der, result);
    let mut rows = vec![
        row("strict", strict.to_vec(), Sent::Unchanged),
        row("smaller prime first", pkcs1(&swapped(numbers)), Sent::Unchanged),
        row("first exponent not reduced", increased(5, p - 1u8), repaired(REDUCED)),
        row("second exponent not reduced", increased(6, q - 1u8), repaired(REDUCED)),
        row("coefficient not reduced", increased(7, p.clone()), repaired(REDUCED)),
        row("exponents exchanged", pkcs1(&exchanged), Sent::Refused(INCONSISTENT)),
        row(
            "coefficient of the other order",
            changed(7, swapped(numbers)[7].clone()),
            Sent::Refused(INCONSISTENT),
        ),
        row("modulus that looks negative", with_element(1, negative), Sent::Refused(BROKEN_RSA)),
        row("exponent with a leading zero", with_element(2, padded), Sent::Refused(BROKEN_RSA)),
        row("version 2 with two primes", with_element(0, int(1)), Sent::Refused(BROKEN_RSA)),
    ];
    rows.extend(broken("PKCS#1", PKCS1, strict, BROKEN_RSA));
    rows
}

fn rsa_pkcs8_rows(inner: &[u8], numbers: &Numbers) -> Vec<Row> {
    let oid = der::oid("1.2.840.113549.1.1.1");
    let with_null = [oid.clone(), NULL.to_vec()];
    let strict = pkcs8(0, &with_null, inner, &[]);
    let repaired = |text| Sent::Repaired(strict.clone(), text);
    let public_key = der::sequence(&[der::elements(inner)[1].to_vec(), der::elements(inner)[2].to_vec()]);
    let public_key = der::tlv(0x81, &[&[0], public_key.as_slice()].concat());
    let row = |name, der, result| row(name, PKCS8, der, result);
    let mut rows = vec![
        row("RSA, strict", strict.clone(), Sent::Unchanged),
        row("RSA, no NULL", pkcs8(0, &[oid], inner, &[]), repaired(PARAMETERS)),
        row("RSA, version 2", pkcs8(1, &with_null, inner, &[public_key]), repaired(VERSION_1)),
        row(
            "RSA, smaller prime first",
            pkcs8(0, &with_null, &pkcs1(&swapped(numbers)), &[]),
            Sent::Unchanged,
        ),
    ];
    rows.extend(broken("RSA", PKCS8, &strict, BROKEN_PKCS8));
    rows
}

/// A lineage with an Ed25519 key, and the encodings of that key.
pub(super) fn ed25519() -> (Lineage, Vec<Row>) {
    let lineage = Lineage::from_openssl(&["genpkey", "-algorithm", "ED25519"], &["-days", "20"]);
    openssl(lineage.path(), &["pkey", "-in", "privkey.pem", "-outform", "DER", "-out", "key.der"]);
    openssl(
        lineage.path(),
        &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
    );
    let [strict, public] = ["key.der", "public.der"].map(|name| fs::read(lineage.file(name)).unwrap());
    let public_key = der::tlv(0x81, der::content(der::elements(&public)[1]));
    let algorithm = [der::oid("1.3.101.112")];
    let inner = der::content(der::elements(&strict)[2]);
    let bare = der::content(inner);
    let repaired = |text| Sent::Repaired(strict.clone(), text);
    let row = |name, der, result| row(name, PKCS8, der, result);
    let short = pkcs8(0, &algorithm, &der::tlv(OCTET_STRING, &bare[1..]), &[]);
    let rows = vec![
        row("Ed25519, strict", strict.clone(), Sent::Unchanged),
        row("Ed25519, version 2", pkcs8(1, &algorithm, inner, &[public_key]), repaired(VERSION_1)),
        row(
            "Ed25519, NULL",
            pkcs8(0, &[algorithm[0].clone(), NULL.to_vec()], inner, &[]),
            repaired(PARAMETERS),
        ),
        row("Ed25519, 31 bytes", short, Sent::Refused("a private key with invalid Ed25519 encoding")),
        row(
            "Ed25519, bare",
            pkcs8(0, &algorithm, bare, &[]),
            Sent::Refused("a private key with invalid Ed25519 encoding"),
        ),
    ];
    (lineage, rows)
}
