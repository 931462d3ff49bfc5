//! The check `purpose`: leaves that TLS clients reject as server certificates.

use super::Input;
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

const OK: &str = "* may authenticate a TLS server";

/// Name of the case, extensions of the leaf, and finding.
type Row = (String, Vec<Vec<u8>>, String);

/// Checks leaves with an RSA and an EC key.
fn assert_rows(rows: &[Row]) {
    for (name, extensions, finding) in rows {
        for (key_type, key) in [("RSA", der::rsa_public_key(2048)), ("EC", der::ec_public_key())] {
            let cert = ForgedCert { key, extensions: extensions.clone(), ..ForgedCert::default() }.pem();
            let checked = Input { cert: cert.as_bytes(), ..Input::default() }.check();
            let name = format!("{name}, {key_type}");
            let (sign, detail) = finding.split_once(' ').unwrap();
            let hint = if sign == "*" { "  " } else { "    hint: " };
            checked.assert_finds(&name, &format!("{sign} purpose   {detail}\n{hint}"));
            assert_eq!(checked.lines().matches(" purpose   ").count(), 1, "{name}: {}", checked.lines());
        }
    }
}

fn row(name: &str, extensions: Vec<Vec<u8>>, finding: &str) -> Row {
    (name.to_owned(), extensions, finding.to_owned())
}

fn extended_key_usage(purposes: &[&str], is_critical: bool) -> Vec<u8> {
    let purposes: Vec<Vec<u8>> = purposes.iter().map(|purpose| oid(purpose)).collect();
    extension("2.5.29.37", is_critical, &sequence(&purposes))
}

#[test]
fn extended_key_usage_needs_server_auth() {
    let refused = |found: &str| {
        format!("x cert.pem has the extended key usage {found}, without serverAuth; TLS clients reject it")
    };
    let doubtful = |found: &str| {
        format!(
            "! cert.pem has the extended key usage {found}, without serverAuth; some TLS clients reject it"
        )
    };
    let cases: [(&[&str], String); 22] = [
        (&[SERVER], OK.into()),
        (&[SERVER, CLIENT], OK.into()),
        (&[CLIENT, SERVER], OK.into()),
        (&[SERVER, ANY], OK.into()),
        (&[SERVER, EMAIL], OK.into()),
        (&[SERVER, SERVER], OK.into()),
        (&[ANY], doubtful("anyExtendedKeyUsage")),
        (&[ANY, CLIENT], doubtful("anyExtendedKeyUsage and clientAuth")),
        (&[CLIENT, ANY], doubtful("clientAuth and anyExtendedKeyUsage")),
        (&[CLIENT], refused("clientAuth")),
        (&[CODE], refused("codeSigning")),
        (&[EMAIL], refused("emailProtection")),
        (&[TIME_STAMPING], refused("timeStamping")),
        (&[OCSP], refused("OCSPSigning")),
        (&[CLIENT, EMAIL], refused("clientAuth and emailProtection")),
        (&[CODE, CLIENT], refused("codeSigning and clientAuth")),
        (&[CLIENT, CLIENT], refused("clientAuth and clientAuth")),
        (&["1.2.3"], refused("1.2.3")),
        (&[CLIENT, "1.2.3"], refused("clientAuth and 1.2.3")),
        // Server Gated Cryptography of the 1990s.
        (&["1.3.6.1.4.1.311.10.3.3"], refused("1.3.6.1.4.1.311.10.3.3")),
        (&["2.16.840.1.113730.4.1"], refused("2.16.840.1.113730.4.1")),
        (&[], "x cert.pem has an empty extended key usage, without serverAuth; TLS clients reject it".into()),
    ];
    let rows = cases.iter().flat_map(|(purposes, finding)| {
        [false, true].map(|is_critical| {
            let name = format!("{purposes:?}, critical: {is_critical}");
            row(&name, vec![extended_key_usage(purposes, is_critical)], finding)
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
                format!("x cert.pem has a malformed {extension_name} extension; TLS clients reject it");
            row(&format!("{extension_name}: {name}"), vec![extension(id, is_critical, value)], &finding)
        })
    });
    assert_rows(&rows.collect::<Vec<Row>>());
}

