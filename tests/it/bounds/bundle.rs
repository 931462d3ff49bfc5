//! Hostile certificate and key files.

use super::Content::{At, Endless, Silent, Sparse, Text};
use super::{MIB, MOST_MEMORY, all_end_within_bounds, expect, filled_with};
use crate::harness::der::{self, ForgedCert};
use crate::harness::{Lineage, edgecert_with_memory};

fn certificate(names: &[&[u8]]) -> String {
    ForgedCert { names: names.to_vec(), ..ForgedCert::default() }.pem()
}

/// Sequences within sequences.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(Vec::new(), |inner, _| der::sequence(&[inner]))
}

#[test]
fn no_certificate_file_takes_more_than_64_mb() {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----\n";
    const TINY: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    const OTHER: &str = "-----BEGIN A-----\n-----END A-----\n";
    let many: Vec<&[u8]> = vec![b"a"; 200_000];
    let no_names: Vec<&[u8]> = vec![b""; 300_000];
    let large: Vec<&[u8]> = vec![b"a.example"; 900];
    let chain_of_large = (0..64).map(|n| {
        ForgedCert { names: large.clone(), subject: &format!("{n}"), ..ForgedCert::default() }.pem()
    });
    let distinct = (0..3000).map(|n| ForgedCert { subject: &format!("{n}"), ..ForgedCert::default() }.pem());
    let whole = |text: String| Text(text.into_bytes());
    let too_many = "holds more than 256 PEM blocks";
    let no_block = "it contains no PEM block";
    let rows = [
        ("empty", Text(Vec::new()), 65, "it is empty"),
        ("100 MB", Sparse(100 << 20), 66, "larger than 1 MiB"),
        ("a thousand gigabytes", Sparse(1 << 40), 66, "larger than 1 MiB"),
        ("zeros without end", At("/dev/zero"), 66, "larger than 1 MiB"),
        ("a pipe without end", Endless("-----BEGIN CERTIFICATE-----"), 66, "larger than 1 MiB"),
        ("a pipe with nothing in it", Silent, 65, "it is empty"),
        ("a directory", At("/"), 66, "it is a directory"),
        ("nothing", At("/dev/null"), 65, "it is empty"),
        ("begins", filled_with(MIB, BEGIN), 65, too_many),
        ("ends", filled_with(MIB, "-----END A-----\n"), 65, no_block),
        ("begins in one line", filled_with(MIB, "----------BEGIN "), 65, too_many),
        ("empty blocks", filled_with(MIB, OTHER), 65, too_many),
        ("damaged blocks", filled_with(MIB, TINY), 65, too_many),
        ("blocks that end as another", filled_with(MIB, &TINY.replace("END ", "END X")), 65, too_many),
        ("certificates", whole(distinct.collect::<String>()[..MIB].to_owned()), 65, too_many),
        ("large certificates", whole(chain_of_large.collect()), 65, "64 possible leaf certificates"),
        ("copies", filled_with(MIB, &certificate(&[b"a.example"])), 65, too_many),
        ("names", whole(certificate(&many)), 65, "more than TLS clients accept"),
        ("empty names", whole(certificate(&no_names)), 65, "more than TLS clients accept"),
        ("nesting", whole(der::pem("CERTIFICATE", &nested(20_000))), 65, "more than TLS clients accept"),
        ("less nesting", whole(der::pem("CERTIFICATE", &nested(15_000))), 65, "is not an X.509 certificate"),
        ("a long line", filled_with(MIB, "x"), 65, no_block),
        ("line feeds", filled_with(MIB, "\n"), 65, no_block),
        (
            "line feeds in a block",
            whole(BEGIN.to_owned() + &"\n".repeat(MIB - 99)),
            65,
            "without an END line",
        ),
        ("lone CR in a block", whole(BEGIN.to_owned() + &"\r".repeat(MIB - 99)), 65, "without an END line"),
        ("short lines", whole(BEGIN.to_owned() + &"a\n".repeat(MIB / 2 - 99)), 65, "without an END line"),
        ("a long label", whole(TINY.replace("CERT", &"A ".repeat(MIB / 5))), 65, "only an `A A A"),
        ("not UTF-8", Text(vec![0xff; MIB]), 65, no_block),
        ("UTF-16", Text([0xff, 0xfe].repeat(MIB / 2)), 65, "it is UTF-16 text"),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    all_end_within_bounds(&rows, |(name, content, code, words)| {
        let hook = edgecert_with_memory(MOST_MEMORY);
        let cert = content.plant(hook.write_file("cert.pem", "").with_extension("hostile"));
        let hook = hook.args(["check".as_ref(), "--json".as_ref(), "--cert".as_ref(), cert.path.as_os_str()]);
        expect(
            name,
            &hook.args(["--key".as_ref(), lineage.file("privkey.pem").as_os_str()]).run(),
            *code,
            words,
        )
    });
}

#[test]
fn no_key_file_takes_more_than_64_mb() {
    let pkcs1 = |modulus, exponent| {
        Text(der::pem("RSA PRIVATE KEY", &der::rsa_private_key(modulus, exponent)).into_bytes())
    };
    let tiny = |number: u32| der::pem("PRIVATE KEY", &number.to_be_bytes());
    let own_numbers = "its primes and exponents do not match its modulus";
    let rows = [
        ("100 MB", Sparse(100 << 20), 66, "larger than 1 MiB"),
        ("a pipe without end", Endless("-----BEGIN PRIVATE KEY-----"), 66, "larger than 1 MiB"),
        ("random bytes without end", At("/dev/urandom"), 66, "larger than 1 MiB"),
        (
            "thousands of keys",
            Text((0..16_000).map(tiny).collect::<String>().into_bytes()),
            65,
            "more than 256",
        ),
        (
            "as many as are read",
            Text((0..250).map(tiny).collect::<String>().into_bytes()),
            65,
            "250 different",
        ),
        (
            "nesting",
            Text(der::pem("PRIVATE KEY", &nested(100_000)).into_bytes()),
            65,
            "invalid PKCS#8 encoding",
        ),
        (
            "one long line",
            Text(der::pem("PRIVATE KEY", &vec![0x30; 700_000]).into_bytes()),
            65,
            "invalid PKCS#8 encoding",
        ),
        ("RSA of 8192 bits", pkcs1(8192, 17), 65, own_numbers),
        ("RSA of 8193 bits", pkcs1(8193, 17), 65, "of unsupported type RSA-8193"),
        ("RSA of 16384 bits", pkcs1(16_384, 17), 65, "of unsupported type RSA-16384"),
        ("RSA of a million bits", pkcs1(1_000_000, 17), 65, "of unsupported type RSA-1000000"),
        ("an exponent of 2048 bits", pkcs1(2048, 2048), 65, own_numbers),
        ("an exponent of a million bits", pkcs1(2048, 1_000_000), 65, own_numbers),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    all_end_within_bounds(&rows, |(name, content, code, words)| {
        let hook = edgecert_with_memory(MOST_MEMORY);
        let key = content.plant(hook.write_file("key.pem", "").with_extension("hostile"));
        let hook = hook.args(["check".as_ref(), "--key".as_ref(), key.path.as_os_str()]);
        let hook = hook.args(["--cert".as_ref(), lineage.file("fullchain.pem").as_os_str()]);
        expect(name, &hook.run(), *code, words)
    });
}
