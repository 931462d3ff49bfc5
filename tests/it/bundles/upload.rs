//! The content of uploads: clean PEM with the leaf first, however the files are written.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{Input, fixtures};
use crate::harness::{edgecert, sandbox};

#[test]
fn upload_is_clean() {
    let [leaf, ica, key] = ["leaf.crt", "ica.crt", "leaf.key"].map(|name| fixtures().pem(name));
    let chain = format!("{leaf}{ica}");
    let one_line = |text: &str| {
        let body = text.replace('\n', "");
        let body = body.replace("-----BEGIN CERTIFICATE-----", "\n-----BEGIN CERTIFICATE-----\n");
        body.replace("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n")
            .replace("-----END", "\n-----END")
    };
    let rows = [
        ("clean", chain.clone(), key.clone()),
        ("CRLF", chain.replace('\n', "\r\n"), key.replace('\n', "\r\n")),
        ("lone CR", chain.replace('\n', "\r"), key.replace('\n', "\r")),
        ("byte order mark", format!("\u{feff}{chain}"), format!("\u{feff}{key}")),
        ("blank lines", chain.replace('\n', "\n\n"), key.replace('\n', "\n \n")),
        ("text around", format!("Bag Attributes\n  a: b\n{leaf}x\n{ica}y"), format!("a\n{key}b")),
        ("one long line", one_line(&chain), one_line(&key)),
        ("short lines", wrapped(&chain, 16), wrapped(&key, 9)),
        ("no line feed between blocks", chain.replace("-----\n-----", "----------"), key.trim_end().into()),
        ("duplicates", format!("{leaf}{ica}{leaf}{ica}"), format!("{key}{key}")),
        ("key and chain in one", format!("{key}{chain}"), format!("{chain}{key}")),
    ];
    for (name, cert, key_file) in rows {
        let input = Input { cert: cert.as_bytes(), key: Some(key_file.as_bytes()), ..Input::default() };
        assert_eq!(input.check().sent(), Some((chain.clone(), key.clone())), "{name}");
    }
}

#[test]
fn certificate_and_key_share_one_file() {
    let service = sandbox(&["a.example"]);
    let [leaf, ica, key] = ["leaf.crt", "ica.crt", "leaf.key"].map(|name| fixtures().pem(name));
    let hook = edgecert().against(&service);
    let file = hook.write_file("combined.pem", &format!("{key}{leaf}{ica}").replace('\n', "\r\n"));
    let output = hook.args(["deploy", "--json", "--cert"]).args([&file]).succeeds();
    let [record] = service.certs().try_into().unwrap();
    assert_eq!(record["cert_pem"], format!("{leaf}{ica}"));
    assert_eq!(record["key_sha256"], sha256(&key));
    assert_eq!(
        output.json()["checks"][0]["detail"],
        "2 certificates and a private key; cleaned: line endings"
    );
}

/// Wraps the base64 of PEM at this many columns.
fn wrapped(pem: &str, columns: usize) -> String {
    let lines = pem.lines().flat_map(|line| {
        let columns = if line.starts_with("-----") { line.len() } else { columns };
        line.as_bytes().chunks(columns).map(|part| format!("{}\n", std::str::from_utf8(part).unwrap()))
    });
    lines.collect()
}

/// The digest of a text in the sandbox's notation.
fn sha256(text: &str) -> String {
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        write!(digest, "{byte:02x}").unwrap();
    }
    digest
}
