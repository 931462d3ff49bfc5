//! The private key of a file.

use super::{DAMAGED_HINT, Defect};
use crate::key::{KeyError, PrivateKey};
use crate::pem::Block;

/// Reads the only private key of a file.
pub(super) fn find(blocks: &[Block], file: &[u8]) -> Result<PrivateKey, Defect> {
    let mut keys = Vec::new();
    for block in blocks {
        match block {
            Block::Key(format, der) if keys.contains(&(format, der)) => {}
            Block::Key(format, der) => keys.push((format, der)),
            Block::EncryptedKey => {
                let hint = "write it without a passphrase, for example: openssl pkey -in KEY -out NEWKEY";
                return Err(Defect::permanent("a private key that is encrypted with a passphrase", hint));
            }
            Block::Broken(found) => return Err(Defect::transient(found, DAMAGED_HINT)),
            Block::Other(label) if label.ends_with("PRIVATE KEY") => {
                let kind = label.trim_end_matches("PRIVATE KEY").trim().to_owned();
                return Err(unusable(&KeyError::Unsupported(kind)));
            }
            Block::Certificate(_) | Block::Other(_) => {}
        }
    }
    match keys.as_slice() {
        [(format, der)] => PrivateKey::from_der(**format, der).map_err(|error| unusable(&error)),
        [] => {
            let hint = "pass the file with the private key of this certificate, in PEM";
            Err(Defect::missing("private key", blocks, file, hint))
        }
        several => {
            let found = format!("{} different private keys", several.len());
            Err(Defect::permanent(found, "keep only the private key of this certificate in the file"))
        }
    }
}

fn unusable(error: &KeyError) -> Defect {
    let hint = match error {
        KeyError::Unsupported(_) => "renew the certificate with a key of a supported type",
        KeyError::Malformed(_) => {
            "let the ACME client write the file again, or rewrite it: openssl pkey -in KEY -out NEWKEY"
        }
        KeyError::Inconsistent(_) => "renew the certificate with a new key; this key file is corrupt",
    };
    Defect::permanent(error.to_string(), hint)
}
