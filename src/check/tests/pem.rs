//! The check `pem`: what is cleaned, repaired and refused, and what is sent.

use super::*;

/// Wraps the base64 of PEM at this many columns.
fn wrapped(pem: &str, columns: usize) -> String {
    let lines = pem.lines().flat_map(|line| {
        let columns = if line.starts_with("-----") { line.len() } else { columns };
        line.as_bytes().chunks(columns).map(|part| format!("{}\n", std::str::from_utf8(part).unwrap()))
    });
    lines.collect()
}

fn block(label: &str, body: &str) -> String {
    format!("-----BEGIN {label}-----\n{body}MAA=\n-----END {label}-----\n")
}

#[test]
fn files_are_cleaned() {
    let [leaf, ca, chain, key] = files();
    let trusted = der::pem("TRUSTED CERTIFICATE", &[super::leaf().der(), der::sequence(&[])].concat());
    let curve = der::pem("EC PARAMETERS", &der::oid("1.2.840.10045.3.1.7"));
    let rows = [
        ("plain", chain.clone(), key.clone(), ""),
        (
            "CRLF",
            chain.replace('\n', "\r\n"),
            key.replace('\n', "\r\n"),
            "line endings and line endings in the key file",
        ),
        ("lone CR", chain.replace('\n', "\r"), key.clone(), "line endings"),
        (
            "byte order mark",
            format!("\u{feff}{chain}"),
            format!("\u{feff}{key}"),
            "a byte order mark and a byte order mark in the key file",
        ),
        (
            "blank lines",
            chain.replace('\n', "\n\n"),
            key.replace('\n', "\n \n"),
            "whitespace and whitespace in the key file",
        ),
        ("indented", chain.replace('\n', "\n  "), key.clone(), "a missing newline and whitespace"),
        (
            "text around",
            format!("Bag Attributes\n  a: b\n{leaf}x\n{ca}y"),
            key.clone(),
            "a missing newline, text outside the blocks and whitespace",
        ),
        ("other wrapping", wrapped(&chain, 16), wrapped(&key, 9), ""),
        (
            "no line feed between blocks",
            chain.replace("-----\n-----", "----------"),
            key.trim_end().into(),
            "a missing newline and a missing newline in the key file",
        ),
        ("trusted label", trusted + &ca, key.clone(), "a non-standard label"),
        ("old label", chain.replace("CERTIFICATE", "X509 CERTIFICATE"), key.clone(), "a non-standard label"),
        (
            "old label of a key",
            chain.clone(),
            key.replace("PRIVATE", "ED25519 PRIVATE"),
            "a non-standard label in the key file",
        ),
        (
            "tail of a longer file",
            format!("{chain}MIIBstray\n-----END CERTIFICATE-----\n"),
            key.clone(),
            "text outside the blocks and the rest of an older file",
        ),
        (
            "replacement character",
            format!("{chain}\u{fffd}"),
            key.clone(),
            "a missing newline and text outside the blocks",
        ),
        (
            "key and chain in both",
            format!("{key}{chain}"),
            format!("{chain}{key}"),
            "a certificate in the key file and a private key",
        ),
        (
            "curve before the key",
            chain.clone(),
            format!("{curve}{key}"),
            "a PEM block `EC PARAMETERS` in the key file",
        ),
        ("key twice", chain.clone(), key.repeat(2), ""),
    ];
    for (name, cert, key_file, cleaned) in rows {
        let input = Input { key: Some(key_file.as_bytes()), ..Input::new(&cert) };
        let cleaned = if cleaned.is_empty() { String::new() } else { format!("; cleaned: {cleaned}") };
        input.finds(name, &format!("* pem: 2 certificates and a private key{cleaned}\n"));
        assert_eq!(input.check().1, Some([chain.clone(), key.clone()]), "{name}");
    }
    Input::new(&chain).finds("no key", "* pem: 2 certificates\n");
}

