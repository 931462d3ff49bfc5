//! The check `purpose`: leaves that TLS clients reject as server certificates.

use super::check_cert;
use crate::harness::der::{self, BIT_STRING, ForgedCert, INTEGER, extension, oid, sequence, tlv};
use crate::harness::{Lineage, edgecert, openssl, request_lines, sandbox};

const SERVER: &str = "1.3.6.1.5.5.7.3.1";
const CLIENT: &str = "1.3.6.1.5.5.7.3.2";
const CODE: &str = "1.3.6.1.5.5.7.3.3";
const EMAIL: &str = "1.3.6.1.5.5.7.3.4";
const TIME_STAMPING: &str = "1.3.6.1.5.5.7.3.8";
const OCSP: &str = "1.3.6.1.5.5.7.3.9";
const ANY: &str = "2.5.29.37.0";

const MUST_STAPLE: &str = "1.3.6.1.5.5.7.1.24";
const SCT_LIST: &str = "1.3.6.1.4.1.11129.2.4.2";
const CT_POISON: &str = "1.3.6.1.4.1.11129.2.4.3";
const NULL: &[u8] = &[5, 0];

const OK: &str = "ok: may authenticate a TLS server";

/// Name of the case, extensions of the leaf, exit code, and finding.
type Row = (String, Vec<Vec<u8>>, i32, String);

/// Runs `check` on leaves with an RSA and an EC key. `FILE` in a finding stands for the certificate file.
fn assert_rows(rows: &[Row]) {
    for (name, extensions, code, finding) in rows {
        for (key_type, key) in [("RSA", der::rsa_public_key(2048)), ("EC", der::ec_public_key())] {
            let cert = ForgedCert { key, extensions: extensions.clone(), ..ForgedCert::default() }.pem();
            let (found_code, output) = check_cert(&cert, &["--at", "2026-06-01T00:00:00Z"]);
            let (status, detail) = finding.split_once(": ").unwrap();
            let sign = ["* ok", "! warn", "x fail"].into_iter().find(|sign| sign.ends_with(status)).unwrap();
            let line = format!("  {} purpose   {}\n", &sign[..1], detail.replace("FILE", "HOME/cert.pem"));
            assert!(output.contains(&line), "{name}, {key_type}: no {line:?} in\n{output}");
            assert_eq!(found_code, *code, "{name}, {key_type}: {output}");
            assert_eq!(output.matches(" purpose   ").count(), 1, "{name}, {key_type}: {output}");
            assert_eq!(output.contains("edgecert: hint: "), *code != 0, "{name}, {key_type}: {output}");
        }
    }
}

fn row(name: &str, extensions: Vec<Vec<u8>>, code: i32, finding: &str) -> Row {
    (name.to_owned(), extensions, code, finding.to_owned())
}

fn extended_key_usage(purposes: &[&str], is_critical: bool) -> Vec<u8> {
    let purposes: Vec<Vec<u8>> = purposes.iter().map(|purpose| oid(purpose)).collect();
    extension("2.5.29.37", is_critical, &sequence(&purposes))
}

