//! Types of keys: what is supported pairs in every form, what is not is refused by its name.

use std::fs;

use super::{holds, parts};
use crate::harness::der::{self, ForgedCert};
use crate::harness::{Lineage, edgecert, generate_key, openssl};

#[test]
fn kinds_of_keys_that_are_not_supported_are_refused_by_name() {
    let parts = parts();
    let chain = parts.pem("leaf.crt") + &parts.pem("ica.crt");
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
    for (arguments, words) in rows {
        let home = Lineage::issued_for(&["a.example"]);
        generate_key(home.path(), arguments);
        if words.ends_with("DSA") {
            home.rename("privkey.pem", "parameters.pem");
            openssl(home.path(), &["genpkey", "-paramfile", "parameters.pem", "-out", "privkey.pem"]);
        }
        holds(words, chain.as_bytes(), home.read("privkey.pem").as_bytes(), 65, words);
        if !words.contains("two primes") {
            openssl(
                home.path(),
                &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
            );
            let key = fs::read(home.file("public.der")).unwrap();
            let cert = ForgedCert { key, ..ForgedCert::default() }.pem();
            holds(words, cert.as_bytes(), parts.pem("leaf.key").as_bytes(), 65, words);
        }
    }
    let long = der::pem("RSA PRIVATE KEY", &der::rsa_private_key(8193, 17));
    holds("RSA-8193", chain.as_bytes(), long.as_bytes(), 65, "a private key of unsupported type RSA-8193");
    let cert = ForgedCert { key: der::rsa_public_key(16384), ..ForgedCert::default() }.pem();
    holds(
        "RSA-16384",
        cert.as_bytes(),
        long.as_bytes(),
        65,
        "has a public key of unsupported type RSA-16384",
    );
}