#[test]
fn ca_certificates_are_refused() {
    let ca = tlv(1, &[0xff]);
    let limit = tlv(INTEGER, &[0]);
    let refused = "x cert.pem has a CA certificate (CA:TRUE) instead of a server's";
    let cases: [(&str, Vec<Vec<u8>>, &str); 4] = [
        ("CA:TRUE", vec![ca.clone()], refused),
        ("CA:TRUE with a path length", vec![ca, limit.clone()], refused),
        ("CA:FALSE", vec![], OK),
        ("a path length alone", vec![limit], OK),
    ];
    let rows = cases.iter().flat_map(|(name, fields, finding)| {
        [false, true].map(|is_critical| {
            row(name, vec![extension("2.5.29.19", is_critical, &sequence(fields))], finding)
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
            "x cert.pem has the key usage {found}, which permits only signing certificates or CRLs; TLS clients reject it"
        )
    };
    let doubtful = |found: &str| {
        format!(
            "! cert.pem has {found}, without digitalSignature or keyEncipherment; many TLS clients reject it"
        )
    };
    let cases: [(&[u8], String); 18] = [
        (&[0], OK.into()),
        (&[2], OK.into()),
        (&[0, 2], OK.into()),
        (&[0, 4], OK.into()),
        (&[0, 1], OK.into()),
        (&[0, 5, 6], OK.into()),
        (&[0, 1, 2, 3, 4, 5, 6, 7, 8], OK.into()),
        (&[1], doubtful("the key usage nonRepudiation")),
        (&[3], doubtful("the key usage dataEncipherment")),
        (&[4], doubtful("the key usage keyAgreement")),
        (&[7], doubtful("the key usage encipherOnly")),
        (&[8], doubtful("the key usage decipherOnly")),
        (&[4, 8], doubtful("the key usage keyAgreement and decipherOnly")),
        (&[1, 5], doubtful("the key usage nonRepudiation and keyCertSign")),
        (&[], doubtful("an empty key usage")),
        (&[5], refused("keyCertSign")),
        (&[6], refused("cRLSign")),
        (&[5, 6], refused("keyCertSign and cRLSign")),
    ];
    let rows = cases.iter().flat_map(|(bits, finding)| {
        [false, true]
            .map(|is_critical| row(&format!("bits {bits:?}"), vec![key_usage(bits, is_critical)], finding))
    });
    assert_rows(&rows.collect::<Vec<Row>>());
}

#[test]
fn precertificates_are_refused() {
    let refused = "x cert.pem has a precertificate (CT poison, 1.3.6.1.4.1.11129.2.4.3) instead of the final certificate";
    let server = || extended_key_usage(&[SERVER], false);
    let poison = |is_critical| extension(CT_POISON, is_critical, NULL);
    assert_rows(&[
        row("critical poison", vec![server(), poison(true)], refused),
        row("poison first", vec![poison(true), server()], refused),
        row("poison alone", vec![poison(true)], refused),
        row("poison that is not critical", vec![server(), poison(false)], refused),
        row("poison with a value", vec![extension(CT_POISON, true, b"x")], refused),
        row("no extension", vec![], OK),
        row("SCTs", vec![server(), extension(SCT_LIST, false, &tlv(4, &[0, 0]))], OK),
        row("malformed SCTs", vec![server(), extension(SCT_LIST, false, NULL)], OK),
    ]);
}

#[test]
fn critical_extensions_must_be_known() {
    let refused = |found: &str| {
        format!("x cert.pem has critical extensions unknown to TLS clients, which reject it: {found}")
    };
    let doubtful = |found: &str| {
        format!(
            "! cert.pem has extensions that should not be marked as critical: {found}; many TLS clients reject it"
        )
    };
    let feature = sequence(&[tlv(INTEGER, &[5])]);
    let critical = |id| extension(id, true, NULL);
    let mut rows = vec![
        row("must-staple", vec![extension(MUST_STAPLE, false, &feature)], OK),
        row(
            "critical must-staple",
            vec![extension(MUST_STAPLE, true, &feature)],
            &doubtful("1.3.6.1.5.5.7.1.24 (TLS feature (must-staple))"),
        ),
        row("critical SCTs", vec![critical(SCT_LIST)], &doubtful("1.3.6.1.4.1.11129.2.4.2 (SCT list)")),
        row(
            "critical key identifiers",
            vec![critical("2.5.29.14"), critical("2.5.29.35")],
            &doubtful("2.5.29.14 (subjectKeyIdentifier) and 2.5.29.35 (authorityKeyIdentifier)"),
        ),
        row("unknown", vec![extension("1.2.3.4", false, NULL)], OK),
        row("unknown with an empty value", vec![extension("1.2.3.4", false, &[])], OK),
        row("unknown and critical", vec![critical("1.2.3.4")], &refused("1.2.3.4")),
        row("large numbers", vec![critical("1.3.4294967296")], &refused("1.3.4294967296")),
        row("several", vec![critical("1.2.3.4"), critical("1.2.3.5")], &refused("1.2.3.4 and 1.2.3.5")),
        row("unknown beside the standard ones", vec![critical("2.5.29.99")], &refused("2.5.29.99")),
        row("begins like a known one", vec![critical("2.5.29.32.1")], &refused("2.5.29.32.1")),
    ];
    for known in ["2.5.29.30", "2.5.29.31", "2.5.29.32", "2.5.29.33", "2.5.29.36", "2.5.29.54"] {
        rows.push(row(known, vec![extension(known, true, &sequence(&[]))], OK));
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
    let lines = Input { cert: cert.as_bytes(), ..Input::default() }.check().lines();
    assert_eq!(lines.matches("  x purpose   ").count(), 5, "{lines}");
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
