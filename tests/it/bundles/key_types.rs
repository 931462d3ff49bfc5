//! The check `key`: supported types pair in every encoding, other types are refused by name.

use std::fs;

use super::{assert_finds, fixtures};
use crate::harness::der::{self, ForgedCert};
use crate::harness::{Lineage, generate_key, openssl};

#[test]
fn unsupported_key_types_are_refused_by_name() {
    let fixtures = fixtures();
    let chain = fixtures.pem("leaf.crt") + &fixtures.pem("ica.crt");
    let rows: [(&[&str], &str); 7] = [
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
    ];
    for (arguments, message) in rows {
        let home = Lineage::issued_for(&["a.example"]);
        generate_key(home.path(), arguments);
        if message.ends_with("DSA") {
            home.rename("privkey.pem", "parameters.pem");
            openssl(home.path(), &["genpkey", "-paramfile", "parameters.pem", "-out", "privkey.pem"]);
        }
        let line = format!("x pem       key.pem holds a private key {message}");
        assert_finds(message, &chain, home.read("privkey.pem"), &line);
        openssl(
            home.path(),
            &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
        );
        let key = fs::read(home.file("public.der")).unwrap();
        let cert = ForgedCert { key, ..ForgedCert::default() }.pem();
        let line = format!("x key       cert.pem has a public key {message}");
        assert_finds(message, &cert, fixtures.pem("leaf.key"), &line);
    }
    let home = Lineage::issued_for(&["a.example"]);
    let bits = ["-pkeyopt", "rsa_keygen_bits:1024", "-pkeyopt", "rsa_keygen_primes:3"];
    generate_key(home.path(), &[&["genpkey", "-algorithm", "RSA"], &bits[..]].concat());
    let three = "x pem       key.pem holds a private key of unsupported type RSA with more than two primes";
    assert_finds("three primes", &chain, home.read("privkey.pem"), three);
    let long = der::pem("RSA PRIVATE KEY", &der::rsa_private_key(8193, 17));
    let line = "x pem       key.pem holds a private key of unsupported type RSA-8193";
    assert_finds("RSA-8193", &chain, &long, line);
    let cert = ForgedCert { key: der::rsa_public_key(16384), ..ForgedCert::default() }.pem();
    let line = "x key       cert.pem has a public key of unsupported type RSA-16384";
    assert_finds("RSA-16384", &cert, &long, line);
}

#[test]
fn rsa_sizes_pair() {
    let rsa = |bits: &'static str| ["genpkey", "-algorithm", "RSA", "-pkeyopt", bits];
    let rows: [(&[&str], &str); 3] = [
        (
            &rsa("rsa_keygen_bits:1024"),
            "! key       cert.pem has an RSA key of 1024 bits; browsers require 2048",
        ),
        (&rsa("rsa_keygen_bits:4096"), "* key       RSA-4096, key and certificate match"),
        (
            &["pkey", "-in", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/keys/rsa-8192.pem")],
            "* key       RSA-8192, key and certificate match",
        ),
    ];
    for (key, line) in rows {
        let lineage = Lineage::from_openssl(key, &["-days", "20"]);
        assert_finds(line, lineage.read("fullchain.pem"), lineage.read("privkey.pem"), line);
    }
}

/// The openssl commands that generate each type of key; edgecert's name for the type.
const KEYS: [(&[&str], &str); 7] = [
    (&["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "RSA-2048"),
    (&["genrsa", "-traditional", "3072"], "RSA-3072"),
    (&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "P-256"),
    (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], "P-384"),
    (&["ecparam", "-genkey", "-name", "prime256v1"], "P-256"),
    (&["ecparam", "-genkey", "-noout", "-name", "secp521r1"], "P-521"),
    (&["genpkey", "-algorithm", "ED25519"], "Ed25519"),
];

#[test]
fn every_key_type_pairs_in_every_encoding() {
    for (command, name) in KEYS {
        let lineage = Lineage::from_openssl(command, &["-days", "20"]);
        let key = lineage.read("privkey.pem");
        let mut forms =
            vec![key.clone(), key.replace('\n', "\r\n"), format!("Bag Attributes\n    x: y\n{key}")];
        let conversions: &[&[&str]] = match name {
            "Ed25519" => &[&["pkey"]],
            rsa if rsa.starts_with("RSA") => &[&["pkey"], &["rsa", "-traditional"]],
            _ => &[&["pkey"], &["ec"], &["ec", "-no_public"]],
        };
        for convert in conversions {
            openssl(lineage.path(), &[convert, &["-in", "privkey.pem", "-out", "form.pem"][..]].concat());
            forms.push(lineage.read("form.pem"));
        }
        if name == "Ed25519" {
            forms.push(key.replace("PRIVATE KEY", "ED25519 PRIVATE KEY"));
        }
        let cert = lineage.read("fullchain.pem");
        for form in forms {
            assert_finds(name, &cert, form, &format!("* key       {name}, key and certificate match\n"));
        }
        generate_key(lineage.path(), command);
        let line = format!(
            "x key       key.pem is not the private key of cert.pem: both are {name}, but of different pairs\n"
        );
        assert_finds(name, &cert, lineage.read("privkey.pem"), &line);
    }
}

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
    for (command, _) in KEYS {
        let lineage = Lineage::from_openssl(command, &["-days", "20"]);
        let bits = public_bits(&lineage);
        let explicit = der::tlv(3, &bits);
        let other = public_bits(&Lineage::from_openssl(command, &["-days", "20"]));
        let pairs = "* key       ";
        let mismatch = "x pem       key.pem holds an inconsistent private key: its private and public parts do not match\n";
        let rows = [
            ("its own", version_2(&lineage, 0x81, &bits), pairs),
            ("its own, tagged explicitly", version_2(&lineage, 0xa1, &explicit), pairs),
            ("of another key", version_2(&lineage, 0x81, &other), mismatch),
            ("empty", version_2(&lineage, 0x81, &[0]), mismatch),
        ];
        for (name, key, line) in rows {
            assert_finds(&format!("{name}, {command:?}"), lineage.read("fullchain.pem"), key, line);
        }
    }
}

#[test]
fn mixed_private_and_public_parts_are_refused() {
    let traditional: [(&[&str], &[&str], &str, &str); 4] = [
        (KEYS[2].0, &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (KEYS[3].0, &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (KEYS[5].0, &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (
            KEYS[0].0,
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
        let line = format!("x pem       key.pem holds an inconsistent private key: {message}");
        assert_finds(message, lineage.read("fullchain.pem"), key, &line);
    }
}

#[test]
fn pss_certificate_with_pss_key_pairs() {
    let fixtures = fixtures();
    for name in ["pss", "pss-only"] {
        let (cert, key) = (fixtures.pem(&format!("{name}.crt")), fixtures.pem(&format!("{name}.key")));
        let line =
            "! key       cert.pem has an RSASSA-PSS key; browsers require a plain RSA key (rsaEncryption)\n";
        assert_finds(name, cert, key, line);
    }
    let line =
        "x key       key.pem is not the private key of cert.pem: both are RSA-2048, but of different pairs";
    assert_finds("other pair", fixtures.pem("pss.crt"), fixtures.pem("pss-only.key"), line);
}
