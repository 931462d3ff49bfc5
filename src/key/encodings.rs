//! Encodings that are odd but valid: a key is sent in the form that every reader takes, or not at all.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;

use super::tests::{compressed, pkcs8, sec1};
use super::*;
use crate::pem::Block;

/// An encoding, and the DER that is sent.
struct Row {
    name: &'static str,
    format: KeyFormat,
    der: Vec<u8>,
    sent: Result<Vec<u8>, KeyError>,
}

/// The rows of one strict encoding, to which others are repaired.
struct Table {
    format: KeyFormat,
    strict: Vec<u8>,
    rows: Vec<Row>,
}

impl Table {
    /// Begins with the strict encoding, and with three that every reader of DER refuses.
    fn new(format: KeyFormat, strict: &[u8], malformed: &KeyError) -> Self {
        let mut rows = Self { format, strict: strict.to_vec(), rows: Vec::new() };
        rows.unchanged("strict", strict.to_vec());
        let header = if strict[1] < 0x80 { 2 } else { 2 + usize::from(strict[1] & 0x7f) };
        let (length, content) = (&strict[1..header], &strict[header..]);
        let long =
            if header == 2 { vec![0x81, strict[1]] } else { [&[length[0] + 1, 0], &length[1..]].concat() };
        rows.refused("long length", [&strict[..1], &long, content].concat(), malformed);
        rows.refused("indefinite length", [&[strict[0], 0x80], content, &[0, 0]].concat(), malformed);
        rows.refused("byte after the end", [strict, &[0]].concat(), malformed);
        rows
    }

    fn add(&mut self, name: &'static str, der: Vec<u8>, sent: Result<Vec<u8>, KeyError>) {
        self.rows.push(Row { name, format: self.format, der, sent });
    }

    fn unchanged(&mut self, name: &'static str, der: Vec<u8>) {
        self.add(name, der.clone(), Ok(der));
    }

    fn repaired(&mut self, name: &'static str, der: Vec<u8>) {
        self.add(name, der, Ok(self.strict.clone()));
    }

    fn refused(&mut self, name: &'static str, der: Vec<u8>, error: &KeyError) {
        let error = match error {
            KeyError::Malformed(what) => KeyError::Malformed(what),
            KeyError::Inconsistent(what) => KeyError::Inconsistent(what),
            KeyError::Unsupported(what) => KeyError::Unsupported(what.clone()),
        };
        self.add(name, der, Err(error));
    }
}

/// EC keys whose scalar begins with a zero.
fn ec(curve: &Curve) -> Vec<Row> {
    let Curve { oid, length, .. } = *curve;
    let scalar = [&[0], vec![0x5a; length - 1].as_slice()].concat();
    let (short, long) = (&scalar[1..], [&[0], scalar.as_slice()].concat());
    let own = super::ec(&sec1(&scalar, Some(oid), None), None).unwrap().0.bits;
    let point = Some(own.as_slice());
    let small = compressed(&own);

    let mut rows = Table::new(KeyFormat::Sec1, &sec1(&scalar, Some(oid), point), &MALFORMED_EC);
    rows.repaired("short scalar", sec1(short, Some(oid), point));
    rows.repaired("long scalar", sec1(&long, Some(oid), point));
    rows.repaired("no public key", sec1(&scalar, Some(oid), None));
    rows.repaired("compressed", sec1(&scalar, Some(oid), Some(&small)));
    rows.repaired("no curve", sec1(&scalar, None, point));
    rows.repaired("nothing but a short scalar", sec1(short, None, None));
    rows.repaired("nothing but a long scalar", sec1(&long, None, None));
    let named = write(OID, &[oid]);
    let inside = sec1(&scalar, None, point);
    rows.refused("PKCS#8", pkcs8(0, EC, &named, &inside, &[]), &MALFORMED_EC);
    let mut all = rows.rows;

    let wrapped = |parameters: &[u8], inside: &[u8]| pkcs8(0, EC, parameters, inside, &[]);
    let mut rows = Table::new(KeyFormat::Pkcs8, &wrapped(&named, &inside), &MALFORMED_PKCS8);
    rows.repaired("short scalar", wrapped(&named, &sec1(short, None, point)));
    rows.repaired("long scalar", wrapped(&named, &sec1(&long, None, point)));
    rows.repaired("no public key", wrapped(&named, &sec1(&scalar, None, None)));
    rows.repaired("compressed", wrapped(&named, &sec1(&scalar, None, Some(&small))));
    let with_curve = sec1(&scalar, Some(oid), point);
    rows.unchanged("curve in both places", wrapped(&named, &with_curve));
    rows.repaired("curve inside only", wrapped(&[], &with_curve));
    rows.repaired("curve inside, NULL outside", wrapped(NULL, &with_curve));
    rows.repaired("no curve", wrapped(&[], &inside));
    rows.refused("SEC1", with_curve.clone(), &MALFORMED_PKCS8);
    rows.refused("byte after the inner end", wrapped(&named, &[&*with_curve, &[0]].concat()), &MALFORMED_EC);
    let public_key = |tag| write(tag, &[&[0], own.as_slice()]);
    let explicit = write(CONTEXT_1, &[write(BIT_STRING, &[&[0], own.as_slice()])]);
    let attributes = write(
        CONTEXT_0,
        &[write(SEQUENCE, &[write(OID, &[[0x55, 0x1d, 0x0f]]), write(0x31, &[[3, 2, 7, 0x80]])])],
    );
    let info = |version, inside: &[u8], last: &[u8]| pkcs8(version, EC, &named, inside, last);
    rows.repaired("version 2", info(1, &inside, &public_key(IMPLICIT_1)));
    rows.repaired("version 2, explicit tag", info(1, &inside, &explicit));
    rows.repaired(
        "version 2, public key outside only",
        info(1, &sec1(&scalar, None, None), &public_key(IMPLICIT_1)),
    );
    rows.repaired("version 2, no public key outside", info(1, &inside, &[]));
    rows.repaired("version 1 with a public key", info(0, &inside, &public_key(IMPLICIT_1)));
    rows.unchanged("version 1 with attributes", info(0, &inside, &attributes));
    let both = [attributes.as_slice(), &public_key(IMPLICIT_1)].concat();
    rows.add("version 2 with attributes", info(1, &inside, &both), Ok(info(0, &inside, &attributes)));
    all.extend(rows.rows);
    all
}