#[test]
fn extended_key_usage_needs_server_auth() {
    let refused = |found: &str| {
        format!("fail: FILE has the extended key usage {found}, without serverAuth; TLS clients reject it")
    };
    let doubtful = |found: &str| {
        format!(
            "warn: FILE has the extended key usage {found}, without serverAuth; some TLS clients reject it"
        )
    };
    let cases: [(&[&str], i32, String); 22] = [
        (&[SERVER], 0, OK.into()),
        (&[SERVER, CLIENT], 0, OK.into()),
        (&[CLIENT, SERVER], 0, OK.into()),
        (&[SERVER, ANY], 0, OK.into()),
        (&[SERVER, EMAIL], 0, OK.into()),
        (&[SERVER, SERVER], 0, OK.into()),
        (&[ANY], 0, doubtful("anyExtendedKeyUsage")),
        (&[ANY, CLIENT], 0, doubtful("anyExtendedKeyUsage and clientAuth")),
        (&[CLIENT, ANY], 0, doubtful("clientAuth and anyExtendedKeyUsage")),
        (&[CLIENT], 65, refused("clientAuth")),
        (&[CODE], 65, refused("codeSigning")),
        (&[EMAIL], 65, refused("emailProtection")),
        (&[TIME_STAMPING], 65, refused("timeStamping")),
        (&[OCSP], 65, refused("OCSPSigning")),
        (&[CLIENT, EMAIL], 65, refused("clientAuth and emailProtection")),
        (&[CODE, CLIENT], 65, refused("codeSigning and clientAuth")),
        (&[CLIENT, CLIENT], 65, refused("clientAuth and clientAuth")),
        (&["1.2.3"], 65, refused("1.2.3")),
        (&[CLIENT, "1.2.3"], 65, refused("clientAuth and 1.2.3")),
        // Server Gated Cryptography of the 1990s.
        (&["1.3.6.1.4.1.311.10.3.3"], 65, refused("1.3.6.1.4.1.311.10.3.3")),
        (&["2.16.840.1.113730.4.1"], 65, refused("2.16.840.1.113730.4.1")),
        (
            &[],
            65,
            "fail: FILE has an empty extended key usage, without serverAuth; TLS clients reject it".into(),
        ),
    ];
    let rows = cases.iter().flat_map(|(purposes, code, finding)| {
        [false, true].map(|is_critical| {
            let name = format!("{purposes:?}, critical: {is_critical}");
            row(&name, vec![extended_key_usage(purposes, is_critical)], *code, finding)
        })
    });
    assert_rows(&rows.collect::<Vec<Row>>());
}

#[test]
fn malformed_usage_extensions_are_refused() {
    let usages = sequence(&[oid(SERVER)]);
    let bits = tlv(BIT_STRING, &[7, 0x80]);
    let with_tail = |value: &[u8]| [value, NULL].concat();
    let disguised = tlv(INTEGER, der::content(&oid(SERVER)));
    let cases: [(&str, &str, Vec<u8>, &str); 11] = [
        ("nothing", "2.5.29.37", vec![], "extKeyUsage"),
        ("NULL", "2.5.29.37", NULL.into(), "extKeyUsage"),
        ("text", "2.5.29.37", b"serverAuth".into(), "extKeyUsage"),
        ("a number in place of a purpose", "2.5.29.37", sequence(&[tlv(INTEGER, &[1])]), "extKeyUsage"),
        ("serverAuth as a number", "2.5.29.37", sequence(&[disguised]), "extKeyUsage"),
        ("truncated", "2.5.29.37", usages[..usages.len() - 1].into(), "extKeyUsage"),
        ("bytes after the purposes", "2.5.29.37", with_tail(&usages), "extKeyUsage"),
        ("NULL", "2.5.29.15", NULL.into(), "keyUsage"),
        ("bytes after the bits", "2.5.29.15", with_tail(&bits), "keyUsage"),
        ("NULL", "2.5.29.19", NULL.into(), "basicConstraints"),
        ("bytes after the constraints", "2.5.29.19", with_tail(&sequence(&[])), "basicConstraints"),
    ];
    let rows = cases.iter().flat_map(|(name, id, value, extension_name)| {
        [false, true].map(|is_critical| {
            let finding =
                format!("fail: FILE has a malformed {extension_name} extension; TLS clients reject it");
            row(&format!("{extension_name}: {name}"), vec![extension(id, is_critical, value)], 65, &finding)
        })
    });
    assert_rows(&rows.collect::<Vec<Row>>());
}

#[test]
fn ca_certificates_are_refused() {
    let ca = tlv(1, &[0xff]);
    let limit = tlv(INTEGER, &[0]);
    let refused = "fail: FILE has a CA certificate (CA:TRUE) instead of a server's";
    let cases: [(&str, Vec<Vec<u8>>, i32, &str); 4] = [
        ("CA:TRUE", vec![ca.clone()], 65, refused),
        ("CA:TRUE with a path length", vec![ca, limit.clone()], 65, refused),
        ("CA:FALSE", vec![], 0, OK),
        ("a path length alone", vec![limit], 0, OK),
    ];
    let rows = cases.iter().flat_map(|(name, fields, code, finding)| {
        [false, true].map(|is_critical| {
            row(name, vec![extension("2.5.29.19", is_critical, &sequence(fields))], *code, finding)
        })
    });
    assert_rows(&rows.collect::<Vec<Row>>());
}

