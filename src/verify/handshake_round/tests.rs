//! Rounds of handshakes, each with its combined result.

use edgecert_workload::der::ForgedCert;

use super::*;
use crate::bundle::Chain;
use crate::cert::{Certificate, KeyType, fingerprint};
use crate::verify::handshake_error::Cause;
use crate::verify::observation::ServedChain;

fn issuer(seed: u8, subject: &'static str, issuer: &'static str) -> Vec<u8> {
    ForgedCert { subject, issuer, seed, ..ForgedCert::default() }.der()
}

/// Results of handshakes: `+` shows the expected leaf, `-` another one, `n` no certificate; the others fail, `r` with a
/// refusal, `e` because of the edge, `u` because nothing responds.
fn results(shown: &str) -> Vec<HandshakeResult> {
    let result = |kind| {
        let chain = match kind {
            '+' => vec![ForgedCert::default().der()],
            '-' => vec![ForgedCert { seed: 9, ..ForgedCert::default() }.der()],
            _ => Vec::new(),
        };
        let cause = match kind {
            'r' => Some(Cause::Refused),
            'e' => Some(Cause::Edge),
            'u' => Some(Cause::Unreachable),
            _ => None,
        };
        let error = cause.map(|cause| HandshakeError { cause, ..HandshakeError::no_certificate() });
        HandshakeResult { chain, error }
    };
    shown.chars().map(result).collect()
}

fn round(own: &str, other: &str) -> HandshakeRound {
    HandshakeRound { own: results(own), other: results(other) }
}

fn expected(key_type: Option<KeyType>) -> ExpectedLeaf<'static> {
    ExpectedLeaf { fingerprint: fingerprint(&ForgedCert::default().der()), key_type, chain: None }
}

#[test]
fn worst_handshake_decides() {
    let p256 = || Some(KeyType::P256);
    for (key_type, own, other, shown) in [
        (p256(), "+++", "r", "expected"),
        (p256(), "+++", "+", "expected"),
        (p256(), "+++", "e", "expected"),
        (p256(), "+++", "u", "failed: Unreachable"),
        (p256(), "++u", "r", "failed: Unreachable"),
        (p256(), "++-", "r", "other leaf to some connections"),
        (p256(), "---", "r", "other leaf"),
        (p256(), "+++", "-", "other leaf to clients that accept only RSA"),
        (p256(), "nnn", "r", "failed: Edge"),
        (p256(), "rrr", "r", "failed: Refused"),
        (p256(), "---", "+", "other leaf"),
        (Some(KeyType::P521), "rrr", "r", "failed: Edge"),
        (Some(KeyType::P521), "uuu", "r", "failed: Unreachable"),
        (None, "rrr", "+++", "expected"),
        (None, "+++", "rrr", "expected"),
        (None, "---", "+++", "other leaf to clients that do not accept RSA"),
        (None, "+++", "---", "other leaf to clients that accept only RSA"),
        (None, "++-", "++-", "other leaf to some connections"),
        (None, "++-", "+++", "other leaf to some connections"),
        (None, "---", "uuu", "other leaf"),
    ] {
        let site = "a.example".parse().unwrap();
        let found = match round(own, other).observation(&expected(key_type), &site) {
            Observation::Unchecked => "unchecked".to_owned(),
            Observation::Expected { chain } => {
                assert_eq!(chain, ServedChain::Same);
                "expected".to_owned()
            }
            Observation::Other { leaf, clients } => {
                assert!(leaf.is_some_and(|other| other.covers_site));
                clients.map_or("other leaf".to_owned(), |clients| format!("other leaf to {clients}"))
            }
            Observation::Failed(error) => format!("failed: {:?}", error.cause),
        };
        assert_eq!(found, shown, "{own} {other}");
    }
}

#[test]
fn mixed_rounds_show_both() {
    for (own, other, is_mixed) in [
        ("+++", "r", false),
        ("---", "+", false),
        ("++-", "r", true),
        ("++r", "r", true),
        ("++u", "r", false),
        ("++n", "r", false),
        ("rrr", "+-", true),
    ] {
        assert_eq!(round(own, other).is_mixed(&expected(Some(KeyType::P256))), is_mixed, "{own} {other}");
    }
    let (round, expected, site) = (round("+-u", "-"), expected(None), "b.example".parse().unwrap());
    let leaves = round.other_leaves(&expected, &site);
    assert_eq!(leaves.map(|leaf| leaf.covers_site).collect::<Vec<_>>(), [false, false]);
}

#[test]
fn served_chain_is_compared_without_its_root() {
    let leaf = ForgedCert::default().der();
    let (ca, root) = (issuer(2, "Private CA", "Root"), issuer(3, "Root", "Root"));
    let (renamed, unrelated) = (issuer(4, "Private CA", "Other Root"), issuer(5, "Other", "Root"));
    let parse = |der: &Vec<u8>| Certificate::from_der(der).unwrap();
    let chain = |issuers: &[&Vec<u8>]| Chain {
        leaf: parse(&leaf),
        issuers: issuers.iter().map(|der| parse(der)).collect(),
        repairs: Vec::new(),
    };
    for (uploaded, served, compared) in [
        (&[&ca][..], &[&ca][..], ServedChain::Same),
        (&[&ca, &root], &[&ca], ServedChain::Same),
        (&[&ca], &[&ca, &root], ServedChain::Same),
        (&[&ca], &[&renamed], ServedChain::Other),
        (&[&ca], &[], ServedChain::Broken),
        (&[&ca], &[&unrelated], ServedChain::Broken),
        (&[&ca], &[&root], ServedChain::Broken),
    ] {
        let chain = chain(uploaded);
        let expected = ExpectedLeaf { chain: Some(&chain), ..expected(None) };
        let served: Vec<Vec<u8>> = std::iter::once(&leaf).chain(served.iter().copied()).cloned().collect();
        assert_eq!(expected.compare_chain(&served), compared);
    }
    assert_eq!(expected(None).compare_chain(std::slice::from_ref(&leaf)), ServedChain::Same, "it is unknown");
    let mut chain = chain(&[]);
    chain.leaf.has_pss_key = true;
    let pss = ExpectedLeaf { chain: Some(&chain), ..expected(Some(KeyType::Rsa { bits: 2048 })) };
    assert!(!pss.is_refusal_conclusive());
}
