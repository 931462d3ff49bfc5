//! Certificates and keys as people have them, whole and broken: every case with its verdict and the words for it.

use std::fs;
use std::sync::OnceLock;

use crate::harness::{Lineage, edgecert, openssl};

/// Parts that the cases are put together from.
struct Parts {
    home: Lineage,
}

impl Parts {
    fn new() -> Self {
        let home = Lineage::issued_for(&["a.example"]);
        let at = home.path();
        let ec = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        for key in ["root.key", "ica.key", "leaf.key", "other.key", "old-ica.key"] {
            openssl(at, &[&ec[..], &[key]].concat());
        }
        home.write(
            "ca.cnf",
            "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        home.write(
            "leaf.cnf",
            "subjectAltName=DNS:a.example\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        self_signed(at, "root", "/CN=Root");
        issue(at, "ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(at, "old-ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(at, "leaf", "ica", "/CN=a.example", "leaf.cnf", "30");
        issue(at, "other", "ica", "/CN=other", "leaf.cnf", "30");
        Self { home }
    }

    fn pem(&self, name: &str) -> String {
        self.home.read(name)
    }
}

fn self_signed(at: &std::path::Path, name: &str, subject: &str) {
    let (key, out) = (format!("{name}.key"), format!("{name}.crt"));
    openssl(at, &["req", "-x509", "-new", "-key", &key, "-subj", subject, "-days", "90", "-out", &out]);
}

fn issue(at: &std::path::Path, name: &str, ca: &str, subject: &str, extensions: &str, days: &str) {
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{ca}.{ending}"));
    openssl(at, &["req", "-new", "-key", &key, "-subj", subject, "-out", &csr]);
    openssl(
        at,
        &[
            "x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", days, "-extfile",
            extensions, "-out", &out,
        ],
    );
}

fn parts() -> &'static Parts {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS.get_or_init(Parts::new)
}

/// What `edgecert check` makes of a certificate file and a key file.
fn judge(cert: &[u8], key: &[u8]) -> (i32, String) {
    let hook = edgecert();
    let [cert_file, key_file] = [hook.file("cert.pem", ""), hook.file("key.pem", "")];
    fs::write(&cert_file, cert).unwrap();
    fs::write(&key_file, key).unwrap();
    let hook = hook.args(["check".as_ref(), "--cert".as_ref(), cert_file.as_os_str()]);
    let outcome = hook.args(["--domain", "a.example"]).args(["--key".as_ref(), key_file.as_os_str()]).run();
    (outcome.code, outcome.shown())
}

#[track_caller]
fn holds(name: &str, cert: &[u8], key: &[u8], code: i32, words: &str) {
    let (found, shown) = judge(cert, key);
    assert_eq!(found, code, "{name}: {shown}");
    assert!(shown.contains(words), "{name}: {words:?} is missing in\n{shown}");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{name}: {shown:?}");
}

#[test]
fn pem_as_it_is_in_the_wild() {
    let parts = parts();
    let [leaf, ica, root, old_ica, other] =
        ["leaf.crt", "ica.crt", "root.crt", "old-ica.crt", "other.crt"].map(|name| parts.pem(name));
    let key = parts.pem("leaf.key");
    let chain = format!("{leaf}{ica}");
    let cut = |text: &str| text[..text.len() / 2].to_owned();
    let ok = "pem          ok: 2 certificates and its key";
    let rows: Vec<(&str, String, i32, &str)> = vec![
        ("plain", chain.clone(), 0, ok),
        ("CRLF", chain.replace('\n', "\r\n"), 0, ok),
        ("lone CR", chain.replace('\n', "\r"), 0, ok),
        ("byte order mark", format!("\u{feff}{chain}"), 0, ok),
        ("blank lines", chain.replace('\n', "\n\n"), 0, ok),
        ("indented", chain.replace('\n', "\n  "), 0, ok),
        ("bag attributes", format!("Bag Attributes\n    localKeyID: 01\nsubject=CN = a\n{chain}"), 0, ok),
        ("trusted label", chain.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), 0, ok),
        ("old label", chain.replace("CERTIFICATE", "X509 CERTIFICATE"), 0, ok),
        ("stray text behind", format!("{chain}MIIBstray\n-----END CERTIFICATE-----\n"), 0, ok),
        ("with its key", format!("{key}{chain}"), 0, ok),
        ("no last line feed", chain.trim_end().to_owned(), 0, ok),
        ("not UTF-8 around", format!("{chain}\u{fffd}"), 0, ok),
        (
            "chain before leaf",
            format!("{ica}{leaf}"),
            0,
            "the leaf was not the first block; moved to the front",
        ),
        (
            "chain out of order",
            format!("{leaf}{root}{ica}"),
            0,
            "the chain was out of order; sorted by issuer",
        ),
        ("duplicates", format!("{leaf}{ica}{leaf}{ica}"), 0, "a second copy of a.example dropped"),
        ("root included", format!("{chain}{root}"), 0, "pem          ok: 3 certificates"),
        (
            "a stranger",
            format!("{chain}{}", Lineage::issued_for(&["b.example"]).read("chain.pem")),
            0,
            "1 certificate that does not belong to the chain dropped",
        ),
        (
            "two leaves, one paired",
            format!("{other}{chain}"),
            0,
            "1 certificate that does not belong to the chain dropped: other",
        ),
        (
            "earlier issuer",
            format!("{leaf}{old_ica}"),
            0,
            "an issuer of the right name and the wrong key beside it",
        ),
        ("leaf alone", leaf.clone(), 0, "the leaf stands alone, without its issuer Intermediate"),
        ("unterminated", format!("{leaf}{}", cut(&ica)), 65, "holds a block `CERTIFICATE` without its end"),
        (
            "damaged base64",
            chain.replacen("\nMII", "\nM!I", 1),
            65,
            "holds a block `CERTIFICATE` whose base64 is damaged",
        ),
        (
            "another end",
            leaf.replace("END CERTIFICATE", "END X"),
            65,
            "holds a block `CERTIFICATE` that ends as `X`",
        ),
        (
            "no X.509",
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".into(),
            65,
            "that holds no X.509 certificate",
        ),
        ("empty", String::new(), 65, "holds no certificate: it is empty"),
        ("prose", "hello".into(), 65, "holds no certificate: it holds no PEM block"),
        ("key only", key.clone(), 65, "holds no certificate, only a private key"),
        ("request", parts.pem("leaf.csr"), 65, "holds no certificate, only a block `CERTIFICATE REQUEST`"),
        (
            "escape sequences",
            "-----BEGIN \u{1b}[2J-----\nMAA=\n-----END \u{1b}[2J-----\n".into(),
            65,
            "only a block `[2J`",
        ),
        (
            "CA as leaf",
            ica.clone(),
            65,
            "has no subject alternative name; its common name `Intermediate` does not count",
        ),
    ];
    for (name, cert, code, words) in rows {
        holds(name, cert.as_bytes(), key.as_bytes(), code, words);
    }
    let at = parts.home.path();
    openssl(at, &["x509", "-in", "leaf.crt", "-outform", "DER", "-out", "leaf.der"]);
    holds(
        "DER",
        &fs::read(parts.home.file("leaf.der")).unwrap(),
        key.as_bytes(),
        65,
        "it looks like DER or PKCS#12; PEM is wanted",
    );
    openssl(
        at,
        &["x509", "-in", "leaf.crt", "-text", "-trustout", "-addtrust", "serverAuth", "-out", "text.crt"],
    );
    holds(
        "x509 -text, with OpenSSL's own bytes",
        (parts.pem("text.crt") + &ica).as_bytes(),
        key.as_bytes(),
        0,
        ok,
    );
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(chain.bytes().flat_map(|byte| [byte, 0])).collect();
    holds("UTF-16", &utf16, key.as_bytes(), 65, "it is UTF-16 text");
    let many: String =
        (0..70).map(|_| crate::harness::authority().issue(&["a.example"]).unwrap().cert).collect();
    holds("a heap", many.as_bytes(), key.as_bytes(), 65, "70 certificates, which is no chain");
}

