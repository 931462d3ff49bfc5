//! SHA-256 in the forms that outputs use.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes` in lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Returns `sha256:` and the digest, which stands in for key material.
pub(crate) fn redacted(secret: &str) -> String {
    format!("sha256:{}", sha256_hex(secret.as_bytes()))
}
