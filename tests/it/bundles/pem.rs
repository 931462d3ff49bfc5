//! The check `pem` on certificate files: what is repaired, cleaned and refused.

use std::fs;

use super::{Input, assert_finds, fixtures};
use crate::harness::{Lineage, openssl, test_ca};

/// Asserts what the checks find in a certificate file, and that this chain would be uploaded.
#[track_caller]
fn assert_sent(name: &str, cert: &str, chain: &str, line: &str) {
    let key = fixtures().pem("leaf.key");
    let input = Input { cert: cert.as_bytes(), key: Some(key.as_bytes()), ..Input::default() };
    let checked = input.check();
    checked.assert_finds(name, line);
    assert_eq!(checked.sent().unwrap().0, chain, "{name}");
}

#[test]
fn certificate_files_are_cleaned() {
    let fixtures = fixtures();
    let [leaf, ica, key] = ["leaf.crt", "ica.crt", "leaf.key"].map(|name| fixtures.pem(name));
    let chain = format!("{leaf}{ica}");
    let arguments = ["x509", "-in", "leaf.crt", "-text", "-trustout", "-addtrust", "serverAuth", "-out"];
    openssl(fixtures.home.path(), &[&arguments[..], &["text.crt"]].concat());
    let rows = [
        ("CRLF", chain.replace('\n', "\r\n"), "line endings"),
        ("lone CR", chain.replace('\n', "\r"), "line endings"),
        ("byte order mark", format!("\u{feff}{chain}"), "a byte order mark"),
        ("blank lines", chain.replace('\n', "\n\n"), "whitespace"),
        ("indented", chain.replace('\n', "\n  "), "a missing newline and whitespace"),
        (
            "bag attributes",
            format!("Bag Attributes\n    localKeyID: 01\nsubject=CN = a\n{chain}"),
            "text outside the blocks and whitespace",
        ),
        ("trusted label", chain.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), "a non-standard label"),
        ("old label", chain.replace("CERTIFICATE", "X509 CERTIFICATE"), "a non-standard label"),
        (
            "tail of a longer file",
            format!("{chain}MIIBstray\n-----END CERTIFICATE-----\n"),
            "text outside the blocks and the rest of an older file",
        ),
        ("with its key", format!("{key}{chain}"), "a private key"),
        ("no last line feed", chain.trim_end().to_owned(), "a missing newline"),
        (
            "replacement character after the chain",
            format!("{chain}\u{fffd}"),
            "a missing newline and text outside the blocks",
        ),
        (
            "x509 -text -trustout",
            fixtures.pem("text.crt") + &ica,
            "text outside the blocks, whitespace and a non-standard label",
        ),
    ];
    for (name, cert, what) in rows {
        let line = format!("* pem       2 certificates and a private key; cleaned: {what}\n");
        assert_sent(name, &cert, &chain, &line);
    }
    assert_sent("plain", &chain, &chain, "* pem       2 certificates and a private key\n");
}

#[test]
fn certificate_files_are_repaired() {
    let fixtures = fixtures();
    let [leaf, ica, root, old_ica, other] =
        ["leaf.crt", "ica.crt", "root.crt", "old-ica.crt", "other.crt"].map(|name| fixtures.pem(name));
    let chain = format!("{leaf}{ica}");
    let unrelated = Lineage::issued_for(&["b.example"]).read("chain.pem");
    let (moved, sorted) = ("moved the leaf to the front\n", "sorted the chain by issuer\n");
    let dropped = "dropped certificates that are not part of the chain: ";
    let rows = [
        ("chain before leaf", format!("{ica}{leaf}"), moved),
        ("chain out of order", format!("{leaf}{root}{ica}"), sorted),
        ("duplicates", format!("{leaf}{ica}{leaf}{ica}"), "dropped a duplicate of a.example\n"),
        (
            "unrelated certificate",
            format!("{chain}{unrelated}"),
            &format!("{dropped}edgecert test intermediate\n"),
        ),
        ("two leaves, one paired", format!("{other}{chain}"), &format!("{dropped}other\n")),
        ("two leaves, one paired, out of order", format!("{other}{ica}{leaf}"), &format!("{dropped}other\n")),
        (
            "repaired and cleaned",
            format!("{ica}{leaf}").replace('\n', "\r\n"),
            &format!("{moved}  * pem       cleaned: line endings\n"),
        ),
        ("two intermediates, one with the right key identifier", format!("{leaf}{old_ica}{ica}"), sorted),
    ];
    for (name, cert, repair) in rows {
        let sent = match name {
            "chain out of order" => &format!("{chain}{root}"),
            name if name.starts_with("two intermediates") => &format!("{chain}{old_ica}"),
            _ => &chain,
        };
        assert_sent(name, &cert, sent, &format!("! pem       cert.pem: {repair}"));
    }
    let with_root = format!("{chain}{root}");
    assert_sent("root included", &with_root, &with_root, "* pem       3 certificates and a private key\n");
}

