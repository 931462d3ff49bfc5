//! PEM of key files: what is accepted, cleaned and refused.

use std::fs;

use super::{assert_finds, fixtures};
use crate::harness::{der, openssl};

#[test]
fn key_files_are_cleaned_or_refused() {
    let fixtures = fixtures();
    let chain = fixtures.pem("leaf.crt") + &fixtures.pem("ica.crt");
    let [key, other] = ["leaf.key", "other.key"].map(|name| fixtures.pem(name));
    let two = "* pem       2 certificates and a private key";
    let pairs = "* key       P-256, key and certificate match\n";
    let rows = [
        ("plain", key.clone(), pairs),
        ("CRLF", key.replace('\n', "\r\n"), &format!("{two}; cleaned: line endings in the key file\n")),
        (
            "with its chain",
            format!("{chain}{key}"),
            &format!("{two}; cleaned: a certificate in the key file\n"),
        ),
        (
            "with its curve",
            format!("{}{key}", der::pem("EC PARAMETERS", &der::oid("1.2.840.10045.3.1.7"))),
            &format!("{two}; cleaned: an `EC PARAMETERS` block in the key file\n"),
        ),
        ("duplicate", format!("{key}{key}"), pairs),
        (
            "another pair",
            other.clone(),
            "x key       key.pem is not the private key of cert.pem: both are P-256, but of different pairs\n",
        ),
    ];
    for (name, key, line) in rows {
        assert_finds(name, &chain, key, line);
    }
    let block =
        |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}MAA=\n-----END {label}-----\n");
    openssl(fixtures.home.path(), &["pkey", "-in", "leaf.key", "-outform", "DER", "-out", "key.der"]);
    let der = fs::read(fixtures.home.file("key.der")).unwrap();
    let many: String = (0..9).map(|number| der::pem("PRIVATE KEY", &[0x30, 1, number])).collect();
    let encrypted = "a private key that is encrypted with a passphrase\n";
    let rows: [(&str, Vec<u8>, &str); 11] = [
        ("two keys", format!("{key}{other}").into(), "2 different private keys: P-256, P-256\n"),
        ("many keys", many.into(), "9 different private keys: one that cannot be used, "),
        ("more than 256 blocks", key.repeat(300).into(), "more than 256 PEM blocks\n"),
        ("encrypted PKCS#8", der::pem("ENCRYPTED PRIVATE KEY", &[0x30, 0]).into(), encrypted),
        (
            "encrypted PKCS#1",
            block("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: X,00\n\n").into(),
            encrypted,
        ),
        ("no key", chain.clone().into(), "no private key, only a certificate\n"),
        ("empty", Vec::new(), "no private key: it is empty\n"),
        ("unterminated", key[..key.len() / 2].into(), "a `PRIVATE KEY` block without an END line\n"),
        ("damaged", block("PRIVATE KEY", "").into(), "a private key with invalid PKCS#8 encoding\n"),
        ("OpenSSH", block("OPENSSH PRIVATE KEY", "").into(), "a private key in OpenSSH's own format\n"),
        ("DER", der, "no private key: it looks like DER or PKCS#12, not PEM\n"),
    ];
    for (name, key, found) in rows {
        assert_finds(name, &chain, key, &format!("x pem       key.pem holds {found}"));
    }
}