/// Encodes a key usage with these bits, numbered as in RFC 5280.
fn key_usage(bits: &[u8], is_critical: bool) -> Vec<u8> {
    let flags = bits.iter().fold(0_u16, |flags, bit| flags | 0x8000 >> bit);
    let content = match flags.to_be_bytes() {
        [0, 0] => vec![0],
        [first, 0] => vec![u8::try_from(first.trailing_zeros()).unwrap(), first],
        [first, second] => vec![u8::try_from(second.trailing_zeros()).unwrap(), first, second],
    };
    extension("2.5.29.15", is_critical, &tlv(BIT_STRING, &content))
}

#[test]
fn key_usage_must_suit_a_server() {
    let refused = |found: &str| {
        format!(
            "fail: FILE has the key usage {found}, which permits only signing certificates or CRLs; TLS clients reject it"
        )
    };
    let doubtful = |found: &str| {
        format!(
            "warn: FILE has {found}, without digitalSignature or keyEncipherment; many TLS clients reject it"
        )
    };
    let cases: [(&[u8], i32, String); 18] = [
        (&[0], 0, OK.into()),
        (&[2], 0, OK.into()),
        (&[0, 2], 0, OK.into()),
        (&[0, 4], 0, OK.into()),
        (&[0, 1], 0, OK.into()),
        (&[0, 5, 6], 0, OK.into()),
        (&[0, 1, 2, 3, 4, 5, 6, 7, 8], 0, OK.into()),
        (&[1], 0, doubtful("the key usage nonRepudiation")),
        (&[3], 0, doubtful("the key usage dataEncipherment")),
        (&[4], 0, doubtful("the key usage keyAgreement")),
        (&[7], 0, doubtful("the key usage encipherOnly")),
        (&[8], 0, doubtful("the key usage decipherOnly")),
        (&[4, 8], 0, doubtful("the key usage keyAgreement and decipherOnly")),
        (&[1, 5], 0, doubtful("the key usage nonRepudiation and keyCertSign")),
        (&[], 0, doubtful("an empty key usage")),
        (&[5], 65, refused("keyCertSign")),
        (&[6], 65, refused("cRLSign")),
        (&[5, 6], 65, refused("keyCertSign and cRLSign")),
    ];
    let rows = cases.iter().flat_map(|(bits, code, finding)| {
        [false, true].map(|is_critical| {
            row(&format!("bits {bits:?}"), vec![key_usage(bits, is_critical)], *code, finding)
        })
    });
    assert_rows(&rows.collect::<Vec<Row>>());
}

#[test]
fn precertificates_are_refused() {
    let refused = "fail: FILE has a precertificate (CT poison, 1.3.6.1.4.1.11129.2.4.3) instead of the final certificate";
    let server = || extended_key_usage(&[SERVER], false);
    let poison = |is_critical| extension(CT_POISON, is_critical, NULL);
    assert_rows(&[
        row("critical poison", vec![server(), poison(true)], 65, refused),
        row("poison first", vec![poison(true), server()], 65, refused),
        row("poison alone", vec![poison(true)], 65, refused),
        row("poison that is not critical", vec![server(), poison(false)], 65, refused),
        row("poison with a value", vec![extension(CT_POISON, true, b"x")], 65, refused),
        row("no extension", vec![], 0, OK),
        row("SCTs", vec![server(), extension(SCT_LIST, false, &tlv(4, &[0, 0]))], 0, OK),
        row("malformed SCTs", vec![server(), extension(SCT_LIST, false, NULL)], 0, OK),
    ]);
}

