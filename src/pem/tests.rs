//! Files as they are found on disk, and what is made of them.

use super::*;

fn kinds(text: &str) -> Vec<String> {
    let kind = |block: &Block| match block {
        Block::Certificate(der) => format!("certificate {der:?}"),
        Block::Key(format, der) => format!("{format:?} {:?}", der.as_slice()),
        Block::EncryptedKey => "encrypted".into(),
        Block::Other(label) => format!("other {label}"),
        Block::Broken(why) => format!("broken: {why}"),
    };
    parse(text.as_bytes()).blocks.iter().map(kind).collect()
}

#[test]
fn common_files_parse() {
    let rows: [(&str, &[&str]); 16] = [
        ("-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n", &["certificate [1, 2, 3]"]),
        ("-----BEGIN CERTIFICATE-----\r\nAQID\r\n-----END CERTIFICATE-----\r\n", &["certificate [1, 2, 3]"]),
        ("-----BEGIN CERTIFICATE-----\rAQID\r-----END CERTIFICATE-----\r", &["certificate [1, 2, 3]"]),
        (
            "\u{feff}-----BEGIN CERTIFICATE-----\n\n AQ\n\tID \n-----END CERTIFICATE-----",
            &["certificate [1, 2, 3]"],
        ),
        (
            "Bag Attributes\n  x: y\n-----BEGIN TRUSTED CERTIFICATE-----\nAQID\n-----END TRUSTED CERTIFICATE-----\nbye",
            &["certificate [1, 2, 3]"],
        ),
        (
            "-----BEGIN EC PARAMETERS-----\nAQID\n-----END EC PARAMETERS-----\n-----BEGIN EC PRIVATE KEY-----\nAQ==\n-----END EC PRIVATE KEY-----\n",
            &["other EC PARAMETERS", "Sec1 [1]"],
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\nAQ==\n-----END RSA PRIVATE KEY-----\n", &["Pkcs1 [1]"]),
        ("-----BEGIN ED25519 PRIVATE KEY-----\nAQ==\n-----END ED25519 PRIVATE KEY-----\n", &["Pkcs8 [1]"]),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAQ==\n-----END ENCRYPTED PRIVATE KEY-----\n",
            &["encrypted"],
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X,00\n\nAQ==\n-----END RSA PRIVATE KEY-----\n",
            &["encrypted"],
        ),
        ("AAAA\n-----END CERTIFICATE-----\n", &[]),
        ("AAAA\n-----BEGIN CERTIF", &["broken: a block that is cut off in its first line"]),
        ("AAAA\n---", &["broken: a block that is cut off in its first line"]),
        ("AAAA\n---\n", &[]),
        ("-----BEGIN CERTIFICATE-----\nAQID\n", &["broken: a PEM block `CERTIFICATE` without an END line"]),
        (
            "-----BEGIN CERTIFICATE-----\nA\u{2764}\n-----END CERTIFICATE-----\n",
            &["broken: a PEM block `CERTIFICATE` with invalid base64"],
        ),
    ];
    for (text, wanted) in rows {
        assert_eq!(kinds(text), wanted, "{text:?}");
    }
}

#[test]
fn cleaned_lists_each_thing_once() {
    const BLOCK: &str = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    let rows: [(String, &[&str]); 10] = [
        (BLOCK.into(), &[]),
        (BLOCK.repeat(2).replace('\n', "\r\n"), &["line endings"]),
        (BLOCK.replacen('\n', "\r", 1).replacen('\n', "\r\n", 1), &["line endings"]),
        (format!("\u{feff}{BLOCK}"), &["a byte order mark"]),
        (format!("{BLOCK}\u{feff}{BLOCK}"), &["a byte order mark"]),
        (BLOCK.replace('\n', "\n \n"), &["whitespace"]),
        (BLOCK.trim_end().repeat(2), &["a missing newline"]),
        (BLOCK.replace("CERT", "X509 CERT").repeat(2), &["a non-standard label"]),
        (format!("a\n{BLOCK}b\n"), &["text outside the blocks"]),
        (format!("{BLOCK}-----END A-----\n-----END A-----\n"), &["the rest of an older file"]),
    ];
    for (text, wanted) in rows {
        let cleaned = parse(text.as_bytes()).cleaned;
        assert_eq!(cleaned.into_iter().collect::<Vec<_>>(), wanted, "{text:?}");
    }
}

