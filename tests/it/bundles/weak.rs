//! Keys and signatures that browsers refuse: each causes a warning.

use super::Input;
use crate::harness::der::{self, BIT_STRING, ForgedCert, oid, sequence, tlv};

const NULL: [u8; 2] = [5, 0];

#[track_caller]
fn assert_line(name: &str, cert: &str, line: &str) {
    Input { cert: cert.as_bytes(), ..Input::default() }.check().assert_finds(name, line);
}

fn rsa_key(bits: usize, algorithm: &str) -> Vec<u8> {
    let plain = der::rsa_public_key(bits);
    sequence(&[sequence(&[oid(algorithm)]), der::elements(&plain)[1].to_vec()])
}

fn ec_key(curve: &str) -> Vec<u8> {
    let algorithm = sequence(&[oid("1.2.840.10045.2.1"), oid(curve)]);
    sequence(&[algorithm, tlv(BIT_STRING, &[0, 4, 1, 1])])
}

#[test]
fn weak_keys_are_never_silent() {
    let plain = |bits| rsa_key(bits, "1.2.840.113549.1.1.1");
    let pss = |bits| rsa_key(bits, "1.2.840.113549.1.1.10");
    let unsupported = |name| format!("x key       cert.pem has a public key of unsupported type {name};");
    let short = |bits| format!("! key       cert.pem has an RSA key of {bits} bits; browsers require 2048");
    let is_pss = "! key       cert.pem has an RSASSA-PSS key; browsers require a plain RSA key";
    let no_key = "- key       no private key was given".to_owned();
    let rows = [
        ("RSA-512", plain(512), unsupported("RSA-512")),
        ("RSA-1023", plain(1023), unsupported("RSA-1023")),
        ("RSA-1024", plain(1024), short(1024)),
        ("RSA-1536", plain(1536), short(1536)),
        ("RSA-2047", plain(2047), short(2047)),
        ("RSA-2048", plain(2048), no_key.clone()),
        ("PSS-1024", pss(1024), short(1024)),
        ("PSS-1024 again", pss(1024), is_pss.into()),
        ("PSS-2048", pss(2048), is_pss.into()),
        ("PSS-4096", pss(4096), is_pss.into()),
        ("PSS-512", pss(512), unsupported("RSA-512")),
        ("P-192", ec_key("1.2.840.10045.3.1.1"), unsupported("P-192")),
        ("P-224", ec_key("1.3.132.0.33"), unsupported("P-224")),
        ("secp256k1", ec_key("1.3.132.0.10"), unsupported("secp256k1")),
        ("brainpool", ec_key("1.3.36.3.3.2.8.1.1.7"), unsupported("brainpoolP256r1")),
        ("another curve", ec_key("1.2.3"), unsupported("EC with curve OID 1.2.3")),
        ("P-256", ec_key("1.2.840.10045.3.1.7"), no_key),
    ];
    for (name, key, line) in rows {
        assert_line(name, &ForgedCert { key, ..ForgedCert::default() }.pem(), &line);
    }
}

/// Encodes RSASSA-PSS with this hash function, or without parameters.
fn pss_with(hash: Option<&str>) -> Vec<u8> {
    let parameters = hash.map(|hash| sequence(&[tlv(0xa0, &sequence(&[oid(hash)]))]));
    sequence(&[oid("1.2.840.113549.1.1.10"), parameters.unwrap_or_default()])
}

#[test]
fn broken_signatures_are_never_silent() {
    let plain = |id| sequence(&[oid(id), NULL.into()]);
    let empty_pss = sequence(&[oid("1.2.840.113549.1.1.10"), sequence(&[])]);
    let rows = [
        ("md2WithRSAEncryption", plain("1.2.840.113549.1.1.2"), Some("MD2")),
        ("md4WithRSAEncryption", plain("1.2.840.113549.1.1.3"), Some("MD4")),
        ("md5WithRSAEncryption", plain("1.2.840.113549.1.1.4"), Some("MD5")),
        ("sha1WithRSAEncryption", plain("1.2.840.113549.1.1.5"), Some("SHA-1")),
        ("md4WithRSA of OIW", plain("1.3.14.3.2.2"), Some("MD4")),
        ("md5WithRSA of OIW", plain("1.3.14.3.2.3"), Some("MD5")),
        ("dsaWithSHA1 of OIW", plain("1.3.14.3.2.27"), Some("SHA-1")),
        ("sha1WithRSA of OIW", plain("1.3.14.3.2.29"), Some("SHA-1")),
        ("ecdsa-with-SHA1", sequence(&[oid("1.2.840.10045.4.1")]), Some("SHA-1")),
        ("dsa-with-sha1", sequence(&[oid("1.2.840.10040.4.3")]), Some("SHA-1")),
        ("RSASSA-PSS by default", empty_pss, Some("SHA-1")),
        ("RSASSA-PSS without parameters", pss_with(None), Some("SHA-1")),
        ("RSASSA-PSS with SHA-1", pss_with(Some("1.3.14.3.2.26")), Some("SHA-1")),
        ("RSASSA-PSS with MD5", pss_with(Some("1.2.840.113549.2.5")), Some("MD5")),
        ("RSASSA-PSS with SHA-256", pss_with(Some("2.16.840.1.101.3.4.2.1")), None),
        ("sha256WithRSAEncryption", plain("1.2.840.113549.1.1.11"), None),
        ("ecdsa-with-SHA384", sequence(&[oid("1.2.840.10045.4.3.3")]), None),
    ];
    for (name, signature, hash) in rows {
        let forged = |subject, issuer| {
            ForgedCert { subject, issuer, signature: signature.clone(), ..ForgedCert::default() }.pem()
        };
        let wanted = |certificate: &str| match hash {
            Some(hash) => format!(
                "! purpose   cert.pem{certificate} is signed with {hash}; TLS clients require SHA-256 or better\n"
            ),
            None => "* purpose   may authenticate a TLS server\n".into(),
        };
        assert_line(name, &forged("a.example", "Private CA"), &wanted(""));
        let leaf = ForgedCert::default().pem();
        let issued = leaf.clone() + &forged("Private CA", "Root");
        assert_line(name, &issued, &wanted(": the intermediate Private CA"));
        let anchored = leaf + &forged("Private CA", "Private CA");
        assert_line(name, &anchored, "* purpose   may authenticate a TLS server\n");
    }
}
