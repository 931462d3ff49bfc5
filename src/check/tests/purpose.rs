//! The check `purpose`: leaves that TLS clients reject as server certificates, and signatures that they reject.

use super::*;
use der::{BIT_STRING, INTEGER, oid, sequence, tlv};

const SERVER: &str = "1.3.6.1.5.5.7.3.1";
const CLIENT: &str = "1.3.6.1.5.5.7.3.2";
const CODE: &str = "1.3.6.1.5.5.7.3.3";
const ANY: &str = "2.5.29.37.0";

const BASIC_CONSTRAINTS: &str = "2.5.29.19";
const KEY_USAGE: &str = "2.5.29.15";
const EXTENDED_KEY_USAGE: &str = "2.5.29.37";
const MUST_STAPLE: &str = "1.3.6.1.5.5.7.1.24";
const SCT_LIST: &str = "1.3.6.1.4.1.11129.2.4.2";
const CT_POISON: &str = "1.3.6.1.4.1.11129.2.4.3";
const NULL: &[u8] = &[5, 0];

const OK: &str = "* may authenticate a TLS server";

/// Asserts the only finding about the purpose of a leaf with these extensions.
#[track_caller]
fn assert_found(extensions: &[Vec<u8>], finding: &str) {
    let cert = ForgedCert { extensions: extensions.to_vec(), ..ForgedCert::default() }.pem();
    let (sign, detail) = finding.split_once(' ').unwrap();
    let hint = if sign == "*" { "" } else { "  hint: " };
    Input::new(&cert).finds(finding, &format!("{sign} purpose: {detail}\n{hint}"));
    assert_eq!(Input::new(&cert).check().0.matches(" purpose: ").count(), 1, "{finding}");
}

/// Asserts the finding about a leaf with this extension, critical or not.
#[track_caller]
fn assert_found_either_way(id: &str, value: &[u8], finding: &str) {
    for is_critical in [false, true] {
        assert_found(&[extension(id, is_critical, value)], finding);
    }
}

fn extended_key_usage(purposes: &[&str]) -> Vec<u8> {
    sequence(&purposes.iter().map(|purpose| oid(purpose)).collect::<Vec<_>>())
}

#[test]
fn extended_key_usage_needs_server_auth() {
    let allowed: [&[&str]; 4] = [&[SERVER], &[SERVER, CLIENT], &[CLIENT, SERVER], &[SERVER, ANY]];
    for purposes in allowed {
        assert_found_either_way(EXTENDED_KEY_USAGE, &extended_key_usage(purposes), OK);
    }
    let doubtful: [&[&str]; 2] = [&[ANY], &[CLIENT, ANY]];
    let finding = "! cert.pem has an extended key usage without serverAuth; some TLS clients reject it";
    for purposes in doubtful {
        assert_found_either_way(EXTENDED_KEY_USAGE, &extended_key_usage(purposes), finding);
    }
    let refused: [&[&str]; 6] = [
        &[CLIENT],
        &[CODE, CLIENT],
        &[CLIENT, "1.2.3"],
        // Server Gated Cryptography of the 1990s.
        &["1.3.6.1.4.1.311.10.3.3"],
        &["2.16.840.1.113730.4.1"],
        &[],
    ];
    let finding = "x cert.pem has an extended key usage without serverAuth; TLS clients reject it";
    for purposes in refused {
        assert_found_either_way(EXTENDED_KEY_USAGE, &extended_key_usage(purposes), finding);
    }
}

#[test]
fn malformed_usage_extensions_are_refused() {
    let usages = extended_key_usage(&[SERVER]);
    let disguised = sequence(&[tlv(INTEGER, der::content(&oid(SERVER)))]);
    let with_tail = |value: &[u8]| [value, NULL].concat();
    let rows = [
        (EXTENDED_KEY_USAGE, vec![], "extKeyUsage"),
        (EXTENDED_KEY_USAGE, NULL.into(), "extKeyUsage"),
        (EXTENDED_KEY_USAGE, b"serverAuth".into(), "extKeyUsage"),
        (EXTENDED_KEY_USAGE, disguised, "extKeyUsage"),
        (EXTENDED_KEY_USAGE, usages[..usages.len() - 1].into(), "extKeyUsage"),
        (EXTENDED_KEY_USAGE, with_tail(&usages), "extKeyUsage"),
        (KEY_USAGE, NULL.into(), "keyUsage"),
        (KEY_USAGE, with_tail(&tlv(BIT_STRING, &[7, 0x80])), "keyUsage"),
        (BASIC_CONSTRAINTS, NULL.into(), "basicConstraints"),
        (BASIC_CONSTRAINTS, with_tail(&sequence(&[])), "basicConstraints"),
    ];
    for (id, value, name) in rows {
        let finding = format!("x cert.pem has a malformed {name} extension; TLS clients reject it");
        assert_found_either_way(id, &value, &finding);
    }
}