#[test]
fn two_leaves_without_a_key_to_choose_are_refused_with_what_was_found() {
    let parts = parts();
    let both = parts.pem("leaf.crt") + &parts.pem("other.crt");
    let hook = edgecert();
    let file = hook.file("cert.pem", &both);
    let outcome = hook.args(["check".as_ref(), "--cert".as_ref(), file.as_os_str()]).fails_with(65);
    assert!(
        outcome.shown().contains("2 possible leaf certificates: a.example until DATE and other until DATE"),
        "{}",
        outcome.shown()
    );
}

#[test]
fn keys_as_they_are_in_the_wild() {
    let parts = parts();
    let chain = parts.pem("leaf.crt") + &parts.pem("ica.crt");
    let [key, other] = ["leaf.key", "other.key"].map(|name| parts.pem(name));
    let rows: Vec<(&str, String, i32, &str)> = vec![
        ("plain", key.clone(), 0, "key          ok: P-256"),
        ("CRLF", key.replace('\n', "\r\n"), 0, "key          ok: P-256"),
        ("with its chain", format!("{chain}{key}"), 0, "key          ok: P-256"),
        ("twice the same", format!("{key}{key}"), 0, "key          ok: P-256"),
        ("two keys", format!("{key}{other}"), 65, "holds 2 different private keys"),
        ("no key", chain.clone(), 65, "holds no private key, only a certificate"),
        ("empty", String::new(), 65, "holds no private key: it is empty"),
        ("unterminated", key[..key.len() / 2].to_owned(), 65, "holds a block `PRIVATE KEY` without its end"),
        (
            "damaged",
            "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n".into(),
            65,
            "a private key whose PKCS#8 structure is damaged",
        ),
        (
            "OpenSSH",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nMAA=\n-----END OPENSSH PRIVATE KEY-----\n".into(),
            65,
            "a private key in OpenSSH's own format",
        ),
        ("another pair", other, 65, "is not the private key of"),
    ];
    for (name, key, code, words) in rows {
        holds(name, chain.as_bytes(), key.as_bytes(), code, words);
    }
}

