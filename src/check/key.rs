//! The check `key`: whether the private key belongs to the leaf. For anything but RSA the service does not check this.

use super::finding::{Check, Finding};
use crate::bundle::{Bundle, Chain};
use crate::cert::{KeyType, SUPPORTED_KEY_TYPES};
use crate::key::PrivateKey;
use crate::text;

/// Shortest RSA key that browsers accept (CA/Browser Forum Baseline Requirements, section 6.1.5).
const MIN_RSA_BITS: usize = 2048;

pub(super) fn check(file: &str, chain: &Chain, bundle: &Bundle) -> Finding {
    let leaf_type = chain.leaf.public_key.key_type();
    if !leaf_type.is_supported() {
        let detail = format!(
            "{file} has a public key of unsupported type {leaf_type}; supported types: {SUPPORTED_KEY_TYPES}"
        );
        return Finding::fail(Check::Key, detail).hint("renew it with a key of a supported type");
    }
    match (&bundle.key, &bundle.files.key) {
        (Some(Ok(key)), _) if key.pairs_with(&chain.leaf.public_key) => match leaf_type {
            KeyType::Rsa { bits } if bits < MIN_RSA_BITS => {
                let detail = format!("{file} has an RSA key of {bits} bits; browsers require {MIN_RSA_BITS}");
                Finding::warn(Check::Key, detail).hint("renew it with a longer key")
            }
            leaf_type => Finding::ok(Check::Key, format!("{leaf_type}, key and certificate match")),
        },
        (Some(Ok(key)), Some(key_file)) => mismatch(file, &text::path(key_file), &leaf_type, key),
        (Some(_), _) => Finding::skipped(Check::Key, "there is no usable private key"),
        (None, _) => Finding::skipped(Check::Key, "no private key was given"),
    }
}

fn mismatch(file: &str, key_file: &str, leaf_type: &KeyType, key: &PrivateKey) -> Finding {
    let difference = match key.key_type() {
        same if same == *leaf_type => format!("both are {leaf_type}, but of different pairs"),
        other => format!("the certificate is for {leaf_type}, the key is {other}"),
    };
    Finding::fail(Check::Key, format!("{key_file} is not the private key of {file}: {difference}"))
        .hint("pass the key and the certificate of the same renewal")
}
