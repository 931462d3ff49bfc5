//! Hostile certificate and key files.

use super::Content::{EmptyPipe, EndlessPipe, Existing, Piped, Text, Zeros};
use super::{MAX_MEMORY, MIB, assert_all_bounded, check_output, repeated};
use crate::harness::der::{self, ForgedCert};
use crate::harness::{Lineage, edgecert_with_memory};

fn certificate(names: &[&[u8]]) -> String {
    ForgedCert { names: names.to_vec(), ..ForgedCert::default() }.pem()
}

/// Encodes nested sequences.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(Vec::new(), |inner, _| der::sequence(&[inner]))
}

#[test]
fn certificate_files_stay_within_64_mb() {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----\n";
    const TINY: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let many_names: Vec<&[u8]> = vec![b"a"; 200_000];
    let no_names: Vec<&[u8]> = vec![b""; 300_000];
    let large: Vec<&[u8]> = vec![b"a.example"; 900];
    let chain_of_large = (0..64).map(|n| {
        ForgedCert { names: large.clone(), subject: &format!("{n}"), ..ForgedCert::default() }.pem()
    });
    let distinct = (0..3000).map(|n| ForgedCert { subject: &format!("{n}"), ..ForgedCert::default() }.pem());
    let whole = |text: String| Text(text.into_bytes());
    let piped = |text: String| Piped(text.into_bytes());
    let filled = |text: &str| piped(text.repeat(MIB / text.len()));
    let too_many = "holds more than 64 PEM blocks";
    let (no_block, no_end) = ("it contains no PEM block", "without an END line");
    let rows = [
        ("100 MB", Zeros(100 << 20), 66, "larger than 1 MiB"),
        ("endless zeros", Existing("/dev/zero"), 66, "larger than 1 MiB"),
        ("endless pipe", EndlessPipe("-----BEGIN CERTIFICATE-----"), 66, "larger than 1 MiB"),
        ("empty pipe", EmptyPipe, 65, "it is empty"),
        ("directory", Existing("/"), 66, "it is a directory"),
        ("BEGIN in one line", repeated(MIB, "----------BEGIN "), 65, too_many),
        ("damaged blocks", repeated(MIB, TINY), 65, too_many),
        ("certificates", whole(distinct.collect::<String>()[..MIB].to_owned()), 65, too_many),
        ("large certificates", whole(chain_of_large.collect()), 65, "64 possible leaf certificates"),
        ("names", whole(certificate(&many_names)), 65, "with more than 65,535 bytes"),
        ("empty names", whole(certificate(&no_names)), 65, "with more than 65,535 bytes"),
        ("nesting", whole(der::pem("CERTIFICATE", &nested(20_000))), 65, "with more than 65,535 bytes"),
        ("one long line", filled("x"), 65, no_block),
        ("line feeds in a block", whole(BEGIN.to_owned() + &"\n".repeat(MIB - 99)), 65, no_end),
        ("short lines", piped(BEGIN.to_owned() + &"a\n".repeat(MIB / 2 - 99)), 65, no_end),
        ("long label", piped(TINY.replace("CERT", &"A ".repeat(MIB / 5))), 65, "only a PEM block `A A A"),
        ("not UTF-8", Piped(vec![0xff; MIB]), 65, no_block),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    assert_all_bounded(&rows, |(name, content, code, message)| {
        let hook = edgecert_with_memory(MAX_MEMORY);
        let cert = content.create(hook.write_file("cert.pem", "").with_extension("hostile"));
        let hook = hook.args(["check".as_ref(), "--json".as_ref(), "--cert".as_ref(), cert.path.as_os_str()]);
        let hook = hook.args(["--key".as_ref(), lineage.file("privkey.pem").as_os_str()]);
        check_output(name, &hook.run(), *code, message)
    });
}

#[test]
fn key_files_stay_within_64_mb() {
    let pkcs1 = |modulus, exponent| {
        Text(der::pem("RSA PRIVATE KEY", &der::rsa_private_key(modulus, exponent)).into_bytes())
    };
    let pkcs8 = |der: &[u8]| der::pem("PRIVATE KEY", der).into_bytes();
    let tiny = |number: u32| pkcs8(&number.to_be_bytes());
    let invalid = "invalid PKCS#8 encoding";
    let own_numbers = "its primes and exponents do not match its modulus";
    let rows = [
        ("100 MB", Zeros(100 << 20), 66, "larger than 1 MiB"),
        ("endless pipe", EndlessPipe("-----BEGIN PRIVATE KEY-----"), 66, "larger than 1 MiB"),
        ("thousands of keys", Text((0..16_000).flat_map(tiny).collect()), 65, "more than 64"),
        ("nesting", Text(pkcs8(&nested(100_000))), 65, invalid),
        ("one long line", Text(pkcs8(&vec![0x30; 700_000])), 65, invalid),
        ("RSA of 8192 bits", pkcs1(8192, 17), 65, own_numbers),
        ("RSA of 8193 bits", pkcs1(8193, 17), 65, "of unsupported type RSA-8193"),
        ("RSA of a million bits", pkcs1(1_000_000, 17), 65, "invalid RSA encoding"),
        ("exponent of 2048 bits", pkcs1(2048, 2048), 65, own_numbers),
        ("exponent of a million bits", pkcs1(2048, 1_000_000), 65, "invalid RSA encoding"),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    assert_all_bounded(&rows, |(name, content, code, message)| {
        let hook = edgecert_with_memory(MAX_MEMORY);
        let key = content.create(hook.write_file("key.pem", "").with_extension("hostile"));
        let hook = hook.args(["check".as_ref(), "--key".as_ref(), key.path.as_os_str()]);
        let hook = hook.args(["--cert".as_ref(), lineage.file("fullchain.pem").as_os_str()]);
        check_output(name, &hook.run(), *code, message)
    });
}