#[test]
fn too_many_blocks_are_refused() {
    let all = "-----BEGIN A-----\n-----END A-----\n".repeat(MAX_BLOCKS);
    assert_eq!(kinds(&all).len(), MAX_BLOCKS);
    assert_eq!(kinds(&(all + "-----BEGIN A-----\n")), ["broken: more than 64 PEM blocks"]);
}

#[test]
fn encoded_blocks_parse_back() {
    let der: Vec<u8> = (0..200).collect();
    let text = encode("CERTIFICATE", &der);
    assert!(text.expose().lines().all(|line| line.len() <= 64));
    assert!(
        matches!(parse(text.expose().as_bytes()).blocks.as_slice(), [Block::Certificate(back)] if *back == der)
    );
}

fn certificates(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    super::certificates(file).collect()
}

#[test]
fn damaged_bundle_is_rejected_whole() {
    let block = "-----BEGIN CERTIFICATE-----\nAQ\r\nID\n-----END CERTIFICATE-----\n";
    assert_eq!(certificates(format!("# one\n{block}# two\n{block}").as_bytes()).unwrap().len(), 2);
    for (text, blocks) in
        [("#\n", 1), ("#\r", 1), ("\u{feff} \t", 1), ("-----END X-----", 1), ("#", 0), ("# \t", 0)]
    {
        let read = certificates(format!("{text}{block}").as_bytes()).unwrap();
        assert_eq!(
            (read.len(), parse(format!("{text}{block}").as_bytes()).blocks.len()),
            (blocks, blocks),
            "{text}"
        );
    }
    assert_eq!(certificates(b"").unwrap().len(), 0);
    for damaged in [
        "-----BEGIN CERTIFICATE-----\nAQID",
        "-----BEGIN CERTIFICATE-----\nA?ID\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nAQID\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----",
    ] {
        assert!(certificates(damaged.as_bytes()).is_none(), "{damaged}");
    }
}

/// Covers common lengths of certificates and lines.
#[test]
fn certificate_is_decoded_however_wrapped() {
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    for length in [1, 47, 48, 49, 95, 96, 97, 500] {
        let der: Vec<u8> = (0..length).map(|byte: u32| byte.to_le_bytes()[0]).collect();
        let base64 = STANDARD.encode(&der);
        let in_lines = |width: usize, end: &str| {
            let lines = base64.as_bytes().chunks(width);
            lines.flat_map(|line| [std::str::from_utf8(line).unwrap(), end]).collect::<String>()
        };
        let bodies = [
            format!("\n{}", in_lines(64, "\n")),
            format!("\n{}", in_lines(64, "\n").trim_end()),
            format!("\n{}\n", in_lines(64, "\n")),
            format!("\r\n{}", in_lines(64, "\r\n")),
            format!("\n{}", in_lines(64, " \n")),
            format!("\n{}", in_lines(64, "\n  ")),
            format!("\n{}", in_lines(76, "\n")),
            format!("\n{}", in_lines(60, "\n")),
            base64.clone(),
        ];
        for body in &bodies {
            // The text after the block may look like a line of the body.
            for after in ["", "\n", "\n# a\n", &format!("\n{}\n", "#".repeat(41)), "\nCA \u{e9}\n"] {
                let bundle = format!("{begin}{body}{end}{after}").repeat(3);
                let read = certificates(bundle.as_bytes()).unwrap();
                assert!(read.len() == 3 && read.iter().all(|read| *read == der), "{bundle}");
                let damaged = bundle.replacen(body, &body.replacen(&base64[..1], "?", 1), 1);
                assert!(certificates(damaged.as_bytes()).is_none(), "{damaged}");
            }
        }
    }
}
