//! What must hold for every key, tried with keys of openssl's making and every bit of them: a key that pairs with a
//! certificate is one that openssl takes for the same pair, and a changed one is refused.

use std::path::Path;
use std::process::Command;

use super::PrivateKey;
use crate::cert::Certificate;
use crate::pem::{self, Block, KeyForm};

/// How openssl makes each kind of key, and which bits are flipped: every one, or for the long keys every n-th.
const KINDS: [(&[&str], usize); 7] = [
    (&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], 1),
    (&["ecparam", "-genkey", "-noout", "-name", "prime256v1"], 1),
    (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], 3),
    (&["ecparam", "-genkey", "-noout", "-name", "secp521r1"], 7),
    (&["genpkey", "-algorithm", "ED25519"], 1),
    (&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], 5),
    (&["genpkey", "-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:1024"], 11),
];

fn openssl(directory: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("openssl").args(arguments).current_dir(directory).output();
    let output = output.expect("openssl must be installed (Debian package openssl)");
    output.status.success().then_some(output.stdout)
}

/// Whether openssl reads `key.pem` as the private half of `cert.pem`.
fn openssl_pairs(directory: &Path) -> bool {
    let of_key = openssl(directory, &["pkey", "-in", "key.pem", "-pubout"]);
    of_key.is_some() && of_key == openssl(directory, &["x509", "-in", "cert.pem", "-noout", "-pubkey"])
}

fn parts(directory: &Path) -> (Certificate, KeyForm, Vec<u8>) {
    let blocks = |name: &str| pem::read(&std::fs::read(directory.join(name)).unwrap()).blocks;
    let certificate = blocks("cert.pem").into_iter().find_map(|block| match block {
        Block::Certificate(der) => Certificate::from_der(&der).ok(),
        _ => None,
    });
    let key = blocks("key.pem").into_iter().find_map(|block| match block {
        Block::Key(form, der) => Some((form, der.to_vec())),
        _ => None,
    });
    let (form, der) = key.unwrap();
    (certificate.unwrap(), form, der)
}

#[test]
fn a_key_that_pairs_is_one_that_openssl_pairs_whatever_bit_is_flipped() {
    for (arguments, step) in KINDS {
        let home = tempfile::tempdir().unwrap();
        let (command, options) = arguments.split_first().unwrap();
        openssl(home.path(), &[&[*command, "-out", "key.pem"], options].concat()).unwrap();
        let certify =
            ["req", "-x509", "-new", "-key", "key.pem", "-subj", "/CN=a", "-days", "9", "-out", "cert.pem"];
        openssl(home.path(), &certify).unwrap();
        let (certificate, form, der) = parts(home.path());
        assert!(
            PrivateKey::from_der(form, &der).unwrap().pairs_with(&certificate.public_key),
            "{arguments:?}"
        );
        let (mut refused, mut harmless) = (0, 0);
        for bit in (0..der.len() * 8).step_by(step) {
            let mut changed = der.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if !PrivateKey::from_der(form, &changed).is_ok_and(|key| key.pairs_with(&certificate.public_key))
            {
                refused += 1;
                continue;
            }
            harmless += 1;
            std::fs::write(home.path().join("key.pem"), pem::write(form.label(), &changed).expose()).unwrap();
            assert!(
                openssl_pairs(home.path()),
                "{arguments:?}: bit {bit} of {form:?} passes here and not in openssl"
            );
        }
        assert!(refused > 50 * harmless, "{arguments:?}: {refused} refused, {harmless} passed");
    }
}