/// Encodings of an RSA key that openssl made: numbers in another order or not reduced.
#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn rsa() -> Vec<Row> {
    let made = Command::new("openssl").args(["genrsa", "-traditional", "2048"]).output();
    let made = made.expect("cannot run here: openssl is not installed (Debian package openssl)");
    let Some(Block::Key(KeyFormat::Pkcs1, strict)) = pem::parse(&made.stdout).blocks.pop() else {
        panic!("openssl made no RSA key");
    };
    let mut fields = only(SEQUENCE, &strict).unwrap();
    take(&mut fields, INTEGER).unwrap();
    let numbers: [BigUint; 8] =
        std::array::from_fn(|_| BigUint::from_bytes_be(take_unsigned(&mut fields).unwrap()));
    let encoded = |version: u8, numbers: &[BigUint]| {
        let numbers = numbers.iter().map(|number| integer(&number.to_bytes_be()));
        write(SEQUENCE, &std::iter::once(integer(&[version])).chain(numbers).collect::<Vec<_>>()).to_vec()
    };
    let with = |changes: &[(usize, BigUint)]| {
        let mut changed = numbers.clone();
        for (at, number) in changes {
            changed[*at] = number.clone();
        }
        encoded(0, &changed)
    };
    let [n, e, d, p, q, d_p, d_q, q_inv] = &numbers;
    let inverse = p.modpow(&(q - 2u8), q);
    let swapped = encoded(0, &[n, e, d, q, p, d_q, d_p, &inverse].map(Clone::clone));

    let mut rows = Table::new(KeyFormat::Pkcs1, &strict, &MALFORMED_RSA);
    rows.unchanged("smaller prime first", swapped.clone());
    rows.repaired("first exponent not reduced", with(&[(5, d_p + p - 1u8)]));
    rows.repaired("second exponent not reduced", with(&[(6, d_q + q - 1u8)]));
    rows.repaired("coefficient not reduced", with(&[(7, q_inv + p)]));
    rows.refused("exponents exchanged", with(&[(5, d_q.clone()), (6, d_p.clone())]), &INCONSISTENT_RSA);
    rows.refused("coefficient of the other order", with(&[(7, inverse)]), &INCONSISTENT_RSA);
    rows.refused("version 2 with two primes", encoded(1, &numbers), &MALFORMED_RSA);
    let mut all = rows.rows;

    let mut rows = Table::new(KeyFormat::Pkcs8, &pkcs8(0, RSA, NULL, &strict, &[]), &MALFORMED_PKCS8);
    let public = |e: &BigUint| {
        let key = write(SEQUENCE, &[n, e].map(|number| integer(&number.to_bytes_be())));
        write(IMPLICIT_1, &[&[0], key.as_slice()])
    };
    rows.repaired("no NULL", pkcs8(0, RSA, &[], &strict, &[]));
    rows.repaired("version 2", pkcs8(1, RSA, NULL, &strict, &public(e)));
    rows.refused("version 2 of another key", pkcs8(1, RSA, NULL, &strict, &public(d)), &PUBLIC_KEY_MISMATCH);
    rows.unchanged("smaller prime first", pkcs8(0, RSA, NULL, &swapped, &[]));
    all.extend(rows.rows);
    all
}