/// acmed overwrites a longer file without truncating it first.
#[test]
fn tail_of_an_older_file_is_ignored() {
    let [leaf, _, chain, key] = files();
    let heading = "-----BEGIN CERTIFICATE-----".len();
    // Cuts within the BEGIN line, the base64 and the last line.
    for cut in [4, heading - 1, heading, leaf.len() / 2, leaf.len() - 4] {
        let cert = format!("{chain}{}", &leaf[cut..]);
        let input = Input { key: Some(key.as_bytes()), ..Input::new(&cert) };
        assert_eq!(input.check().1, Some([chain.clone(), key.clone()]), "cut at {cut}");
    }
}

#[test]
fn certificate_files_are_repaired() {
    let [leaf, issuer, chain, key] = files();
    let [root, old_ca, unrelated] = [("Root", ROOT), ("Intermediate", OLD_CA), ("Unrelated", OTHER)]
        .map(|(name, seed)| ca(name, seed).pem());
    let other = ForgedCert { subject: "other", ..issued(OTHER, CA, "Intermediate", &[]) }.pem();
    let (moved, sorted) =
        ("! pem: cert.pem: moved the leaf to the front\n", "! pem: cert.pem: sorted the chain by issuer\n");
    let dropped =
        |name| format!("! pem: cert.pem: dropped certificates that are not part of the chain: {name}\n");
    let with_root = format!("{chain}{root}");
    let self_signed = ForgedCert { subject: "Self", ..issued(LEAF, LEAF, "Self", &[]) }.pem();
    let cross_signed = ForgedCert { issuer: "Unrelated", issuer_seed: OTHER, ..ca("Root", ROOT) }.pem();
    let with_alternatives = format!("{with_root}{old_ca}{cross_signed}");
    let rows = [
        (format!("{issuer}{leaf}"), &chain, moved.to_owned()),
        (format!("{leaf}{root}{issuer}"), &with_root, sorted.into()),
        (format!("{chain}{leaf}"), &chain, "! pem: cert.pem: dropped a duplicate of a.example\n".into()),
        (format!("{chain}{unrelated}"), &chain, dropped("Unrelated")),
        (format!("{other}{chain}"), &chain, format!("{moved}{}", dropped("other"))),
        (format!("{other}{issuer}{leaf}"), &chain, format!("{moved}{}", dropped("other"))),
        (
            format!("{issuer}{leaf}").replace('\n', "\r\n"),
            &chain,
            format!("{moved}* pem: cleaned: line endings\n"),
        ),
        // The key identifier decides between two intermediates of one name.
        (format!("{leaf}{old_ca}{issuer}"), &format!("{chain}{old_ca}"), sorted.into()),
        (with_root.clone(), &with_root, "* pem: 3 certificates and a private key\n".into()),
        (with_alternatives.clone(), &with_alternatives, "* pem: 5 certificates and a private key\n".into()),
        (format!("{root}{self_signed}"), &self_signed, format!("{moved}{}", dropped("Root"))),
    ];
    for (cert, sent, line) in rows {
        let input = Input { key: Some(key.as_bytes()), ..Input::new(&cert) };
        let (lines, repaired) = input.check();
        let found: Vec<&str> = lines.lines().filter(|line| line.contains(" pem: ")).collect();
        assert_eq!(found, line.lines().collect::<Vec<_>>());
        assert_eq!(repaired.unwrap()[0], *sent, "{line}");
    }
    let lower_ca = issued(LEAF, CA, "Intermediate", &ca("", LEAF).extensions[2..]).pem();
    let (lines, _) = Input::new(&(issuer + &lower_ca)).check();
    assert!(lines.starts_with(moved), "only CAs: {lines}");
}

