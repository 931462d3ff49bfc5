//! The check `key`: supported types pair in every encoding, other types are refused by name.

use std::fs;

use super::{assert_check, fixtures};
use crate::harness::der::{self, ForgedCert};
use crate::harness::{Lineage, edgecert, generate_key, openssl};

#[test]
fn unsupported_key_types_are_refused_by_name() {
    let fixtures = fixtures();
    let chain = fixtures.pem("leaf.crt") + &fixtures.pem("ica.crt");
    let rows: [(&[&str], &str); 8] = [
        (&["genrsa", "512"], "of unsupported type RSA-512; supported types: RSA of 1024 to 8192 bits, P-256"),
        (&["genpkey", "-algorithm", "X25519"], "of unsupported type X25519"),
        (&["genpkey", "-algorithm", "ED448"], "of unsupported type Ed448"),
        (
            &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
            "of unsupported type secp256k1",
        ),
        (&["ecparam", "-genkey", "-noout", "-name", "secp224r1"], "of unsupported type P-224"),
        (
            &["ecparam", "-genkey", "-noout", "-name", "prime256v1", "-param_enc", "explicit"],
            "of unsupported type EC with explicit curve parameters",
        ),
        (
            &["genpkey", "-genparam", "-algorithm", "DSA", "-pkeyopt", "dsa_paramgen_bits:1024"],
            "of unsupported type DSA",
        ),
        (
            &[
                "genpkey",
                "-algorithm",
                "RSA",
                "-pkeyopt",
                "rsa_keygen_bits:1024",
                "-pkeyopt",
                "rsa_keygen_primes:3",
            ],
            "more than two primes",
        ),
    ];
    for (arguments, message) in rows {
        let home = Lineage::issued_for(&["a.example"]);
        generate_key(home.path(), arguments);
        if message.ends_with("DSA") {
            home.rename("privkey.pem", "parameters.pem");
            openssl(home.path(), &["genpkey", "-paramfile", "parameters.pem", "-out", "privkey.pem"]);
        }
        assert_check(message, chain.as_bytes(), home.read("privkey.pem").as_bytes(), 65, message);
        if !message.contains("two primes") {
            openssl(
                home.path(),
                &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
            );
            let key = fs::read(home.file("public.der")).unwrap();
            let cert = ForgedCert { key, ..ForgedCert::default() }.pem();
            assert_check(message, cert.as_bytes(), fixtures.pem("leaf.key").as_bytes(), 65, message);
        }
    }
    let long = der::pem("RSA PRIVATE KEY", &der::rsa_private_key(8193, 17));
    assert_check(
        "RSA-8193",
        chain.as_bytes(),
        long.as_bytes(),
        65,
        "a private key of unsupported type RSA-8193",
    );
    let cert = ForgedCert { key: der::rsa_public_key(16384), ..ForgedCert::default() }.pem();
    assert_check(
        "RSA-16384",
        cert.as_bytes(),
        long.as_bytes(),
        65,
        "has a public key of unsupported type RSA-16384",
    );
}

