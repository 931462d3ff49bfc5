//! The check `key`: which key belongs to the leaf, and keys that browsers refuse. How keys are read is tested in `key`.

use super::*;
use der::{BIT_STRING, oid, sequence, tlv};

#[test]
fn key_must_be_that_of_the_leaf() {
    let [_, _, chain, _] = files();
    let p256 = edgecert_workload::Authority::new("Test").unwrap().issue(&["a.example".into()]).unwrap();
    let other = "x key: key.pem is not the private key of cert.pem: ";
    let rows = [
        (
            &chain,
            key_file(LEAF),
            "! key: cert.pem has a key of type Ed25519, which not every browser accepts".to_owned(),
        ),
        (&chain, key_file(OTHER), format!("{other}both are Ed25519, but of different pairs\n")),
        (&chain, p256.key.clone(), format!("{other}the certificate is for Ed25519, the key is P-256\n")),
        (&p256.fullchain(), p256.key.clone(), "* key: P-256, key and certificate match\n".to_owned()),
    ];
    for (cert, key, line) in rows {
        let input = Input { key: Some(key.as_bytes()), ..Input::new(cert) };
        input.finds(&line, &line);
        assert_eq!(input.check().0.contains("* key: "), line.starts_with('*'), "{line}");
    }
}

fn rsa_key(bits: usize, algorithm: &str) -> Vec<u8> {
    let plain = der::rsa_public_key(bits);
    sequence(&[sequence(&[oid(algorithm)]), der::elements(&plain)[1].to_vec()])
}

fn ec_key(parameters: Vec<u8>) -> Vec<u8> {
    sequence(&[sequence(&[oid("1.2.840.10045.2.1"), parameters]), tlv(BIT_STRING, &[0, 4, 1, 1])])
}

#[test]
fn weak_keys_are_never_silent() {
    let plain = |bits| rsa_key(bits, "1.2.840.113549.1.1.1");
    let pss = |bits| rsa_key(bits, "1.2.840.113549.1.1.10");
    let other = |id| sequence(&[sequence(&[oid(id)]), tlv(BIT_STRING, &[0, 1])]);
    let unsupported =
        |name| format!("x key: cert.pem has a public key of unsupported type {name}; supported types: RSA");
    let short = |bits| format!("! key: cert.pem has an RSA key of {bits} bits; browsers require 2048");
    let is_pss = "! key: cert.pem has an RSASSA-PSS key; browsers require a plain RSA key";
    let refused = |name| format!("! key: cert.pem has a key of type {name}, which not every browser accepts");
    let no_key = "- key: no private key was given".to_owned();
    let rows = [
        (plain(512), unsupported("RSA-512")),
        (plain(1023), unsupported("RSA-1023")),
        (plain(1024), short(1024)),
        (plain(2047), short(2047)),
        (plain(2048), no_key.clone()),
        (plain(16384), unsupported("RSA-16384")),
        (pss(1024), short(1024)),
        (pss(1024), is_pss.into()),
        (pss(2048), is_pss.into()),
        (pss(512), unsupported("RSA-512")),
        (ec_key(oid("1.2.840.10045.3.1.1")), unsupported("EC with curve OID 1.2.840.10045.3.1.1")),
        (ec_key(oid("1.3.132.0.33")), unsupported("EC with curve OID 1.3.132.0.33")),
        (ec_key(oid("1.3.132.0.10")), unsupported("EC with curve OID 1.3.132.0.10")),
        (ec_key(oid("1.2.3")), unsupported("EC with curve OID 1.2.3")),
        (ec_key(sequence(&[])), unsupported("EC with explicit curve parameters")),
        (ec_key(oid("1.2.840.10045.3.1.7")), no_key.clone()),
        (ec_key(oid("1.3.132.0.34")), no_key.clone()),
        (ec_key(oid("1.3.132.0.35")), refused("P-521")),
        (other("1.3.101.112"), refused("Ed25519")),
        (other("1.3.101.110"), unsupported("OID 1.3.101.110")),
        (other("1.3.101.113"), unsupported("OID 1.3.101.113")),
        (other("1.2.840.10040.4.1"), unsupported("OID 1.2.840.10040.4.1")),
    ];
    for (key, line) in rows {
        let cert = ForgedCert { key, ..ForgedCert::default() }.pem();
        Input::new(&cert).finds(&line, &line);
        assert!(line != no_key || !Input::new(&cert).check().0.contains("! key: "), "a strong key");
    }
}
