//! The check `chain`: proves a path if trust anchors are given, and warns of likely problems if not.

use super::{Input, assert_finds, fixtures, roots};
use crate::harness::{Lineage, test_ca};

#[test]
fn chain_must_reach_a_trust_anchor() {
    let fixtures = fixtures();
    let [leaf, ica, old_ica, root] =
        ["leaf.crt", "ica.crt", "old-ica.crt", "root.crt"].map(|name| fixtures.pem(name));
    let [expired_ica, expired_leaf] = ["expired-ica.crt", "expired-leaf.crt"].map(|name| fixtures.pem(name));
    let [client_leaf, pss, pss_root] =
        ["client.crt", "pss.crt", "pss-root.crt"].map(|name| fixtures.pem(name));
    let chain = format!("{leaf}{ica}");
    let rows = [
        ("complete", chain.clone(), &*root, Ok(())),
        ("anchored at the intermediate", leaf.clone(), &ica, Ok(())),
        ("leaf alone", leaf.clone(), &root, Err("the chain does not end at one\n")),
        ("other root", chain, test_ca().root(), Err("the chain does not end at one\n")),
        (
            "former issuer",
            format!("{leaf}{old_ica}"),
            &root,
            Err("a certificate was not signed by the issuer that it names\n"),
        ),
        (
            "expired intermediate",
            format!("{expired_leaf}{expired_ica}"),
            &root,
            Err("a certificate in the chain has expired\n"),
        ),
        (
            "client certificate",
            format!("{client_leaf}{ica}"),
            &root,
            Err("a certificate in the chain is not for TLS servers\n"),
        ),
        ("signed with RSASSA-PSS", pss, &pss_root, Ok(())),
    ];
    for (name, cert, anchors, path) in rows {
        let line = match path {
            Ok(()) => "* chain     has a path to a trust anchor\n".into(),
            Err(reason) => format!("x chain     cert.pem has no path to a trust anchor: {reason}"),
        };
        let input = Input { cert: cert.as_bytes(), anchors: Some(&roots(anchors)), ..Input::default() };
        input.check().assert_finds(name, &line);
    }
}

#[test]
fn likely_chain_problems_are_warnings() {
    let fixtures = fixtures();
    let [leaf, old_ica, root, expired_ica] =
        ["leaf.crt", "old-ica.crt", "root.crt", "expired-ica.crt"].map(|name| fixtures.pem(name));
    let [expired_leaf, key] = ["expired-leaf.crt", "leaf.key"].map(|name| fixtures.pem(name));
    let unrelated = Lineage::issued_for(&["b.example"]).read("chain.pem");
    let without_issuer = "! chain     cert.pem holds the leaf without its issuer Intermediate\n";
    let rows = [
        ("leaf alone", leaf.clone(), without_issuer),
        (
            "wrong intermediate",
            format!("{leaf}{old_ica}"),
            "! chain     cert.pem holds an issuer Intermediate whose key is not the one that signed the leaf\n",
        ),
        ("root instead of the intermediate", format!("{leaf}{root}"), without_issuer),
        ("unrelated intermediate", format!("{leaf}{unrelated}"), without_issuer),
        (
            "expired intermediate",
            format!("{expired_leaf}{expired_ica}"),
            "! chain     cert.pem: the intermediate Expired Intermediate expired at DATE\n",
        ),
    ];
    for (name, chain, line) in rows {
        assert_finds(name, chain, &key, line);
    }
}
