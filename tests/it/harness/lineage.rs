//! Lineages on disk, as ACME clients keep them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{Authority, IssuedCert, openssl, sign_between};

/// A temporary directory with `fullchain.pem`, `privkey.pem`, `cert.pem` and `chain.pem`.
pub(crate) struct Lineage {
    home: TempDir,
}

/// The CA that all tests of one run share.
pub(crate) fn test_ca() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new("edgecert test").unwrap())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// The fingerprint of the certificate in a PEM text, in the notation of reports.
pub(crate) fn fingerprint(pem: &str) -> String {
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    hex(&Sha256::digest(STANDARD.decode(body).unwrap()))
}

/// Writes a file with this mode, and creates its directory.
pub(crate) fn write_with_mode(path: impl AsRef<Path>, text: impl AsRef<[u8]>, mode: u32) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Commands of openssl for keys of a lineage.
pub(crate) const P256: [&str; 5] = ["ecparam", "-genkey", "-noout", "-name", "prime256v1"];
pub(crate) const RSA: [&str; 5] = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];

/// Generates `privkey.pem` with this openssl command.
pub(crate) fn generate_key(directory: &Path, command: &[&str]) {
    let (subcommand, options) = command.split_first().unwrap();
    openssl(directory, &[&[*subcommand, "-out", "privkey.pem"], options].concat());
}

impl Lineage {
    /// Issues a P-256 certificate of the test CA, with its intermediate.
    pub(crate) fn issued_for(names: &[&str]) -> Self {
        let lineage = Self { home: TempDir::new().unwrap() };
        lineage.renew(names);
        lineage
    }

    /// Issues a certificate of the test CA this many days ago. The name of its directory begins with a prefix.
    pub(crate) fn issued_days_ago(days: i64, prefix: &str, names: &[&str]) -> Self {
        let lineage = Self { home: TempDir::with_prefix(prefix).unwrap() };
        lineage.renew_between(names, [-days, 90 - days]);
        lineage
    }

    /// Copies the files to a lineage of its own.
    pub(crate) fn duplicate(&self) -> Self {
        let lineage = Self { home: TempDir::new().unwrap() };
        for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
            lineage.write(name, &self.read(name));
        }
        lineage
    }

    /// Issues a certificate for `a.example` that is valid for 20 days with openssl, with this command for the key. The CA
    /// is made for this lineage.
    pub(crate) fn from_openssl(key: &[&str]) -> Self {
        let lineage = Self { home: TempDir::new().unwrap() };
        let directory = lineage.path();
        let mut ca = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        ca.extend(["-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Private CA", "-days", "30"]);
        openssl(directory, &ca);
        generate_key(directory, key);
        openssl(
            directory,
            &["req", "-new", "-key", "privkey.pem", "-subj", "/CN=a.example", "-out", "leaf.csr"],
        );
        fs::write(directory.join("names.cnf"), "subjectAltName=DNS:a.example\n").unwrap();
        let mut sign = vec!["x509", "-req", "-in", "leaf.csr", "-CA", "ca.crt", "-CAkey", "ca.key"];
        sign.extend(["-out", "cert.pem", "-extfile", "names.cnf", "-days", "20"]);
        openssl(directory, &sign);
        fs::copy(directory.join("ca.crt"), directory.join("chain.pem")).unwrap();
        lineage.write("fullchain.pem", &(lineage.read("cert.pem") + &lineage.read("chain.pem")));
        lineage
    }

    /// A certificate that expired long ago.
    pub(crate) fn expired() -> Self {
        let lineage = Self::from_openssl(&P256);
        lineage.sign_between("20200101000000Z", "20200201000000Z");
        lineage
    }

    /// Signs a lineage of `from_openssl` again with these dates. `fullchain.pem` then holds the leaf only.
    pub(crate) fn sign_between(&self, not_before: &str, not_after: &str) {
        sign_between(self.path(), "leaf", "ca", "names.cnf", [not_before, not_after]);
        self.write("fullchain.pem", &self.read("leaf.crt"));
    }

    /// Replaces certificate and key with new ones.
    pub(crate) fn renew(&self, names: &[&str]) {
        self.save(&test_ca().issue(names).unwrap());
    }

    /// Replaces certificate and key with new ones; see [`Authority::issue_between`] for the dates.
    pub(crate) fn renew_between(&self, names: &[&str], days: [i64; 2]) {
        self.save(&test_ca().issue_between(names, days).unwrap());
    }

    /// Replaces certificate and key with these.
    pub(crate) fn save(&self, issued: &IssuedCert) {
        self.write("cert.pem", &issued.cert);
        self.write("chain.pem", &issued.chain);
        self.write("fullchain.pem", &issued.fullchain());
        self.write("privkey.pem", &issued.key);
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// Writes a file with mode 0600.
    pub(crate) fn write(&self, name: &str, text: &str) {
        write_with_mode(self.file(name), text, 0o600);
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.file(from), self.file(to)).unwrap();
    }
}
