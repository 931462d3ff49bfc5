//! Hostile files around the certificate: trust anchors, configuration, API key, and what ACME clients hand over.

use std::path::{Path, PathBuf};

use super::Content::{At, Endless, Sparse, Text};
use super::{MIB, MOST_MEMORY, all_end_within_bounds, expect, filled_with};
use crate::harness::{Hook, Lineage, edgecert_with_memory};

/// Hands a hostile file over in one way; the third argument finds the good files beside it.
type Set = fn(Hook, &Path, &dyn Fn(&str) -> PathBuf) -> Hook;

#[test]
fn no_file_with_trust_anchors_takes_more_than_64_mb() {
    const MOST: usize = 4 * MIB;
    let anchor = crate::harness::test_ca().root();
    let tiny = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let noise = |text: &str| Text([&[0xff; 999], text.as_bytes()].concat().repeat(MOST / (999 + text.len())));
    let block = |body: String| Text(tiny.replace("MAA=", &body).into_bytes());
    let no_ca = "cannot be a trust anchor";
    let rows = [
        ("100 MB", Sparse(100 << 20), 78, "larger than 4 MiB", 78),
        ("zeros without end", At("/dev/zero"), 78, "larger than 4 MiB", 78),
        ("a pipe without end", Endless("-----BEGIN CERTIFICATE-----"), 78, "larger than 4 MiB", 78),
        ("copies of an anchor", filled_with(MOST, anchor), 0, "", 0),
        ("anchors in noise", noise(anchor), 0, "", 78),
        ("damaged blocks", filled_with(MOST, tiny), 78, no_ca, 78),
        ("begins", filled_with(MOST, "-----BEGIN CERTIFICATE-----"), 78, "its PEM is damaged", 78),
        ("not UTF-8", Text(vec![0xff; MOST]), 78, "no certificate in PEM", 78),
        ("one certificate", block("AAAA\n".repeat(MOST / 5 - 30)), 78, no_ca, 78),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    all_end_within_bounds(&rows, |(name, content, code, words, of_system)| {
        let hook = || {
            let hook = edgecert_with_memory(MOST_MEMORY);
            let file = content.plant(hook.write_file("anchors.pem", "").with_extension("hostile"));
            let chain = lineage.file("fullchain.pem");
            let hook = hook.args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()]);
            (hook.args(["--trust-anchors"]), file)
        };
        let (named, file) = hook();
        expect(name, &named.args([&file.path]).run(), *code, words)?;
        drop(file);
        // What `SSL_CERT_FILE` names takes the place of the system's store.
        let (system, file) = hook();
        if !matches!(content, Endless(_)) {
            let output = system.args(["system"]).env("SSL_CERT_FILE", &file.path).run();
            expect(&format!("{name}, as the system's"), &output, *of_system, "")?;
        }
        Ok(())
    });
}

