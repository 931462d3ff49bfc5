//! Instructions of the local checks of one certificate, for each key type.
//!
//! Measured as `edgecert check` minus start-up, and as one round of many in one process, when tables and pages are warm.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::fixture::{Fixture, HookCall};
use crate::measure;
use crate::system;

pub(crate) struct KeyType {
    pub(crate) name: &'static str,
    /// Arguments of `openssl genpkey`.
    genpkey_args: &'static [&'static str],
    /// Thousands of instructions per round in a prototype with the same libraries: certificates parsed and compared,
    /// plus the key parsed and matched with the leaf.
    pub(crate) target: Option<u64>,
}

pub(crate) const KEY_TYPES: [KeyType; 6] = [
    KeyType {
        name: "P-256",
        genpkey_args: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        target: Some(122 + 1_237),
    },
    KeyType {
        name: "P-384",
        genpkey_args: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        target: Some(123 + 3_760),
    },
    KeyType {
        name: "P-521",
        genpkey_args: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
        target: None,
    },
    KeyType { name: "Ed25519", genpkey_args: &["-algorithm", "ED25519"], target: None },
    KeyType {
        name: "RSA-2048",
        genpkey_args: &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        target: Some(133 + 632),
    },
    KeyType {
        name: "RSA-4096",
        genpkey_args: &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"],
        target: Some(146 + 1_432),
    },
];

/// Key type of the CAs: P-256, like those of the most used public CAs.
const CA_GENPKEY_ARGS: &[&str] = KEY_TYPES[0].genpkey_args;

/// Instructions of `edgecert check` on a self-signed certificate, minus those of `--version`.
pub(crate) fn single_check(fixture: &Fixture, key_type: &KeyType, startup: u64) -> Result<u64> {
    issue_cert(fixture.dir(), "single", key_type.genpkey_args, &["subjectAltName=DNS:a.example"], None)?;
    let total = measure::instructions(fixture, fixture.check_call("single.crt", "single.key"))?;
    total.checked_sub(startup).context("`check` took fewer instructions than `--version`")
}

/// Instructions of one more round of checks on a leaf with its intermediate: the difference between five rounds and one
/// in a process, divided by four.
pub(crate) fn one_round(fixture: &Fixture, rounds: &Path, key_type: &KeyType) -> Result<u64> {
    const ADDITIONAL: u64 = 4;
    let dir = fixture.dir();
    let ca = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"];
    let leaf =
        ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth", "subjectAltName=DNS:a.example"];
    issue_cert(dir, "root", CA_GENPKEY_ARGS, &ca, None)?;
    issue_cert(dir, "intermediate", CA_GENPKEY_ARGS, &ca, Some("root"))?;
    issue_cert(dir, "leaf", key_type.genpkey_args, &leaf, Some("intermediate"))?;
    let chain = [fs::read(fixture.path("leaf.crt"))?, fs::read(fixture.path("intermediate.crt"))?].concat();
    fs::write(fixture.path("chain.crt"), chain)?;
    let cost = |times: u64| {
        let args = [rounds.into(), times.to_string().into(), "chain.crt".into(), "leaf.key".into()];
        measure::instructions(fixture, HookCall { args: args.into(), env: Vec::new() })
    };
    let additional = cost(1 + ADDITIONAL)?
        .checked_sub(cost(1)?)
        .context("five rounds took fewer instructions than one")?;
    Ok(additional / ADDITIONAL)
}

/// Creates `NAME.key` and `NAME.crt` with OpenSSL; self-signed without an `issuer`.
fn issue_cert(
    dir: &Path,
    name: &str,
    genpkey_args: &[&str],
    extensions: &[&str],
    issuer: Option<&str>,
) -> Result<()> {
    fs::write(dir.join("openssl.cnf"), "[req]\ndistinguished_name = name\n[name]\n")?;
    let file = |name: &str, extension: &str| format!("{name}.{extension}");
    let mut args = vec!["genpkey".to_owned(), "-out".to_owned(), file(name, "key")];
    args.extend(genpkey_args.iter().map(|&arg| arg.to_owned()));
    openssl(dir, &args)?;
    let subject = format!("/CN={name}");
    let mut args = ["req", "-x509", "-new", "-config", "openssl.cnf", "-days", "9", "-subj", &subject]
        .map(str::to_owned)
        .to_vec();
    args.extend(["-key".to_owned(), file(name, "key"), "-out".to_owned(), file(name, "crt")]);
    for extension in ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"].iter().chain(extensions) {
        args.extend(["-addext".to_owned(), (*extension).to_owned()]);
    }
    if let Some(issuer) = issuer {
        args.extend(["-CA".to_owned(), file(issuer, "crt"), "-CAkey".to_owned(), file(issuer, "key")]);
    }
    openssl(dir, &args)
}

fn openssl(dir: &Path, args: &[String]) -> Result<()> {
    let mut openssl = Command::new(system::find_program("openssl", "openssl")?);
    openssl.args(args).current_dir(dir);
    system::run(openssl).map(|_| ())
}
