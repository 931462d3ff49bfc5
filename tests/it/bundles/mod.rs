//! Local checks of certificates and keys as they occur in practice, valid and broken.
//!
//! Each file covers one check, as a table of inputs with the exit code and the message.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::harness::{Lineage, edgecert, openssl, sign_between};

mod chain;
mod encodings;
mod issuers;
mod key_types;
mod keys;
mod names;
mod pem;
mod purpose;
mod times;
mod upload;
mod validity;
mod weak;

/// Certificates and keys that the cases are assembled from: a root, intermediates, leaves.
struct Fixtures {
    home: Lineage,
}

impl Fixtures {
    fn new() -> Self {
        let home = Lineage::issued_for(&["a.example"]);
        let directory = home.path();
        let ec = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        for key in ["root.key", "ica.key", "leaf.key", "other.key", "old-ica.key", "expired-ica.key"] {
            openssl(directory, &[&ec[..], &[key]].concat());
        }
        home.write(
            "ca.cnf",
            "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        home.write(
            "leaf.cnf",
            "subjectAltName=DNS:a.example\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        self_signed(directory, "root", "/CN=Root");
        issue(directory, "ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(directory, "old-ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(directory, "leaf", "ica", "/CN=a.example", "leaf.cnf", "30");
        issue(directory, "other", "ica", "/CN=other", "leaf.cnf", "30");
        for name in ["again", "client", "expired-leaf"] {
            home.write(&format!("{name}.key"), &home.read("leaf.key"));
        }
        issue(directory, "again", "ica", "/CN=a.example", "leaf.cnf", "31");
        home.write("client.cnf", "subjectAltName=DNS:a.example\nextendedKeyUsage=clientAuth\n");
        issue(directory, "client", "ica", "/CN=a.example", "client.cnf", "30");
        issue(directory, "expired-ica", "root", "/CN=Expired Intermediate", "ca.cnf", "1");
        sign_between(directory, "expired-ica", "root", "ca.cnf", ["20200101000000Z", "20210101000000Z"]);
        issue(directory, "expired-leaf", "expired-ica", "/CN=a.example", "leaf.cnf", "30");
        signed_with_pss(&home, "pss", "RSA");
        signed_with_pss(&home, "pss-only", "RSA-PSS");
        Self { home }
    }

    fn pem(&self, name: &str) -> String {
        self.home.read(name)
    }
}

/// Issues `NAME.crt` for an RSASSA-PSS key, signed with RSASSA-PSS by `NAME-root`, whose key has this type.
fn signed_with_pss(home: &Lineage, name: &str, ca_type: &str) {
    let (directory, root) = (home.path(), &*format!("{name}-root"));
    for (key, kind) in [(root, ca_type), (name, "RSA-PSS")] {
        let out = format!("{key}.key");
        openssl(
            directory,
            &["genpkey", "-algorithm", kind, "-pkeyopt", "rsa_keygen_bits:2048", "-out", &out],
        );
    }
    self_signed(directory, root, "/CN=PSS Root");
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{root}.{ending}"));
    openssl(directory, &["req", "-new", "-key", &key, "-subj", "/CN=a.example", "-out", &csr]);
    let mut sign = vec!["x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", "30"];
    sign.extend(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest", "-sha256"]);
    sign.extend(["-extfile", "leaf.cnf", "-out", &out]);
    openssl(directory, &sign);
}

fn self_signed(directory: &Path, name: &str, subject: &str) {
    let (key, out) = (format!("{name}.key"), format!("{name}.crt"));
    openssl(
        directory,
        &["req", "-x509", "-new", "-key", &key, "-subj", subject, "-days", "90", "-out", &out],
    );
}

fn issue(directory: &Path, name: &str, ca: &str, subject: &str, extensions: &str, days: &str) {
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{ca}.{ending}"));
    openssl(directory, &["req", "-new", "-key", &key, "-subj", subject, "-out", &csr]);
    openssl(
        directory,
        &[
            "x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", days, "-extfile",
            extensions, "-out", &out,
        ],
    );
}

fn fixtures() -> &'static Fixtures {
    static PARTS: OnceLock<Fixtures> = OnceLock::new();
    PARTS.get_or_init(Fixtures::new)
}

/// Runs `edgecert check` on a certificate file and a key file.
fn check_pair(cert: &[u8], key: &[u8]) -> (i32, String) {
    let hook = edgecert();
    let [cert_file, key_file] = [hook.write_file("cert.pem", ""), hook.write_file("key.pem", "")];
    fs::write(&cert_file, cert).unwrap();
    fs::write(&key_file, key).unwrap();
    let hook = hook.args(["check".as_ref(), "--cert".as_ref(), cert_file.as_os_str()]);
    let output = hook.args(["--domain", "a.example"]).args(["--key".as_ref(), key_file.as_os_str()]).run();
    (output.code, output.snapshot())
}

/// Asserts the exit code of `check`, that its output contains the message, and that it has no control characters.
#[track_caller]
fn assert_check(name: &str, cert: &[u8], key: &[u8], code: i32, message: &str) {
    let (found_code, output) = check_pair(cert, key);
    assert_eq!(found_code, code, "{name}: {output}");
    assert!(output.contains(message), "{name}: no {message:?} in\n{output}");
    assert!(!output.chars().any(|c| c.is_control() && c != '\n'), "{name}: {output:?}");
}

/// Runs `edgecert check` on a certificate without a key, with further arguments.
fn check_cert(cert: &str, arguments: &[&str]) -> (i32, String) {
    let hook = edgecert();
    let file = hook.write_file("cert.pem", cert);
    let output = hook.args(["check".as_ref(), "--cert".as_ref(), file.as_os_str()]).args(arguments).run();
    (output.code, output.snapshot())
}