#[test]
fn no_configuration_file_takes_more_than_64_mb() {
    const MOST: usize = 256 << 10;
    let list = |of: &str| Text(["lineage=[", &of.repeat((MOST - 20) / of.len()), "]"].concat().into_bytes());
    let keys: Vec<String> = (0..20_000).map(|number| format!("a{number}=1\n")).collect();
    let no_key = "no API key is set";
    let rows = [
        ("100 MB", Sparse(100 << 20), "larger than 256 KiB"),
        ("a pipe without end", Endless("# x"), "larger than 256 KiB"),
        ("zeros without end", At("/dev/zero"), "larger than 256 KiB"),
        ("lineages", filled_with(MOST, "[[lineage]]\npath='a'\n"), no_key),
        ("lineages without a path", filled_with(MOST, "[[lineage]]\n"), "needs either `path`"),
        ("lists in lists", list("["), "recurse"),
        ("empty tables", list("{},"), "needs either `path`"),
        ("keys", Text(keys.concat().into_bytes()), "unknown key `a0`"),
        (
            "a key with many dots",
            Text(["a.".repeat(MOST / 2 - 9), "a=1".into()].concat().into_bytes()),
            "error: ",
        ),
        ("comments", filled_with(MOST, "#\n"), no_key),
        ("commas", Text(["a=[", &",".repeat(MOST - 9)].concat().into_bytes()), "error: "),
        ("digits", Text(["wait=", &"1".repeat(MOST - 9)].concat().into_bytes()), "`wait`"),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    all_end_within_bounds(&rows, |(name, content, words)| {
        let hook = edgecert_with_memory(MOST_MEMORY).called_by_certbot(&lineage);
        let config = content.plant(hook.write_file("config.toml", "").with_extension("hostile"));
        let hook = hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").env("EDGECERT_CONFIG", &config.path);
        expect(name, &hook.run(), 78, words)
    });
}

#[test]
fn no_file_that_a_hook_hands_over_takes_more_than_64_mb() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let good = |name: &str| lineage.file(name);
    let deploy = || {
        let hook = edgecert_with_memory(MOST_MEMORY).env("EDGECERT_BASE_URL", "https://127.0.0.1:1");
        hook.env("EDGECERT_API_KEY", "x")
    };
    let acme_sh: Set = |hook, large, good| {
        let hook = hook.env("CERT_KEY_PATH", good("privkey.pem")).env("CERT_PATH", large);
        hook.env("CERT_FULLCHAIN_PATH", large)
    };
    let acme_sh_ca: Set = |hook, large, good| {
        let hook = hook.env("CERT_KEY_PATH", good("privkey.pem")).env("CERT_PATH", good("cert.pem"));
        hook.env("CERT_FULLCHAIN_PATH", large).env("CA_CERT_PATH", large)
    };
    let lego: Set = |hook, large, good| {
        let hook = hook.env("LEGO_HOOK_CERT_PATH", good("cert.pem"));
        hook.env("LEGO_HOOK_CERT_KEY_PATH", good("privkey.pem")).env("LEGO_HOOK_ISSUER_CERT_PATH", large)
    };
    let api_key: Set = |hook, large, good| {
        let hook =
            hook.env("LEGO_CERT_PATH", good("cert.pem")).env("LEGO_CERT_KEY_PATH", good("privkey.pem"));
        hook.without_env("EDGECERT_API_KEY").env("EDGECERT_API_KEY_FILE", large)
    };
    let ca_file: Set = |hook, large, good| {
        let hook =
            hook.env("LEGO_CERT_PATH", good("cert.pem")).env("LEGO_CERT_KEY_PATH", good("privkey.pem"));
        hook.env("EDGECERT_CA_FILE", large)
    };
    let dehydrated: Set = |hook, large, good| {
        let files =
            [&*good("privkey.pem"), &*good("cert.pem"), large, large].map(|path| path.as_os_str().to_owned());
        hook.args(["deploy_cert", "a.example"]).args(files).args(["0"])
    };
    let rows = [
        ("acme.sh, the chain", acme_sh, 66, "larger than 1 MiB"),
        ("acme.sh, the CA's file", acme_sh_ca, 66, "larger than 1 MiB"),
        ("lego, the issuer's file", lego, 66, "larger than 1 MiB"),
        ("dehydrated, the chain", dehydrated, 66, "larger than 1 MiB"),
        ("the API key", api_key, 78, "larger than 16 KiB"),
        ("the service's CA", ca_file, 78, "larger than 4 MiB"),
    ];
    let large = [Sparse(100 << 20), At("/dev/zero")];
    let rows: Vec<_> = rows.iter().flat_map(|row| large.iter().map(move |large| (row, large))).collect();
    all_end_within_bounds(&rows, |((name, set, code, words), large)| {
        let hook = deploy();
        let large = large.plant(hook.write_file("large.pem", "").with_extension("hostile"));
        expect(name, &set(hook, &large.path, &good).run(), *code, words)
    });
}
