//! EC keys in SEC1 and PKCS#8: scalars of other lengths, missing and repeated fields, newer versions.

use std::fs;

use super::{PKCS8, Row, SEC1, Sent, broken, int, pkcs8, row};
use crate::harness::der::{self, BIT_STRING, OCTET_STRING};
use crate::harness::{Lineage, openssl};

/// Names a curve, and gives the length of its scalars with the repair of a shorter and of a longer one.
#[derive(Clone, Copy)]
pub(super) struct Curve {
    oid: &'static str,
    length: usize,
    shorter: &'static str,
    longer: &'static str,
}

pub(super) const CURVES: [Curve; 3] = [
    Curve {
        oid: "1.2.840.10045.3.1.7",
        length: 32,
        shorter: "wrote the private number in 32 bytes instead of 31, as RFC 5915 requires",
        longer: "wrote the private number in 32 bytes instead of 33, as RFC 5915 requires",
    },
    Curve {
        oid: "1.3.132.0.34",
        length: 48,
        shorter: "wrote the private number in 48 bytes instead of 47, as RFC 5915 requires",
        longer: "wrote the private number in 48 bytes instead of 49, as RFC 5915 requires",
    },
    Curve {
        oid: "1.3.132.0.35",
        length: 66,
        shorter: "wrote the private number in 66 bytes instead of 65, as RFC 5915 requires",
        longer: "wrote the private number in 66 bytes instead of 67, as RFC 5915 requires",
    },
];

const NULL: [u8; 2] = [5, 0];
const ADDED_CURVE: &str = "added the name of the curve";
const ADDED_PUBLIC_KEY: &str = "added the public key";
const UNCOMPRESSED: &str = "wrote the public key uncompressed";
const VERSION_1: &str = "converted it from version 2 of PKCS#8 to version 1";
const BROKEN_PKCS8: &str = "a private key with invalid PKCS#8 encoding";
const BROKEN_EC: &str = "a private key with invalid EC encoding";

/// The parts of a key whose scalar begins with a zero, and their encodings.
struct Key {
    oid: Vec<u8>,
    scalar: Vec<u8>,
    /// Uncompressed.
    point: Vec<u8>,
}

impl Key {
    fn sec1(&self, scalar: &[u8], has_curve: bool, point: Option<&[u8]>) -> Vec<u8> {
        let mut fields = vec![int(1), der::tlv(OCTET_STRING, scalar)];
        fields.extend(has_curve.then(|| der::tlv(0xa0, &self.oid)));
        fields.extend(point.map(|point| der::tlv(0xa1, &bit_string(point))));
        der::sequence(&fields)
    }

    fn algorithm(&self) -> [Vec<u8>; 2] {
        [der::oid("1.2.840.10045.2.1"), self.oid.clone()]
    }

    fn compressed(&self) -> Vec<u8> {
        let (x, y) = self.point[1..].split_at(self.point.len() / 2);
        [&[2 + y[y.len() - 1] % 2], x].concat()
    }

    /// The scalar without its leading zero, and with another one.
    fn odd_scalars(&self) -> [Vec<u8>; 2] {
        [self.scalar[1..].to_vec(), [&[0], self.scalar.as_slice()].concat()]
    }
}

fn bit_string(bytes: &[u8]) -> Vec<u8> {
    der::tlv(BIT_STRING, &[&[0], bytes].concat())
}

/// A lineage with a key on this curve, and the encodings of that key.
pub(super) fn rows(curve: Curve) -> (Lineage, Vec<Row>) {
    let scalar = [&[0], vec![0x5a; curve.length - 1].as_slice()].concat();
    let mut key = Key { oid: der::oid(curve.oid), scalar, point: Vec::new() };
    let home = Lineage::issued_for(&["a.example"]);
    home.write("scalar.pem", &der::pem(SEC1, &key.sec1(&key.scalar, true, None)));
    let file = home.file("scalar.pem");
    let lineage = Lineage::from_openssl(&["pkey", "-in", file.to_str().unwrap()], &["-days", "20"]);
    openssl(
        lineage.path(),
        &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
    );
    let info = fs::read(lineage.file("public.der")).unwrap();
    key.point = der::content(der::elements(&info)[1])[1..].to_vec();
    (
        lineage,
        [sec1_rows(&key, curve), pkcs8_rows(&key, curve), pkcs8_version_rows(&key)]
            .into_iter()
            .flatten()
            .collect(),
    )
}

