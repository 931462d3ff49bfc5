//! Rounds of handshakes, each with its combined result.

use edgecert_workload::der::ForgedCert;

use super::*;
use crate::verify::handshake_error::Cause;

fn issuer(seed: u8, subject: &'static str, issuer: &'static str) -> Vec<u8> {
    ForgedCert { subject, issuer, seed, ..ForgedCert::default() }.der()
}

/// Results of handshakes: `+` shows the expected leaf, `-` another one, `n` no certificate; the others fail, `r` with a
/// refusal, `e` because of the edge, `u` because nothing responds. After `p` the peer proves nothing: it shows the
/// expected leaf, and refuses the client.
fn results(shown: &str, expected: &ExpectedLeaf<'_>) -> Vec<Shown> {
    let result = |kind| {
        let chain = match kind {
            '+' | 'p' => vec![ForgedCert::default().der()],
            '-' => vec![ForgedCert { seed: 9, ..ForgedCert::default() }.der()],
            _ => Vec::new(),
        };
        let cause = match kind {
            'r' | 'p' => Some(Cause::Refused),
            'e' => Some(Cause::Edge),
            'u' => Some(Cause::Unreachable),
            _ => None,
        };
        let error = cause.map(|cause| HandshakeError { cause, ..HandshakeError::no_certificate() });
        expected.shown_by(HandshakeResult { chain, error }, &"a.example".parse().unwrap())
    };
    shown.chars().map(result).collect()
}

fn round(own: &str, other: &str, expected: &ExpectedLeaf<'_>) -> HandshakeRound {
    HandshakeRound { own: results(own, expected), other: results(other, expected) }
}

fn expected(key_type: Option<KeyType>) -> ExpectedLeaf<'static> {
    ExpectedLeaf { fingerprint: cert::fingerprint(&ForgedCert::default().der()), key_type, chain: None }
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
        // An edge that sends its certificate does not refuse the name.
        (p256(), "ppp", "r", "failed: Edge"),
        (p256(), "++p", "r", "failed: Edge"),
        (p256(), "pp-", "r", "other leaf to some connections"),
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
        let expected = expected(key_type);
        let found = match round(own, other, &expected).observation(&expected) {
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
        ("ppp", "r", false),
        ("pp-", "r", true),
    ] {
        let expected = expected(Some(KeyType::P256));
        assert_eq!(round(own, other, &expected).is_mixed(), is_mixed, "{own} {other}");
    }
    assert_eq!(round("+-u", "-", &expected(None)).other_leaves().count(), 2);
    let [site, other_site] = ["a.example", "b.example"].map(|site| site.parse().unwrap());
    for (site, covers) in [(site, true), (other_site, false)] {
        let other = HandshakeResult {
            chain: vec![ForgedCert { seed: 9, ..ForgedCert::default() }.der()],
            error: None,
        };
        let shown = expected(None).shown_by(other, &site);
        assert_eq!(shown.other().unwrap().as_ref().unwrap().covers_site, covers);
    }
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
        let served: Vec<Vec<u8>> = once(&leaf).chain(served.iter().copied()).cloned().collect();
        assert_eq!(expected.compare_chain(&served), compared);
    }
    assert_eq!(expected(None).compare_chain(std::slice::from_ref(&leaf)), ServedChain::Same, "it is unknown");
    let mut chain = chain(&[]);
    chain.leaf.has_pss_key = true;
    let pss = ExpectedLeaf { chain: Some(&chain), ..expected(Some(KeyType::Rsa { bits: 2048 })) };
    assert!(!pss.is_refusal_conclusive());
}
