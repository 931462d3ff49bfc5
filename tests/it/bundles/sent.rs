//! What is sent: clean PEM with the leaf first, whatever the files look like.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::parts;
use crate::harness::{edgecert, sandbox};

#[test]
fn what_is_sent_is_clean_pem_with_the_leaf_first() {
    let service = sandbox(&["a.example"]);
    let parts = parts();
    let [leaf, ica, root, key] = ["leaf.crt", "ica.crt", "root.crt", "leaf.key"].map(|name| parts.pem(name));
    let [stranger, whole] = [parts.pem("other.crt"), format!("{leaf}{ica}")];
    let with_root = format!("{whole}{root}");
    let one_line = |text: &str| {
        let body = text.replace('\n', "");
        body.replace("-----BEGIN CERTIFICATE-----", "\n-----BEGIN CERTIFICATE-----\n")
            .replace("-----END", "\n-----END")
    };
    let rows = [
        ("clean", whole.clone(), key.clone(), &whole),
        ("CRLF", whole.replace('\n', "\r\n"), key.replace('\n', "\r\n"), &whole),
        ("lone CR", whole.replace('\n', "\r"), key.replace('\n', "\r"), &whole),
        ("byte order mark", format!("\u{feff}{whole}"), format!("\u{feff}{key}"), &whole),
        ("blank lines", whole.replace('\n', "\n\n"), key.replace('\n', "\n \n"), &whole),
        ("text around", format!("Bag Attributes\n  a: b\n{leaf}x\n{ica}y"), format!("a\n{key}b"), &whole),
        ("old labels", whole.replace("CERT", "X509 CERT"), key.clone(), &whole),
        ("one long line", one_line(&whole), key.clone(), &whole),
        ("no line feed between", whole.replace("-----\n-----", "----------"), key.trim_end().into(), &whole),
        ("chain before leaf", format!("{ica}{leaf}"), key.clone(), &whole),
        ("duplicates", format!("{leaf}{ica}{leaf}{ica}"), format!("{key}{key}"), &whole),
        ("a stranger", format!("{stranger}{ica}{leaf}"), key.clone(), &whole),
        ("key and chain in one", format!("{key}{whole}"), format!("{whole}{key}"), &whole),
        ("tail of an earlier file", format!("{whole}MIIB\n-----END CERTIFICATE-----\n"), key.clone(), &whole),
        ("root in the middle", format!("{leaf}{root}{ica}"), key.clone(), &with_root),
    ];
    let key_sha256 = sha256(&key);
    for (name, cert, its_key, wanted) in rows {
        let hook = edgecert().against(&service);
        let [cert, its_key] = [hook.write_file("cert.pem", &cert), hook.write_file("key.pem", &its_key)];
        let hook = hook.args(["deploy".as_ref(), "--cert".as_ref(), cert.as_os_str()]);
        hook.args(["--key".as_ref(), its_key.as_os_str()]).succeeds();
        let [record] = service.certs().try_into().unwrap();
        assert_eq!(record["cert_pem"], wanted.as_str(), "{name}");
        assert_eq!(record["key_sha256"], key_sha256, "{name}");
    }
}

#[test]
fn certificate_and_key_share_one_file() {
    let service = sandbox(&["a.example"]);
    let [leaf, ica, key] = ["leaf.crt", "ica.crt", "leaf.key"].map(|name| parts().pem(name));
    let hook = edgecert().against(&service);
    let file = hook.write_file("combined.pem", &format!("{key}{leaf}{ica}"));
    let output = hook.args(["deploy", "--json", "--cert"]).args([&file]).succeeds();
    let [record] = service.certs().try_into().unwrap();
    assert_eq!(record["cert_pem"], format!("{leaf}{ica}"));
    assert_eq!(record["key_sha256"], sha256(&key));
    assert_eq!(output.json()["checks"][0]["detail"], "2 certificates and its key");
}

/// A text's digest as the sandbox shows it.
fn sha256(text: &str) -> String {
    let mut shown = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        write!(shown, "{byte:02x}").unwrap();
    }
    shown
}