fn sec1_rows(key: &Key, curve: Curve) -> Vec<Row> {
    let (scalar, point) = (&key.scalar, Some(key.point.as_slice()));
    let strict = key.sec1(scalar, true, point);
    let repaired = |text| Sent::Repaired(strict.clone(), text);
    let [short, long] = key.odd_scalars();
    let row = |name, der, result| row(name, SEC1, der, result);
    let mut rows = vec![
        row("strict", strict.clone(), Sent::Unchanged),
        row("short scalar", key.sec1(&short, true, point), repaired(curve.shorter)),
        row("long scalar", key.sec1(&long, true, point), repaired(curve.longer)),
        row("no public key", key.sec1(scalar, true, None), repaired(ADDED_PUBLIC_KEY)),
        row("compressed", key.sec1(scalar, true, Some(&key.compressed())), repaired(UNCOMPRESSED)),
        row("no curve", key.sec1(scalar, false, point), repaired(ADDED_CURVE)),
        row("long scalar, no curve", key.sec1(&long, false, point), repaired(ADDED_CURVE)),
        row("nothing but a short scalar", key.sec1(&short, false, None), repaired(curve.shorter)),
        row("nothing but a long scalar", key.sec1(&long, false, None), repaired(curve.longer)),
        row("PKCS#8 inside", pkcs8(0, &key.algorithm(), &strict, &[]), Sent::Refused(BROKEN_EC)),
        row("scalar of zeros", key.sec1(&[0; 32], true, None), Sent::Refused(BROKEN_EC)),
        row("no scalar", key.sec1(&[], true, None), Sent::Refused(BROKEN_EC)),
    ];
    rows.extend(broken("EC", SEC1, &strict, BROKEN_EC));
    rows
}

fn pkcs8_rows(key: &Key, curve: Curve) -> Vec<Row> {
    let (scalar, point) = (&key.scalar, Some(key.point.as_slice()));
    let (named, unnamed) = (key.algorithm(), [key.algorithm()[0].clone()]);
    let wrapped =
        |scalar: &[u8], point: Option<&[u8]>| pkcs8(0, &named, &key.sec1(scalar, false, point), &[]);
    let strict = wrapped(scalar, point);
    let repaired = |text| Sent::Repaired(strict.clone(), text);
    let [short, long] = key.odd_scalars();
    let row = |name, der, result| row(name, PKCS8, der, result);
    let inner = key.sec1(scalar, true, point);
    let null = [unnamed[0].clone(), NULL.to_vec()];
    let mut rows = vec![
        row("strict", strict.clone(), Sent::Unchanged),
        row("short scalar", wrapped(&short, point), repaired(curve.shorter)),
        row("long scalar", wrapped(&long, point), repaired(curve.longer)),
        row("no public key", wrapped(scalar, None), repaired(ADDED_PUBLIC_KEY)),
        row("compressed", wrapped(scalar, Some(&key.compressed())), repaired(UNCOMPRESSED)),
        row("repeated curve", pkcs8(0, &named, &inner, &[]), Sent::Unchanged),
        row("curve inside only", pkcs8(0, &unnamed, &inner, &[]), repaired(ADDED_CURVE)),
        row("curve inside, NULL outside", pkcs8(0, &null, &inner, &[]), repaired(ADDED_CURVE)),
        row("no curve", pkcs8(0, &unnamed, &key.sec1(scalar, false, point), &[]), repaired(ADDED_CURVE)),
        row("SEC1 inside", inner.clone(), Sent::Refused(BROKEN_PKCS8)),
        row(
            "a byte after the inner end",
            pkcs8(0, &named, &[inner.as_slice(), &[0]].concat(), &[]),
            Sent::Refused(BROKEN_EC),
        ),
        row(
            "two curves",
            pkcs8(0, &[unnamed[0].clone(), der::oid("1.3.132.0.10")], &inner, &[]),
            Sent::Refused("it names two different curves"),
        ),
    ];
    rows.extend(broken("EC", PKCS8, &strict, BROKEN_PKCS8));
    rows
}

/// Version 2, with the public key outside as well, and what belongs to either version.
fn pkcs8_version_rows(key: &Key) -> Vec<Row> {
    let inner = |point| key.sec1(&key.scalar, false, point);
    let [own, none] = [inner(Some(key.point.as_slice())), inner(None)];
    let info = |version, key_der: &[u8], more: &[Vec<u8>]| pkcs8(version, &key.algorithm(), key_der, more);
    let strict = info(0, &own, &[]);
    let repaired = |text| Sent::Repaired(strict.clone(), text);
    let public_key = [der::tlv(0x81, &[&[0], key.point.as_slice()].concat())];
    let attributes =
        der::tlv(0xa0, &der::sequence(&[der::oid("2.5.29.15"), der::tlv(0x31, &[3, 2, 7, 0x80])]));
    let row = |name, der, result| row(name, PKCS8, der, result);
    vec![
        row("version 2", info(1, &own, &public_key), repaired(VERSION_1)),
        row("version 2, public key outside only", info(1, &none, &public_key), repaired(ADDED_PUBLIC_KEY)),
        row("version 2, no public key outside", info(1, &own, &[]), repaired(VERSION_1)),
        row(
            "version 2, attributes",
            info(1, &own, &[attributes.clone(), public_key[0].clone()]),
            Sent::Repaired(info(0, &own, std::slice::from_ref(&attributes)), VERSION_1),
        ),
        row("version 1 with a public key", info(0, &own, &public_key), repaired(VERSION_1)),
        row("version 1 with attributes", info(0, &own, &[attributes]), Sent::Unchanged),
        row("version 3", info(2, &own, &[]), Sent::Refused(BROKEN_PKCS8)),
    ]
}
