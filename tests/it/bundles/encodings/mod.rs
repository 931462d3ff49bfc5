//! Encodings of private keys that are odd but valid: what is sent is in the form that every reader takes, or nothing is.

use super::Input;
use crate::harness::{Lineage, der};

mod ec_rows;
mod go_rules;
mod other_rows;
mod readers;

/// One encoding of the private key of a lineage.
struct Row {
    name: String,
    label: &'static str,
    der: Vec<u8>,
    result: Sent,
}

/// What the hook makes of an encoding.
enum Sent {
    /// It is sent as it is.
    Unchanged,
    /// This DER is sent, and the report has this text.
    Repaired(Vec<u8>, &'static str),
    /// Nothing is sent, and the report has this text.
    Refused(&'static str),
}

const SEC1: &str = "EC PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";

fn row(name: &str, label: &'static str, der: Vec<u8>, result: Sent) -> Row {
    Row { name: format!("{name}, {label}"), label, der, result }
}

/// A `PrivateKeyInfo`; its version 1 is written as 0.
fn pkcs8(version: u8, algorithm: &[Vec<u8>], key: &[u8], more: &[Vec<u8>]) -> Vec<u8> {
    let fields = [int(version), der::sequence(algorithm), der::tlv(der::OCTET_STRING, key)];
    der::sequence(&[&fields, more].concat())
}

fn int(value: u8) -> Vec<u8> {
    der::tlv(der::INTEGER, &[value])
}

/// Writes the length of an element with one byte more than necessary.
fn with_long_length(element: &[u8]) -> Vec<u8> {
    let (&[tag, first], _) = element.split_first_chunk().unwrap();
    let header = match first {
        0..0x80 => vec![tag, 0x81, first],
        _ => [&[tag, first + 1, 0], &element[2..element.len() - der::content(element).len()]].concat(),
    };
    [header.as_slice(), der::content(element)].concat()
}

fn with_indefinite_length(element: &[u8]) -> Vec<u8> {
    [&[element[0], 0x80], der::content(element), &[0, 0]].concat()
}

/// The encodings that every reader of DER refuses, and so does the hook.
fn broken(name: &str, label: &'static str, der: &[u8], refusal: &'static str) -> Vec<Row> {
    let rows = [
        ("a length that is not minimal", with_long_length(der)),
        ("an indefinite length", with_indefinite_length(der)),
        ("a byte after the end", [der, &[0]].concat()),
    ];
    rows.map(|(what, der)| row(&format!("{name}: {what}"), label, der, Sent::Refused(refusal))).into()
}

/// Checks the lineage's certificate with each key and compares what would be uploaded.
fn assert_sent(lineage: &Lineage, rows: &[Row]) {
    let cert = lineage.read("fullchain.pem");
    for Row { name, label, der, result } in rows {
        let key = der::pem(label, der);
        let checked = Input { cert: cert.as_bytes(), key: Some(key.as_bytes()), ..Input::default() }.check();
        let (sent, line, text) = match result {
            Sent::Unchanged => (Some(key), "* pem       2 certificates and a private key\n", ""),
            Sent::Repaired(der, text) => (Some(der::pem(label, der)), "! pem       key.pem: ", *text),
            Sent::Refused(text) => (None, "x pem       key.pem holds ", *text),
        };
        let lines = checked.lines();
        assert_eq!(checked.sent().map(|(_, key)| key), sent, "{name}: {lines}");
        assert!(lines.contains(text), "{name}: no {text:?} in {lines}");
        checked.assert_finds(name, line);
    }
}

/// Asserts that all readers take what is sent, and that one of them refuses whatever is repaired or refused.
fn assert_readable(rows: &[Row]) {
    let keys = |sent: bool| {
        let der = move |row: &Row| match &row.result {
            Sent::Unchanged => Some(row.der.clone()),
            Sent::Repaired(strict, _) => Some(if sent { strict.clone() } else { row.der.clone() }),
            Sent::Refused(_) => (!sent).then(|| row.der.clone()),
        };
        rows.iter().filter_map(|row| Some((row.name.clone(), row.label, der(row)?))).collect::<Vec<_>>()
    };
    for (name, refusals) in readers::refusals(&keys(true)) {
        assert!(refusals.is_empty(), "{name}: refused by {refusals:?}");
    }
    for (row, (name, refusals)) in rows.iter().zip(readers::refusals(&keys(false))) {
        let is_unchanged = matches!(row.result, Sent::Unchanged);
        assert_eq!(refusals.is_empty(), is_unchanged, "{name}: refused by {refusals:?}");
    }
}

#[test]
fn sent_ec_keys_satisfy_every_reader() {
    for curve in ec_rows::CURVES {
        let (lineage, rows) = ec_rows::rows(curve);
        assert_sent(&lineage, &rows);
        assert_readable(&rows);
    }
}

#[test]
fn sent_rsa_keys_satisfy_every_reader() {
    let (lineage, rows) = other_rows::rsa();
    assert_sent(&lineage, &rows);
    assert_readable(&rows);
}

#[test]
fn sent_ed25519_keys_satisfy_every_reader() {
    let (lineage, rows) = other_rows::ed25519();
    assert_sent(&lineage, &rows);
    assert_readable(&rows);
}
