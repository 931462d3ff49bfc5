//! How private keys are read (section 4.2): EC scalars must have the length of RFC 5915, as the service requires.

use crate::support::{Server, TestCert};

const P256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const EC: [u8; 9] = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];

/// Encodes an element of less than 128 bytes.
fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
}

/// A P-256 key with a scalar of this many bytes, in SEC1 and in PKCS#8.
fn keys(scalar_bytes: usize) -> [String; 2] {
    let number = [&[2, 1, 1][..], &tlv(4, &vec![7; scalar_bytes])].concat();
    let sec1 = tlv(0x30, &[number.as_slice(), &tlv(0xa0, &P256)].concat());
    let algorithm = tlv(0x30, &[&EC[..], &P256].concat());
    let pkcs8 = tlv(0x30, &[&[2, 1, 0][..], &algorithm, &tlv(4, &tlv(0x30, &number))].concat());
    [("EC PRIVATE KEY", sec1), ("PRIVATE KEY", pkcs8)]
        .map(|(label, der)| pem::encode(&pem::Pem::new(label, der)))
}

/// "any failure returns HTTP 400".
#[test]
fn scalars_of_other_lengths_are_refused() {
    let server = Server::start();
    let cert = TestCert::new(&["a.example"]);
    for key in keys(32) {
        server.upload("a.example", &cert.with_key(&key)).expect_ok();
    }
    for bytes in [1, 31, 33] {
        for key in keys(bytes) {
            let message = server.upload("a.example", &cert.with_key(&key)).expect_error(400);
            let wanted = format!("invalid key_pem: the private value has {bytes} bytes instead of 32");
            assert_eq!(message, wanted, "{key}");
        }
    }
}
