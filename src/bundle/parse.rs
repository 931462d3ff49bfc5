//! Parses the contents of a lineage's files.

use std::collections::BTreeSet;

use super::chain::Chain;
use super::defect::{Defect, kinds};
use super::files::Files;
use super::key::find_key;
use crate::key::PrivateKey;
use crate::pem::{self, Block};

/// The parsed files of a lineage.
pub struct Bundle {
    pub files: Files,
    /// The errors say why the chain cannot be used.
    pub chain: Result<Chain, Vec<Defect>>,
    /// `None` if the key was not read.
    pub key: Option<Result<PrivateKey, Defect>>,
    /// What was ignored or normalized in the files, for messages.
    pub cleaned: BTreeSet<String>,
}

impl Bundle {
    /// Parses the contents of `files`.
    pub fn from_bytes(files: &Files, cert: &[u8], issuers: Option<&[u8]>, key: Option<&[u8]>) -> Self {
        let pem::Document { mut blocks, mut cleaned } = pem::parse(cert);
        if let Some(issuers) = issuers.map(pem::parse) {
            blocks.extend(issuers.blocks);
            cleaned.extend(issuers.cleaned);
        }
        let mut cleaned: BTreeSet<String> = cleaned.into_iter().map(str::to_owned).collect();
        let is_one_file = files.key.as_ref() == Some(&files.cert);
        cleaned.extend(kinds(&blocks, |block| !(is_certificate(block) || is_one_file && is_key(block))));
        let key = key.map(|file| {
            let document = pem::parse(file);
            if !is_one_file {
                let noted = document.cleaned.iter().map(|what| (*what).to_owned());
                let noted = noted.chain(kinds(&document.blocks, |block| !is_key(block)));
                cleaned.extend(noted.map(|what| format!("{what} in the key file")));
            }
            find_key(document.blocks, file)
        });
        let usable_key = key.as_ref().and_then(|key| key.as_ref().ok());
        let chain = Chain::assemble(blocks, usable_key, cert);
        Self { files: files.clone(), chain, key, cleaned }
    }

    /// Whether the files may be in the middle of being replaced: a part is incomplete, or key and leaf do not match.
    pub(super) fn may_be_changing(&self) -> bool {
        match (&self.chain, &self.key) {
            (Ok(chain), Some(Ok(key))) => key.public_key != chain.leaf.public_key,
            (Ok(_), None) => false,
            (Ok(_), Some(Err(defect))) => defect.is_transient,
            (Err(defects), _) => defects.iter().any(|defect| defect.is_transient),
        }
    }
}

fn is_certificate(block: &Block) -> bool {
    matches!(block, Block::Certificate(_))
}

fn is_key(block: &Block) -> bool {
    matches!(block, Block::Key(..) | Block::EncryptedKey)
}
