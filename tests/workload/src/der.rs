//! Encodes certificates and keys that no tool issues, in DER. Their signers have Ed25519 keys, each made from one byte.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "only tests and measurements use it, with input of their own"
)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey as _};

/// The tag of a `SEQUENCE`.
pub const SEQUENCE: u8 = 0x30;
/// The tag of an `INTEGER`.
pub const INTEGER: u8 = 0x02;
/// The tag of a DNS name in a SAN extension.
pub const DNS_NAME: u8 = 0x82;
/// The tag of a `UTCTime`.
pub const UTC_TIME: u8 = 0x17;
/// The tag of a `GeneralizedTime`.
pub const GENERALIZED_TIME: u8 = 0x18;
/// The tag of a `BIT STRING`.
pub const BIT_STRING: u8 = 0x03;
const BOOLEAN: u8 = 0x01;
/// The tag of an `OCTET STRING`.
pub const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const ED25519: &str = "1.3.101.112";
const UTF8: u8 = 0x0c;
const SET: u8 = 0x31;

/// The variable fields of a certificate; everything else is valid.
pub struct ForgedCert<'a> {
    /// 2 stands for version 3, and 0 for version 1, which has no extensions.
    pub version: u8,
    /// A common name, or several attributes as in `/C=US/O=Example/CN=Root`.
    pub subject: &'a str,
    /// The issuer's name, in the same notation.
    pub issuer: &'a str,
    /// Makes the Ed25519 key of the certificate.
    pub seed: u8,
    /// Makes the Ed25519 key that signs it.
    pub issuer_seed: u8,
    /// `notBefore` and `notAfter`, as tag and text.
    pub validity: [(u8, &'a str); 2],
    /// DNS names of the SAN extension; empty means no extension.
    pub names: Vec<&'a [u8]>,
    /// Another `SubjectPublicKeyInfo` than that of `seed`; empty means none.
    pub key: Vec<u8>,
    /// Encoded extensions after the SAN.
    pub extensions: Vec<Vec<u8>>,
    /// The `AlgorithmIdentifier` of a signature that is none; empty means one with Ed25519.
    pub signature: Vec<u8>,
}

impl Default for ForgedCert<'_> {
    fn default() -> Self {
        Self {
            version: 2,
            subject: "a.example",
            issuer: "Private CA",
            seed: 1,
            issuer_seed: 2,
            validity: [(UTC_TIME, "200101000000Z"), (UTC_TIME, "491231235959Z")],
            names: vec![b"a.example"],
            key: Vec::new(),
            extensions: Vec::new(),
            signature: Vec::new(),
        }
    }
}

impl ForgedCert<'_> {
    /// The certificate in PEM.
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der())
    }

    /// The certificate in DER.
    pub fn der(&self) -> Vec<u8> {
        let ed25519 = sequence(&[oid(ED25519)]);
        let or = |given: &Vec<u8>, default| if given.is_empty() { default } else { given.clone() };
        let algorithm = or(&self.signature, ed25519.clone());
        let public_key = [&[0], key_pair(self.seed).public_key_raw()].concat();
        let key = or(&self.key, sequence(&[ed25519, tlv(BIT_STRING, &public_key)]));
        let [from, until] = self.validity.map(|(tag, date)| tlv(tag, date.as_bytes()));
        let mut fields = vec![
            if self.version == 0 { Vec::new() } else { tlv(0xa0, &tlv(INTEGER, &[self.version])) },
            tlv(INTEGER, &[1]),
            algorithm.clone(),
            name(self.issuer),
            sequence(&[from, until]),
            name(self.subject),
            key,
        ];
        let mut extensions = Vec::new();
        if !self.names.is_empty() {
            let names: Vec<u8> = self.names.iter().flat_map(|name| tlv(DNS_NAME, name)).collect();
            extensions.push(extension("2.5.29.17", false, &tlv(SEQUENCE, &names)));
        }
        extensions.extend(self.extensions.iter().cloned());
        if !extensions.is_empty() {
            fields.push(tlv(0xa3, &sequence(&extensions)));
        }
        let fields = sequence(&fields);
        let signature = key_pair(self.issuer_seed).sign(&fields).unwrap_or_default();
        sequence(&[fields, algorithm, tlv(BIT_STRING, &[&[0], signature.as_slice()].concat())])
    }
}

/// Encodes the Ed25519 key that a seed makes, in PKCS#8.
pub fn private_key(seed: u8) -> Vec<u8> {
    let inner = tlv(OCTET_STRING, &[seed; 32]);
    sequence(&[tlv(INTEGER, &[0]), sequence(&[oid(ED25519)]), tlv(OCTET_STRING, &inner)])
}

fn key_pair(seed: u8) -> KeyPair {
    KeyPair::try_from(private_key(seed)).expect("any 32 bytes are a seed")
}

