//! The check `chain`: proves a path if trust anchors are given, and warns of likely problems if not.

use super::*;
use der::UTC_TIME;

/// An intermediate that is valid until the start of 2021, and a leaf that it issued, valid from `start`.
fn issued_at(start: &'static str) -> String {
    let validity = [(UTC_TIME, "200101000000Z"), (UTC_TIME, "210101000000Z")];
    let ca = ForgedCert { validity, ..ca("Expired CA", EXPIRED_CA) };
    let validity = [(UTC_TIME, start), (UTC_TIME, "230101000000Z")];
    ForgedCert { validity, ..issued(LEAF, EXPIRED_CA, "Expired CA", &[]) }.pem() + &ca.pem()
}

/// A chain whose intermediate has expired.
fn expired() -> String {
    issued_at("210101000001Z")
}

/// A chain whose leaf is for clients.
fn for_clients() -> String {
    let client = extension("2.5.29.37", false, &der::sequence(&[der::oid("1.3.6.1.5.5.7.3.2")]));
    issued(LEAF, CA, "Intermediate", &[client]).pem() + &ca("Intermediate", CA).pem()
}

#[test]
fn chain_must_reach_a_trust_anchor() {
    let [leaf, intermediate, chain, _] = files();
    let root = ca("Root", ROOT).pem();
    let other_root = ForgedCert { issuer: "Other", issuer_seed: OTHER, ..ca("Other", OTHER) }.pem();
    let former =
        leaf.clone() + &ForgedCert { extensions: ca("", CA).extensions, ..ca("Intermediate", OLD_CA) }.pem();
    let rows = [
        (chain.clone(), &root, None),
        (leaf.clone(), &intermediate, None),
        (leaf, &root, Some("the chain does not end at one\n")),
        (chain, &other_root, Some("the chain does not end at one\n")),
        (former, &root, Some("a certificate was not signed by the issuer that it names\n")),
        (expired(), &root, Some("a certificate in the chain has expired\n")),
        (for_clients(), &root, Some("a certificate in the chain is not for TLS servers\n")),
    ];
    for (cert, anchors, reason) in rows {
        let line = reason.map_or("* chain: has a path to a trust anchor\n".into(), |reason| {
            format!("x chain: cert.pem has no path to a trust anchor: {reason}")
        });
        Input { anchors: Some(&roots(anchors)), ..Input::new(&cert) }.finds(&line, &line);
    }
}

/// A path that is not required is validated only if nothing else is wrong: it would say the same in other words.
#[test]
fn advice_on_the_path_repeats_no_warning() {
    let [_, _, chain, _] = files();
    let anchors = roots(&ca("Root", ROOT).pem());
    let none = RootCertStore::empty();
    let test_ca = ca("Fake LE Intermediate", CA).pem();
    let staged = ForgedCert { issuer: "Fake LE Intermediate", ..leaf() }.pem() + &test_ca;
    let no_path = "cert.pem has no path to a trust anchor: the chain does not end at one";
    let rows = [
        (&chain, &anchors, vec!["* chain: has a path to a trust anchor".to_owned()]),
        (&chain, &none, vec![format!("! chain: {no_path}")]),
        (
            &expired(),
            &none,
            vec!["! chain: cert.pem: the intermediate Expired CA expired at 2021-01-01T00:00:00Z".into()],
        ),
        (&staged, &none, vec!["* chain: 2 certificates".into()]),
        (&for_clients(), &anchors, vec!["* chain: 2 certificates".into()]),
    ];
    for (cert, anchors, expected) in rows {
        let input = Input { anchors: Some(anchors), is_path_advisory: true, ..Input::new(cert) };
        let (lines, _) = input.check();
        let found: Vec<&str> = lines.lines().filter(|line| line.contains(" chain: ")).collect();
        assert_eq!(found, expected, "{lines}");
    }
}

#[test]
fn likely_chain_problems_are_warnings() {
    let [leaf, ..] = files();
    let (old_ca, root) = (ca("Intermediate", OLD_CA).pem(), ca("Root", ROOT).pem());
    let unrelated = ca("Other", OTHER).pem();
    let without_issuer = "! chain: cert.pem holds the leaf without its issuer Intermediate\n";
    let wrong =
        "! chain: cert.pem holds an issuer Intermediate whose key is not the one that signed the leaf\n";
    let ended = "! chain: cert.pem: the intermediate Expired CA expired at 2021-01-01T00:00:00Z\n";
    let rows = [
        ("leaf alone", leaf.clone(), without_issuer),
        ("wrong intermediate", leaf.clone() + &old_ca, wrong),
        ("root instead of the intermediate", leaf.clone() + &root, without_issuer),
        ("unrelated intermediate", leaf + &unrelated, without_issuer),
        ("expired intermediate", expired(), ended),
        ("last second of the intermediate", issued_at("210101000000Z"), "* chain: 2 certificates\n"),
    ];
    for (name, cert, line) in rows {
        Input::new(&cert).finds(name, line);
    }
}