#[test]
fn ca_certificates_are_refused() {
    let (ca, limit) = (tlv(1, &[0xff]), tlv(INTEGER, &[0]));
    let refused = "x cert.pem has a CA certificate (CA:TRUE) instead of a server's";
    let rows = [(ca.clone(), refused), ([ca, limit.clone()].concat(), refused), (vec![], OK), (limit, OK)];
    for (fields, finding) in rows {
        assert_found_either_way(BASIC_CONSTRAINTS, &sequence(&[fields]), finding);
    }
}

/// Encodes a key usage with these bits, numbered as in RFC 5280.
fn key_usage(bits: &[u8]) -> Vec<u8> {
    let flags = bits.iter().fold(0_u16, |flags, bit| flags | 0x8000 >> bit);
    let content = match flags.to_be_bytes() {
        [0, 0] => vec![0],
        [first, 0] => vec![u8::try_from(first.trailing_zeros()).unwrap(), first],
        [first, second] => vec![u8::try_from(second.trailing_zeros()).unwrap(), first, second],
    };
    tlv(BIT_STRING, &content)
}

#[test]
fn key_usage_must_suit_a_server() {
    let allowed: [&[u8]; 5] = [&[0], &[2], &[0, 4], &[0, 5, 6], &[0, 1, 2, 3, 4, 5, 6, 7, 8]];
    for bits in allowed {
        assert_found_either_way(KEY_USAGE, &key_usage(bits), OK);
    }
    let signs = "x cert.pem has a key usage for signing certificates or CRLs only; TLS clients reject it";
    let doubtful =
        "! cert.pem has a key usage without digitalSignature or keyEncipherment; many TLS clients reject it";
    let rows: [(&[u8], &str); 11] = [
        (&[1], doubtful),
        (&[3], doubtful),
        (&[4], doubtful),
        (&[7], doubtful),
        (&[8], doubtful),
        (&[4, 8], doubtful),
        (&[1, 5], doubtful),
        (&[], doubtful),
        (&[5], signs),
        (&[6], signs),
        (&[5, 6], signs),
    ];
    for (bits, finding) in rows {
        assert_found_either_way(KEY_USAGE, &key_usage(bits), finding);
    }
}

#[test]
fn precertificates_are_refused() {
    let refused = "x cert.pem has a precertificate (CT poison, 1.3.6.1.4.1.11129.2.4.3) instead of the final certificate";
    let server = extension(EXTENDED_KEY_USAGE, false, &extended_key_usage(&[SERVER]));
    let poison = |is_critical| extension(CT_POISON, is_critical, NULL);
    assert_found(&[server.clone(), poison(true)], refused);
    assert_found(&[poison(true), server.clone()], refused);
    assert_found(&[server.clone(), poison(false)], refused);
    assert_found(&[extension(CT_POISON, true, b"x")], refused);
    assert_found(&[], OK);
    assert_found(&[server.clone(), extension(SCT_LIST, false, &tlv(4, &[0, 0]))], OK);
    assert_found(&[server, extension(SCT_LIST, false, NULL)], OK);
}

