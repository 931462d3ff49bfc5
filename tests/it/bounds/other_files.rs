//! Hostile files other than `--cert` and `--key`: trust anchors, configuration, API key, and what ACME clients pass.

use std::path::{Path, PathBuf};

use super::Content::{EndlessPipe, Existing, Text, Zeros};
use super::{MAX_MEMORY, MIB, assert_all_bounded, check_output, repeated};
use crate::harness::{Hook, Lineage, edgecert_with_memory};

/// Passes a hostile file to the hook in one way. The third argument returns the path of a valid file.
type PassFile = fn(Hook, &Path, &dyn Fn(&str) -> PathBuf) -> Hook;

#[test]
fn trust_anchor_files_stay_within_64_mb() {
    const MAX_SIZE: usize = 4 * MIB;
    let anchor = crate::harness::test_ca().root();
    let tiny = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let noise =
        |text: &str| Text([&[0xff; 999], text.as_bytes()].concat().repeat(MAX_SIZE / (999 + text.len())));
    let block = |body: String| Text(tiny.replace("MAA=", &body).into_bytes());
    let no_ca = "it does not hold CA certificates in PEM only";
    let rows = [
        ("100 MB", Zeros(100 << 20), 78, "larger than 4 MiB", 78),
        ("endless zeros", Existing("/dev/zero"), 78, "larger than 4 MiB", 78),
        ("endless pipe", EndlessPipe("-----BEGIN CERTIFICATE-----"), 78, "larger than 4 MiB", 78),
        ("copies of an anchor", repeated(MAX_SIZE, anchor), 0, "", 0),
        ("anchors in noise", noise(anchor), 0, "", 78),
        ("damaged blocks", repeated(MAX_SIZE, tiny), 78, no_ca, 78),
        ("BEGIN lines", repeated(MAX_SIZE, "-----BEGIN CERTIFICATE-----"), 78, no_ca, 78),
        ("not UTF-8", Text(vec![0xff; MAX_SIZE]), 78, no_ca, 78),
        ("one certificate", block("AAAA\n".repeat(MAX_SIZE / 5 - 30)), 78, no_ca, 78),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    assert_all_bounded(&rows, |(name, content, code, message, system_code)| {
        let hook = || {
            let hook = edgecert_with_memory(MAX_MEMORY);
            let file = content.create(hook.write_file("anchors.pem", "").with_extension("hostile"));
            let chain = lineage.file("fullchain.pem");
            let hook = hook.args(["check".as_ref(), "--cert".as_ref(), chain.as_os_str()]);
            (hook.args(["--trust-anchors"]), file)
        };
        let (named, file) = hook();
        check_output(name, &named.args([&file.path]).run(), *code, message)?;
        drop(file);
        // `SSL_CERT_FILE` replaces the system's trust store.
        let (system, file) = hook();
        if !matches!(content, EndlessPipe(_)) {
            let output = system.args(["system"]).env("SSL_CERT_FILE", &file.path).run();
            check_output(&format!("{name}, as the system's trust store"), &output, *system_code, "")?;
        }
        Ok(())
    });
}

#[test]
fn configuration_files_stay_within_64_mb() {
    const MAX_SIZE: usize = 256 << 10;
    let list_of =
        |of: &str| Text(["lineage=[", &of.repeat((MAX_SIZE - 20) / of.len()), "]"].concat().into_bytes());
    let keys: Vec<String> = (0..20_000).map(|number| format!("a{number}=1\n")).collect();
    let no_key = "no API key is set";
    let rows = [
        ("100 MB", Zeros(100 << 20), "larger than 256 KiB"),
        ("endless pipe", EndlessPipe("# x"), "larger than 256 KiB"),
        ("endless zeros", Existing("/dev/zero"), "larger than 256 KiB"),
        ("lineages", repeated(MAX_SIZE, "[[lineage]]\npath='a'\n"), no_key),
        ("lineages without a path", repeated(MAX_SIZE, "[[lineage]]\n"), "needs either `path`"),
        ("lists in lists", list_of("["), "recurse"),
        ("empty tables", list_of("{},"), "needs either `path`"),
        ("keys", Text(keys.concat().into_bytes()), "unknown key `a0`"),
        ("dotted key", Text(["a.".repeat(MAX_SIZE / 2 - 9), "a=1".into()].concat().into_bytes()), "error: "),
        ("comments", repeated(MAX_SIZE, "#\n"), no_key),
        ("commas", Text(["a=[", &",".repeat(MAX_SIZE - 9)].concat().into_bytes()), "error: "),
        ("digits", Text(["wait=", &"1".repeat(MAX_SIZE - 9)].concat().into_bytes()), "`wait`"),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    assert_all_bounded(&rows, |(name, content, message)| {
        let hook = edgecert_with_memory(MAX_MEMORY).called_by_certbot(&lineage);
        let config = content.create(hook.write_file("config.toml", "").with_extension("hostile"));
        let hook = hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").env("EDGECERT_CONFIG", &config.path);
        check_output(name, &hook.run(), 78, message)
    });
}

#[test]
fn client_files_stay_within_64_mb() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let good = |name: &str| lineage.file(name);
    let deploy = || {
        let hook = edgecert_with_memory(MAX_MEMORY).env("EDGECERT_BASE_URL", "https://127.0.0.1:1");
        hook.env("EDGECERT_API_KEY", "x")
    };
    let acme_sh: PassFile = |hook, large, good| {
        let hook = hook.env("CERT_KEY_PATH", good("privkey.pem")).env("CERT_PATH", large);
        hook.env("CERT_FULLCHAIN_PATH", large)
    };
    let acme_sh_ca: PassFile = |hook, large, good| {
        let hook = hook.env("CERT_KEY_PATH", good("privkey.pem")).env("CERT_PATH", good("cert.pem"));
        hook.env("CERT_FULLCHAIN_PATH", large).env("CA_CERT_PATH", large)
    };
    let lego: PassFile = |hook, large, good| {
        let hook = hook.env("LEGO_HOOK_CERT_PATH", good("cert.pem"));
        hook.env("LEGO_HOOK_CERT_KEY_PATH", good("privkey.pem")).env("LEGO_HOOK_ISSUER_CERT_PATH", large)
    };
    let api_key: PassFile = |hook, large, good| {
        let hook = hook.args(["--lineage".as_ref(), good("").as_os_str()]);
        hook.without_env("EDGECERT_API_KEY").env("EDGECERT_API_KEY_FILE", large)
    };
    let ca_file: PassFile = |hook, large, good| {
        hook.args(["--lineage".as_ref(), good("").as_os_str()]).env("EDGECERT_CA_FILE", large)
    };
    let dehydrated: PassFile = |hook, large, good| {
        let files =
            [&*good("privkey.pem"), &*good("cert.pem"), large, large].map(|path| path.as_os_str().to_owned());
        hook.args(["deploy_cert", "a.example"]).args(files).args(["0"])
    };
    let rows = [
        ("acme.sh, chain", acme_sh, 66, "larger than 1 MiB"),
        ("acme.sh, CA file", acme_sh_ca, 66, "larger than 1 MiB"),
        ("lego, issuer file", lego, 66, "larger than 1 MiB"),
        ("dehydrated, chain", dehydrated, 66, "larger than 1 MiB"),
        ("API key", api_key, 78, "larger than 16 KiB"),
        ("CA file", ca_file, 78, "larger than 4 MiB"),
    ];
    let large = [Zeros(100 << 20), Existing("/dev/zero")];
    let rows: Vec<_> = rows.iter().flat_map(|row| large.iter().map(move |large| (row, large))).collect();
    assert_all_bounded(&rows, |((name, set, code, message), large)| {
        let hook = deploy();
        let large = large.create(hook.write_file("large.pem", "").with_extension("hostile"));
        check_output(name, &set(hook, &large.path, &good).run(), *code, message)
    });
}