#[test]
fn certificate_files_are_refused() {
    let [leaf, issuer, chain, key] = files();
    let again = ForgedCert {
        validity: [(der::UTC_TIME, "200101000000Z"), (der::UTC_TIME, "481231235959Z")],
        ..super::leaf()
    };
    let other = ForgedCert { subject: "other", ..issued(OTHER, CA, "Intermediate", &[]) }.pem();
    let leaves =
        |number| (0..number).map(|seed| ForgedCert { seed, ..super::leaf() }.pem()).collect::<String>();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(chain.bytes().flat_map(|byte| [byte, 0])).collect();
    let two = "2 possible leaf certificates: a.example until 2049-12-31T23:59:59Z and a.example until 2048-12-31T23:59:59Z\n";
    let two_names = "2 possible leaf certificates: a.example until 2049-12-31T23:59:59Z and other until 2049-12-31T23:59:59Z\n";
    let rows: [(Vec<u8>, &str); 16] = [
        (format!("{leaf}{}{issuer}", again.pem()).into(), two),
        (format!("{leaf}{other}").into(), two_names),
        (
            format!("{leaf}{}", &issuer[..issuer.len() / 2]).into(),
            "a PEM block `CERTIFICATE` without an END line\n",
        ),
        (chain.replacen("\nMII", "\nM!I", 1).into(), "a PEM block `CERTIFICATE` with invalid base64\n"),
        (leaf.replace("END CERTIFICATE", "END X").into(), "a PEM block `CERTIFICATE` that ends as `X`\n"),
        (block("CERTIFICATE", "").into(), "a PEM block `CERTIFICATE` that is not an X.509 certificate\n"),
        (Vec::new(), "no certificate: it is empty\n"),
        ("hello".into(), "no certificate: it contains no PEM block\n"),
        (vec![0; 4096], "no certificate: it is binary, not PEM; it may be DER or PKCS#12\n"),
        (key.into(), "no certificate, only a private key\n"),
        (block("CERTIFICATE REQUEST", "").into(), "no certificate, only a PEM block `CERTIFICATE REQUEST`\n"),
        (block("\u{1b}[2J", "").into(), "no certificate, only a PEM block `[2J`\n"),
        (super::leaf().der(), "no certificate: it is binary, not PEM; it may be DER or PKCS#12\n"),
        (utf16, "no certificate: it is binary, not PEM"),
        (leaves(64).into(), "64 possible leaf certificates: "),
        (leaves(65).into(), "more than 64 PEM blocks\n"),
    ];
    for (cert, found) in rows {
        let input = Input::new(&cert);
        input.finds(found, &format!("x pem: cert.pem holds {found}"));
        assert_eq!(input.check().0.matches("x pem: ").count(), 1, "{found}");
    }
}

#[test]
fn key_file_is_repaired() {
    let [_, _, chain, key] = files();
    let mut second_version = der::private_key(LEAF);
    second_version[4] = 1;
    let repaired = der::pem("PRIVATE KEY", &second_version);
    let input = Input { key: Some(repaired.as_bytes()), ..Input::new(&chain) };
    input.finds("version 2", "! pem: key.pem: re-encoded the key in the form that every server accepts\n");
    assert_eq!(input.check().1, Some([chain.clone(), key]));
}

#[test]
fn key_files_are_refused() {
    let [_, _, chain, key] = files();
    let other = key_file(OTHER);
    let many: String = (0..9).map(|number| der::pem("PRIVATE KEY", &[0x30, 1, number])).collect();
    let encrypted = "a private key that is encrypted with a passphrase\n";
    let mislabelled = key.replace("PRIVATE", "EC PRIVATE");
    let rows: [(Vec<u8>, &str); 13] = [
        (format!("{key}{other}").into(), "2 different private keys\n"),
        (format!("{key}{mislabelled}").into(), "2 different private keys\n"),
        (block("DSA PRIVATE KEY", "").into(), "a private key of unsupported type DSA; "),
        (many.into(), "9 different private keys\n"),
        (key.repeat(300).into(), "more than 64 PEM blocks\n"),
        (block("ENCRYPTED PRIVATE KEY", "").into(), encrypted),
        (block("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: X,00\n\n").into(), encrypted),
        (chain.clone().into(), "no private key, only a certificate\n"),
        (Vec::new(), "no private key: it is empty\n"),
        (key[..key.len() / 2].into(), "a PEM block `PRIVATE KEY` without an END line\n"),
        (block("PRIVATE KEY", "").into(), "a private key with invalid PKCS#8 encoding\n"),
        (block("OPENSSH PRIVATE KEY", "").into(), "a private key of unsupported type OPENSSH; "),
        (der::private_key(LEAF), "no private key: it is binary, not PEM; it may be DER or PKCS#12\n"),
    ];
    for (file, found) in rows {
        Input { key: Some(&file), ..Input::new(&chain) }
            .finds(found, &format!("x pem: key.pem holds {found}"));
    }
}
