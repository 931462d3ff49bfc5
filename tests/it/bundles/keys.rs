//! PEM of key files: what is accepted, cleaned and refused.

use std::fs;

use super::{assert_check, fixtures};
use crate::harness::{der, openssl};

#[test]
fn key_files_are_cleaned_or_refused() {
    let fixtures = fixtures();
    let chain = fixtures.pem("leaf.crt") + &fixtures.pem("ica.crt");
    let [key, other] = ["leaf.key", "other.key"].map(|name| fixtures.pem(name));
    let rows: Vec<(&str, String, i32, &str)> = vec![
        ("plain", key.clone(), 0, "* key       P-256"),
        ("CRLF", key.replace('\n', "\r\n"), 0, "and a private key; cleaned: line endings in the key file\n"),
        ("with its chain", format!("{chain}{key}"), 0, "; cleaned: a certificate in the key file\n"),
        ("duplicate", format!("{key}{key}"), 0, "* key       P-256"),
        ("two keys", format!("{key}{other}"), 65, "holds 2 different private keys: P-256, P-256"),
        (
            "many keys",
            (0..9).map(|number| der::pem("PRIVATE KEY", &[0x30, 1, number])).collect(),
            65,
            "holds 9 different private keys: one that cannot be used, ",
        ),
        ("more than 256 blocks", key.repeat(300), 65, "holds more than 256 PEM blocks"),
        (
            "encrypted PKCS#8",
            der::pem("ENCRYPTED PRIVATE KEY", &[0x30, 0]),
            65,
            "holds a private key that is encrypted with a passphrase",
        ),
        (
            "encrypted PKCS#1",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X,00\n\nMAA=\n-----END RSA PRIVATE KEY-----\n".into(),
            65,
            "holds a private key that is encrypted with a passphrase",
        ),
        ("no key", chain.clone(), 65, "holds no private key, only a certificate"),
        ("empty", String::new(), 65, "holds no private key: it is empty"),
        ("unterminated", key[..key.len() / 2].to_owned(), 65, "holds a `PRIVATE KEY` block without an END line"),
        (
            "damaged",
            "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n".into(),
            65,
            "a private key with invalid PKCS#8 encoding",
        ),
        (
            "OpenSSH",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nMAA=\n-----END OPENSSH PRIVATE KEY-----\n".into(),
            65,
            "a private key in OpenSSH's own format",
        ),
        ("another pair", other, 65, "is not the private key of"),
    ];
    for (name, key, code, message) in rows {
        assert_check(name, chain.as_bytes(), key.as_bytes(), code, message);
    }
    openssl(fixtures.home.path(), &["pkey", "-in", "leaf.key", "-outform", "DER", "-out", "key.der"]);
    let key = fs::read(fixtures.home.file("key.der")).unwrap();
    assert_check("DER", chain.as_bytes(), &key, 65, "it looks like DER or PKCS#12, not PEM");
}
