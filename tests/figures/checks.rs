//! What the local checks of one certificate cost, for each kind of key: `edgecert check` less its start.

use anyhow::{Context as _, Result};

use crate::measure;
use crate::scene::Scene;
use crate::system;

/// Kinds of keys by the arguments with which openssl makes them.
pub(crate) const KINDS: [(&str, &[&str]); 6] = [
    ("P-256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
    ("P-384", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
    ("P-521", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"]),
    ("Ed25519", &["-algorithm", "ED25519"]),
    ("RSA-2048", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
    ("RSA-4096", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"]),
];

/// Instructions of all checks of one self-signed certificate, reading its files and reporting included.
pub(crate) fn instructions(scene: &Scene, key: &[&str], start: u64) -> Result<u64> {
    let openssl = |arguments: &[&str]| {
        let mut openssl = std::process::Command::new(system::program("openssl", "openssl")?);
        system::run({
            openssl.args(arguments).current_dir(scene.home());
            openssl
        })
    };
    openssl(&[&["genpkey", "-out", "kind.key"], key].concat())?;
    let certify = ["req", "-x509", "-new", "-key", "kind.key", "-subj", "/CN=a.example", "-days", "9"];
    openssl(&[&certify[..], &["-addext", "subjectAltName=DNS:a.example", "-out", "kind.crt"]].concat())?;
    let whole = measure::instructions(scene, scene.check("kind.crt", "kind.key"))?;
    whole.checked_sub(start).context("the checks cost less than nothing")
}