#[test]
fn kinds_of_keys_that_are_not_supported_are_refused_by_name() {
    let parts = parts();
    let chain = parts.pem("leaf.crt") + &parts.pem("ica.crt");
    let rows: [(&[&str], &str); 7] = [
        (&["genpkey", "-algorithm", "X25519"], "of type X25519"),
        (&["genpkey", "-algorithm", "ED448"], "of type Ed448"),
        (&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"], "of type secp256k1"),
        (&["ecparam", "-genkey", "-noout", "-name", "secp224r1"], "of type P-224"),
        (
            &["ecparam", "-genkey", "-noout", "-name", "prime256v1", "-param_enc", "explicit"],
            "of type EC with explicit curve parameters",
        ),
        (&["genpkey", "-genparam", "-algorithm", "DSA", "-pkeyopt", "dsa_paramgen_bits:1024"], "of type DSA"),
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
        crate::harness::new_key(home.path(), arguments);
        if words.ends_with("DSA") {
            home.rename("privkey.pem", "parameters.pem");
            openssl(home.path(), &["genpkey", "-paramfile", "parameters.pem", "-out", "privkey.pem"]);
        }
        holds(words, chain.as_bytes(), home.read("privkey.pem").as_bytes(), 65, words);
    }
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
        let lineage = Lineage::made_by_openssl(key, &["-days", "20"]);
        let shown =
            edgecert().knows(&lineage).args(["check", "--lineage"]).args([lineage.path()]).succeeds().shown();
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn a_large_file_is_refused_at_once() {
    let hook = edgecert();
    let file = hook.file("large.pem", "");
    fs::File::options().write(true).open(&file).unwrap().set_len(100 << 20).unwrap();
    let outcome = hook.args(["check".as_ref(), "--cert".as_ref(), file.as_os_str()]).fails_with(66);
    assert!(outcome.stderr.contains("larger than 1 MiB"), "{}", outcome.stderr);
}

#[test]
fn time_is_judged_to_the_second() {
    let lineage =
        Lineage::made_by_openssl(&["ecparam", "-genkey", "-noout", "-name", "prime256v1"], &["-days", "20"]);
    let ca = "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n";
    lineage.write("ca.cnf", ca);
    let rows = [
        ("20200101000000Z", "20300101000000Z"),
        // From 2050 on dates are of another type (RFC 5280, section 4.1.2.5).
        ("20200101000000Z", "20600101000000Z"),
        ("20510101000000Z", "20610101000000Z"),
    ];
    for (start, end) in rows {
        lineage.write("index.txt", "");
        lineage.write("serial", "01\n");
        let mut arguments =
            vec!["ca", "-config", "ca.cnf", "-batch", "-notext", "-cert", "chain.pem", "-keyfile", "ca.key"];
        arguments.extend([
            "-in",
            "request.pem",
            "-out",
            "fullchain.pem",
            "-extfile",
            "names.cnf",
            "-startdate",
            start,
            "-enddate",
            end,
        ]);
        openssl(lineage.path(), &arguments);
        let rfc3339 =
            |date: &str, seconds: &str| format!("{}-{}-{}T{seconds}Z", &date[..4], &date[4..6], &date[6..8]);
        let at = |moment: &str| {
            edgecert().args(["check", "--at", moment, "--lineage"]).args([lineage.path()]).run()
        };
        let year_before = |date: &str| (date[..4].parse::<u32>().unwrap() - 1).to_string();
        assert_eq!(at(&rfc3339(start, "00:00:00")).code, 0, "the first second, {start}");
        assert_eq!(
            at(&format!("{}-12-31T23:59:59Z", year_before(start))).code,
            65,
            "a second before {start}"
        );
        assert_eq!(at(&rfc3339(end, "00:00:00")).code, 0, "the last second, {end}");
        assert_eq!(at(&rfc3339(end, "00:00:00.9")).code, 0, "within the last second, {end}");
        assert_eq!(at(&rfc3339(end, "00:00:01")).code, 65, "a second behind {end}");
        let late = at(&format!("{}-06-01T00:00:00Z", year_before(end)));
        assert!(late.stdout.contains("is in the last tenth of its life"), "{}", late.stdout);
        let early = at(&format!("{}-06-01T00:00:00Z", &start[..4]));
        assert!(early.stdout.contains("validity     ok"), "{}", early.stdout);
    }
}

#[test]
fn a_path_to_the_anchors_is_proven_or_its_failure_explained() {
    let parts = parts();
    let [leaf, ica, old_ica, root] =
        ["leaf.crt", "ica.crt", "old-ica.crt", "root.crt"].map(|name| parts.pem(name));
    let elsewhere = crate::harness::authority().root().to_owned();
    let rows = [
        ("whole", format!("{leaf}{ica}"), &root, 0, "chain        ok: leads to a trust anchor"),
        ("anchored at the intermediate", leaf.clone(), &ica, 0, "chain        ok: leads to a trust anchor"),
        (
            "leaf alone",
            leaf.clone(),
            &root,
            65,
            "leads to none of the trust anchors: the chain ends at an issuer that is not among them",
        ),
        (
            "another root",
            format!("{leaf}{ica}"),
            &elsewhere,
            65,
            "the chain ends at an issuer that is not among them",
        ),
        (
            "earlier issuer",
            format!("{leaf}{old_ica}"),
            &root,
            65,
            "a signature is not by the issuer that it names",
        ),
    ];
    for (name, chain, anchors, code, words) in rows {
        let hook = edgecert();
        let [chain, anchors] = [hook.file("chain.pem", &chain), hook.file("anchors.pem", anchors)];
        let hook = hook.args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()]);
        let outcome = hook.args(["--trust-anchors".as_ref(), anchors.as_os_str()]).run();
        assert_eq!(outcome.code, code, "{name}: {}", outcome.shown());
        assert!(outcome.shown().contains(words), "{name}: {}", outcome.shown());
    }
    let hook = edgecert();
    let chain = hook.file("chain.pem", &(leaf + &ica));
    let system = hook
        .args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()])
        .args(["--trust-anchors", "system"])
        .fails_with(65);
    assert!(system.stderr.contains("leads to none of the trust anchors"), "{}", system.stderr);
}
