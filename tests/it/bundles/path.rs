//! The chain: with trust anchors a proof, without them warnings.

use super::{holds, parts};
use crate::harness::edgecert;

#[test]
fn a_path_to_the_anchors_is_proven_or_its_failure_explained() {
    let parts = parts();
    let [leaf, ica, old_ica, root] =
        ["leaf.crt", "ica.crt", "old-ica.crt", "root.crt"].map(|name| parts.pem(name));
    let [expired_ica, expired_leaf] = ["expired-ica.crt", "expired-leaf.crt"].map(|name| parts.pem(name));
    let [client_leaf, pss, pss_root] = ["client.crt", "pss.crt", "pss-root.crt"].map(|name| parts.pem(name));
    let elsewhere = crate::harness::test_ca().root().to_owned();
    let rows = [
        ("whole", format!("{leaf}{ica}"), &root, 0, "chain        ok: leads to a trust anchor"),
        ("anchored at the intermediate", leaf.clone(), &ica, 0, "chain        ok: leads to a trust anchor"),
        (
            "leaf alone",
            leaf.clone(),
            &root,
            65,
            "leads to none of the trust anchors: the chain ends at an issuer that is not among them",
        ),
        (
            "another root",
            format!("{leaf}{ica}"),
            &elsewhere,
            65,
            "the chain ends at an issuer that is not among them",
        ),
        (
            "earlier issuer",
            format!("{leaf}{old_ica}"),
            &root,
            65,
            "a signature is not by the issuer that it names",
        ),
        (
            "expired intermediate",
            format!("{expired_leaf}{expired_ica}"),
            &root,
            65,
            "a certificate of the chain has expired",
        ),
        (
            "not for servers",
            format!("{client_leaf}{ica}"),
            &root,
            65,
            "a certificate of the chain is not for TLS servers",
        ),
        ("signed with RSASSA-PSS", pss, &pss_root, 0, "chain        ok: leads to a trust anchor"),
    ];
    for (name, chain, anchors, code, words) in rows {
        let hook = edgecert();
        let [chain, anchors] =
            [hook.write_file("chain.pem", &chain), hook.write_file("anchors.pem", anchors)];
        let hook = hook.args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()]);
        let output = hook.args(["--trust-anchors".as_ref(), anchors.as_os_str()]).run();
        assert_eq!(output.code, code, "{name}: {}", output.snapshot());
        assert!(output.snapshot().contains(words), "{name}: {}", output.snapshot());
    }
    let hook = edgecert();
    let chain = hook.write_file("chain.pem", &(leaf + &ica));
    let system = hook
        .args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()])
        .args(["--trust-anchors", "system"])
        .exits_with(65);
    assert!(system.stderr.contains("leads to none of the trust anchors"), "{}", system.stderr);
}

#[test]
fn without_anchors_what_is_likely_to_fail_is_a_warning_with_its_hint() {
    let parts = parts();
    let [leaf, old_ica, root, expired_ica] =
        ["leaf.crt", "old-ica.crt", "root.crt", "expired-ica.crt"].map(|name| parts.pem(name));
    let [expired_leaf, key] = ["expired-leaf.crt", "leaf.key"].map(|name| parts.pem(name));
    let rows = [
        ("leaf alone", leaf.clone(), "warn: the leaf stands alone, without its issuer Intermediate"),
        (
            "wrong intermediate",
            format!("{leaf}{old_ica}"),
            "warn: the leaf has an issuer of the right name and the wrong key beside it, not its issuer Intermediate",
        ),
        (
            "root instead of the intermediate",
            format!("{leaf}{root}"),
            "warn: the leaf stands alone, without its",
        ),
        (
            "expired intermediate",
            format!("{expired_leaf}{expired_ica}"),
            "warn: the intermediate Expired Intermediate expired at DATE",
        ),
    ];
    for (name, chain, words) in rows {
        holds(name, chain.as_bytes(), key.as_bytes(), 0, words);
    }
}
