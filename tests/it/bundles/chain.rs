//! The check `chain`: proves a path if trust anchors are given, and warns of likely problems if not.

use super::{assert_check, fixtures};
use crate::harness::edgecert;

#[test]
fn chain_must_reach_a_trust_anchor() {
    let fixtures = fixtures();
    let [leaf, ica, old_ica, root] =
        ["leaf.crt", "ica.crt", "old-ica.crt", "root.crt"].map(|name| fixtures.pem(name));
    let [expired_ica, expired_leaf] = ["expired-ica.crt", "expired-leaf.crt"].map(|name| fixtures.pem(name));
    let [client_leaf, pss, pss_root] =
        ["client.crt", "pss.crt", "pss-root.crt"].map(|name| fixtures.pem(name));
    let other_root = crate::harness::test_ca().root().to_owned();
    let rows = [
        ("complete", format!("{leaf}{ica}"), &root, 0, "* chain     has a path to a trust anchor"),
        ("anchored at the intermediate", leaf.clone(), &ica, 0, "* chain     has a path to a trust anchor"),
        (
            "leaf alone",
            leaf.clone(),
            &root,
            65,
            "has no path to a trust anchor: the chain does not end at one",
        ),
        ("other root", format!("{leaf}{ica}"), &other_root, 65, "the chain does not end at one"),
        (
            "former issuer",
            format!("{leaf}{old_ica}"),
            &root,
            65,
            "a certificate was not signed by the issuer that it names",
        ),
        (
            "expired intermediate",
            format!("{expired_leaf}{expired_ica}"),
            &root,
            65,
            "a certificate in the chain has expired",
        ),
        (
            "client certificate",
            format!("{client_leaf}{ica}"),
            &root,
            65,
            "a certificate in the chain is not for TLS servers",
        ),
        ("signed with RSASSA-PSS", pss, &pss_root, 0, "* chain     has a path to a trust anchor"),
    ];
    for (name, chain, anchors, code, message) in rows {
        let hook = edgecert();
        let [chain, anchors] =
            [hook.write_file("chain.pem", &chain), hook.write_file("anchors.pem", anchors)];
        let hook = hook.args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()]);
        let output = hook.args(["--trust-anchors".as_ref(), anchors.as_os_str()]).run();
        assert_eq!(output.code, code, "{name}: {}", output.snapshot());
        assert!(output.snapshot().contains(message), "{name}: {}", output.snapshot());
    }
    let hook = edgecert();
    let chain = hook.write_file("chain.pem", &(leaf + &ica));
    let output = hook
        .args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()])
        .args(["--trust-anchors", "system"])
        .exits_with(65);
    assert!(output.stderr.contains("has no path to a trust anchor"), "{}", output.stderr);
}

#[test]
fn likely_chain_problems_are_warnings() {
    let fixtures = fixtures();
    let [leaf, old_ica, root, expired_ica] =
        ["leaf.crt", "old-ica.crt", "root.crt", "expired-ica.crt"].map(|name| fixtures.pem(name));
    let [expired_leaf, key] = ["expired-leaf.crt", "leaf.key"].map(|name| fixtures.pem(name));
    let rows = [
        ("leaf alone", leaf.clone(), "holds the leaf without its issuer Intermediate"),
        (
            "wrong intermediate",
            format!("{leaf}{old_ica}"),
            "holds an issuer Intermediate whose key is not the one that signed the leaf",
        ),
        ("root instead of the intermediate", format!("{leaf}{root}"), "holds the leaf without its"),
        (
            "expired intermediate",
            format!("{expired_leaf}{expired_ica}"),
            "the intermediate Expired Intermediate expired on DATE",
        ),
    ];
    for (name, chain, message) in rows {
        assert_check(name, chain.as_bytes(), key.as_bytes(), 0, message);
    }
}
