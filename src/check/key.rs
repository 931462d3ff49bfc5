//! The check `key`: whether the private key belongs to the leaf. For anything but RSA the service does not check this.

use super::finding::{Check, Finding};
use crate::bundle::{Bundle, Chain};
use crate::cert::Certificate;
use crate::key::{KeyType, PrivateKey, SUPPORTED_KEY_TYPES};
use crate::text;

/// Shortest RSA key that browsers accept (CA/Browser Forum Baseline Requirements, section 6.1.5).
const MIN_RSA_BITS: usize = 2048;

pub(super) fn check(file: &str, chain: &Chain, bundle: &Bundle) -> Vec<Finding> {
    let leaf_type = &chain.leaf.public_key.key_type;
    if !leaf_type.is_supported() {
        let detail = format!(
            "{file} has a public key of unsupported type {leaf_type}; supported types: {SUPPORTED_KEY_TYPES}"
        );
        return vec![Finding::fail(Check::Key, detail).hint("renew it with a key of a supported type")];
    }
    let mut findings = weaknesses(file, &chain.leaf);
    match (&bundle.key, &bundle.files.key) {
        (Some(Ok(key)), _) if key.pairs_with(&chain.leaf.public_key) => {
            if findings.is_empty() {
                findings.push(Finding::ok(Check::Key, format!("{leaf_type}, key and certificate match")));
            }
        }
        (Some(Ok(key)), Some(key_file)) => {
            findings.push(mismatch(file, &text::path(key_file), leaf_type, key));
        }
        (Some(_), _) => findings.push(Finding::skipped(Check::Key, "there is no usable private key")),
        (None, _) => findings.push(Finding::skipped(Check::Key, "no private key was given")),
    }
    findings
}

/// Warns about keys that the service accepts but browsers refuse.
fn weaknesses(file: &str, leaf: &Certificate) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |found: String, hint: &'static str| {
        findings.push(Finding::warn(Check::Key, format!("{file} has {found}")).hint(hint));
    };
    match &leaf.public_key.key_type {
        KeyType::Rsa { bits: bits @ ..MIN_RSA_BITS } => {
            let found = format!("an RSA key of {bits} bits; browsers require {MIN_RSA_BITS}");
            warn(found, "renew it with a longer key");
        }
        curve @ (KeyType::P521 | KeyType::Ed25519) => {
            let found = format!("a key of type {curve}, which not every browser accepts");
            warn(found, "renew it with a key on the curve P-256 or P-384, or with an RSA key");
        }
        _ => {}
    }
    if leaf.has_pss_key {
        let found = "an RSASSA-PSS key; browsers require a plain RSA key (rsaEncryption)".into();
        warn(found, "renew it with a key from `openssl genpkey -algorithm RSA`, or with an EC key");
    }
    findings
}

fn mismatch(file: &str, key_file: &str, leaf_type: &KeyType, key: &PrivateKey) -> Finding {
    let difference = match &key.public_key.key_type {
        same if same == leaf_type => format!("both are {leaf_type}, but of different pairs"),
        other => format!("the certificate is for {leaf_type}, the key is {other}"),
    };
    Finding::fail(Check::Key, format!("{key_file} is not the private key of {file}: {difference}"))
        .hint("pass the key and the certificate of the same renewal")
}
