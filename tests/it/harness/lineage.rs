//! Lineages on disk, as ACME clients keep them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use edgecert_sandbox::Authority;
use tempfile::TempDir;

use super::{openssl, sign_between};

/// A directory with `fullchain.pem`, `privkey.pem`, `cert.pem` and `chain.pem`.
pub(crate) struct Lineage {
    home: TempDir,
}

/// The CA of this test run.
pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new("edgecert test").unwrap())
}

/// Makes a key with these openssl arguments as `privkey.pem`.
pub(crate) fn new_key(directory: &Path, key: &[&str]) {
    let (command, options) = key.split_first().unwrap();
    openssl(directory, &[&[*command, "-out", "privkey.pem"], options].concat());
}

impl Lineage {
    /// A P-256 certificate of the test CA, with its intermediate.
    pub(crate) fn issued_for(names: &[&str]) -> Self {
        let lineage = Self { home: TempDir::new().unwrap() };
        lineage.renew(names);
        lineage
    }

    /// A certificate for `a.example` made by openssl with these `req -x509` arguments, signed by a CA of its own.
    pub(crate) fn made_by_openssl(key: &[&str], arguments: &[&str]) -> Self {
        let lineage = Self { home: TempDir::new().unwrap() };
        let directory = lineage.path();
        let mut ca = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        ca.extend(["-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Private CA", "-days", "30"]);
        openssl(directory, &ca);
        new_key(directory, key);
        openssl(
            directory,
            &["req", "-new", "-key", "privkey.pem", "-subj", "/CN=a.example", "-out", "leaf.csr"],
        );
        fs::write(directory.join("names.cnf"), "subjectAltName=DNS:a.example\n").unwrap();
        let mut sign = vec!["x509", "-req", "-in", "leaf.csr", "-CA", "ca.crt", "-CAkey", "ca.key"];
        sign.extend(["-out", "cert.pem", "-extfile", "names.cnf"]);
        sign.extend(arguments);
        openssl(directory, &sign);
        fs::copy(directory.join("ca.crt"), directory.join("chain.pem")).unwrap();
        lineage.write("fullchain.pem", &(lineage.read("cert.pem") + &lineage.read("chain.pem")));
        lineage
    }

    /// Signs the certificate of `made_by_openssl` again, for this time; it stands alone in its file.
    pub(crate) fn sign_between(&self, start: &str, end: &str) {
        sign_between(self.path(), "leaf", "ca", "names.cnf", [start, end]);
        self.write("fullchain.pem", &self.read("leaf.crt"));
    }

    /// Replaces certificate and key by new ones.
    pub(crate) fn renew(&self, names: &[&str]) {
        let issued = authority().issue(names).unwrap();
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

    /// Writes a file that only its owner can read.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Gives a file another name.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.file(from), self.file(to)).unwrap();
    }
}