/// Encodes an extension around its encoded value.
pub fn extension(id: &str, is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if is_critical { tlv(BOOLEAN, &[0xff]) } else { Vec::new() };
    sequence(&[oid(id), critical, tlv(OCTET_STRING, value)])
}

/// Encodes an object identifier in dotted notation.
pub fn oid(dotted: &str) -> Vec<u8> {
    let numbers: Vec<u64> = dotted.split('.').map(|number| number.parse().unwrap()).collect();
    let mut content = Vec::new();
    for number in std::iter::once(numbers[0] * 40 + numbers[1]).chain(numbers[2..].iter().copied()) {
        let digits = (0..10).rev().map(|place| number >> (7 * place)).skip_while(|rest| *rest == 0);
        let mut bytes: Vec<u8> = digits.map(|rest| 0x80 | u8::try_from(rest & 0x7f).unwrap()).collect();
        match bytes.last_mut() {
            Some(last) => *last &= 0x7f,
            None => bytes.push(0),
        }
        content.extend(bytes);
    }
    tlv(OID, &content)
}

/// Encodes a distinguished name: a common name, or several attributes as in `/C=US/O=Example/CN=Root`.
fn name(text: &str) -> Vec<u8> {
    let attribute = |id: &str, value: &str| tlv(SET, &sequence(&[oid(id), tlv(UTF8, value.as_bytes())]));
    let Some(attributes) = text.strip_prefix('/') else { return sequence(&[attribute("2.5.4.3", text)]) };
    let attributes = attributes.split('/').map(|text| match text.split_once('=').unwrap() {
        ("C", value) => attribute("2.5.4.6", value),
        ("O", value) => attribute("2.5.4.10", value),
        (_, value) => attribute("2.5.4.3", value),
    });
    sequence(&attributes.collect::<Vec<_>>())
}

/// Encodes the `SubjectPublicKeyInfo` of an RSA key of this size.
pub fn rsa_public_key(bits: usize) -> Vec<u8> {
    let oid = oid("1.2.840.113549.1.1.1");
    let key = sequence(&[integer_of_size(bits), tlv(INTEGER, &[1, 0, 1])]);
    sequence(&[sequence(&[oid, vec![5, 0]]), tlv(BIT_STRING, &[&[0], key.as_slice()].concat())])
}

/// Encodes the `SubjectPublicKeyInfo` of a P-256 key that is no point of the curve.
pub fn ec_public_key() -> Vec<u8> {
    let algorithm = sequence(&[oid("1.2.840.10045.2.1"), oid("1.2.840.10045.3.1.7")]);
    let point = [[0, 4].as_slice(), &[1; 64]].concat();
    sequence(&[algorithm, tlv(BIT_STRING, &point)])
}

/// Encodes an `RSAPrivateKey` of this size whose numbers are not a key.
pub fn rsa_private_key(bits: usize, exponent_bits: usize) -> Vec<u8> {
    let half = || integer_of_size(bits / 2);
    let numbers = [
        integer_of_size(bits),
        integer_of_size(exponent_bits),
        integer_of_size(bits),
        half(),
        half(),
        half(),
        half(),
        half(),
    ];
    sequence(&[&[tlv(INTEGER, &[0])], numbers.as_slice()].concat())
}

/// Encodes an integer of this many bits, all of them set.
fn integer_of_size(bits: usize) -> Vec<u8> {
    let first = u8::MAX >> (8 - 1 - (bits - 1) % 8);
    let mut bytes = vec![u8::MAX; bits.div_ceil(8)];
    bytes[0] = first;
    if first == u8::MAX {
        bytes.insert(0, 0);
    }
    tlv(INTEGER, &bytes)
}

/// Encodes a `SEQUENCE` of encoded elements.
pub fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tlv(SEQUENCE, &parts.concat())
}

/// Encodes tag, length and content.
pub fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut der = vec![tag];
    if content.len() < 0x80 {
        der.push(u8::try_from(content.len()).unwrap());
    } else {
        der.push(0x80 | u8::try_from(significant.len()).unwrap());
        der.extend(significant);
    }
    [der.as_slice(), content].concat()
}

/// Splits a sequence into its encoded elements.
pub fn elements(sequence: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut elements) = (content(sequence), Vec::new());
    while !rest.is_empty() {
        let (element, more) = rest.split_at(header(rest) + length(rest));
        elements.push(element);
        rest = more;
    }
    elements
}

/// The content of an encoded element, without tag and length.
pub fn content(element: &[u8]) -> &[u8] {
    &element[header(element)..]
}

fn header(element: &[u8]) -> usize {
    if element[1] < 0x80 { 2 } else { 2 + usize::from(element[1] & 0x7f) }
}

fn length(element: &[u8]) -> usize {
    match element[1] {
        short @ ..0x80 => short.into(),
        _ => element[2..header(element)].iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
    }
}

/// Encodes a PEM block.
pub fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
