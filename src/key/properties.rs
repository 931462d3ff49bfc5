//! Compares the pairing with openssl's, for keys that openssl made and for every bit of them flipped.

use std::path::Path;
use std::process::Command;

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{PrivateKey, PublicKey};
use crate::pem::{self, Block, KeyFormat};

/// The openssl arguments that generate each type of key, its name, and the step from one flipped bit to the next.
const KEYS: [(&[&str], &str, usize); 8] = [
    (&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "P-256", 1),
    (&["ecparam", "-genkey", "-noout", "-name", "prime256v1"], "P-256", 1),
    (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], "P-384", 3),
    (&["ecparam", "-genkey", "-noout", "-name", "secp521r1"], "P-521", 7),
    (&["genpkey", "-algorithm", "ED25519"], "Ed25519", 1),
    (&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], "RSA-1024", 5),
    (&["genpkey", "-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:1024"], "RSA-1024", 11),
    (&["pkey", "-in", concat!(env!("CARGO_MANIFEST_DIR"), "/src/key/rsa-8192.pem")], "RSA-8192", 2003),
];

/// Runs openssl and returns its output, or `None` if it fails.
fn openssl(directory: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("openssl").args(arguments).current_dir(directory).output();
    let output = output.expect("cannot run here: openssl is not installed (Debian package openssl)");
    output.status.success().then_some(output.stdout)
}

/// Whether openssl computes the same public key from `key.pem` as it reads from `cert.pem`.
fn pairs_in_openssl(directory: &Path) -> bool {
    let of_key = openssl(directory, &["pkey", "-in", "key.pem", "-pubout"]);
    of_key.is_some() && of_key == openssl(directory, &["x509", "-in", "cert.pem", "-noout", "-pubkey"])
}

/// Reads the public key of `cert.pem`, and `key.pem`.
fn read(directory: &Path) -> (PublicKey, KeyFormat, Vec<u8>) {
    let blocks = |name: &str| pem::parse(&std::fs::read(directory.join(name)).unwrap()).blocks;
    let public_key = blocks("cert.pem").into_iter().find_map(|block| match block {
        Block::Certificate(der) => {
            let (_, certificate) = X509Certificate::from_der(&der).ok()?;
            Some(PublicKey::from_x509(certificate.public_key()))
        }
        _ => None,
    });
    let key = blocks("key.pem").into_iter().find_map(|block| match block {
        Block::Key(format, der) => Some((format, der.to_vec())),
        _ => None,
    });
    let (format, der) = key.unwrap();
    (public_key.unwrap(), format, der)
}

/// Whether `key.pem` needs no repair.
fn is_strict(directory: &Path) -> bool {
    let (_, format, der) = read(directory);
    !PrivateKey::from_der(format, &der).unwrap().is_repaired
}

#[test]
fn changed_keys_pair_only_if_openssl_agrees() {
    for (arguments, name, step) in KEYS {
        let home = tempfile::tempdir().unwrap();
        let (command, options) = arguments.split_first().unwrap();
        openssl(home.path(), &[&[*command, "-out", "key.pem"], options].concat()).unwrap();
        let certify =
            ["req", "-x509", "-new", "-key", "key.pem", "-subj", "/CN=a", "-days", "9", "-out", "cert.pem"];
        openssl(home.path(), &certify).unwrap();
        let (public_key, format, der) = read(home.path());
        assert_eq!(public_key.key_type.to_string(), name);
        let pairs =
            |der: &[u8]| PrivateKey::from_der(format, der).is_ok_and(|key| key.public_key == public_key);
        assert!(pairs(&der), "{arguments:?}");
        let (mut refused, mut paired) = (0, 0);
        for bit in (0..der.len() * 8).step_by(step) {
            let mut changed = der.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if !pairs(&changed) {
                refused += 1;
                continue;
            }
            paired += 1;
            let sent = PrivateKey::from_der(format, &changed).unwrap();
            std::fs::write(home.path().join("key.pem"), sent.pem().expose()).unwrap();
            assert!(is_strict(home.path()), "{arguments:?}: bit {bit} is not repaired");
            std::fs::write(home.path().join("key.pem"), pem::encode(format.label(), &changed).expose())
                .unwrap();
            assert!(
                pairs_in_openssl(home.path()),
                "{arguments:?}: bit {bit} of {format:?} pairs here, not in openssl"
            );
        }
        assert!(refused > 50 * paired, "{arguments:?}: {refused} refused, {paired} paired");
    }
}

#[test]
fn compressed_points_pair_in_leaf_and_key() {
    for curve in ["P-256", "P-384", "P-521"] {
        let home = tempfile::tempdir().unwrap();
        let run = |arguments: &str| {
            openssl(home.path(), &arguments.split(' ').collect::<Vec<_>>()).unwrap();
        };
        run(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve} -out plain.pem"));
        run("ec -in plain.pem -conv_form compressed -out compressed.pem");
        run("ec -in plain.pem -no_public -out private.pem");
        for leaf in ["plain.pem", "compressed.pem"] {
            run(&format!("req -x509 -new -key {leaf} -subj /CN=a -days 9 -out cert.pem"));
            for key in ["plain.pem", "compressed.pem", "private.pem"] {
                std::fs::copy(home.path().join(key), home.path().join("key.pem")).unwrap();
                let (public_key, format, der) = read(home.path());
                let key_pairs = PrivateKey::from_der(format, &der).unwrap().public_key == public_key;
                assert!(key_pairs, "{curve}: {key} with the leaf of {leaf}");
            }
        }
    }
}