#[test]
fn rsa_of_every_size_and_pss_pair() {
    let rsa = |bits: &'static str| ["genpkey", "-algorithm", "RSA", "-pkeyopt", bits];
    let rows: [(&[&str], &str); 4] = [
        (
            &rsa("rsa_keygen_bits:1024"),
            "key          warn: LINEAGE/fullchain.pem has a key of 1024 bits; browsers want 2048",
        ),
        (&rsa("rsa_keygen_bits:4096"), "key          ok: RSA-4096, the pair fits"),
        (
            &["genpkey", "-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"],
            "key          ok: RSA-2048, the pair fits",
        ),
        (
            &["pkey", "-in", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/keys/rsa-8192.pem")],
            "key          ok: RSA-8192, the pair fits",
        ),
    ];
    for (key, words) in rows {
        let lineage = Lineage::from_openssl(key, &["-days", "20"]);
        let shown = edgecert()
            .with_filter_for(&lineage)
            .args(["check", "--lineage"])
            .args([lineage.path()])
            .succeeds()
            .snapshot();
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// How openssl makes each kind of key.
const KINDS: [&[&str]; 5] = [
    &["genpkey", "-algorithm", "ED25519"],
    &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
    &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
    &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
];

/// The bits of the public key of `privkey.pem`.
fn public_bits(lineage: &Lineage) -> Vec<u8> {
    openssl(
        lineage.path(),
        &["pkey", "-in", "privkey.pem", "-pubout", "-outform", "DER", "-out", "public.der"],
    );
    let info = fs::read(lineage.file("public.der")).unwrap();
    der::content(der::elements(&info)[1]).to_vec()
}

/// `privkey.pem` as `OneAsymmetricKey` of version 2 with this public key field (RFC 5958).
fn version_2(lineage: &Lineage, tag: u8, public: &[u8]) -> String {
    let arguments =
        ["pkcs8", "-topk8", "-nocrypt", "-in", "privkey.pem", "-outform", "DER", "-out", "private.der"];
    openssl(lineage.path(), &arguments);
    let info = fs::read(lineage.file("private.der")).unwrap();
    let parts = der::elements(&info);
    let version = der::tlv(der::INTEGER, &[1]);
    der::pem(
        "PRIVATE KEY",
        &der::sequence(&[version, parts[1].into(), parts[2].into(), der::tlv(tag, public)]),
    )
}

#[test]
fn the_public_key_in_pkcs8_of_version_2_is_compared_and_not_believed() {
    for kind in KINDS {
        let lineage = Lineage::from_openssl(kind, &["-days", "20"]);
        let bits = public_bits(&lineage);
        let explicit = der::tlv(3, &bits);
        let other = public_bits(&Lineage::from_openssl(kind, &["-days", "20"]));
        let rows = [
            ("its own", version_2(&lineage, 0x81, &bits), 0, "the pair fits"),
            ("its own, tagged explicitly", version_2(&lineage, 0xa1, &explicit), 0, "the pair fits"),
            (
                "another one's",
                version_2(&lineage, 0x81, &other),
                65,
                "its private and public parts do not match",
            ),
            ("none at all", version_2(&lineage, 0x81, &[0]), 65, "its private and public parts do not match"),
        ];
        let cert = lineage.read("fullchain.pem");
        for (name, key, code, words) in rows {
            holds(&format!("{name}, {kind:?}"), cert.as_bytes(), key.as_bytes(), code, words);
        }
    }
}

#[test]
fn a_sec1_key_without_its_public_half_pairs_behind_its_parameters() {
    for curve in ["prime256v1", "secp384r1", "secp521r1"] {
        let lineage = Lineage::from_openssl(&["ecparam", "-genkey", "-name", curve], &["-days", "20"]);
        openssl(lineage.path(), &["ecparam", "-name", curve, "-out", "parameters.pem"]);
        openssl(lineage.path(), &["ec", "-in", "privkey.pem", "-no_public", "-out", "bare.pem"]);
        let key = lineage.read("parameters.pem") + &lineage.read("bare.pem");
        assert!(key.contains("BEGIN EC PARAMETERS") && key.contains("BEGIN EC PRIVATE KEY"), "{key}");
        let cert = lineage.read("fullchain.pem");
        let words = "; cleaned: an `EC PARAMETERS` block in the key file\n";
        holds(curve, cert.as_bytes(), key.as_bytes(), 0, words);
        holds(curve, cert.as_bytes(), key.as_bytes(), 0, "the pair fits");
    }
}

#[test]
fn a_private_part_of_another_key_in_the_same_file_is_refused_for_every_type() {
    let traditional: [(&[&str], &[&str], &str, &str); 4] = [
        (KINDS[1], &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (KINDS[2], &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (KINDS[3], &["ec"], "EC PRIVATE KEY", "its private and public parts do not match"),
        (
            KINDS[4],
            &["rsa", "-traditional"],
            "RSA PRIVATE KEY",
            "its primes and exponents do not match its modulus",
        ),
    ];
    for (kind, convert, label, words) in traditional {
        let lineage = Lineage::from_openssl(kind, &["-days", "20"]);
        let fields = |lineage: &Lineage| {
            let files = ["-in", "privkey.pem", "-outform", "DER", "-out", "key.der"];
            openssl(lineage.path(), &[convert, files.as_slice()].concat());
            fs::read(lineage.file("key.der")).unwrap()
        };
        let (own, other) = (fields(&lineage), fields(&Lineage::from_openssl(kind, &["-days", "20"])));
        let (own, other) = (der::elements(&own), der::elements(&other));
        // Everything but what says which key it is: the scalar, or all numbers behind the public ones.
        let at = if label.starts_with("EC") { 1..2 } else { 3..9 };
        let mixed: Vec<Vec<u8>> = (0..own.len())
            .map(|field| if at.contains(&field) { other[field].to_vec() } else { own[field].to_vec() })
            .collect();
        let key = der::pem(label, &der::sequence(&mixed));
        holds(words, lineage.read("fullchain.pem").as_bytes(), key.as_bytes(), 65, words);
    }
}

#[test]
fn a_certificate_signed_with_pss_for_a_pss_key_pairs() {
    let parts = parts();
    let words = "key          ok: RSA-2048, the pair fits";
    for name in ["pss", "pss-only"] {
        let (cert, key) = (parts.pem(&format!("{name}.crt")), parts.pem(&format!("{name}.key")));
        holds(name, cert.as_bytes(), key.as_bytes(), 0, words);
    }
    let (cert, key) = (parts.pem("pss.crt"), parts.pem("pss-only.key"));
    holds("another pair", cert.as_bytes(), key.as_bytes(), 65, "both are RSA-2048, but of different pairs");
}
