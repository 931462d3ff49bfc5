//! The check `key`: whether the private key belongs to the leaf. For anything but RSA the service does not check this.

use super::finding::{Check, Finding, Findings, Status};
use crate::bundle::{Bundle, Chain};
use crate::key::{KeyType, SUPPORTED_KEY_TYPES};
use crate::text;

/// Shortest RSA key that browsers accept (CA/Browser Forum Baseline Requirements, section 6.1.5).
const MIN_RSA_BITS: usize = 2048;

pub(super) fn check(file: &str, chain: &Chain, bundle: &Bundle) -> Vec<Finding> {
    let mut findings = Findings::new(Check::Key);
    let leaf = &chain.leaf;
    let leaf_type = &leaf.public_key.key_type;
    // The service accepts more keys than browsers do.
    let mut warn = |found: String, hint: &'static str| {
        findings.add(Status::Warn, format!("{file} has {found}"), hint);
    };
    match leaf_type {
        KeyType::Other(_) => {
            let found = format!(
                "{file} has a public key of unsupported type {leaf_type}; supported types: {SUPPORTED_KEY_TYPES}"
            );
            findings.add(Status::Fail, found, "renew it with a key of a supported type");
            return findings.list;
        }
        KeyType::Rsa { bits: bits @ ..MIN_RSA_BITS } => {
            let found = format!("an RSA key of {bits} bits; browsers require {MIN_RSA_BITS}");
            warn(found, "renew it with a longer key");
        }
        KeyType::P521 | KeyType::Ed25519 => {
            let found = format!("a key of type {leaf_type}, which not every browser accepts");
            warn(found, "renew it with a key on the curve P-256 or P-384, or with an RSA key");
        }
        _ => {}
    }
    if leaf.has_pss_key {
        let found = "an RSASSA-PSS key; browsers require a plain RSA key (rsaEncryption)".into();
        warn(found, "renew it with a key from `openssl genpkey -algorithm RSA`, or with an EC key");
    }
    match (&bundle.key, &bundle.files.key) {
        (Some(Ok(key)), _) if key.public_key == leaf.public_key => {}
        (Some(Ok(key)), Some(key_file)) => {
            let difference = match &key.public_key.key_type {
                same if same == leaf_type => format!("both are {leaf_type}, but of different pairs"),
                other => format!("the certificate is for {leaf_type}, the key is {other}"),
            };
            let found = format!("{} is not the private key of {file}: {difference}", text::path(key_file));
            findings.add(Status::Fail, found, "pass the key and the certificate of the same renewal");
        }
        (Some(_), _) => findings.note(Status::Skipped, "there is no usable private key"),
        (None, _) => findings.note(Status::Skipped, "no private key was given"),
    }
    findings.or_ok(format!("{leaf_type}, key and certificate match"))
}