#[test]
fn critical_extensions_must_be_known() {
    let unknown = "x cert.pem has critical extensions unknown to TLS clients, which reject it: ";
    let doubtful = "! cert.pem has extensions that should not be marked as critical: ";
    let rows: [(&[&str], &str, &str); 8] = [
        (
            &[MUST_STAPLE],
            doubtful,
            "1.3.6.1.5.5.7.1.24 (TLS feature (must-staple)); many TLS clients reject it",
        ),
        (&[SCT_LIST], doubtful, "1.3.6.1.4.1.11129.2.4.2 (SCT list); many TLS clients reject it"),
        (
            &["2.5.29.14", "2.5.29.35"],
            doubtful,
            "2.5.29.14 (subjectKeyIdentifier) and 2.5.29.35 (authorityKeyIdentifier); many TLS clients reject it",
        ),
        (&["1.2.3.4"], unknown, "1.2.3.4"),
        (&["1.3.4294967296"], unknown, "1.3.4294967296"),
        (&["1.2.3.4", "1.2.3.5"], unknown, "1.2.3.4 and 1.2.3.5"),
        (&["2.5.29.99"], unknown, "2.5.29.99"),
        (&["2.5.29.32.1"], unknown, "2.5.29.32.1"),
    ];
    for (ids, found, names) in rows {
        let extensions: Vec<Vec<u8>> = ids.iter().map(|id| extension(id, true, NULL)).collect();
        assert_found(&extensions, &format!("{found}{names}"));
    }
    for known in ["2.5.29.30", "2.5.29.31", "2.5.29.32", "2.5.29.33", "2.5.29.36", "2.5.29.54"] {
        assert_found(&[extension(known, true, &sequence(&[]))], OK);
    }
    for value in [NULL, &[]] {
        assert_found(&[extension(MUST_STAPLE, false, value), extension("1.2.3.4", false, value)], OK);
    }
}

#[test]
fn all_faults_of_a_leaf_are_reported() {
    let extensions = vec![
        extension(BASIC_CONSTRAINTS, true, &sequence(&[tlv(1, &[0xff])])),
        extension(KEY_USAGE, true, &key_usage(&[5, 6])),
        extension(EXTENDED_KEY_USAGE, false, &extended_key_usage(&[CLIENT])),
        extension(CT_POISON, true, NULL),
        extension("1.2.3.4", true, NULL),
    ];
    let cert = ForgedCert { extensions, ..ForgedCert::default() }.pem();
    let (lines, _) = Input::new(&cert).check();
    assert_eq!(lines.matches("x purpose: ").count(), 5, "{lines}");
}

/// Encodes RSASSA-PSS with this hash function, or without parameters.
fn pss_with(hash: Option<&str>) -> Vec<u8> {
    let parameters = hash.map(|hash| sequence(&[tlv(0xa0, &sequence(&[oid(hash)]))]));
    sequence(&[oid("1.2.840.113549.1.1.10"), parameters.unwrap_or_default()])
}

#[test]
fn broken_signatures_are_never_silent() {
    let plain = |id| sequence(&[oid(id), NULL.into()]);
    let rows = [
        (plain("1.2.840.113549.1.1.4"), Some("MD5")),
        (plain("1.2.840.113549.1.1.5"), Some("SHA-1")),
        // Of OIW.
        (plain("1.3.14.3.2.29"), Some("SHA-1")),
        // ECDSA.
        (sequence(&[oid("1.2.840.10045.4.1")]), Some("SHA-1")),
        // The default of RSASSA-PSS.
        (sequence(&[oid("1.2.840.113549.1.1.10"), sequence(&[])]), Some("SHA-1")),
        (pss_with(None), Some("SHA-1")),
        (pss_with(Some("1.3.14.3.2.26")), Some("SHA-1")),
        (pss_with(Some("1.2.840.113549.2.5")), Some("MD5")),
        (pss_with(Some("2.16.840.1.101.3.4.2.1")), None),
        (plain("1.2.840.113549.1.1.11"), None),
        (sequence(&[oid("1.2.840.10045.4.3.3")]), None),
    ];
    for (signature, hash) in rows {
        let forged = |subject, issuer| {
            ForgedCert { subject, issuer, signature: signature.clone(), ..ForgedCert::default() }.pem()
        };
        let assert_line = |cert: &str, certificate: &str| {
            let line = hash.map_or("* purpose: may authenticate a TLS server\n".into(), |hash| {
                format!("! purpose: cert.pem{certificate} is signed with {hash}; TLS clients require SHA-256 or better\n")
            });
            Input::new(cert).finds(&format!("{signature:02x?}"), &line);
        };
        assert_line(&forged("a.example", "Private CA"), "");
        let leaf = ForgedCert::default().pem();
        assert_line(&(leaf.clone() + &forged("Private CA", "Root")), ": the intermediate Private CA");
        // Whatever signature a root has, it is trusted for its key.
        let anchored = leaf + &forged("Private CA", "Private CA");
        Input::new(&anchored).finds("root", "* purpose: may authenticate a TLS server\n");
    }
}