fn ed25519() -> Vec<Row> {
    let seed = write(OCTET_STRING, &[[7; 32]]);
    let public = super::ed25519(&seed).unwrap().0.bits;
    let mut rows = Table::new(KeyFormat::Pkcs8, &pkcs8(0, ED25519, &[], &seed, &[]), &MALFORMED_PKCS8);
    let outside = |bits: &[u8]| pkcs8(1, ED25519, &[], &seed, &write(IMPLICIT_1, &[&[0], bits]));
    rows.repaired("version 2", outside(&public));
    rows.refused("version 2 of another key", outside(&[7; 32]), &PUBLIC_KEY_MISMATCH);
    rows.repaired("NULL", pkcs8(0, ED25519, NULL, &seed, &[]));
    rows.refused("bare seed", pkcs8(0, ED25519, &[], &[7; 32], &[]), &KeyError::Malformed("Ed25519"));
    rows.rows
}

fn all() -> impl Iterator<Item = (String, Row)> {
    let ec = CURVES.iter().map(|curve| (curve.key_type.to_string(), ec(curve)));
    let all = ec.chain([("RSA".into(), rsa()), ("Ed25519".into(), ed25519())]);
    all.flat_map(|(key, rows)| {
        rows.into_iter().map(move |row| (format!("{key}, {:?}, {}", row.format, row.name), row))
    })
}

#[test]
fn odd_encodings_are_repaired_or_refused() {
    for (name, row) in all() {
        let read = PrivateKey::from_der(row.format, &row.der);
        let is_repaired = read.as_ref().is_ok_and(|key| key.is_repaired);
        assert_eq!(is_repaired, row.sent.as_ref().is_ok_and(|der| *der != row.der), "{name}");
        assert_eq!(read.map(|key| key.der.to_vec()), row.sent, "{name}");
    }
}

/// In PKCS#1, SEC1 and PKCS#8, and as text of another encoding.
#[test]
fn numbers_of_every_type_are_withheld() {
    for (name, row) in all() {
        let Ok(der) = row.sent else { continue };
        let key = PrivateKey::from_der(row.format, &der).unwrap();
        let mut redactor = Redactor::default();
        key.hide_in(&mut redactor);
        let file = key.pem();
        for whole in [&der, &row.der, file.expose().as_bytes()] {
            assert!(redactor.is_secret(&STANDARD.encode(whole)), "{name}");
        }
        for number in &key.secrets {
            let texts = [STANDARD.encode(number), URL_SAFE_NO_PAD.encode(number)];
            assert!(texts.iter().all(|text| redactor.is_secret(text)), "{name}");
        }
        assert!(!redactor.is_secret(&STANDARD.encode(&key.public_key.bits)), "{name}: the public key");
    }
}

/// OpenSSL, Python's cryptography and ring.
#[test]
fn every_reader_takes_what_is_sent() {
    let home = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (number, (name, row)) in all().enumerate() {
        let Ok(der) = row.sent else { continue };
        let file = home.path().join(format!("{number}.pem"));
        std::fs::write(&file, pem::encode(row.format.label(), &der).expose()).unwrap();
        assert!(openssl_takes(&file), "OpenSSL: {name}");
        let key = match row.format {
            KeyFormat::Sec1 => PrivateKeyDer::Sec1(der.into()),
            KeyFormat::Pkcs1 => PrivateKeyDer::Pkcs1(der.into()),
            KeyFormat::Pkcs8 => PrivateKeyDer::Pkcs8(der.into()),
        };
        // ring has no P-521.
        assert!(any_supported_type(&key).is_ok() || name.starts_with("P-521"), "ring: {name}");
        files.push(file);
    }
    let script = "
import sys
try:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key as load
except ImportError:
    sys.exit('no module')
for name in sys.argv[1:]:
    load(open(name, 'rb').read(), None).public_key()
";
    let python = Command::new("/usr/bin/python3").args(["-c", script]).args(&files).output();
    let python =
        python.expect("cannot run here: python3 is not installed (Debian package python3-cryptography)");
    let stderr = String::from_utf8_lossy(&python.stderr);
    assert!(
        !stderr.contains("no module"),
        "cannot run here: Python's cryptography is not installed (Debian package python3-cryptography)"
    );
    assert!(python.status.success(), "{stderr}");
}

fn openssl_takes(file: &Path) -> bool {
    let output =
        Command::new("openssl").args(["pkey", "-check", "-noout", "-in"]).arg(file).output().unwrap();
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Key is valid")
}
