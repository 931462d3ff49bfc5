//! The check `pem` on certificate files: what is repaired, cleaned and refused.

use std::fs;

use super::{assert_check, fixtures};
use crate::harness::{Lineage, edgecert, openssl};

#[test]
fn certificate_files_are_repaired_or_refused() {
    let fixtures = fixtures();
    let [leaf, ica, root, old_ica, other] =
        ["leaf.crt", "ica.crt", "root.crt", "old-ica.crt", "other.crt"].map(|name| fixtures.pem(name));
    let key = fixtures.pem("leaf.key");
    let chain = format!("{leaf}{ica}");
    let first_half = |text: &str| text[..text.len() / 2].to_owned();
    let ok = "* pem       2 certificates and a private key";
    let rows: Vec<(&str, String, i32, &str)> = vec![
        ("plain", chain.clone(), 0, ok),
        (
            "CRLF",
            chain.replace('\n', "\r\n"),
            0,
            "* pem       2 certificates and a private key; cleaned: line endings\n",
        ),
        (
            "lone CR",
            chain.replace('\n', "\r"),
            0,
            "* pem       2 certificates and a private key; cleaned: line endings\n",
        ),
        (
            "byte order mark",
            format!("\u{feff}{chain}"),
            0,
            "* pem       2 certificates and a private key; cleaned: a byte order mark\n",
        ),
        (
            "blank lines",
            chain.replace('\n', "\n\n"),
            0,
            "* pem       2 certificates and a private key; cleaned: whitespace\n",
        ),
        (
            "indented",
            chain.replace('\n', "\n  "),
            0,
            "* pem       2 certificates and a private key; cleaned: a missing newline and whitespace\n",
        ),
        (
            "bag attributes",
            format!("Bag Attributes\n    localKeyID: 01\nsubject=CN = a\n{chain}"),
            0,
            "* pem       2 certificates and a private key; cleaned: text outside the blocks and whitespace\n",
        ),
        (
            "trusted label",
            chain.replace("CERTIFICATE", "TRUSTED CERTIFICATE"),
            0,
            "* pem       2 certificates and a private key; cleaned: a non-standard label\n",
        ),
        (
            "old label",
            chain.replace("CERTIFICATE", "X509 CERTIFICATE"),
            0,
            "* pem       2 certificates and a private key; cleaned: a non-standard label\n",
        ),
        (
            "tail of a longer file",
            format!("{chain}MIIBstray\n-----END CERTIFICATE-----\n"),
            0,
            "* pem       2 certificates and a private key; cleaned: text outside the blocks and the rest of an older file\n",
        ),
        (
            "with its key",
            format!("{key}{chain}"),
            0,
            "* pem       2 certificates and a private key; cleaned: a private key\n",
        ),
        (
            "no last line feed",
            chain.trim_end().to_owned(),
            0,
            "* pem       2 certificates and a private key; cleaned: a missing newline\n",
        ),
        ("replacement character after the chain", format!("{chain}\u{fffd}"), 0, ok),
        ("chain before leaf", format!("{ica}{leaf}"), 0, "moved the leaf to the front"),
        ("chain out of order", format!("{leaf}{root}{ica}"), 0, "sorted the chain by issuer"),
        ("duplicates", format!("{leaf}{ica}{leaf}{ica}"), 0, "dropped a duplicate of a.example"),
        ("root included", format!("{chain}{root}"), 0, "* pem       3 certificates"),
        (
            "unrelated certificate",
            format!("{chain}{}", Lineage::issued_for(&["b.example"]).read("chain.pem")),
            0,
            "dropped certificates that are not part of the chain",
        ),
        (
            "two leaves, one paired",
            format!("{other}{chain}"),
            0,
            "dropped certificates that are not part of the chain: other",
        ),
        ("former issuer", format!("{leaf}{old_ica}"), 0, "whose key is not the one that signed the leaf"),
        (
            "repaired and cleaned",
            format!("{ica}{leaf}").replace('\n', "\r\n"),
            0,
            "moved the leaf to the front\n  * pem       cleaned: line endings\n",
        ),
        (
            "unrelated intermediate",
            format!("{leaf}{}", Lineage::issued_for(&["b.example"]).read("chain.pem")),
            0,
            "holds the leaf without its issuer Intermediate",
        ),
        (
            "two intermediates, one with the right key identifier",
            format!("{leaf}{old_ica}{ica}"),
            0,
            "sorted the chain by issuer",
        ),
        (
            "two leaves of one key",
            format!("{leaf}{}{ica}", fixtures.pem("again.crt")),
            65,
            "2 possible leaf certificates: a.example until DATE and a.example until DATE",
        ),
        ("leaf alone", leaf.clone(), 0, "holds the leaf without its issuer Intermediate"),
        (
            "unterminated",
            format!("{leaf}{}", first_half(&ica)),
            65,
            "holds a `CERTIFICATE` block without an END line",
        ),
        (
            "damaged base64",
            chain.replacen("\nMII", "\nM!I", 1),
            65,
            "holds a `CERTIFICATE` block with invalid base64",
        ),
        (
            "mismatched END label",
            leaf.replace("END CERTIFICATE", "END X"),
            65,
            "holds a `CERTIFICATE` block that ends as `X`",
        ),
        (
            "not X.509",
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".into(),
            65,
            "that is not an X.509 certificate",
        ),
        ("empty", String::new(), 65, "holds no certificate: it is empty"),
        ("prose", "hello".into(), 65, "holds no certificate: it contains no PEM block"),
        ("zeros", "\0".repeat(4096), 65, "holds no certificate: it contains no PEM block"),
        ("more than 256 blocks", leaf.repeat(300), 65, "holds more than 256 PEM blocks"),
        ("key only", key.clone(), 65, "holds no certificate, only a private key"),
        ("request", fixtures.pem("leaf.csr"), 65, "holds no certificate, only a `CERTIFICATE REQUEST` block"),
        (
            "escape sequences",
            "-----BEGIN \u{1b}[2J-----\nMAA=\n-----END \u{1b}[2J-----\n".into(),
            65,
            "only a `[2J` block",
        ),
        (
            "CA as leaf",
            ica.clone(),
            65,
            "has no subject alternative name; its subject `Intermediate` does not count",
        ),
    ];
    for (name, cert, code, message) in rows {
        assert_check(name, cert.as_bytes(), key.as_bytes(), code, message);
    }
    let directory = fixtures.home.path();
    openssl(directory, &["x509", "-in", "leaf.crt", "-outform", "DER", "-out", "leaf.der"]);
    assert_check(
        "DER",
        &fs::read(fixtures.home.file("leaf.der")).unwrap(),
        key.as_bytes(),
        65,
        "it looks like DER or PKCS#12, not PEM",
    );
    openssl(
        directory,
        &["x509", "-in", "leaf.crt", "-text", "-trustout", "-addtrust", "serverAuth", "-out", "text.crt"],
    );
    assert_check(
        "x509 -text -trustout",
        (fixtures.pem("text.crt") + &ica).as_bytes(),
        key.as_bytes(),
        0,
        "cleaned: text outside the blocks, whitespace and a non-standard label\n",
    );
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(chain.bytes().flat_map(|byte| [byte, 0])).collect();
    assert_check("UTF-16", &utf16, key.as_bytes(), 65, "it is UTF-16 text");
    let too_many: String =
        (0..70).map(|_| crate::harness::test_ca().issue(&["a.example"]).unwrap().cert).collect();
    assert_check(
        "more than 64 certificates",
        too_many.as_bytes(),
        key.as_bytes(),
        65,
        "70 certificates, too many for a chain",
    );
}

#[test]
fn two_leaves_without_key_are_refused() {
    let fixtures = fixtures();
    let both = fixtures.pem("leaf.crt") + &fixtures.pem("other.crt");
    let hook = edgecert();
    let file = hook.write_file("cert.pem", &both);
    let output = hook.args(["check".as_ref(), "--cert".as_ref(), file.as_os_str()]).exits_with(65);
    assert!(
        output.snapshot().contains("2 possible leaf certificates: a.example until DATE and other until DATE"),
        "{}",
        output.snapshot()
    );
}

#[test]
fn large_file_is_refused_at_once() {
    let hook = edgecert();
    let file = hook.write_file("large.pem", "");
    fs::File::options().write(true).open(&file).unwrap().set_len(100 << 20).unwrap();
    let output = hook.args(["check".as_ref(), "--cert".as_ref(), file.as_os_str()]).exits_with(66);
    assert!(output.stderr.contains("larger than 1 MiB"), "{}", output.stderr);
}