#[test]
fn critical_extensions_must_be_known() {
    let refused = |found: &str| {
        format!("fail: FILE has critical extensions unknown to TLS clients, which reject it: {found}")
    };
    let doubtful = |found: &str| {
        format!(
            "warn: FILE has extensions that should not be marked as critical: {found}; many TLS clients reject it"
        )
    };
    let feature = sequence(&[tlv(INTEGER, &[5])]);
    let critical = |id| extension(id, true, NULL);
    let mut rows = vec![
        row("must-staple", vec![extension(MUST_STAPLE, false, &feature)], 0, OK),
        row(
            "critical must-staple",
            vec![extension(MUST_STAPLE, true, &feature)],
            0,
            &doubtful("1.3.6.1.5.5.7.1.24 (TLS feature (must-staple))"),
        ),
        row("critical SCTs", vec![critical(SCT_LIST)], 0, &doubtful("1.3.6.1.4.1.11129.2.4.2 (SCT list)")),
        row(
            "critical key identifiers",
            vec![critical("2.5.29.14"), critical("2.5.29.35")],
            0,
            &doubtful("2.5.29.14 (subjectKeyIdentifier) and 2.5.29.35 (authorityKeyIdentifier)"),
        ),
        row("unknown", vec![extension("1.2.3.4", false, NULL)], 0, OK),
        row("unknown with an empty value", vec![extension("1.2.3.4", false, &[])], 0, OK),
        row("unknown and critical", vec![critical("1.2.3.4")], 65, &refused("1.2.3.4")),
        row("large numbers", vec![critical("2.999.4294967296")], 65, &refused("2.999.4294967296")),
        row("several", vec![critical("1.2.3.4"), critical("1.2.3.5")], 65, &refused("1.2.3.4 and 1.2.3.5")),
        row("unknown beside the standard ones", vec![critical("2.5.29.99")], 65, &refused("2.5.29.99")),
        row("begins like a known one", vec![critical("2.5.29.32.1")], 65, &refused("2.5.29.32.1")),
    ];
    for known in ["2.5.29.30", "2.5.29.31", "2.5.29.32", "2.5.29.33", "2.5.29.36", "2.5.29.54"] {
        rows.push(row(known, vec![critical(known)], 0, OK));
    }
    assert_rows(&rows);
}

#[test]
fn all_faults_of_a_leaf_are_reported() {
    let extensions = vec![
        extension("2.5.29.19", true, &sequence(&[tlv(1, &[0xff])])),
        key_usage(&[5, 6], true),
        extended_key_usage(&[CLIENT], false),
        extension(CT_POISON, true, NULL),
        extension("1.2.3.4", true, NULL),
    ];
    let cert = ForgedCert { extensions, ..ForgedCert::default() }.pem();
    let (code, output) = check_cert(&cert, &["--at", "2026-06-01T00:00:00Z"]);
    assert_eq!((code, output.matches("\n  x purpose   ").count()), (65, 5), "{output}");
}

#[test]
fn deploy_refuses_client_certificates() {
    let service = sandbox(&["a.example"]);
    let lineage = Lineage::from_openssl(
        &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        &["-days", "20"],
    );
    let deploy = || edgecert().called_by_certbot(&lineage).against(&service);
    lineage.write("names.cnf", "subjectAltName=DNS:a.example\nextendedKeyUsage=clientAuth\n");
    let mut sign = vec!["x509", "-req", "-in", "leaf.csr", "-CA", "ca.crt", "-CAkey", "ca.key"];
    sign.extend(["-days", "20", "-extfile", "names.cnf", "-out", "fullchain.pem"]);
    openssl(lineage.path(), &sign);
    let output = deploy().exits_with(65);
    let refusal = "edgecert: error: LINEAGE/fullchain.pem has the extended key usage clientAuth, without serverAuth; TLS clients reject it; nothing was sent\n\
        edgecert: hint: issue it as a server certificate, with the extended key usage serverAuth\n";
    assert!(output.snapshot().contains(refusal), "{}", output.snapshot());
    assert_eq!(request_lines(&service), Vec::<String>::new());
    lineage.write("fullchain.pem", &lineage.read("cert.pem"));
    deploy().succeeds();
}