#[test]
fn certificate_files_are_refused() {
    let fixtures = fixtures();
    let [leaf, ica, key] = ["leaf.crt", "ica.crt", "leaf.key"].map(|name| fixtures.pem(name));
    let chain = format!("{leaf}{ica}");
    openssl(fixtures.home.path(), &["x509", "-in", "leaf.crt", "-outform", "DER", "-out", "leaf.der"]);
    let der = fs::read(fixtures.home.file("leaf.der")).unwrap();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(chain.bytes().flat_map(|byte| [byte, 0])).collect();
    let many = (0..70).map(|_| test_ca().issue(&["a.example"]).unwrap().cert);
    let damaged = |label: &str| format!("-----BEGIN {label}-----\nMAA=\n-----END {label}-----\n");
    let rows: [(&str, Vec<u8>, &str); 15] = [
        (
            "two leaves of one key",
            format!("{leaf}{}{ica}", fixtures.pem("again.crt")).into(),
            "2 possible leaf certificates: a.example until DATE and a.example until DATE\n",
        ),
        (
            "unterminated",
            format!("{leaf}{}", &ica[..ica.len() / 2]).into(),
            "a `CERTIFICATE` block without an END line\n",
        ),
        (
            "damaged base64",
            chain.replacen("\nMII", "\nM!I", 1).into(),
            "a `CERTIFICATE` block with invalid base64\n",
        ),
        (
            "mismatched END label",
            leaf.replace("END CERTIFICATE", "END X").into(),
            "a `CERTIFICATE` block that ends as `X`\n",
        ),
        (
            "not X.509",
            damaged("CERTIFICATE").into(),
            "a `CERTIFICATE` block that is not an X.509 certificate\n",
        ),
        ("empty", Vec::new(), "no certificate: it is empty\n"),
        ("prose", "hello".into(), "no certificate: it contains no PEM block\n"),
        ("zeros", vec![0; 4096], "no certificate: it contains no PEM block\n"),
        ("more than 256 blocks", leaf.repeat(300).into(), "more than 256 PEM blocks\n"),
        ("key only", key.clone().into(), "no certificate, only a private key\n"),
        ("request", fixtures.pem("leaf.csr").into(), "no certificate, only a `CERTIFICATE REQUEST` block\n"),
        ("escape sequences", damaged("\u{1b}[2J").into(), "no certificate, only a `[2J` block\n"),
        ("DER", der, "no certificate: it looks like DER or PKCS#12, not PEM\n"),
        ("UTF-16", utf16, "no certificate: it is UTF-16 text"),
        (
            "more than 64 certificates",
            many.collect::<String>().into(),
            "70 certificates, too many for a chain\n",
        ),
    ];
    for (name, cert, found) in rows {
        assert_finds(name, cert, &key, &format!("x pem       cert.pem holds {found}"));
    }
    let subject =
        "x names     cert.pem has no subject alternative name; its subject `Intermediate` does not count";
    assert_finds("CA as leaf", ica, &key, subject);
}

#[test]
fn two_leaves_without_key_are_refused() {
    let both = fixtures().pem("leaf.crt") + &fixtures().pem("other.crt");
    let line = "x pem       cert.pem holds 2 possible leaf certificates: a.example until DATE and other until DATE\n";
    Input { cert: both.as_bytes(), ..Input::default() }.check().assert_finds("both", line);
}