#[test]
fn rsa_sizes_and_pss_keys_pair() {
    let rsa = |bits: &'static str| ["genpkey", "-algorithm", "RSA", "-pkeyopt", bits];
    let rows: [(&[&str], &str); 4] = [
        (
            &rsa("rsa_keygen_bits:1024"),
            "! key       LINEAGE/fullchain.pem has an RSA key of 1024 bits; browsers require 2048",
        ),
        (&rsa("rsa_keygen_bits:4096"), "* key       RSA-4096, key and certificate match"),
        (
            &["genpkey", "-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"],
            "! key       LINEAGE/fullchain.pem has an RSASSA-PSS key; browsers require a plain RSA key (rsaEncryption)",
        ),
        (
            &["pkey", "-in", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/keys/rsa-8192.pem")],
            "* key       RSA-8192, key and certificate match",
        ),
    ];
    for (key, message) in rows {
        let lineage = Lineage::from_openssl(key, &["-days", "20"]);
        let output = edgecert()
            .with_filter_for(&lineage)
            .args(["check", "--lineage"])
            .args([lineage.path()])
            .succeeds()
            .snapshot();
        assert!(output.contains(message), "{message}: {output}");
    }
}

/// The openssl commands that generate each type of key.
const KEY_COMMANDS: [&[&str]; 5] = [
    &["genpkey", "-algorithm", "ED25519"],
    &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
    &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
    &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
];

/// The public key bits of `privkey.pem`.
fn public_bits(lineage: &Lineage) -> Vec<u8> {
    openssl(
        lineage.path(),
        &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
    );
    let info = fs::read(lineage.file("public.der")).unwrap();
    der::content(der::elements(&info)[1]).to_vec()
}

/// `privkey.pem` as a version 2 `OneAsymmetricKey` with this public key field (RFC 5958).
fn version_2(lineage: &Lineage, tag: u8, public: &[u8]) -> String {
    let arguments =
        ["pkcs8", "-topk8", "-nocrypt", "-in", "privkey.pem", "-outform", "DER", "-out", "private.der"];
    openssl(lineage.path(), &arguments);
    let info = fs::read(lineage.file("private.der")).unwrap();
    let fields = der::elements(&info);
    let version = der::tlv(der::INTEGER, &[1]);
    der::pem(
        "PRIVATE KEY",
        &der::sequence(&[version, fields[1].into(), fields[2].into(), der::tlv(tag, public)]),
    )
}

#[test]
fn pkcs8_public_key_field_is_compared() {
    for command in KEY_COMMANDS {
        let lineage = Lineage::from_openssl(command, &["-days", "20"]);
        let bits = public_bits(&lineage);
        let explicit = der::tlv(3, &bits);
        let other = public_bits(&Lineage::from_openssl(command, &["-days", "20"]));
        let rows = [
            ("its own", version_2(&lineage, 0x81, &bits), 0, "key and certificate match"),
            (
                "its own, tagged explicitly",
                version_2(&lineage, 0xa1, &explicit),
                0,
                "key and certificate match",
            ),
            (
                "of another key",
                version_2(&lineage, 0x81, &other),
                65,
                "its private and public parts do not match",
            ),
            ("empty", version_2(&lineage, 0x81, &[0]), 65, "its private and public parts do not match"),
        ];
        let cert = lineage.read("fullchain.pem");
        for (name, key, code, message) in rows {
            assert_check(&format!("{name}, {command:?}"), cert.as_bytes(), key.as_bytes(), code, message);
        }
    }
}

#[test]
fn sec1_without_public_key_pairs() {
    for curve in ["prime256v1", "secp384r1", "secp521r1"] {
        let lineage = Lineage::from_openssl(&["ecparam", "-genkey", "-name", curve], &["-days", "20"]);
        openssl(lineage.path(), &["ecparam", "-name", curve, "-out", "parameters.pem"]);
        openssl(lineage.path(), &["ec", "-in", "privkey.pem", "-no_public", "-out", "sec1.pem"]);
        let key = lineage.read("parameters.pem") + &lineage.read("sec1.pem");
        assert!(key.contains("BEGIN EC PARAMETERS") && key.contains("BEGIN EC PRIVATE KEY"), "{key}");
        let cert = lineage.read("fullchain.pem");
        let message = "key.pem: added the public key\n  * pem       cleaned: an `EC PARAMETERS` block in the key file\n";
        assert_check(curve, cert.as_bytes(), key.as_bytes(), 0, message);
        assert_check(curve, cert.as_bytes(), key.as_bytes(), 0, "key and certificate match");
    }
}

#[test]
fn mixed_private_and_public_parts_are_refused() {
    let traditional: [(&[&str], &[&str], &str, &str); 4] = [
        (KEY_COMMANDS[1], &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (KEY_COMMANDS[2], &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (KEY_COMMANDS[3], &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (
            KEY_COMMANDS[4],
            &["rsa", "-traditional"],
            "RSA PRIVATE KEY",
            "its primes and exponents do not match its modulus",
        ),
    ];
    for (command, convert, label, message) in traditional {
        let lineage = Lineage::from_openssl(command, &["-days", "20"]);
        let fields = |lineage: &Lineage| {
            let files = ["-in", "privkey.pem", "-outform", "DER", "-out", "key.der"];
            openssl(lineage.path(), &[convert, files.as_slice()].concat());
            fs::read(lineage.file("key.der")).unwrap()
        };
        let (own, other) = (fields(&lineage), fields(&Lineage::from_openssl(command, &["-days", "20"])));
        let (own, other) = (der::elements(&own), der::elements(&other));
        // Replace the private fields only: the scalar, or all RSA numbers after the public ones.
        let private_fields = if label.starts_with("EC") { 1..2 } else { 3..9 };
        let mixed: Vec<Vec<u8>> =
            (0..own.len())
                .map(|field| {
                    if private_fields.contains(&field) { other[field].to_vec() } else { own[field].to_vec() }
                })
                .collect();
        let key = der::pem(label, &der::sequence(&mixed));
        assert_check(message, lineage.read("fullchain.pem").as_bytes(), key.as_bytes(), 65, message);
    }
}

#[test]
fn pss_certificate_with_pss_key_pairs() {
    let fixtures = fixtures();
    let message = "! key       HOME/cert.pem has an RSASSA-PSS key";
    for name in ["pss", "pss-only"] {
        let (cert, key) = (fixtures.pem(&format!("{name}.crt")), fixtures.pem(&format!("{name}.key")));
        assert_check(name, cert.as_bytes(), key.as_bytes(), 0, message);
    }
    let (cert, key) = (fixtures.pem("pss.crt"), fixtures.pem("pss-only.key"));
    assert_check(
        "other pair",
        cert.as_bytes(),
        key.as_bytes(),
        65,
        "both are RSA-2048, but of different pairs",
    );
}
