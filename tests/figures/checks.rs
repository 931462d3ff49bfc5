//! What the local checks of one certificate cost, for each kind of key: in a process of their own, as `edgecert check`
//! less its start, and as one round of many, when tables are filled and pages mapped.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::measure;
use crate::scene::{Call, Scene};
use crate::system;

/// A kind of key.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The arguments with which openssl makes one.
    openssl: &'static [&'static str],
    /// What a prototype needed for one round, in thousands: both certificates read and compared, and the key read and
    /// paired with the leaf by the same libraries.
    pub(crate) reachable: Option<u64>,
}

pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        name: "P-256",
        openssl: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        reachable: Some(122 + 1_237),
    },
    Kind {
        name: "P-384",
        openssl: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
        reachable: Some(123 + 3_760),
    },
    Kind {
        name: "P-521",
        openssl: &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
        reachable: None,
    },
    Kind { name: "Ed25519", openssl: &["-algorithm", "ED25519"], reachable: None },
    Kind {
        name: "RSA-2048",
        openssl: &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        reachable: Some(133 + 632),
    },
    Kind {
        name: "RSA-4096",
        openssl: &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"],
        reachable: Some(146 + 1_432),
    },
];

/// The root and the intermediate above the leaf of a round: P-256, like those of the authorities that most use.
const AUTHORITY: &[&str] = KINDS[0].openssl;

/// Instructions of all checks of one self-signed certificate, reading its files and reporting included.
pub(crate) fn alone(scene: &Scene, kind: &Kind, start: u64) -> Result<u64> {
    certify(scene.home(), "alone", kind.openssl, &["subjectAltName=DNS:a.example"], None)?;
    let whole = measure::instructions(scene, scene.check("alone.crt", "alone.key"))?;
    whole.checked_sub(start).context("the checks cost less than nothing")
}

/// Instructions of one round of all checks of a leaf with its intermediate, as authorities hand them out: what five
/// rounds in one process cost more than one.
pub(crate) fn round(scene: &Scene, rounds: &Path, kind: &Kind) -> Result<u64> {
    const MORE: u64 = 4;
    let home = scene.home();
    let ca = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"];
    let leaf =
        ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth", "subjectAltName=DNS:a.example"];
    certify(home, "root", AUTHORITY, &ca, None)?;
    certify(home, "between", AUTHORITY, &ca, Some("root"))?;
    certify(home, "leaf", kind.openssl, &leaf, Some("between"))?;
    let chain = [fs::read(scene.file("leaf.crt"))?, fs::read(scene.file("between.crt"))?].concat();
    fs::write(scene.file("chain.crt"), chain)?;
    let cost = |times: u64| {
        let arguments = [rounds.into(), times.to_string().into(), "chain.crt".into(), "leaf.key".into()];
        measure::instructions(scene, Call { arguments: arguments.into(), environment: Vec::new() })
    };
    let more = cost(1 + MORE)?.checked_sub(cost(1)?).context("five rounds cost less than one")?;
    Ok(more / MORE)
}

/// Has openssl make `NAME.key` and sign `NAME.crt`, with the key of `issuer` or with its own.
fn certify(home: &Path, name: &str, key: &[&str], extensions: &[&str], issuer: Option<&str>) -> Result<()> {
    fs::write(home.join("openssl.cnf"), "[req]\ndistinguished_name = name\n[name]\n")?;
    let of = |name: &str, kind: &str| format!("{name}.{kind}");
    let mut words = vec!["genpkey".to_owned(), "-out".to_owned(), of(name, "key")];
    words.extend(key.iter().map(|&word| word.to_owned()));
    openssl(home, &words)?;
    let subject = format!("/CN={name}");
    let mut words = ["req", "-x509", "-new", "-config", "openssl.cnf", "-days", "9", "-subj", &subject]
        .map(str::to_owned)
        .to_vec();
    words.extend(["-key".to_owned(), of(name, "key"), "-out".to_owned(), of(name, "crt")]);
    for extension in ["subjectKeyIdentifier=hash", "authorityKeyIdentifier=keyid"].iter().chain(extensions) {
        words.extend(["-addext".to_owned(), (*extension).to_owned()]);
    }
    if let Some(issuer) = issuer {
        words.extend(["-CA".to_owned(), of(issuer, "crt"), "-CAkey".to_owned(), of(issuer, "key")]);
    }
    openssl(home, &words)
}

fn openssl(home: &Path, arguments: &[String]) -> Result<()> {
    let mut openssl = Command::new(system::program("openssl", "openssl")?);
    openssl.args(arguments).current_dir(home);
    system::run(openssl).map(|_| ())
}
