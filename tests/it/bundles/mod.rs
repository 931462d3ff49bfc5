//! Certificates and keys as people have them, whole and broken: every case with its verdict and the words for it.
//!
//! A file for each thing that is judged; what they share is here.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::harness::{Lineage, edgecert, openssl, sign_between};

mod issuers;
mod keys;
mod names;
mod path;
mod pem;
mod sent;
mod time;
mod types;

/// Parts that the cases are put together from.
struct Parts {
    home: Lineage,
}

impl Parts {
    fn new() -> Self {
        let home = Lineage::issued_for(&["a.example"]);
        let at = home.path();
        let ec = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        for key in ["root.key", "ica.key", "leaf.key", "other.key", "old-ica.key", "expired-ica.key"] {
            openssl(at, &[&ec[..], &[key]].concat());
        }
        home.write(
            "ca.cnf",
            "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        home.write(
            "leaf.cnf",
            "subjectAltName=DNS:a.example\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        self_signed(at, "root", "/CN=Root");
        issue(at, "ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(at, "old-ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(at, "leaf", "ica", "/CN=a.example", "leaf.cnf", "30");
        issue(at, "other", "ica", "/CN=other", "leaf.cnf", "30");
        for name in ["again", "client", "expired-leaf"] {
            home.write(&format!("{name}.key"), &home.read("leaf.key"));
        }
        issue(at, "again", "ica", "/CN=a.example", "leaf.cnf", "31");
        home.write("client.cnf", "subjectAltName=DNS:a.example\nextendedKeyUsage=clientAuth\n");
        issue(at, "client", "ica", "/CN=a.example", "client.cnf", "30");
        issue(at, "expired-ica", "root", "/CN=Expired Intermediate", "ca.cnf", "1");
        sign_between(at, "expired-ica", "root", "ca.cnf", ["20200101000000Z", "20210101000000Z"]);
        issue(at, "expired-leaf", "expired-ica", "/CN=a.example", "leaf.cnf", "30");
        signed_with_pss(&home, "pss", "RSA");
        signed_with_pss(&home, "pss-only", "RSA-PSS");
        Self { home }
    }

    fn pem(&self, name: &str) -> String {
        self.home.read(name)
    }
}

/// `NAME.crt` of an RSASSA-PSS key, signed that way by `NAME-root`, whose key is of this type.
fn signed_with_pss(home: &Lineage, name: &str, ca_type: &str) {
    let (at, root) = (home.path(), &*format!("{name}-root"));
    for (key, kind) in [(root, ca_type), (name, "RSA-PSS")] {
        let out = format!("{key}.key");
        openssl(at, &["genpkey", "-algorithm", kind, "-pkeyopt", "rsa_keygen_bits:2048", "-out", &out]);
    }
    self_signed(at, root, "/CN=PSS Root");
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{root}.{ending}"));
    openssl(at, &["req", "-new", "-key", &key, "-subj", "/CN=a.example", "-out", &csr]);
    let mut sign = vec!["x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", "30"];
    sign.extend(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest", "-sha256"]);
    sign.extend(["-extfile", "leaf.cnf", "-out", &out]);
    openssl(at, &sign);
}

fn self_signed(at: &Path, name: &str, subject: &str) {
    let (key, out) = (format!("{name}.key"), format!("{name}.crt"));
    openssl(at, &["req", "-x509", "-new", "-key", &key, "-subj", subject, "-days", "90", "-out", &out]);
}

fn issue(at: &Path, name: &str, ca: &str, subject: &str, extensions: &str, days: &str) {
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{ca}.{ending}"));
    openssl(at, &["req", "-new", "-key", &key, "-subj", subject, "-out", &csr]);
    openssl(
        at,
        &[
            "x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", days, "-extfile",
            extensions, "-out", &out,
        ],
    );
}

fn parts() -> &'static Parts {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS.get_or_init(Parts::new)
}

/// What `edgecert check` makes of a certificate file and a key file.
fn judge(cert: &[u8], key: &[u8]) -> (i32, String) {
    let hook = edgecert();
    let [cert_file, key_file] = [hook.write_file("cert.pem", ""), hook.write_file("key.pem", "")];
    fs::write(&cert_file, cert).unwrap();
    fs::write(&key_file, key).unwrap();
    let hook = hook.args(["check".as_ref(), "--cert".as_ref(), cert_file.as_os_str()]);
    let output = hook.args(["--domain", "a.example"]).args(["--key".as_ref(), key_file.as_os_str()]).run();
    (output.code, output.snapshot())
}

#[track_caller]
fn holds(name: &str, cert: &[u8], key: &[u8], code: i32, words: &str) {
    let (found, shown) = judge(cert, key);
    assert_eq!(found, code, "{name}: {shown}");
    assert!(shown.contains(words), "{name}: {words:?} is missing in\n{shown}");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{name}: {shown:?}");
}

/// What `edgecert check` makes of a certificate file alone, with these arguments behind it.
fn look_at(cert: &str, arguments: &[&str]) -> (i32, String) {
    let hook = edgecert();
    let file = hook.write_file("cert.pem", cert);
    let output = hook.args(["check".as_ref(), "--cert".as_ref(), file.as_os_str()]).args(arguments).run();
    (output.code, output.snapshot())
}
